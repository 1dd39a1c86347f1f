"""Naming the bottleneck."""

import pytest
from voicecluster.cli.client.usage import Sample, Usage, between, judge, program_of


@pytest.mark.parametrize(
    ("usage", "late", "side"),
    [
        (Usage(0.95, 0.6, {"voicecluster-transceiver[1]": 0.2}), 0.001, "client"),
        (Usage(0.40, 0.6, {"voicecluster-transceiver[1]": 0.2}), 0.020, "client"),
        (
            Usage(0.30, 0.6, {"voicecluster-transceiver[1]": 0.2, "voicecluster-relay-engine[2]": 0.9}),
            0.001,
            "server",
        ),
        (Usage(0.30, 0.99, {"voicecluster-transceiver[1]": 0.2}), 0.001, "machine"),
        (Usage(0.30, 0.5, {}), 0.001, "none"),
    ],
)
def test_the_side_that_is_at_its_end_is_named(usage: Usage, late: float, side: str) -> None:
    assert judge(usage, late_p99_seconds=late).side == side


def test_use_is_cpu_over_time_and_only_of_processes_that_were_there_all_along() -> None:
    before = Sample(10.0, 1.0, 5.0, {"a[1]": 3.0, "gone[2]": 9.0})
    after = Sample(12.0, 2.0, 6.0, {"a[1]": 4.0, "new[3]": 1.0})
    usage = between(before, after)
    assert (usage.own, usage.servers) == (0.5, {"a[1]": 0.5})


@pytest.mark.parametrize(
    ("command_line", "program"),
    [
        (b"/opt/bin/voicecluster-relay-engine\0run\0--control\0/run/x\0", "voicecluster-relay-engine"),
        (b"/usr/bin/python3\0/opt/bin/voicecluster-transceiver\0--config\0x\0", "voicecluster-transceiver"),
        (b"voicecluster-transceiver worker --index 1\0\0\0\0", "voicecluster-transceiver"),
        (b"/usr/bin/tail\0-f\0/var/log/x\0voicecluster-transceiver\0", None),
        (b"", None),
    ],
)
def test_a_server_is_known_by_its_command_line_or_its_title(command_line: bytes, program: str | None) -> None:
    assert program_of(command_line) == program
