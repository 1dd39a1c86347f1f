"""The parrot by itself: what it hears is what it says."""

import pytest
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
from voicecluster.transceiver.agents.parrot import Parrot

QUIET = bytes(960)


def hear(parrot: Parrot, frames: list[bytes]) -> list[AgentEvent]:
    events = [event for index, frame in enumerate(frames) for event in parrot.hear(frame, index * 0.02)]
    return [event for event in events if not isinstance(event, SpeechSuspected)]


def numbered(count: int) -> list[bytes]:
    """Quiet frames that can be told apart."""
    return [index.to_bytes(2, "little") + bytes(958) for index in range(1, count + 1)]


def test_it_says_back_exactly_what_it_heard_with_the_padding_before(speak) -> None:
    before, speech, after = numbered(60), speak("Say this again, please."), [QUIET] * 40
    heard = before + speech + after
    started, stopped, began, audio, finished = hear(Parrot(), heard)
    assert isinstance(started, SpeechStarted)
    assert isinstance(stopped, SpeechStopped)
    assert (began, finished) == (ResponseStarted(), ResponseFinished())
    assert isinstance(audio, ResponseAudio)
    said = list(audio.frames)
    first = heard.index(said[0])
    assert said == heard[first : first + len(said)], "frame for frame"
    assert 300 <= (60 - first) * 20 <= 360, "the padding asked for, and what onset took"
    assert set(speech) <= set(said)
    assert started.at_ms == first * 20


@pytest.mark.parametrize("padding_ms", [0, 100, 1000])
def test_prefix_padding_is_as_long_as_asked_for(speak, padding_ms: int) -> None:
    parrot = Parrot()
    parrot.configure(TurnDetection(prefix_padding_ms=padding_ms))
    before = numbered(100)
    audio = hear(parrot, before + speak("Short.") + [QUIET] * 40)[3]
    assert isinstance(audio, ResponseAudio)
    padding = sum(frame in before for frame in audio.frames[: len(before)]) * 20
    assert padding_ms <= padding <= padding_ms + 60


def test_it_suspects_speech_before_it_is_sure(speak) -> None:
    parrot = Parrot()
    kinds = [type(event) for frame in [QUIET] * 30 + speak("Stop.") for event in parrot.hear(frame, 0.0)]
    assert kinds[:2] == [SpeechSuspected, SpeechStarted]


def test_two_turns_are_answered_each_with_its_own(speak) -> None:
    one, two = speak("One sentence."), speak("And quite another.")
    events = hear(Parrot(), [QUIET] * 30 + one + [QUIET] * 50 + two + [QUIET] * 50)
    first, second = (event.frames for event in events if isinstance(event, ResponseAudio))
    assert set(one) <= set(first)
    assert set(two) <= set(second)
    assert not set(one) - {QUIET} & set(second)


def test_without_create_response_it_answers_only_when_asked(speak) -> None:
    parrot = Parrot()
    parrot.configure(TurnDetection(create_response=False))
    events = hear(parrot, [QUIET] * 30 + speak("Wait for it.") + [QUIET] * 50)
    assert [type(event) for event in events] == [SpeechStarted, SpeechStopped]
    assert [type(event) for event in parrot.respond(3.0)] == [
        ResponseStarted,
        ResponseAudio,
        ResponseFinished,
    ]


def test_without_turn_detection_the_client_makes_the_turns() -> None:
    parrot = Parrot()
    parrot.configure(None)
    frames = numbered(25)
    assert not parrot.commit(0.0)
    assert hear(parrot, frames) == []
    assert parrot.commit(1.0)
    assert parrot.respond(1.0)[1] == ResponseAudio(tuple(frames))
    hear(parrot, frames)
    parrot.clear(2.0)
    assert not parrot.commit(2.0)


def test_a_turn_without_end_is_cut_off_after_thirty_seconds(speak) -> None:
    speech = speak("On and on and on and on and on")
    events = hear(Parrot(), (speech * (2000 // len(speech) + 1))[:2000])
    audio = next(event for event in events if isinstance(event, ResponseAudio))
    assert len(audio.frames) == 1500


def test_there_is_an_agent_for_every_name() -> None:
    from voicecluster.transceiver.agents import registry

    assert registry.names() == ["echo", "parrot"]
    assert registry.create("echo").name == "echo"
    assert registry.create("gpt-realtime").name == "parrot"
    assert registry.create(None, default="echo").name == "echo"
    with pytest.raises(KeyError):
        registry.create("x", default="nobody")
