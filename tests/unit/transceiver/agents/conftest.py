"""Speech to listen to, spoken by espeak-ng."""

import shutil
import subprocess
import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Speak = Callable[[str], list[bytes]]


@pytest.fixture(scope="session")
def speak(tmp_path_factory: pytest.TempPathFactory) -> Speak:
    """A sentence as 20 ms frames of 24 kHz, without silence before and after."""
    program = shutil.which("espeak-ng")
    if program is None:
        pytest.skip("espeak-ng is missing (Debian: apt-get install espeak-ng)")
    spoken: dict[str, list[bytes]] = {}

    def make(sentence: str) -> list[bytes]:
        if sentence not in spoken:
            file: Path = tmp_path_factory.mktemp("speech") / "sentence.wav"
            subprocess.run([program, "-w", str(file), sentence], check=True, timeout=20)
            spoken[sentence] = _frames(file)
        return spoken[sentence]

    return make


def _frames(file: Path) -> list[bytes]:
    with wave.open(str(file)) as opened:
        rate = opened.getframerate()
        raw = np.frombuffer(opened.readframes(opened.getnframes()), np.int16).astype(np.float64)
    at = np.arange(int(len(raw) * 24_000 / rate)) * rate / 24_000
    sound = np.interp(at, np.arange(len(raw)), raw)
    loud = np.flatnonzero(np.abs(sound) > 200)
    sound = sound[loud[0] : loud[-1]]
    whole = sound[: len(sound) - len(sound) % 480].astype(np.int16).tobytes()
    return [whole[start : start + 960] for start in range(0, len(whole), 960)]
