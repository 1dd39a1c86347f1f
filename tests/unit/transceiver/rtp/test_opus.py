"""libopus as the call uses it."""

import ctypes

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from voicecluster.transceiver.rtp import opus
from voicecluster.transceiver.rtp.audio import SILENCE
from voicecluster.transceiver.rtp.opus import Decoder, Encoder, OpusError, has_fec, packet_ticks


def tone(frames: int, hertz: float = 300.0, loud: float = 8000.0) -> list[bytes]:
    sound = (np.sin(2 * np.pi * hertz * np.arange(frames * 480) / 24_000) * loud).astype(np.int16).tobytes()
    return [sound[at : at + 960] for at in range(0, len(sound), 960)]


def samples(sound: bytes) -> npt.NDArray[np.float64]:
    return np.frombuffer(sound, np.int16).astype(np.float64)


def likeness(one: bytes, other: bytes) -> float:
    """The best correlation within 15 ms: codecs delay."""
    a, b = samples(one), samples(other)
    fits = [np.corrcoef(a[: len(a) - lag], b[lag:])[0, 1] for lag in range(0, 360, 4)]
    return float(max(fits))


def encode(frames: list[bytes], **options: int) -> list[bytes]:
    encoder = Encoder(bitrate=32_000, complexity=5, **options)
    return [payload for frame in frames if (payload := encoder.encode(frame)) is not None]


def test_what_is_encoded_decodes_to_the_same_sound() -> None:
    frames = tone(50)
    decoder = Decoder()
    sound = b"".join(decoder.decode(payload) for payload in encode(frames))
    assert len(sound) == 50 * 960
    assert likeness(b"".join(frames[10:]), sound[10 * 960 :]) > 0.95


def test_speech_packets_carry_fec_and_it_restores_the_lost_one(spoken: object) -> None:
    assert callable(spoken)
    payloads: list[bytes] = spoken(100)
    marked = [index for index in range(30, 100) if has_fec(payloads[index])]
    assert len(marked) > 50

    def run(*, fec: bool) -> bytes:
        decoder, out = Decoder(), []
        for index, payload in enumerate(payloads):
            if index % 10 == 4 and index + 1 in marked:
                out.append(decoder.decode_fec(payloads[index + 1], 960) if fec else decoder.conceal(960))
            else:
                out.append(decoder.decode(payload))
        return b"".join(out)

    reference = Decoder()
    whole = samples(b"".join(reference.decode(payload) for payload in payloads))
    restored = float(np.mean((samples(run(fec=True)) - whole) ** 2))
    concealed = float(np.mean((samples(run(fec=False)) - whole) ** 2))
    assert restored < concealed / 2


def test_concealment_fades_to_silence() -> None:
    decoder = Decoder()
    for payload in encode(tone(30)):
        decoder.decode(payload)
    made_up = [float(np.abs(samples(decoder.conceal(960))).max()) for _ in range(20)]
    assert made_up[0] > 1000
    assert made_up[-1] < 50


def test_a_pause_is_not_sent_but_for_a_comfort_packet_every_400_ms() -> None:
    encoder = Encoder(bitrate=32_000, complexity=5)
    sent = [encoder.encode(SILENCE) is not None for _ in range(100)]
    assert sent[:10] == [True] * 10
    assert sum(sent[10:]) == 5


def test_a_steady_tone_is_no_pause() -> None:
    assert len(encode(tone(300))) == 300


@pytest.mark.parametrize("garbage", [b"", b"\xff", b"\x03", b"\xff\xff\xff\xff", bytes(3)])
def test_garbage_is_an_error_or_sound_and_never_a_crash(garbage: bytes) -> None:
    decoder = Decoder()
    try:
        assert len(decoder.decode(garbage)) <= 5760
    except OpusError:
        pass
    assert decoder.decode(encode(tone(1))[0])


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=60))
def test_the_length_in_the_header_is_the_length_of_the_sound(payload: bytes) -> None:
    ticks = packet_ticks(payload)
    has_fec(payload)
    assert 0 <= ticks <= 5760
    try:
        sound = Decoder().decode(payload)
    except OpusError:
        return
    if payload:
        assert len(sound) == ticks


def test_frames_of_another_length_are_refused() -> None:
    with pytest.raises(OpusError, match="960 bytes"):
        Encoder(bitrate=32_000, complexity=5).encode(bytes(100))


def test_the_library_of_pyavs_wheel_stands_in_where_the_system_has_none() -> None:
    bundled = [name for name in opus._candidates() if "/" in name]
    assert bundled
    assert ctypes.CDLL(bundled[-1]).opus_decoder_create
