"""The prepared sound, and finding it again."""

import pytest
from voicecluster.cli.client.audio import Recorder, speech


def echoed(
    delay_seconds: float, *, packets: int = 300, first_frame: int = 0, lose: frozenset[int] = frozenset()
) -> Recorder:
    """A recorder that gets its own speech back."""
    recorder, frames = Recorder(), speech().frames
    recorder.start(50.0, first_frame)
    for index in range(packets):
        if index not in lose:
            payload = frames[(first_frame + index) % len(frames)]
            recorder.received(50.0 + 0.02 * index + delay_seconds, 960 * index + 77, payload)
    return recorder


@pytest.mark.parametrize("delay_ms", [0, 37, 250])
@pytest.mark.parametrize("first_frame", [0, 120])
def test_the_delay_of_an_echo_is_found_to_the_codecs_lookahead(delay_ms: int, first_frame: int) -> None:
    heard = echoed(delay_ms / 1000, first_frame=first_frame).listen()
    assert heard.audible
    assert heard.correlation > 0.9
    assert heard.delay_ms == pytest.approx(delay_ms + 6.5, abs=3)


def test_losses_do_not_hide_the_sound() -> None:
    heard = echoed(0.05, lose=frozenset(range(0, 300, 9))).listen()
    assert heard.correlation > 0.7


def test_silence_is_not_audible() -> None:
    recorder, frames = Recorder(), speech().frames
    quiet = min(frames, key=len)
    recorder.start(0.0, 0)
    for index in range(100):
        recorder.received(0.02 * index, 960 * index, quiet)
    assert not recorder.listen().audible


def test_nothing_received_is_nothing_heard() -> None:
    recorder = Recorder()
    recorder.start(0.0, 0)
    heard = recorder.listen()
    assert (heard.audible, heard.delay_ms) == (False, None)


def test_the_speech_has_frames_of_speech_and_pauses() -> None:
    sizes = [len(frame) for frame in speech().frames]
    assert len(sizes) == 250
    assert 60 <= sorted(sizes)[len(sizes) // 2] <= 250


def test_a_payload_that_is_not_opus_is_passed_over() -> None:
    recorder, frames = Recorder(), speech().frames
    recorder.start(0.0, 0)
    for index in range(150):
        payload = b"\xff\xff\xff" if index % 10 == 0 else frames[index]
        recorder.received(0.02 * index, 960 * index, payload)
    assert recorder.listen().recognised
