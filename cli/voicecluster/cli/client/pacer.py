"""One clock for the frames of all calls: every session gets its turn each 20 ms, on absolute deadlines."""

import asyncio
import heapq
import time
from collections import deque
from itertools import count
from typing import Protocol

from voicecluster.cli.client.rtp import FRAME_SECONDS

clock = time.monotonic
"""What all of the client measures with. Not `loop.time()`: uvloop's has a grain of a millisecond."""
GRAIN_SECONDS = 0.001
"""Sessions due within the same millisecond share a wake-up."""
FALLEN_BEHIND_SECONDS = 0.2
"""Later than that, frames are skipped rather than sent in a burst."""


class Paced(Protocol):
    """What gets a turn."""

    def send_frame(self, now: float) -> None:
        """Send what is due at `now`."""


class Pacer:
    """Runs on the event loop that it was made on; the first `add` starts it, `stop` ends it."""

    def __init__(self) -> None:
        self.lateness: deque[float] = deque(maxlen=100_000)
        """Seconds that wake-ups came too late: what this machine, not the server, adds to jitter."""
        self._loop = asyncio.get_running_loop()
        self._due: list[tuple[float, int, Paced]] = []
        self._order = count()
        self._removed: set[Paced] = set()
        self._handle: asyncio.TimerHandle | None = None

    def add(self, paced: Paced) -> None:
        """Give `paced` its first turn now and one every 20 ms from then on."""
        heapq.heappush(self._due, (clock(), next(self._order), paced))
        self._arm()

    def remove(self, paced: Paced) -> None:
        """No more turns."""
        self._removed.add(paced)

    def stop(self) -> None:
        """No more turns for anybody."""
        self._due.clear()
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        wait = max(0.0, self._due[0][0] - clock()) if self._due else 0.0
        self._handle = self._loop.call_later(wait, self._run) if self._due else None

    def _run(self) -> None:
        now = clock()
        due = self._due
        self.lateness.append(max(0.0, now - due[0][0]))
        while due and due[0][0] <= now + GRAIN_SECONDS:
            at, order, paced = heapq.heappop(due)
            if paced in self._removed:
                self._removed.discard(paced)
                continue
            paced.send_frame(now)
            following = at + FRAME_SECONDS
            heapq.heappush(due, (following if following > now - FALLEN_BEHIND_SECONDS else now, order, paced))
        self._handle = None
        self._arm()
