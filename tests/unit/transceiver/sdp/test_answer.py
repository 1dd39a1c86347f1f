"""Answers and fragments: what is in them, and what is deliberately not."""

from pathlib import Path

import pytest
from aiortc.sdp import SessionDescription
from voicecluster.transceiver.sdp import (
    Candidate,
    OfferError,
    build_answer,
    build_fragment,
    parse_fragment,
    parse_offer,
)

CHROMIUM = (Path(__file__).parent / "chromium.sdp").read_text().replace("\n", "\r\n")
FIREFOX = (Path(__file__).parent / "firefox.sdp").read_text().replace("\n", "\r\n")
DIGEST = "sha-256 " + ":".join(f"{n:02X}" for n in range(32))
VIP = Candidate("198.51.100.1", 3478)
VIP_V6 = Candidate("2001:db8::1", 3478)
VIP_TCP = Candidate("198.51.100.1", 443, "tcp")
VIDEO = "m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\nc=IN IP4 0.0.0.0\r\na=mid:v\r\na=rtpmap:96 VP8/90000\r\n"


def answer(text: str, *candidates: Candidate, ice_lite: bool = True) -> list[str]:
    """The lines of our answer to an offer."""
    built = build_answer(
        parse_offer(text),
        ufrag="Aanswer",
        pwd="pwd-of-the-answer-22-long",
        fingerprint=DIGEST,
        setup="active",
        candidates=candidates or (VIP,),
        ssrc=4711,
        cname="vc",
        session_id=99,
        ice_lite=ice_lite,
    )
    assert built.endswith("\r\n")
    return built.split("\r\n")[:-1]


@pytest.mark.parametrize("offer", [CHROMIUM, FIREFOX])
def test_an_answer_is_understood_by_another_parser(offer: str) -> None:
    parsed = SessionDescription.parse("\r\n".join(answer(offer)) + "\r\n")
    audio, data = parsed.media
    assert (audio.kind, audio.ice.usernameFragment, audio.dtls.role) == ("audio", "Aanswer", "client")
    assert [codec.mimeType for codec in audio.rtp.codecs] == ["audio/opus"]
    assert (data.kind, data.sctp_port) == ("application", 5000)
    assert [candidate.port for candidate in audio.ice_candidates] == [3478]


def test_mids_and_bundle_are_mirrored() -> None:
    lines = answer(CHROMIUM)
    assert "a=group:BUNDLE 0 1" in lines
    assert [line for line in lines if line.startswith("a=mid")] == ["a=mid:0", "a=mid:1"]


def test_exactly_the_vips_are_candidates_and_then_there_are_no_more() -> None:
    lines = answer(CHROMIUM, VIP_V6, VIP, VIP_TCP)
    first = lines.index("a=end-of-candidates")
    addresses = [line.split()[4:6] for line in lines if line.startswith("a=candidate")]
    assert addresses == [["2001:db8::1", "3478"], ["198.51.100.1", "3478"], ["198.51.100.1", "443"]]
    assert lines[first - 1].endswith("typ host tcptype passive")


def test_tcp_has_the_lowest_priority_and_ipv6_the_highest() -> None:
    lines = [line for line in answer(CHROMIUM, VIP_TCP, VIP, VIP_V6) if line.startswith("a=candidate")]
    tcp, v4, v6 = (int(line.split()[3]) for line in lines)
    assert tcp < v4 < v6


def test_ice_lite_is_a_switch() -> None:
    assert "a=ice-lite" in answer(CHROMIUM)
    assert "a=ice-lite" not in answer(CHROMIUM, ice_lite=False)


def test_callers_are_asked_for_in_band_fec_and_never_for_dtx() -> None:
    lines = answer(CHROMIUM)
    assert "a=fmtp:111 minptime=10;useinbandfec=1" in lines
    assert not any("usedtx" in line for line in lines)


@pytest.mark.parametrize("unwanted", ["a=extmap", "a=rtcp-fb", "renomination", "telephone-event"])
def test_what_we_do_not_do_is_not_answered(unwanted: str) -> None:
    assert not any(unwanted in line for line in answer(CHROMIUM))


def test_video_is_declined_with_port_0_and_stays_in_its_place() -> None:
    text = CHROMIUM.replace("m=audio", VIDEO + "m=audio", 1).replace("BUNDLE 0 1", "BUNDLE v 0 1")
    lines = answer(text)
    media = [line for line in lines if line.startswith("m=")]
    assert media[0] == "m=video 0 UDP/TLS/RTP/SAVPF 96 97"
    assert "a=group:BUNDLE 0 1" in lines
    assert sum(line.startswith("a=candidate") for line in lines) == 1


@pytest.mark.parametrize(
    ("offered", "answered", "sends"),
    [
        ("sendrecv", "sendrecv", True),
        ("sendonly", "recvonly", False),
        ("recvonly", "sendonly", True),
        ("inactive", "inactive", False),
    ],
)
def test_the_direction_is_mirrored_and_an_ssrc_named_only_where_we_send(
    offered: str, answered: str, sends: bool
) -> None:
    lines = answer(CHROMIUM.replace("a=sendrecv", f"a={offered}"))
    assert f"a={answered}" in lines
    assert ("a=ssrc:4711 cname:vc" in lines) is sends


def test_an_answer_without_bundle_mirrors_one_section() -> None:
    text = CHROMIUM.split("m=application")[0].replace("a=group:BUNDLE 0 1\r\n", "")
    assert not any(line.startswith("a=group") for line in answer(text))


def test_an_ipv6_vip_gives_an_ipv6_connection_line() -> None:
    assert "c=IN IP6 2001:db8::1" in answer(CHROMIUM, VIP_V6)


def test_a_fragment_goes_round() -> None:
    text = build_fragment(
        ufrag="Anext", pwd="next-password-22-chars", candidates=[VIP], mid="0", ice_lite=True
    )
    fragment = parse_fragment(text)
    assert (fragment.ufrag, fragment.pwd) == ("Anext", "next-password-22-chars")
    assert "a=ice-lite\r\n" in text
    assert "198.51.100.1 3478 typ host" in text


def test_a_fragment_with_trickled_candidates_is_read() -> None:
    text = (
        "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n"
        "a=candidate:1 1 udp 1 x.local 5 typ host\r\na=end-of-candidates\r\n"
    )
    assert parse_fragment(text).ufrag == "abcd"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no_ufrag"),
        ("a=ice-ufrag:abcd\r\n", "no_pwd"),
        ("a=ice-pwd:0123456789012345678901\r\n", "no_ufrag"),
        ("no such line\r\n", "invalid_fragment"),
        ("a=x:" + "y" * 70_000, "too_large"),
    ],
)
def test_a_fragment_without_credentials_is_refused(text: str, code: str) -> None:
    with pytest.raises(OfferError) as caught:
        parse_fragment(text)
    assert caught.value.code == code
