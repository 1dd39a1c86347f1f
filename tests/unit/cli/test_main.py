"""The commands that look at a local stack, and what `up` says before it starts anything."""

import os
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from voicecluster.cli.main import cli

EXAMPLE = (Path(__file__).parents[3] / "examples" / "local.yaml").read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], prog_name="voicecluster")


def refused(result: Result) -> str:
    """The one line of an exit with 2."""
    assert result.exit_code == 2, result.output
    [line] = result.stderr.splitlines()
    return line


BAD_FILES = [
    ("regions:", "region:", "spec.regions: required field is missing; add it"),
    ("clusterId: 7", "clusterId: 70000", "spec.clusterId: Input should be less than or equal to 65535"),
    ("clusterId: 7", "clusterid: 7", "spec.clusterId: required field is missing; add it"),
    ("index: 1", "index: 0", "spec.regions: two regions have the same index; give each its own (0 to 63)"),
    (
        "workers: 2",
        "worker: 2",
        "spec.regions.1.relay.worker: unknown field; remove it or check its spelling",
    ),
    (
        "[127.0.0.2]",
        "[127.0.0.1]",
        "spec.regions: two regions have the same VIP; give each its own address or port",
    ),
    ("mode: None", "mode: Nobody", "spec.signaling.auth.mode: Input should be 'APIKey' or 'None'"),
    ("kind: VoiceCluster", "kind: VoiceRegion", "kind: Input should be 'VoiceCluster'"),
    ("metadata:", "metadata: [", "line 6: not YAML"),
]


@pytest.mark.parametrize(("good", "bad", "message"), BAD_FILES)
def test_a_bad_file_is_one_line_with_file_field_and_remedy_and_exit_2(
    home: Path, good: str, bad: str, message: str
) -> None:
    file = home / "bad.yaml"
    file.write_text(EXAMPLE.replace(good, bad), encoding="utf-8")
    assert refused(run("up", file)).startswith(f"error: {file}: {message}")
    assert not (home / "state").exists()


def test_a_missing_file_is_said_with_what_to_check(home: Path) -> None:
    line = refused(run("up", home / "none.yaml"))
    assert line.endswith("No such file or directory; check the path and its permissions")


def test_a_file_that_is_no_text_is_refused(home: Path) -> None:
    (home / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8 text" in refused(run("up", home / "bad.yaml"))


def test_a_taken_port_is_named_with_who_needs_it_and_who_holds_it(home: Path) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as holder:
        holder.bind(("127.0.107.200", 0))
        port = holder.getsockname()[1]
        file = home / "taken.yaml"
        vip = EXAMPLE.replace("[127.0.0.1]", "[127.0.107.200]").replace("port: 3478", f"port: {port}")
        file.write_text(vip, encoding="utf-8")
        line = refused(run("up", file, "--internal", "127.0.107.0/24", "--signaling", "127.0.107.200:18080"))
    assert f"eu-west-relay needs vip-0 127.0.107.200:{port}/udp: port taken" in line
    assert f"(pid {os.getpid()})" in line


def test_an_address_that_this_machine_does_not_have_is_refused(home: Path) -> None:
    file = home / "far.yaml"
    file.write_text(EXAMPLE, encoding="utf-8")
    line = refused(run("up", file, "--address", "192.0.2.5", "--internal", "127.0.107.0/24"))
    assert "192.0.2.5:3478/udp: not an address of this machine" in line


@pytest.mark.parametrize(
    ("option", "value", "remedy"),
    [
        ("--address", "0.0.0.0", "write the address that callers reach"),
        ("--address", "example.org", "not an IP address"),
        ("--signaling", "8080", "write IP:PORT"),
        ("--internal", "10.0.0.0/24", "not a loopback network"),
        ("--name", "a/b", "cannot name a stack"),
    ],
)
def test_a_bad_option_is_refused_with_what_to_write(home: Path, option: str, value: str, remedy: str) -> None:
    (home / "good.yaml").write_text(EXAMPLE, encoding="utf-8")
    result = run("up", home / "good.yaml", option, value)
    assert result.exit_code == 2
    assert remedy in result.stderr


@pytest.mark.parametrize("command", ["status", "logs", "down"])
def test_without_a_running_stack_the_way_to_one_is_told(home: Path, command: str) -> None:
    assert "voicecluster up FILE" in refused(run(command))


def test_help_names_every_command_in_the_order_one_meets_them() -> None:
    shown = run("--help").output
    places = [
        shown.index(f"\n  {name} ") for name in ("up", "status", "logs", "down", "call", "load", "decode")
    ]
    assert places == sorted(places)


def test_the_logs_of_the_last_stack_can_be_read_when_none_runs(home: Path) -> None:
    logs = home / "state" / "voicecluster" / "local" / "logs"
    logs.mkdir(parents=True)
    (logs / "eu-west-relay.log").write_text("it went wrong\n", encoding="utf-8")
    assert run("logs").output == "eu-west-relay  it went wrong\n"
    assert run("logs", "eu-west-relay").output == "it went wrong\n"
    assert "there are eu-west-relay" in refused(run("logs", "nobody"))
    assert "there is no stack 'other'" in refused(run("logs", "--name", "other"))
