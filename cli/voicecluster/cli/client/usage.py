"""Who used how much CPU: this process, the server's processes where they run on this machine, the machine as
a whole.

Read from /proc, so Linux only; elsewhere there are no figures and no verdict.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

SERVER_PROGRAMS = ("voicecluster-transceiver", "voicecluster-relay-engine", "voicecluster-relay")
BUSY = 0.85
"""A single-threaded process above this share of a core is at its end."""
FULL = 0.95
"""A machine above this share of its cores gives nobody more."""
LATE_SECONDS = 0.010
"""A client whose timers are later than this (99th percentile) cannot pace 20 ms frames."""
Side = Literal["client", "server", "machine", "none"]
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Sample:
    """CPU seconds so far."""

    at: float
    own: float
    busy: float
    """Of all cores of the machine together."""
    servers: dict[str, float]
    """By `program[pid]`."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Cores used over a time: 1.0 is one core all the time."""

    own: float
    machine: float
    """Share of all cores, 0..1."""
    servers: dict[str, float]

    @property
    def server_total(self) -> float:
        """Cores used by all server processes that were found."""
        return sum(self.servers.values())


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which side would have to become faster first."""

    side: Side
    why: str


def sample(*, local: bool) -> Sample:
    """Read the counters now; of servers only if `local`."""
    return Sample(time.monotonic(), time.process_time(), _machine_busy(), _servers() if local else {})


def between(before: Sample, after: Sample) -> Usage:
    """What was used from one sample to the other. Processes that came or went in between are left out."""
    elapsed = max(after.at - before.at, 1e-9)
    servers = {
        name: (cpu - before.servers[name]) / elapsed
        for name, cpu in after.servers.items()
        if name in before.servers
    }
    machine = (after.busy - before.busy) / elapsed / (os.cpu_count() or 1)
    return Usage((after.own - before.own) / elapsed, machine, servers)


def judge(usage: Usage, *, late_p99_seconds: float) -> Verdict:
    """Name the bottleneck of a run.

    A full machine goes before late timers: on it they are late because somebody else has the core.
    """
    own = f"this client used {100 * usage.own:.0f} % of a core"
    if usage.own >= BUSY:
        return Verdict("client", f"{own}: the figures say little about the server; run several clients")
    busiest = max(usage.servers.items(), key=lambda item: item[1], default=None)
    if busiest is not None and busiest[1] >= BUSY:
        return Verdict("server", f"{busiest[0]} used {100 * busiest[1]:.0f} % of a core")
    if usage.machine >= FULL:
        return Verdict("machine", f"all cores together were {100 * usage.machine:.0f} % busy; {own}")
    if late_p99_seconds >= LATE_SECONDS:
        late = f"its timers were {1000 * late_p99_seconds:.1f} ms late"
        return Verdict("client", f"{own}, but {late}: the figures say little about the server")
    return Verdict("none", "neither side was at its end")


def _machine_busy() -> float:
    """CPU seconds of all cores that were not idle (user, nice, system, irq, softirq, steal)."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        fields = [int(field) for field in first.split()[1:9]]
    except (OSError, ValueError):
        return 0.0
    return (sum(fields) - fields[3] - fields[4]) / _TICK


def _servers() -> dict[str, float]:
    found = {}
    for directory in Path("/proc").glob("[0-9]*"):
        name = _program(directory)
        if name is not None:
            cpu = cpu_seconds(int(directory.name))
            if cpu is not None:
                found[f"{name}[{directory.name}]"] = cpu
    return found


def _program(directory: Path) -> str | None:
    """Which of the server's programs a process is. None when it is no server, or gone."""
    try:
        return program_of((directory / "cmdline").read_bytes())
    except OSError:
        return None


def program_of(command_line: bytes) -> str | None:
    """Which of the server's programs a command line of /proc starts.

    A script's name stands behind its interpreter's; a forked worker writes a title, words with blanks, in its place.
    """
    words = [word for argument in command_line.split(b"\0")[:3] for word in argument.split(b" ")[:1]]
    names = [os.path.basename(word.decode("utf-8", "replace")) for word in words]
    return next((name for name in names if name in SERVER_PROGRAMS), None)


def cpu_seconds(pid: int) -> float | None:
    """User and system time of a process with all its threads; None when there is no such process."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        fields = line.rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return None
    return (int(fields[11]) + int(fields[12])) / _TICK
