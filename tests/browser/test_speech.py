"""The measures themselves: they tell an answer from noise."""

from pathlib import Path

import numpy as np
import pytest

from tests.browser import speech


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> speech.Samples:
    path: Path = tmp_path_factory.mktemp("speech") / "said.wav"
    return speech.read(speech.synthesise(path, tail_seconds=0))


def test_a_delayed_quieter_copy_is_like_what_was_said(said: speech.Samples) -> None:
    heard = np.concatenate([np.zeros(24000), said * 0.3, np.zeros(9600)])
    assert speech.likeness(said, heard) > 0.95


def test_noise_is_not_like_what_was_said(said: speech.Samples) -> None:
    heard = np.random.default_rng(1).normal(0, 0.1, len(said) + 24000)
    assert speech.likeness(said, heard) < 0.3


def test_other_speech_of_the_same_voice_is_not_like_what_was_said(
    said: speech.Samples, tmp_path: Path
) -> None:
    sentence = "Nobody would have believed, in the last years, how many calls one address can carry."
    other = speech.read(speech.synthesise(tmp_path / "other.wav", tail_seconds=1, sentence=sentence))
    likeness = speech.likeness(said, other)
    assert likeness < 0.4, likeness
