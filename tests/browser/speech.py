"""Speech for the browsers, and how like it an answer is."""

import subprocess
import wave
from pathlib import Path

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float64]
WINDOW_SAMPLES = 6000
SENTENCE = "The quick brown fox jumps over the lazy dog, and then it runs away."


def synthesise(path: Path, *, tail_seconds: float) -> Path:
    """Write `SENTENCE` as a 48 kHz mono WAV to `path`, followed by silence."""
    raw = path.with_suffix(".raw.wav")
    subprocess.run(["espeak-ng", "-s", "160", "-w", str(raw), SENTENCE], check=True)
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
    """How much of `said` is in `heard` (0..1): the best correlation of each loud quarter of a second.

    In pieces, because a browser's jitter buffer stretches time by a few per cent, which a listener does not hear.
    The pieces are weighted by their energy.
    """
    piece = WINDOW_SAMPLES
    windows = [said[start : start + piece] for start in range(0, len(said) - piece + 1, piece)]
    energies = np.array([float((window**2).sum()) for window in windows])
    loud = [index for index, energy in enumerate(energies) if energy > 0.1 * energies.max()]
    found = np.array([_best_correlation(windows[index], heard) for index in loud])
    return float((found * energies[loud]).sum() / energies[loud].sum())


def _best_correlation(window: Samples, heard: Samples) -> float:
    """The highest normalised correlation of `window` with any stretch of `heard` of its length."""
    if len(heard) < len(window):
        return 0.0
    size = len(heard) + len(window)
    products = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(window, size)), size)
    running = np.concatenate([[0.0], np.cumsum(heard**2)])
    energy = running[len(window) :] - running[: -len(window)]
    audible = energy > 1e-6 * len(window)
    if not audible.any():
        return 0.0
    scale = np.sqrt(energy[audible] * (window**2).sum())
    return float((products[: len(energy)][audible] / scale).max())
