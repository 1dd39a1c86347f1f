"""What the parent and its children tell one another through pipes, a line each.

To the parent: `INDEX STATE` from a worker; from the admin process `admin`, when it serves, `cordon UNIX_TIME`,
`cordon -` and `configuration`. To the admin process: `Told`, the whole picture each time. Lines to the parent are
short, so that those of several children never mix (pipe(7)).
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from voicecluster.common.config.transceiver import TransceiverConfig

ADMIN_SERVES = "admin"
CONFIG_CHANGED = "configuration"
_CORDON = "cordon"
_NO_CORDON = "-"


@dataclass(frozen=True, slots=True)
class Birth:
    """What a child is given when it is forked."""

    config: TransceiverConfig
    report: int
    """Descriptor of a pipe to the parent: what may be written there is above."""
    cordoned_until: float | None
    """The deadline of the drain (Unix time), if there is one now."""


@dataclass(frozen=True, slots=True)
class WorkerState:
    """`starting`, `ready`, `draining` or `ended`, and how often it was started again."""

    state: str
    restarts: int


@dataclass(frozen=True, slots=True)
class Told:
    """What the parent knows."""

    workers: Sequence[WorkerState]
    ending: bool
    """The parent was told to end."""
    cordoned_until: float | None
    """The deadline of the drain (Unix time); None where there is none."""

    def line(self) -> str:
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def read(cls, line: str) -> "Told":
        told = json.loads(line)
        workers = tuple(WorkerState(**worker) for worker in told["workers"])
        return cls(workers, told["ending"], told["cordoned_until"])


def write_admin_serves(report: int) -> None:
    """Have the parent know that the admin process could begin: whatever ends it later is no reason to end all."""
    os.write(report, f"{ADMIN_SERVES}\n".encode())


def write_config_changed(report: int) -> None:
    """Have the parent read the configuration again."""
    os.write(report, f"{CONFIG_CHANGED}\n".encode())


def write_cordon(report: int, deadline: float | None) -> None:
    """Have the parent keep the drain's deadline, or that there is no drain any more."""
    os.write(report, f"{_CORDON} {_NO_CORDON if deadline is None else repr(deadline)}\n".encode())


def cordon_of(line: str) -> float | None:
    """What `write_cordon` wrote."""
    _, _, text = line.partition(" ")
    return None if text == _NO_CORDON else float(text)
