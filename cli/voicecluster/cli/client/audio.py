"""What clients say, prepared once and sent by all, and how they tell that they heard it again.

The sound is like speech: a gliding voice with overtones in words and pauses, never the same twice within its
period, so that it can be found in what comes back.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

try:
    from opuslib_next import Decoder, Encoder, OpusError
except ImportError:
    raise
except Exception:  # what the package raises when there is no libopus has no class of its own
    raise ImportError("libopus is not installed; on Debian: apt-get install libopus0") from None

RATE = 16_000
"""Samples a second of everything in here; Opus carries that as wideband."""
FRAME = RATE // 50
PERIOD_FRAMES = 250
"""Speech of 5 s, repeated: phrases of about 1.5 s with pauses that end a turn."""
AUDIBLE_RMS = 0.01
"""-40 dBFS: louder than comfort noise, quieter than any speech."""
RECOGNISED = 0.4
"""A correlation that other speech does not reach."""
WINDOW_SECONDS = 10.0
LONGEST_DELAY = PERIOD_FRAMES * FRAME
"""In samples; after that the speech repeats itself."""
BAND_HZ = (300.0, 3400.0)
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
    """With what was sent, 0..1.

    The median over the seconds in which something was heard, each at its best delay.
    """
    best: float
    """Of the second that is most like what was sent."""
    delay_ms: float | None
    """From the sending of a packet to the arrival of the packet that holds its sound: network, jitter buffer
    and codec. None when the sound cannot be told from noise."""

    @property
    def audible(self) -> bool:
        """Something other than silence came."""
        return self.rms >= AUDIBLE_RMS

    @property
    def recognised(self) -> bool:
        """At least a second of it is what was sent."""
        return self.best >= RECOGNISED


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
            return Heard(0.0, 0.0, 0.0, None)
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
            try:
                pcm = (
                    np.frombuffer(decoder.decode(payload, 6 * FRAME), dtype="<i2").astype(np.float32) / 32768
                )
            except OpusError:
                continue  # not Opus: heard as silence
            place = origin + offset // _TICKS
            if 0 <= place < timeline.size:
                part = timeline[place : place + pcm.size]
                part[:] = pcm[: part.size]
        return timeline

    def _spoken(self, count: int) -> Samples:
        period = np.roll(speech().samples, -self._first_frame * FRAME)
        return np.resize(period, count)


def _compare(spoken: Samples, received: Samples) -> Heard:
    """Look second by second, as the other side's jitter buffer may change its delay in between."""
    rms = float(np.sqrt((received.reshape(-1, 10 * FRAME) ** 2).mean(axis=1)).max())
    loud = np.sqrt((received.reshape(-1, RATE) ** 2).mean(axis=1)) >= AUDIBLE_RMS
    before = np.zeros(LONGEST_DELAY, dtype=np.float32)
    said, heard = _voice_band(np.concatenate((before, spoken))), _voice_band(received)
    found = [
        _find(heard[second * RATE :][:RATE], said[second * RATE :][: LONGEST_DELAY + RATE])
        for second in np.flatnonzero(loud)
    ]
    if not found:
        return Heard(rms, 0.0, 0.0, None)
    likeness = [correlation for correlation, _ in found]
    delays = [delay for correlation, delay in found if correlation >= RECOGNISED]
    delay_ms = 1000 * float(np.median(delays)) / RATE if delays else None
    return Heard(rms, float(np.median(likeness)), max(likeness), delay_ms)


def _voice_band(samples: Samples) -> Samples:
    """Without what is below the voice's formants: there, speech codecs filter as they see fit and shift phases."""
    spectrum = np.fft.rfft(samples)
    frequencies = np.fft.rfftfreq(samples.size, 1 / RATE)
    spectrum[(frequencies < BAND_HZ[0]) | (frequencies > BAND_HZ[1])] = 0
    return np.asarray(np.fft.irfft(spectrum, samples.size), dtype=np.float32)


def _find(second: Samples, before: Samples) -> tuple[float, int]:
    """The best normalised correlation of a second with any second of `before`, and how many samples that lies before
    the end."""
    size = 1 << (before.size + second.size).bit_length()
    cross = np.fft.irfft(np.fft.rfft(before, size) * np.conj(np.fft.rfft(second, size)), size)
    places = before.size - second.size + 1
    energy = np.concatenate(([0.0], np.cumsum(before.astype(np.float64) ** 2)))
    norms = np.sqrt(np.maximum(energy[second.size :] - energy[:places], 1e-3)) * np.linalg.norm(second)
    scores = cross[:places] / np.maximum(norms, 1e-9)
    best = int(np.argmax(scores))
    return max(0.0, float(scores[best])), places - 1 - best
