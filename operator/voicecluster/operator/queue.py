"""Which VoiceCluster is reconciled when.

Two parts: `Schedule` decides, without clock, tasks or randomness of its own; `WorkQueue` runs it. What holds:

- A key is reconciled by one worker at a time. Events that come meanwhile make it run once more, not n times.
- An event is acted upon after `settle_seconds`: the many events of one change become one reconcile. After a
  reconcile that took long, the next of that key waits as long again, so a flood takes half of the time at most.
- After a failure the next try comes 1 s, 2 s, 4 s … 5 min later, give or take 20 %, or when the API server said.
  An event shortens that to 1 s, but not what the server asked for: it may be overloaded, and many events follow.
- Memory is bounded by the number of VoiceClusters, not of events.
"""

import asyncio
import logging
import random
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from voicecluster.operator.kube.port import KubeError, Unavailable
from voicecluster.operator.logs import reconciling
from voicecluster.operator.metrics import Metrics

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A VoiceCluster. `str()` is `namespace/name`."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Pace:
    """How eager the schedule is. All in seconds."""

    settle_seconds: float = 0.2
    """Between an event and its reconcile. Less costs CPU at big changes, more delays small ones."""
    rest_seconds: float = 5.0
    """The longest pause of a key after a reconcile of its own."""
    retry_seconds: float = 1.0
    """The first pause after a failure; doubled with each in a row."""
    longest_retry_seconds: float = 300.0
    jitter: float = 0.2
    """Each pause between tries is longer or shorter by up to this part."""


@dataclass(slots=True)
class _State:
    """What is known of one key."""

    due: float | None = None
    """When it shall run next; None if nobody wants it."""
    asked: float = 0.0
    """Since when `due` counts for the latency: when an event came, or when a timer was to fire."""
    earliest: float = 0.0
    """No event makes it run before."""
    failures: int = 0
    """In a row."""
    running: bool = False


@dataclass(slots=True)
class Schedule:
    """The decisions. All times are those of one monotonic clock, given by the caller."""

    pace: Pace = Pace()
    chance: Callable[[], float] = random.random
    """0.0 … 1.0, evenly."""
    _keys: dict[Key, _State] = field(default_factory=dict)

    def depth(self, now: float) -> int:
        """How many keys are due and wait for a worker."""
        return sum(1 for due, _ in self._waiting() if due <= now)

    def add(self, key: Key, now: float) -> None:
        """An event: the key shall run soon."""
        state = self._keys.setdefault(key, _State())
        due = max(now + self.pace.settle_seconds, state.earliest)
        if state.due is None or due < state.due:
            state.due, state.asked = due, now

    def take(self, now: float) -> tuple[Key, float] | None:
        """The key that is due longest, and for how many seconds it has waited; None if none is due.

        The caller reconciles it and then calls `succeeded` or `failed`.
        """
        self._forget(now)
        first = min(self._waiting(), default=None)
        if first is None or first[0] > now:
            return None
        state = self._keys[first[1]]
        state.running, state.due = True, None
        return first[1], now - state.asked

    def wakes_at(self) -> float | None:
        """When `take` will have something, unless an event comes; None if never."""
        return min((due for due, _ in self._waiting()), default=None)

    def _forget(self, now: float) -> None:
        """Drop what nobody wants and what has rested: the VoiceCluster may be gone for ever."""
        for key in [
            key
            for key, state in self._keys.items()
            if state.due is None and not state.running and state.earliest <= now
        ]:
            del self._keys[key]

    def _waiting(self) -> list[tuple[float, Key]]:
        return [
            (state.due, key)
            for key, state in self._keys.items()
            if state.due is not None and not state.running
        ]

    def succeeded(self, key: Key, now: float, *, took: float, again: float | None) -> None:
        """It ran, for `took` seconds, and shall run again after `again` seconds (None: at the next event)."""
        state = self._keys[key]
        state.running, state.failures = False, 0
        state.earliest = now + min(took, self.pace.rest_seconds)
        if state.due is not None:
            state.due = max(state.due, state.earliest)
        if again is not None and (state.due is None or now + again < state.due):
            state.due = state.asked = now + again

    def failed(self, key: Key, now: float, *, retry_seconds: float | None = None) -> float:
        """It failed. Returns the seconds until it is tried again.

        Args:
            retry_seconds: What the API server asked for, if it did; never undercut.
        """
        state = self._keys[key]
        pause = min(self.pace.retry_seconds * 2**state.failures, self.pace.longest_retry_seconds)
        pause *= 1 + self.pace.jitter * (2 * self.chance() - 1)
        pause = max(pause, retry_seconds or 0.0)
        state.running = False
        state.failures = min(state.failures + 1, 32)
        state.earliest = now + max(self.pace.retry_seconds, retry_seconds or 0.0)
        hurried = state.due is not None
        state.due = state.earliest if hurried else now + pause
        state.asked = state.due
        return state.due - now


Reconcile = Callable[[Key], Awaitable[float | None]]


class WorkQueue:
    """Runs a schedule. `add` from anywhere in the loop; `run` once."""

    def __init__(
        self,
        reconcile: Reconcile,
        metrics: Metrics,
        *,
        workers: int,
        schedule: Schedule | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`reconcile` returns after how many seconds it wants to be called again (None: at the next event).

        A KubeError of it, and any other exception, is logged and tried again.
        """
        self._reconcile = reconcile
        self._metrics = metrics
        self._workers = workers
        self._schedule = schedule or Schedule()
        self._clock = clock
        self._poked = asyncio.Event()
        metrics.queue_depth.set_function(lambda: self._schedule.depth(self._clock()))

    def add(self, key: Key) -> None:
        """The key shall be reconciled soon."""
        self._schedule.add(key, self._clock())
        self._poked.set()

    async def run(self) -> None:
        """Work until cancelled; what is running then is cancelled too."""
        async with asyncio.TaskGroup() as tasks:
            free = asyncio.Semaphore(self._workers)
            while True:
                await free.acquire()
                key, waited = await self._next()
                self._metrics.queue_latency.observe(waited)
                task = tasks.create_task(self._process(key), name=f"reconcile {key}")
                task.add_done_callback(lambda _: free.release())

    async def _next(self) -> tuple[Key, float]:
        while True:
            self._poked.clear()
            now = self._clock()
            if taken := self._schedule.take(now):
                return taken
            wakes = self._schedule.wakes_at()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if wakes is None else max(0.0, wakes - now)):
                    await self._poked.wait()

    async def _process(self, key: Key) -> None:
        started = self._clock()
        with reconciling(key.namespace, key.name):
            try:
                again = await self._reconcile(key)
            except KubeError as error:
                asked = error.retry_seconds if isinstance(error, Unavailable) else None
                pause = self._failed(key, type(error).__name__, asked)
                _LOG.warning(
                    "reconcile failed", extra={"reason": str(error), "retry_seconds": round(pause, 1)}
                )
            except Exception as error:  # one broken resource must not stop the others
                pause = self._failed(key, "Unexpected", None)
                _LOG.error(
                    "reconcile failed unexpectedly",
                    extra={
                        "error": type(error).__name__,  # without its text: that may quote a Secret
                        "where": [
                            f"{frame.filename}:{frame.lineno} {frame.name}"
                            for frame in traceback.extract_tb(error.__traceback__)[-4:]
                        ],
                        "retry_seconds": round(pause, 1),
                    },
                )
            else:
                now = self._clock()
                self._metrics.reconciled.observe(now - started)
                self._schedule.succeeded(key, now, took=now - started, again=again)
        self._poked.set()

    def _failed(self, key: Key, reason: str, retry_seconds: float | None) -> float:
        self._metrics.errors.labels(reason).inc()
        self._metrics.retries.inc()
        return self._schedule.failed(key, self._clock(), retry_seconds=retry_seconds)
