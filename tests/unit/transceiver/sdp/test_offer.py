"""Offers as browsers write them, and everything that is wrong with the others."""

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from voicecluster.transceiver.sdp import Fingerprint, Offer, OfferError, parse_offer

DIGEST = ":".join(f"{n:02X}" for n in range(32))
CHROMIUM = (Path(__file__).parent / "chromium.sdp").read_text().replace("\n", "\r\n")
FIREFOX = (Path(__file__).parent / "firefox.sdp").read_text().replace("\n", "\r\n")


def minimal(*, session: str = "", audio: str = "", more: str = "") -> str:
    """The least that can be answered."""
    return (
        f"v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n{session}"
        "m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r\nc=IN IP4 0.0.0.0\r\n"
        "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789012345678901\r\n"
        f"a=fingerprint:sha-256 {DIGEST}\r\na=setup:actpass\r\na=rtcp-mux\r\n"
        f"a=rtpmap:111 opus/48000/2\r\n{audio}{more}"
    )


def without(text: str, prefix: str) -> str:
    """`text` less the lines that begin so."""
    return "\r\n".join(line for line in text.split("\r\n") if not line.startswith(prefix))


def refusal(text: str) -> OfferError:
    """The error that an offer gets."""
    with pytest.raises(OfferError) as caught:
        parse_offer(text)
    return caught.value


def test_chromium_is_understood() -> None:
    offer = parse_offer(CHROMIUM)
    assert (offer.ufrag, offer.pwd) == ("Yq3n", "0HLtJmX9S4h1vU5kq2wPz8Rb")
    assert offer.setup == "actpass"
    assert offer.audio.opus_pt == 111
    assert offer.audio.fmtp == {"minptime": "10", "useinbandfec": "1"}
    assert offer.audio.direction == "sendrecv"
    assert offer.audio.ssrc == 2231627014
    assert offer.application is not None
    assert (offer.application.sctp_port, offer.application.max_message_size) == (5000, 262144)
    assert offer.bundle == ("0", "1")
    assert [(section.kind, section.mid) for section in offer.sections] == [
        ("audio", "0"),
        ("application", "1"),
    ]


def test_firefox_is_understood_with_its_session_level_fingerprint() -> None:
    offer = parse_offer(FIREFOX)
    assert offer.ufrag == "0f6c2d1a"
    assert offer.audio.opus_pt == 109
    assert offer.fingerprints[0].algorithm == "sha-256"
    assert offer.application is not None
    assert offer.application.max_message_size == 1073741823


def test_one_section_needs_no_bundle_and_no_mid() -> None:
    offer = parse_offer(minimal())
    assert (offer.bundle, offer.audio.mid, offer.application) == ((), None, None)


def test_bare_newlines_are_tolerated() -> None:
    assert parse_offer(minimal().replace("\r\n", "\n")).ufrag == "abcd"


def test_unknown_attributes_and_line_types_are_read_over() -> None:
    assert parse_offer(minimal(session="x=later\r\na=new-in-2030:yes\r\n", audio="a=extmap:1 urn:x\r\n"))


def test_a_missing_setup_means_actpass() -> None:
    assert parse_offer(without(minimal(), "a=setup")).setup == "actpass"


def test_transport_attributes_of_a_bundle_only_section_come_from_the_tagged_one() -> None:
    text = (
        "v=0\r\na=group:BUNDLE d a\r\n"
        "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:d\r\na=sctp-port:5000\r\n"
        "a=ice-ufrag:tagd\r\na=ice-pwd:0123456789012345678901\r\na=setup:actpass\r\n"
        f"a=fingerprint:sha-256 {DIGEST}\r\n"
        "m=audio 0 UDP/TLS/RTP/SAVPF 111\r\na=mid:a\r\na=bundle-only\r\na=rtcp-mux\r\n"
        "a=rtpmap:111 opus/48000/2\r\n"
    )
    assert parse_offer(text).ufrag == "tagd"


def test_the_first_audio_section_with_opus_is_taken() -> None:
    first = "m=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:z\r\n"
    text = minimal().replace("m=audio", first + "m=audio", 1)
    assert parse_offer(text).audio.index == 1


def test_an_application_section_that_is_not_sctp_is_declined_not_refused() -> None:
    offer = parse_offer(minimal(more="m=application 9 UDP/BFCP *\r\na=mid:b\r\n"))
    assert offer.application is None
    assert len(offer.sections) == 2


def test_the_old_form_of_a_data_channel_section_is_understood() -> None:
    text = minimal(
        session="a=group:BUNDLE a d\r\n",
        audio="a=mid:a\r\n",
        more="m=application 9 DTLS/SCTP 5001\r\na=mid:d\r\na=sctpmap:5001 webrtc-datachannel 256\r\n",
    )
    application = parse_offer(text).application
    assert application is not None
    assert application.sctp_port == 5001


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("", "invalid_offer", "v=0"),
        ("\r\n \r\n", "invalid_offer", "v=0"),
        ('{"type": "offer"}', "invalid_offer", '{"type": "offer"}'),
        ("v=0\r\nhello there\r\n", "invalid_offer", "hello there"),
        ("v=0\r\ns=-\r\n", "no_audio", "m=audio"),
        (minimal().replace("m=audio 9", "m=audio 0"), "no_audio", "m=audio"),
        (minimal().replace("m=audio", "m=video"), "no_audio", "m=audio"),
        (minimal().replace("opus/48000/2", "AMR/8000"), "no_codec", "m=audio 9 UDP/TLS/RTP/SAVPF 111 0"),
        (minimal().replace("UDP/TLS/RTP/SAVPF", "RTP/AVP"), "no_codec", "m=audio 9 RTP/AVP 111 0"),
        (minimal().replace("m=audio 9 ", "m=audio x "), "invalid_offer", "m=audio x UDP/TLS/RTP/SAVPF 111 0"),
        (without(minimal(), "a=fingerprint"), "no_fingerprint", "a=fingerprint"),
        (minimal().replace(DIGEST, "AA:BB"), "no_fingerprint", "a=fingerprint:sha-256 AA:BB"),
        (without(minimal(), "a=ice-ufrag"), "no_ufrag", "a=ice-ufrag"),
        (minimal().replace("abcd", "a:b c"), "no_ufrag", "a=ice-ufrag:a:b c"),
        (without(minimal(), "a=ice-pwd"), "no_pwd", "a=ice-pwd"),
        (without(minimal(), "a=rtcp-mux"), "no_rtcp_mux", "a=rtcp-mux"),
        (minimal(session="a=ice-lite\r\n"), "ice_lite", "a=ice-lite"),
        (minimal().replace("setup:actpass", "setup:holdconn"), "invalid_offer", "a=setup:holdconn"),
        (
            minimal(more="m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:d\r\n"),
            "no_bundle",
            "a=group:BUNDLE",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused_by_name(text: str, code: str, line: str) -> None:
    error = refusal(text)
    assert (error.code, error.line) == (code, line)
    assert error.message


def test_a_fingerprint_of_an_unusable_hash_only_is_refused() -> None:
    assert refusal(minimal().replace("sha-256", "sha-1")).code == "no_fingerprint"


def test_a_usable_fingerprint_beside_an_unusable_one_is_taken() -> None:
    offer = parse_offer(minimal(audio="a=fingerprint:md5 00:11\r\n"))
    assert offer.fingerprints == (Fingerprint("sha-256", DIGEST),)


def test_too_long_an_sdp_is_refused_without_reading_it() -> None:
    assert refusal(minimal(audio="a=x:" + "y" * 70_000)).code == "too_large"


def test_an_error_never_shows_a_password() -> None:
    bad = minimal().replace("a=ice-pwd:0123456789012345678901", "a=ice-pwd:short-secret")
    error = refusal(bad)
    assert "short-secret" not in f"{error} {error.line}"


@settings(deadline=None)
@given(st.text(max_size=400))
def test_any_text_is_an_offer_or_an_offer_error(text: str) -> None:
    for candidate in (text, "v=0\r\n" + text, minimal(session=text), minimal(audio=text)):
        with suppress(OfferError):
            assert isinstance(parse_offer(candidate), Offer)


@settings(deadline=None)
@given(st.data())
def test_any_damage_to_a_browsers_offer_is_survived(data: st.DataObject) -> None:
    lines = CHROMIUM.split("\r\n")
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(lines) - 1))
        lines[index] = data.draw(st.sampled_from(["", "a=", "m=", lines[index][:3], "a=mid:", lines[-2]]))
    with suppress(OfferError):
        assert isinstance(parse_offer("\r\n".join(lines)), Offer)
