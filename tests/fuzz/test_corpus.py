"""The fuzz corpus of `wire/fuzz/corpus`, replayed through the Python bindings with the laws that the targets assert."""

from collections.abc import Callable
from pathlib import Path

import pytest
from voicecluster.wire import (
    SPP_LEN,
    CallKey,
    Deframer,
    FramingError,
    HintError,
    HintKey,
    SppError,
    StunError,
    frame,
    parse_stun,
    spp_decode,
    spp_encode,
    stun_username,
)

CORPUS = Path(__file__).parents[2] / "wire" / "fuzz" / "corpus"
KEY = b"\x07" * 32
MAX_FRAME = 64


def replay_framing(data: bytes) -> None:
    if not data:
        return
    piece, stream = max(data[0], 1), data[1:]
    try:
        whole = Deframer(MAX_FRAME).feed(stream)
    except FramingError:
        return
    deframer = Deframer(MAX_FRAME)
    pieces = (stream[at : at + piece] for at in range(0, len(stream), piece))
    assert [found for part in pieces for found in deframer.feed(part)] == whole
    assert Deframer(MAX_FRAME).feed(b"".join(map(frame, whole))) == whole


def replay_hint(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for key in (HintKey("A", KEY), CallKey("A", KEY)):
        try:
            opened = key.open(text)
        except HintError:
            continue
        assert key.mint(opened.route, opened.nonce) == text


def replay_spp(data: bytes) -> None:
    try:
        header = spp_decode(data)
    except SppError:
        return
    assert spp_encode(header.client, header.proxy) == data[:SPP_LEN]


def replay_stun(data: bytes) -> None:
    try:
        message = parse_stun(data)
    except StunError:
        return
    assert message.username == stun_username(data)
    assert not message.verify("nobody signed with this")


REPLAYS: dict[str, Callable[[bytes], None]] = {
    "framing": replay_framing,
    "hint": replay_hint,
    "spp": replay_spp,
    "stun": replay_stun,
}


@pytest.mark.parametrize("target", REPLAYS)
def test_the_corpus_breaks_no_law(target: str) -> None:
    entries = sorted((CORPUS / target).iterdir())
    assert entries, f"{CORPUS / target} is empty"
    for entry in entries:
        REPLAYS[target](entry.read_bytes())
