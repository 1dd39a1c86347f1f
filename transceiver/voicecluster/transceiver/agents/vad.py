"""Turn detection: webrtcvad as a cheap gate, a level floor, and hysteresis. About 10 µs a frame.

Onset takes two clear frames (40 ms), so that an interruption is heard at once; a single click is no speech.
Release takes the session's `silence_duration_ms`. Times count heard audio, not the clock, so a stalled
network cuts no turn short.
"""

from enum import Enum
from typing import Final, Protocol, cast

import numpy as np
import numpy.typing as npt
import webrtcvad
from voicecluster.transceiver.agents.base import TurnDetection
from voicecluster.transceiver.rtp.audio import FRAME_MS, SILENCE

_RATE: Final = 8_000
_LOW_PASS: Final = np.full(3, 1 / 3, np.float32)
_ONSET_FRAMES: Final = 2
_ONSET_WINDOW: Final = 3
_FLOOR_DBFS: Final = -66.0
_FLOOR_SPAN_DB: Final = 40.0
_ABOVE_NOISE: Final = 4.0
"""A turn begins with frames of so many times the power of the quietest lately: webrtcvad alone takes
the first moments of any noise for speech, and holds on to a click for 80 ms.
"""
_NOISE_GROWTH: Final = 1.02
"""The quietest level is forgotten at this rate a frame: it doubles in 0.7 s."""


class _Gate(Protocol):
    def is_speech(self, buf: bytes, sample_rate: int) -> bool: ...


class Edge(Enum):
    """What a frame changed."""

    STARTED = "started"
    STOPPED = "stopped"


def _gate(threshold: float) -> _Gate:
    """webrtcvad has four modes, 3 the strictest."""
    return cast(_Gate, webrtcvad.Vad(min(3, int(threshold * 4))))


class TurnDetector:
    """Frames in, the edges of turns out. Keeps no audio."""

    __slots__ = (
        "_floor",
        "_gate",
        "_heard",
        "_history",
        "_noise",
        "_params",
        "_quiet",
        "_silence_frames",
        "_speaking",
    )

    def __init__(self, params: TurnDetection) -> None:
        self._heard = 0
        self._history = 0
        self._noise = float("inf")
        self._quiet = 0
        self._speaking = False
        self.configure(params)

    def configure(self, params: TurnDetection) -> None:
        """Use other parameters from the next frame on; a turn under way goes on."""
        self._params = params
        self._gate = _gate(params.threshold)
        level = 10 ** ((_FLOOR_DBFS + _FLOOR_SPAN_DB * params.threshold) / 20) * 32768
        self._floor = level * level
        self._silence_frames = max(1, params.silence_duration_ms // FRAME_MS)

    @property
    def speaking(self) -> bool:
        """Whether a turn is under way."""
        return self._speaking

    @property
    def suspecting(self) -> bool:
        """Whether the last frame sounded like speech, too little for a turn as yet."""
        return not self._speaking and bool(self._history & 1)

    @property
    def heard_ms(self) -> int:
        """How much audio was heard."""
        return self._heard * FRAME_MS

    @property
    def onset_ms(self) -> int:
        """How long before the frame that began a turn its speech began."""
        return _ONSET_WINDOW * FRAME_MS

    @property
    def quiet_frames(self) -> int:
        """How many frames without speech there were since the last with."""
        return self._quiet

    def hear(self, frame: bytes) -> Edge | None:
        """Take 20 ms."""
        self._heard += 1
        speech = self._is_speech(frame)
        self._history = (self._history << 1 | speech) & ((1 << _ONSET_WINDOW) - 1)
        self._quiet = 0 if speech else self._quiet + 1
        if not self._speaking:
            if speech and self._history.bit_count() >= _ONSET_FRAMES:
                self._speaking = True
                return Edge.STARTED
        elif self._quiet >= self._silence_frames:
            return self._stop()
        return None

    def end(self) -> Edge | None:
        """End a turn by other means than silence."""
        return self._stop() if self._speaking else None

    def _stop(self) -> Edge:
        self._speaking = False
        self._history = 0
        return Edge.STOPPED

    def _is_speech(self, frame: bytes) -> bool:
        if frame is SILENCE:
            return False
        samples: npt.NDArray[np.float32] = np.frombuffer(frame, np.int16).astype(np.float32)
        energy = float(np.dot(samples, samples)) / len(samples)
        self._noise = min(energy, max(self._noise, self._floor / _ABOVE_NOISE) * _NOISE_GROWTH)
        if energy < self._floor:
            return False
        # A mean of three is a crude low pass, but a gate that looks below 4 kHz needs no better one.
        narrow = (samples.reshape(-1, len(_LOW_PASS)) @ _LOW_PASS).astype(np.int16)
        voiced = self._gate.is_speech(narrow.tobytes(), _RATE)
        return voiced and (self._speaking or energy > _ABOVE_NOISE * self._noise)
