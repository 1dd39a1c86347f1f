"""The parrot: listens, and when the caller's turn ends says it back, frame for frame. New speech silences
it at once.
"""

from collections import deque
from typing import Final

from voicecluster.transceiver.agents.base import (
    AgentEvent,
    ResponseAudio,
    ResponseFinished,
    ResponseStarted,
    SpeechStarted,
    SpeechStopped,
    SpeechSuspected,
    TurnDetection,
)
from voicecluster.transceiver.agents.vad import Edge, TurnDetector
from voicecluster.transceiver.rtp.audio import FRAME_MS

_MAX_FRAMES: Final = 30_000 // FRAME_MS
"""A turn is cut off after 30 s: it is answered, and what is said on is the next turn."""
_TAIL_FRAMES: Final = 200 // FRAME_MS
"""Of the silence that ended the turn so much is said back."""


class Parrot:
    """The demo agent. Holds at most two turns of audio: the one being heard and the one to be said back."""

    __slots__ = ("_detector", "_heard", "_last_turn", "_params", "_prefix_frames")

    def __init__(self) -> None:
        self._params: TurnDetection | None = TurnDetection()
        self._detector = TurnDetector(TurnDetection())
        self._heard: deque[bytes] = deque(maxlen=_MAX_FRAMES)
        self._last_turn: tuple[bytes, ...] = ()
        self.configure(TurnDetection())

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return "parrot"

    def configure(self, turn_detection: TurnDetection | None) -> None:
        """Use these from the next frame on."""
        self._params = turn_detection
        if turn_detection is not None:
            self._detector.configure(turn_detection)
            # What was heard until the onset was certain is speech already: the padding comes before it.
            self._prefix_frames = (turn_detection.prefix_padding_ms + self._detector.onset_ms) // FRAME_MS
        else:
            self._prefix_frames = _MAX_FRAMES

    def hear(self, frame: bytes, now: float) -> list[AgentEvent]:
        """The caller's next 20 ms."""
        if self._params is None:
            self._heard.append(frame)
            return []
        edge = self._detector.hear(frame)
        self._heard.append(frame)
        if edge is None and not self._detector.speaking:
            while len(self._heard) > self._prefix_frames:
                self._heard.popleft()
            if self._detector.suspecting:
                return [SpeechSuspected()]
        elif edge is Edge.STARTED:
            return [SpeechStarted(self._detector.heard_ms - FRAME_MS * len(self._heard))]
        elif edge is Edge.STOPPED or len(self._heard) >= _MAX_FRAMES:
            return self._end_turn(self._params, now)
        return []

    def _end_turn(self, params: TurnDetection, now: float) -> list[AgentEvent]:
        surplus = max(0, min(self._detector.quiet_frames - _TAIL_FRAMES, len(self._heard)))
        left_over = [self._heard.pop() for _ in range(surplus)]
        self.commit(now)
        self._heard.extend(reversed(left_over))  # what comes before the next turn
        stopped = SpeechStopped(self._detector.heard_ms)
        return [stopped, *self.respond(now)] if params.create_response else [stopped]

    def tick(self, now: float) -> list[AgentEvent]:
        """Nothing happens by time alone."""
        return []

    def commit(self, now: float) -> bool:
        """What was heard is the turn to say back."""
        if not self._heard:
            return False
        self._detector.end()
        self._last_turn = tuple(self._heard)
        self._heard.clear()
        return True

    def clear(self, now: float) -> None:
        """Forget what was heard of this turn."""
        self._heard.clear()
        self._detector.end()

    def respond(self, now: float) -> list[AgentEvent]:
        """Say the last turn back."""
        return [ResponseStarted(), ResponseAudio(self._last_turn), ResponseFinished()]

    def cancel(self, now: float) -> None:
        """Nothing of the answer is left here: the session holds it."""
