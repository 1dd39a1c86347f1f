"""A worker's drain: it takes no new call, and from some time on none is left.

The operator says so before it takes the pod away; what it says holds until it is taken back, whatever becomes of
the process that passed it on. Deadlines are Unix times, because two machines agree on them.
"""

import asyncio
import enum
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

WARNING_SECONDS = 30.0
"""How long before its end a call's client hears of it: time enough to say goodbye and to dial again."""

_LONGEST_SLEEP_SECONDS = 60.0
"""The clock may be set meanwhile."""

REASON = "drained"
"""Why a call ended that was still there at the deadline."""


class Step(enum.Enum):
    """What is due."""

    NOTHING = enum.auto()
    WARN = enum.auto()
    END = enum.auto()


class Drain:
    """When to warn and when to end. Sans-IO: times come in as Unix times, a step goes out."""

    def __init__(self) -> None:
        self.deadline: float | None = None
        """When the last call ends; None while calls are taken."""
        self._next = Step.NOTHING

    def begin(self, deadline: float) -> None:
        """Take no calls, and end the present ones at `deadline`. Another deadline replaces the one before."""
        if deadline != self.deadline:
            self.deadline, self._next = deadline, Step.WARN

    def cancel(self) -> None:
        """Take calls again, as if nothing had been."""
        self.deadline, self._next = None, Step.NOTHING

    def due(self, now: float) -> Step:
        """What to do now; ask again until it is NOTHING."""
        if self.deadline is None:
            return Step.NOTHING
        step = self._next
        if step is Step.WARN and now >= self.deadline - WARNING_SECONDS:
            self._next = Step.END
            return step
        if step is Step.END and now >= self.deadline:
            self._next = Step.NOTHING
            return step
        return Step.NOTHING

    def wait(self, now: float) -> float | None:
        """Seconds until something is due; None when nothing will be."""
        if self.deadline is None or self._next is Step.NOTHING:
            return None
        lead = WARNING_SECONDS if self._next is Step.WARN else 0.0
        return max(0.0, self.deadline - lead - now)


@dataclass(frozen=True, slots=True)
class DrainReport:
    """How far a worker's drain is."""

    calls: int
    oldest_call_seconds: float | None
    """None where there is no call."""


class DrainedCall(Protocol):
    """A call, as a drain sees it."""

    def announce_drain(self, until: float | None) -> None: ...


class DrainedCalls(Protocol):
    """The calls of a worker, as its drain sees them."""

    cordoned: bool

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[DrainedCall]: ...

    def end_all(self, reason: str) -> None: ...

    def oldest_seconds(self) -> float | None: ...


class Cordon:
    """Keeps a worker's drain on its loop. `close` ends what it still has in mind."""

    def __init__(
        self,
        calls: DrainedCalls,
        *,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._calls = calls
        self._loop = loop
        self._clock = clock
        self._drain = Drain()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def deadline(self) -> float | None:
        """When the last call ends (Unix time); None where there is no drain."""
        return self._drain.deadline

    def begin(self, deadline: float) -> None:
        """Take no more calls; those there are end at `deadline` at the latest. May be repeated."""
        self._drain.begin(deadline)
        self._calls.cordoned = True
        self._go_on()

    def cancel(self) -> None:
        """Take calls again; the present ones are as if nothing had been."""
        if self._drain.deadline is None:
            return
        self._drain.cancel()
        self._calls.cordoned = False
        for call in self._calls:
            call.announce_drain(None)
        self._go_on()

    def report(self) -> DrainReport:
        """What is left."""
        return DrainReport(len(self._calls), self._calls.oldest_seconds())

    def close(self) -> None:
        """Do nothing more."""
        if self._timer is not None:
            self._timer.cancel()

    def _go_on(self) -> None:
        self.close()
        now = self._clock()
        while (step := self._drain.due(now)) is not Step.NOTHING:
            if step is Step.END:
                self._calls.end_all(REASON)
            elif self._drain.deadline is not None:
                until = self._loop.time() + max(0.0, self._drain.deadline - now)
                for call in self._calls:
                    call.announce_drain(until)
        if (seconds := self._drain.wait(now)) is not None:
            self._timer = self._loop.call_later(min(seconds, _LONGEST_SLEEP_SECONDS), self._go_on)
