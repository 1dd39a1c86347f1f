"""The media clock of a worker: one timer that ticks every call once per 20 ms.

Deadlines are absolute (start + n * 5 ms), so that lateness never adds up. Calls are spread over four slots of
a frame, so that many calls do not work in one burst. After a stall, missed ticks are made up, up to 200 ms;
what is older is dropped: audio that late is of no use.
"""

import asyncio
from collections.abc import Callable

FRAME_SECONDS = 0.020
SLOTS = 4
SLOT_SECONDS = FRAME_SECONDS / SLOTS
MOST_MISSED_SLOTS = 40

Tick = Callable[[float], None]


class MediaClock:
    """Runs only while something is to be ticked. A tick must not raise."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._slots: list[dict[Tick, None]] = [{} for _ in range(SLOTS)]
        self._timer: asyncio.TimerHandle | None = None
        self._start = 0.0
        self._beat = 0
        self.missed_ticks = 0
        """Slots dropped after stalls, since the start of the worker."""

    def add(self, tick: Tick) -> None:
        """Call `tick(loop.time())` every 20 ms from now on, until `remove`."""
        min(self._slots, key=len)[tick] = None
        if self._timer is None:
            self._start, self._beat = self._loop.time(), 0
            self._arm()

    def remove(self, tick: Tick) -> None:
        """Stop ticking. Harmless when it was never added; may be called from a tick."""
        for slot in self._slots:
            slot.pop(tick, None)
        if self._timer is not None and not any(self._slots):
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        self._timer = self._loop.call_at(self._start + (self._beat + 1) * SLOT_SECONDS, self._run)

    def _run(self) -> None:
        due = max(self._beat + 1, int((self._loop.time() - self._start) / SLOT_SECONDS))
        if due - self._beat > MOST_MISSED_SLOTS:
            self.missed_ticks += due - self._beat - MOST_MISSED_SLOTS
            self._beat = due - MOST_MISSED_SLOTS
        while self._beat < due:
            self._beat += 1
            for tick in tuple(self._slots[self._beat % SLOTS]):
                tick(self._loop.time())
        if self._timer is not None:
            self._arm()
