"""Naming the bottleneck."""

import pytest
from voicecluster.cli.client.usage import Sample, Usage, between, judge


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
