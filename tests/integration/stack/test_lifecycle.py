"""A stack from `up` to its end: ready, everything that is killed comes back, nothing stays behind."""

import os
import signal
import ssl
import urllib.request
from pathlib import Path

import pytest

from tests.integration.stack.stacks import (
    ONE_REGION,
    START_SECONDS,
    VICTIMS,
    Stack,
    alive,
    end,
    json_of,
    launch,
    run,
    start,
    within,
)

BACK_SECONDS = 2.0
PARENT_BACK_SECONDS = 5.0
"""A transceiver's parent imports everything anew before it can fork its workers."""
END_SECONDS = 3.0
GONE_SECONDS = 2.0


@pytest.mark.parametrize("victim", VICTIMS)
def test_what_is_killed_is_back_in_time(example: Stack, victim: str) -> None:
    find = VICTIMS[victim]

    def ready() -> bool:
        seen = example.look()
        return seen is not None and seen.ready

    def back() -> bool:
        seen = example.look()
        return seen is not None and seen.ready and find(seen) not in (None, killed)

    within(START_SECONDS, ready)
    seen = example.look()
    assert seen is not None
    killed = find(seen)
    assert killed is not None
    os.kill(killed, signal.SIGKILL)
    took = within(PARENT_BACK_SECONDS if victim == "transceiver parent" else BACK_SECONDS, back)
    print(f"{victim}: back after {took:.2f} s")


def test_status_exits_0_while_all_is_ready_and_names_every_process(example: Stack) -> None:
    shown = example.run("status")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    for name in ("eu-west-relay", "eu-west-transceiver-0", "us-east-relay", "us-east-transceiver-1025"):
        assert name in shown.stdout
    told = json_of(example.run("status", "--json"))
    assert told["ready"] is True
    assert told["url"] == "http://127.0.106.1:8080"


def test_status_exits_1_while_a_process_does_not_answer(example: Stack) -> None:
    seen = example.look()
    assert seen is not None
    stopped = VICTIMS["relay control plane"](seen)
    assert stopped is not None
    os.kill(stopped, signal.SIGSTOP)
    try:
        assert example.run("status").returncode == 1
    finally:
        os.kill(stopped, signal.SIGCONT)


def test_logs_show_each_process_by_name(example: Stack) -> None:
    shown = example.run("logs")
    assert shown.returncode == 0
    assert "eu-west-relay" in shown.stdout
    unknown = example.run("logs", "nobody")
    assert unknown.returncode == 2
    assert "there are eu-west-relay, " in unknown.stderr


def test_a_second_up_of_the_same_stack_is_refused_before_anything_starts(example: Stack) -> None:
    before = example.pids()
    again = example.run("up", str(example.file), "--name", "example")
    assert again.returncode == 2
    assert "runs already" in again.stderr
    assert example.pids() == before


def test_another_stack_on_the_same_vip_is_told_which_process_holds_it(example: Stack) -> None:
    again = example.run("up", str(example.file), "--name", "other", "--signaling", "127.0.106.1:8081")
    assert again.returncode == 2
    [line] = again.stderr.splitlines()
    assert "eu-west-relay needs vip-0 127.0.106.1:3478/udp: port taken, held by voicecluster-re" in line
    assert any(f"(pid {pid})" in line for pid in example.pids())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_told_to_stop_it_ends_within_three_seconds_and_leaves_nothing(
    small: Stack, number: signal.Signals
) -> None:
    pids = small.pids()
    small.up.send_signal(number)
    assert small.up.wait(END_SECONDS) == 0
    assert not [pid for pid in pids if alive(pid)]
    assert small.run("status").returncode != 0


def test_interrupted_while_it_starts_it_leaves_nothing_either(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(ONE_REGION, encoding="utf-8")
    stack = launch(tmp_path, file, "--signaling", "127.0.106.9:8080", "--internal", "127.0.108.0/24")
    within(START_SECONDS, lambda: stack.look() is not None and len(stack.pids()) >= 2)
    pids = stack.pids()
    stack.up.send_signal(signal.SIGINT)
    assert stack.up.wait(END_SECONDS) == 0
    assert not [pid for pid in pids if alive(pid)]


def test_killed_it_leaves_no_process(small: Stack) -> None:
    pids = small.pids()
    small.up.kill()
    small.up.wait()
    within(GONE_SECONDS, lambda: not any(alive(pid) for pid in pids))


def test_secrets_are_readable_by_their_owner_only(small: Stack) -> None:
    assert [path for path in small.directory.root.rglob("*") if path.stat().st_mode & 0o077] == []


def test_on_an_address_with_tls_the_page_is_served_with_the_stacks_own_certificate(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(ONE_REGION, encoding="utf-8")
    stack = start(tmp_path, file, "--address", "127.0.106.20", "--tls", "--internal", "127.0.108.0/24")
    try:
        trusted = ssl.create_default_context(cafile=stack.directory.secrets / "tls.crt")
        with urllib.request.urlopen("https://127.0.106.20:8080/", context=trusted, timeout=5) as page:
            assert b"<title>VoiceCluster</title>" in page.read()
        seen = stack.look()
        assert seen is not None
        assert seen.regions == {"eu": ["127.0.106.20:3478"]}
    finally:
        end(stack)


def test_detached_it_returns_when_ready_and_down_ends_it(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(ONE_REGION, encoding="utf-8")
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    options = ("--detach", "--signaling", "127.0.106.9:8080", "--internal", "127.0.108.0/24")
    started = run(environment, "up", str(file), *options)
    try:
        assert started.returncode == 0, started.stderr
        assert "http://127.0.106.9:8080/" in started.stdout
        assert run(environment, "status").returncode == 0
    finally:
        ended = run(environment, "down")
    assert ended.returncode == 0, ended.stderr
    assert run(environment, "status").returncode == 2


def test_two_stacks_run_side_by_side_and_are_told_apart_by_name(small: Stack, tmp_path: Path) -> None:
    file = tmp_path / "second.yaml"
    second = ONE_REGION.replace("127.0.106.9", "127.0.106.10").replace("small", "second")
    file.write_text(second, encoding="utf-8")
    options = ("--detach", "--signaling", "127.0.106.10:8080", "--internal", "127.0.109.0/24")
    started = small.run("up", str(file), *options)
    try:
        assert started.returncode == 0, started.stderr
        assert "choose one with --name" in small.run("status").stderr
        for name in ("small", "second"):
            assert small.run("status", "--name", name).returncode == 0
    finally:
        assert small.run("down", "--name", "second").returncode == 0
    assert small.run("status").returncode == 0
