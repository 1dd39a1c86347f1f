"""What clients say, prepared once and sent by all, and how they tell that they heard it again.

The sound is like speech: a gliding voice with overtones in words and pauses, never the same twice within its
period, so that it can be found in what comes back.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from opuslib_next import Decoder, Encoder

RATE = 16_000
"""Samples a second of everything in here; Opus carries that as wideband."""
FRAME = RATE // 50
PERIOD_FRAMES = 250
"""Speech of 5 s, repeated: phrases of about 1.5 s with pauses that end a turn."""
AUDIBLE_RMS = 0.01
"""-40 dBFS: louder than comfort noise, quieter than any speech."""
WINDOW_SECONDS = 10.0
_TICKS = 48_000 // RATE
Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Speech:
    """A period of prepared audio: its samples and its Opus frames of 20 ms."""

    samples: Samples
    frames: tuple[bytes, ...]


@cache
def speech() -> Speech:
    """The audio that every client sends: mono Opus, 32 kbit/s, mostly 60 to 250 bytes a frame."""
    samples = _voice()
    encoder = Encoder(RATE, 1, "voip")
    encoder.bitrate = 32_000
    encoder.complexity = 5
    pcm = (samples * 32767).astype("<i2").tobytes()
    frames = [encoder.encode(pcm[i : i + 2 * FRAME], FRAME) for i in range(0, len(pcm), 2 * FRAME)]
    return Speech(samples, tuple(frames))


def _voice() -> Samples:
    rng = np.random.default_rng(7)
    count = PERIOD_FRAMES * FRAME
    time = np.arange(count) / RATE
    knots = np.linspace(0, count / RATE, 40)
    pitch = np.interp(time, knots, rng.uniform(95, 210, knots.size))
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    formants = [np.interp(time, knots, rng.uniform(0.1, 1.0, knots.size)) for _ in range(8)]
    voice = 0.05 * rng.standard_normal(count)
    for k, level in enumerate(formants, start=1):
        voice += level * np.sin(k * phase) / k
    syllables = np.interp(time, np.linspace(0, count / RATE, 32), rng.uniform(0.35, 1.0, 32))
    speaking = (((time % 2.5) > 0.05) & ((time % 2.5) < 1.6)).astype(float)
    loud = voice * syllables * speaking
    breath = 0.002 * rng.standard_normal(count)
    return np.asarray(0.3 * loud / np.abs(loud).max() + breath, dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Heard:
    """What a client heard of itself."""

    rms: float
    """Of the loudest 200 ms, 1.0 is full scale."""
    correlation: float
    """With what was sent, 0..1, at the best delay."""
    delay_ms: float | None
    """From the sending of a packet to the arrival of the packet that holds its sound: network, jitter buffer
    and codec. None when the sound cannot be told from noise."""

    @property
    def audible(self) -> bool:
        """Something other than silence came."""
        return self.rms >= AUDIBLE_RMS


class Recorder:
    """Keeps what a call received for `listen`. Costs one append a packet; decoding happens afterwards."""

    def __init__(self) -> None:
        self._first_frame = 0
        self._started: float | None = None
        self._packets: list[tuple[float, int, bytes]] = []

    @property
    def running(self) -> bool:
        """Whether `start` was called."""
        return self._started is not None

    def start(self, now: float, frame: int) -> None:
        """`frame` of the speech is being sent; what comes from now on is kept."""
        self._started = now
        self._first_frame = frame

    def received(self, arrival: float, timestamp: int, payload: bytes) -> None:
        """Keep one packet, for the first `WINDOW_SECONDS` of sending."""
        if self._started is not None and arrival - self._started < WINDOW_SECONDS:
            self._packets.append((arrival, timestamp, payload))

    def listen(self) -> Heard:
        """Decode what came and look for what was sent in it."""
        if self._started is None or not self._packets:
            return Heard(0.0, 0.0, None)
        received = self._decode(self._started)
        return _compare(self._spoken(received.size), received)

    def _decode(self, started: float) -> Samples:
        """The received sound on the sender's time line: sample 0 is the moment the first packet was sent."""
        first = self._packets[0][1]
        offsets = [
            ((timestamp - first + (1 << 31)) % (1 << 32)) - (1 << 31) for _, timestamp, _ in self._packets
        ]
        soonest = min(
            arrival - offset / 48_000 for (arrival, _, _), offset in zip(self._packets, offsets, strict=True)
        )
        origin = round((soonest - started) * RATE)
        timeline = np.zeros(int(WINDOW_SECONDS * RATE), dtype=np.float32)
        decoder = Decoder(RATE, 1)
        for (_, _, payload), offset in zip(self._packets, offsets, strict=True):
            pcm = np.frombuffer(decoder.decode(payload, 6 * FRAME), dtype="<i2").astype(np.float32) / 32768
            place = origin + offset // _TICKS
            if 0 <= place < timeline.size:
                part = timeline[place : place + pcm.size]
                part[:] = pcm[: part.size]
        return timeline

    def _spoken(self, count: int) -> Samples:
        period = np.roll(speech().samples, -self._first_frame * FRAME)
        return np.resize(period, count)


def _compare(spoken: Samples, received: Samples) -> Heard:
    blocks = received[: received.size // (10 * FRAME) * 10 * FRAME].reshape(-1, 10 * FRAME)
    rms = float(np.sqrt((blocks**2).mean(axis=1)).max())
    filled = np.flatnonzero(received)
    if rms < AUDIBLE_RMS or filled.size == 0:
        return Heard(rms, 0.0, None)
    size = 1 << (2 * received.size - 1).bit_length()
    cross = np.fft.irfft(np.fft.rfft(received, size) * np.conj(np.fft.rfft(spoken, size)), size)
    longest = PERIOD_FRAMES * FRAME
    lag = int(np.argmax(cross[:longest]))
    heard = received[lag:]
    said = np.where(heard != 0, spoken[: heard.size], 0)
    norm = float(np.linalg.norm(heard) * np.linalg.norm(said))
    correlation = max(0.0, float(np.dot(heard, said)) / norm) if norm else 0.0
    return Heard(rms, correlation, 1000 * lag / RATE if correlation > 0.2 else None)
