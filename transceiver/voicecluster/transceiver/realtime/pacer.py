"""Output audio at the pace of speech: a bounded queue, one frame per tick."""

from collections import deque
from typing import Final

from voicecluster.transceiver.rtp.audio import FRAME_MS, SILENCE

_MAX_FRAMES: Final = 60_000 // FRAME_MS
_LIVE_FRAMES: Final = 10
_LIVE_TICKS: Final = 50
_TAIL_FRAMES: Final = 200 // FRAME_MS
"""After speech so much silence is sent: a decoder that is simply left alone would stretch the last sound."""


class Pacer:
    """Speech of a response waits its turn; live frames replace one another when they pile up."""

    __slots__ = ("_held", "_least", "_live", "_speech", "_tail", "_ticks", "dropped")

    def __init__(self) -> None:
        self._speech: deque[bytes] = deque()
        self._live: deque[bytes] = deque()
        self._tail = 0
        self._held = False
        self._least = 0
        self._ticks = 0
        self.dropped = 0

    @property
    def speech_frames(self) -> int:
        """Frames of a response not yet played."""
        return len(self._speech)

    def say(self, frames: tuple[bytes, ...]) -> None:
        """Queue speech; beyond 60 s the rest is dropped and counted."""
        room = _MAX_FRAMES - len(self._speech)
        self._speech.extend(frames[:room])
        self.dropped += max(0, len(frames) - room)

    def pass_on(self, frame: bytes) -> None:
        """Queue a live frame; at most 200 ms wait, and silence never makes others wait."""
        if frame is SILENCE and self._live:
            self.dropped += 1
            return
        self._live.append(frame)
        if len(self._live) > _LIVE_FRAMES:
            self._live.popleft()
            self.dropped += 1

    def hold(self) -> None:
        """Play silence in place of speech at the next tick; what is queued waits."""
        self._held = True

    def clear(self) -> None:
        """Play no more of what is queued."""
        if self._speech:
            self._tail = _TAIL_FRAMES
        self._speech.clear()
        self._live.clear()

    def next(self) -> bytes | None:
        """The frame of this tick, None for nothing to send."""
        held, self._held = self._held, False
        if self._speech:
            self._tail = _TAIL_FRAMES
            if held:
                return SILENCE
            return self._speech.popleft()
        if self._live:
            self._catch_up()
            return self._live.popleft()
        if self._tail:
            self._tail -= 1
            return SILENCE
        return None

    def _catch_up(self) -> None:
        """Frames that waited a whole second behind others are a delay that nobody needs: drop all but one
        of them.
        """
        self._least = min(self._least, len(self._live)) if self._ticks else len(self._live)
        self._ticks += 1
        if self._ticks < _LIVE_TICKS:
            return
        self._ticks = 0
        for _ in range(self._least - 2):
            self._live.popleft()
            self.dropped += 1
