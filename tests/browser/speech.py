"""Speech for the browsers, and how like it an answer is."""

import subprocess
import wave
from pathlib import Path

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]
WINDOW_SAMPLES = 6000
DRIFT_SAMPLES = 7200
SENTENCE = "The quick brown fox jumps over the lazy dog, and then it runs away."


def synthesise(path: Path, *, tail_seconds: float, sentence: str = SENTENCE) -> Path:
    """Write `sentence` as a 48 kHz mono WAV to `path`, followed by silence."""
    raw = path.with_suffix(".raw.wav")
    subprocess.run(["espeak-ng", "-s", "160", "-w", str(raw), sentence], check=True)
    rate, samples = _stored(raw)
    count = round(len(samples) * 48000 / rate)
    resampled = np.interp(np.arange(count) * rate / 48000, np.arange(len(samples)), samples)
    write(path, resampled, lead_seconds=0, tail_seconds=tail_seconds)
    return path


def write(path: Path, samples: Samples, *, lead_seconds: float, tail_seconds: float) -> None:
    """Write samples (-1..1, 48 kHz) as a mono WAV between two silences."""
    lead, tail = (np.zeros(round(48000 * seconds)) for seconds in (lead_seconds, tail_seconds))
    with wave.open(str(path), "wb") as written:
        written.setnchannels(1)
        written.setsampwidth(2)
        written.setframerate(48000)
        written.writeframes((np.concatenate([lead, samples, tail]) * 32767).astype("<i2").tobytes())


def read_48k(path: Path) -> Samples:
    """The samples of a 48 kHz WAV, -1..1."""
    return _stored(path)[1]


def wav(path: Path) -> bytes:
    """The file as it is."""
    return path.read_bytes()


def read(path: Path) -> Samples:
    """The samples of a 48 kHz WAV at 24 kHz, -1..1."""
    return read_48k(path)[::2]


def _stored(path: Path) -> tuple[int, Samples]:
    with wave.open(str(path), "rb") as stored:
        samples = (
            np.frombuffer(stored.readframes(stored.getnframes()), dtype="<i2").astype(np.float64) / 32768
        )
        return stored.getframerate(), samples


def recorded(pcm: bytes) -> Samples:
    """Samples of a recording (16-bit at 24 kHz), -1..1."""
    return np.frombuffer(pcm, dtype="<i2").astype(np.float64) / 32768


def first_sound(samples: Samples, level: float = 0.01) -> float:
    """Seconds from the start to the first sample louder than `level`."""
    return float(np.argmax(np.abs(samples) > level)) / 24000


def likeness(said: Samples, heard: Samples) -> float:
    """How much of `said` is in `heard` (0..1): the best correlation of each loud quarter of a second near its place.

    In pieces, because a browser's jitter buffer stretches time by a few per cent, which a listener does not hear.
    The pieces are weighted by their energy; their place is what most of them agree on, give or take `DRIFT_SAMPLES`.
    """
    starts = range(0, len(said) - WINDOW_SAMPLES + 1, WINDOW_SAMPLES)
    windows = {start: said[start : start + WINDOW_SAMPLES] for start in starts}
    energies = {start: float((window**2).sum()) for start, window in windows.items()}
    loud = [start for start in starts if energies[start] > 0.1 * max(energies.values())]
    curves = {start: _correlation(windows[start], heard) for start in loud}
    delay = int(np.median([int(curves[start].argmax()) - start for start in loud]))
    best = {start: _around(curves[start], start + delay) for start in loud}
    return sum(best[start] * energies[start] for start in loud) / sum(energies[start] for start in loud)


def _around(curve: Samples, place: int) -> float:
    near = curve[max(0, place - DRIFT_SAMPLES) : max(0, place + DRIFT_SAMPLES)]
    return float(near.max()) if len(near) else 0.0


def _correlation(window: Samples, heard: Samples) -> Samples:
    """The normalised correlation of `window` with `heard` from each of its samples on; 0 where that is silent."""
    padded = np.concatenate([heard, np.zeros(len(window))])
    size = len(padded) + len(window)
    products = np.fft.irfft(np.fft.rfft(padded, size) * np.conj(np.fft.rfft(window, size)), size)
    running = np.concatenate([[0.0], np.cumsum(padded**2)])
    energy = running[len(window) :] - running[: -len(window)]
    audible = energy > 1e-6 * len(window)
    scale = np.sqrt(np.where(audible, energy, 1.0) * (window**2).sum())
    curve: Samples = np.where(audible, products[: len(energy)] / scale, 0.0)
    return curve
