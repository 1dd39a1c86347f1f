"""Starting real local stacks for tests, and looking at them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from voicecluster.cli.stack.look import Seen, look
from voicecluster.cli.state import StackDirectory

EXAMPLE = Path(__file__).parents[3] / "examples" / "local.yaml"
ONE_REGION = """
apiVersion: voicecluster.dev/v1alpha1
kind: VoiceCluster
metadata: {name: small}
spec:
  clusterId: 9
  regions:
    - name: eu
      index: 0
      relay: {vip: {mode: External, addresses: [127.0.106.9]}}
"""
START_SECONDS = 30


@dataclass
class Stack:
    """A stack that `voicecluster up` runs for a test."""

    directory: StackDirectory
    up: subprocess.Popen[str]
    environment: dict[str, str]
    file: Path

    def look(self) -> Seen | None:
        """What `voicecluster status` would say; None before anything runs."""
        status = self.directory.running()
        return look(status) if status is not None else None

    def pids(self) -> set[int]:
        """Every process of the stack but `up` itself."""
        seen = self.look()
        assert seen is not None
        own = {process.pid for process in seen.processes if process.pid is not None}
        return own | {child.pid for process in seen.processes for child in process.children}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another command of the command line, in the same environment."""
        return run(self.environment, *arguments)


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voicecluster.cli.main", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=40)


def within(seconds: float, condition: Callable[[], bool]) -> float:
    """Poll `condition`. Returns how long it took to hold; fails the test if it did not in time."""
    started = time.monotonic()
    while not condition():
        took = time.monotonic() - started
        assert took < seconds, f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - started


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def launch(home: Path, file: Path, *options: str) -> Stack:
    """Start `up FILE`; its state is below `home`, its output in a file beside it."""
    environment = {**os.environ, "XDG_STATE_HOME": str(home)}
    command = [sys.executable, "-m", "voicecluster.cli.main", "up", str(file), "--name", file.stem, *options]
    with (home / f"{file.stem}.out").open("w") as output:
        up = subprocess.Popen(command, env=environment, stdout=output, stderr=output, text=True)
    return Stack(StackDirectory(home / "voicecluster" / file.stem), up, environment, file)


def start(home: Path, file: Path, *options: str) -> Stack:
    """Start `up FILE` and wait until all is ready."""
    stack = launch(home, file, *options)

    def ready() -> bool:
        assert stack.up.poll() is None, (home / f"{file.stem}.out").read_text()
        status = stack.directory.running()
        return status is not None and status.ready

    try:
        within(START_SECONDS, ready)
    except BaseException:
        stack.up.kill()
        stack.up.wait()
        raise
    return stack


def end(stack: Stack) -> None:
    if stack.up.poll() is None:
        stack.up.send_signal(signal.SIGINT)
        try:
            stack.up.wait(5)
        except subprocess.TimeoutExpired:
            stack.up.kill()
            stack.up.wait()


def json_of(finished: subprocess.CompletedProcess[str]) -> dict[str, object]:
    document = json.loads(finished.stdout)
    assert isinstance(document, dict)
    return document


def own(role: str) -> Callable[[Seen], int | None]:
    """The process of a role that `up` started: of the last region, which has the most workers."""
    return lambda seen: [process.pid for process in seen.processes if process.role == role][-1]


def child(role: str, words: str) -> Callable[[Seen], int | None]:
    """The process that a process of a role started with these words in its name and command."""

    def find(seen: Seen) -> int | None:
        process = [process for process in seen.processes if process.role == role][-1]
        return next((one.pid for one in process.children if words in f"{one.name} {one.command}"), None)

    return find


VICTIMS = {
    "relay supervisor": own("relay"),
    "relay engine": child("relay", "voicecluster-relay-engine run"),
    "relay control plane": child("relay", "voicecluster-relay --config"),
    "transceiver parent": own("transceiver"),
    "transceiver worker": child("transceiver", "worker-1"),
    "transceiver admin server": child("transceiver", "admin"),
}
