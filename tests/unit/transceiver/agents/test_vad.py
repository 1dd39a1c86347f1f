"""Turn detection: how soon, how long, and what is no speech."""

import numpy as np
import pytest
from voicecluster.transceiver.agents.base import TurnDetection
from voicecluster.transceiver.agents.vad import Edge, TurnDetector

QUIET = bytes(960)  # not the SILENCE object itself: it is what a microphone gives


def edges(frames: list[bytes], params: TurnDetection = TurnDetection()) -> list[tuple[Edge, int]]:  # noqa: B008
    """Each edge with the milliseconds heard by then."""
    detector = TurnDetector(params)
    return [(edge, detector.heard_ms) for frame in frames if (edge := detector.hear(frame)) is not None]


def noise(frames: int, loud: float) -> list[bytes]:
    sound = np.random.default_rng(3).normal(0, loud, frames * 480).astype(np.int16).tobytes()
    return [sound[at : at + 960] for at in range(0, len(sound), 960)]


def mixed(one: list[bytes], other: list[bytes], share: float = 1.0) -> list[bytes]:
    return [
        (np.frombuffer(a, np.int16) * share + np.frombuffer(b, np.int16))
        .clip(-32768, 32767)
        .astype(np.int16)
        .tobytes()
        for a, b in zip(one, other, strict=True)
    ]


@pytest.mark.parametrize(
    "sentence", ["Hello there.", "Please stop now.", "Five o'clock.", "And another thing."]
)
def test_speech_is_noticed_within_eighty_milliseconds(speak, sentence: str) -> None:
    (started, at_ms), *_ = edges([QUIET] * 50 + speak(sentence))
    assert started is Edge.STARTED
    assert at_ms - 1000 <= 80


def test_a_turn_ends_after_the_silence_asked_for(speak) -> None:
    speech = speak("Good morning to you.")
    for silence_ms in (300, 500, 1000):
        found = edges([QUIET] * 50 + speech + [QUIET] * 100, TurnDetection(silence_duration_ms=silence_ms))
        assert [edge for edge, _ in found] == [Edge.STARTED, Edge.STOPPED]
        after_speech = found[1][1] - 1000 - 20 * len(speech)
        assert silence_ms - 60 <= after_speech <= silence_ms + 120


def test_pauses_between_words_end_no_turn(speak) -> None:
    one, two = speak("First part"), speak("second part")
    found = edges([QUIET] * 20 + one + [QUIET] * 15 + two + [QUIET] * 60)
    assert [edge for edge, _ in found] == [Edge.STARTED, Edge.STOPPED]


@pytest.mark.parametrize("loud", [0, 5, 30, 200, 1000])
def test_steady_noise_is_no_speech_not_even_at_the_start(loud: float) -> None:
    assert edges(noise(500, loud)) == []


def test_a_click_is_no_speech() -> None:
    click = bytearray(960)
    click[480:600] = np.full(60, 20_000, np.int16).tobytes()
    assert edges([QUIET] * 50 + [bytes(click)] + [QUIET] * 50) == []


def test_speech_is_heard_over_noise(speak) -> None:
    speech = [QUIET] * 50 + speak("Can you hear me in here?") + [QUIET] * 60
    found = edges(mixed(speech, noise(len(speech), 200)))
    assert [edge for edge, _ in found] == [Edge.STARTED, Edge.STOPPED]
    assert found[0][1] - 1000 <= 120


def test_a_higher_threshold_asks_for_louder_speech(speak) -> None:
    speech = [QUIET] * 50 + speak("I am whispering.") + [QUIET] * 60
    faint = mixed(speech, [QUIET] * len(speech), share=0.03)
    assert edges(faint, TurnDetection(threshold=0.2))
    assert not edges(faint, TurnDetection(threshold=0.9))
