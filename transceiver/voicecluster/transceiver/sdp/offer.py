"""A caller's offer, parsed once: strict about what a call cannot do without, tolerant of everything else.

Refused (each `OfferError` names the line): no SDP, no audio section, no Opus, no fingerprint, no ICE
credentials, no rtcp-mux, an `a=ice-lite` offerer (both ends would wait for the other's checks), a data
channel outside of the BUNDLE group. Ignored: attributes nobody here knows, header extensions, feedback,
simulcast, further media sections (the answer declines them with port 0).
"""

import re
from dataclasses import dataclass
from typing import Literal

from voicecluster.transceiver.sdp.lines import Attributes, Document, MediaLines, shown, split
from voicecluster.transceiver.sdp.lines import OfferError as OfferError

Direction = Literal["sendrecv", "sendonly", "recvonly", "inactive"]
Setup = Literal["actpass", "active", "passive"]

DEFAULT_MAX_MESSAGE_SIZE = 65_536
"""RFC 8841 section 6.1: what to assume where the offer does not say."""

_UFRAG = re.compile(r"[!-9;-~]{4,256}")  # RFC 8839 ice-chars and what clients make of them; never a colon
_PWD = re.compile(r"[!-~]{22,256}")
_TOKEN = re.compile(r"[!-~]{1,64}")
_HASHES = {"sha-256": 32, "sha-384": 48, "sha-512": 64}


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A certificate's digest: `algorithm` in lower case, `value` as `AA:BB:…` in upper case."""

    algorithm: str
    value: str


@dataclass(frozen=True, slots=True)
class Section:
    """An m-line as the answer has to mirror it. `mid` is `None` where the offer gave none."""

    kind: str
    mid: str | None
    protocol: str
    formats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AudioSection:
    """The one audio section we talk in; `direction` is the offerer's."""

    index: int
    mid: str | None
    opus_pt: int
    fmtp: dict[str, str]
    direction: Direction
    ssrc: int | None


@dataclass(frozen=True, slots=True)
class DataSection:
    """The data channel section. `max_message_size` 0 means any size (RFC 8841 section 6)."""

    index: int
    mid: str | None
    sctp_port: int
    max_message_size: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What a call needs of its offer.

    `sections` are all m-lines in order; `bundle` the mids of the BUNDLE group.
    """

    ufrag: str
    pwd: str
    fingerprints: tuple[Fingerprint, ...]
    setup: Setup
    audio: AudioSection
    application: DataSection | None
    sections: tuple[Section, ...]
    bundle: tuple[str, ...]


def parse_offer(sdp: str) -> Offer:
    """Parse an offer. Raises `OfferError`, and nothing else, for any text that cannot be answered."""
    document = split(sdp)
    if document.session.has("ice-lite"):
        raise OfferError("ice_lite", "the offerer is ICE-lite and would never check us", "a=ice-lite")
    if not document.media:
        raise OfferError(
            "no_audio", "the SDP has no media section; an offer needs an audio section", "m=audio"
        )
    bundle = _bundle(document)
    sections = tuple(
        Section(media.kind, _mid(media.attributes), media.protocol, media.formats) for media in document.media
    )
    index = _audio_index(document)
    media = document.media[index]
    if not media.attributes.has("rtcp-mux"):
        raise OfferError("no_rtcp_mux", "the audio section must offer rtcp-mux", "a=rtcp-mux")
    sources = _sources(document, media, bundle)
    application = _application(document, sections[index].mid, bundle)
    return Offer(
        ufrag=_ufrag(sources),
        pwd=_pwd(sources),
        fingerprints=_fingerprints(sources),
        setup=_setup(sources),
        audio=_audio(document, index, sections[index].mid),
        application=application,
        sections=sections,
        bundle=bundle,
    )


def _mid(attributes: Attributes) -> str | None:
    mid = attributes.first("mid")
    if mid is not None and not _TOKEN.fullmatch(mid):
        raise OfferError(
            "invalid_offer", "a mid must be a token of at most 64 characters", shown(f"a=mid:{mid}")
        )
    return mid


def _bundle(document: Document) -> tuple[str, ...]:
    for group in document.session.all("group"):
        semantics, *mids = group.split()[:65] or [""]
        if semantics == "BUNDLE":
            return tuple(mids)
    return ()


def _audio_index(document: Document) -> int:
    candidates = [
        (index, media)
        for index, media in enumerate(document.media)
        if media.kind == "audio" and (media.port or media.attributes.has("bundle-only"))
    ]
    if not candidates:
        raise OfferError("no_audio", "the offer has no audio section", "m=audio")
    for index, media in candidates:
        if _opus(media) is not None:
            return index
    raise OfferError(
        "no_codec", "the audio section offers no codec we speak: opus/48000/2", shown(candidates[0][1].line)
    )


def _opus(media: MediaLines) -> int | None:
    if "RTP/SAVP" not in media.protocol.upper():
        return None
    for value in media.attributes.all("rtpmap"):
        payload_type, _, encoding = value.partition(" ")
        known = payload_type in media.formats and payload_type.isascii() and payload_type.isdigit()
        if known and encoding.strip().lower() == "opus/48000/2" and int(payload_type) <= 127:
            return int(payload_type)
    return None


def _audio(document: Document, index: int, mid: str | None) -> AudioSection:
    attributes = document.media[index].attributes
    opus_pt = _opus(document.media[index])
    assert opus_pt is not None  # _audio_index chose this section because it has one
    fmtp: dict[str, str] = {}
    for value in attributes.all("fmtp"):
        payload_type, _, parameters = value.partition(" ")
        if payload_type == str(opus_pt):
            pairs = (parameter.partition("=") for parameter in parameters.split(";"))
            fmtp = {key.strip(): setting.strip() for key, _, setting in pairs if key.strip()}
    ssrc = (attributes.first("ssrc") or "").partition(" ")[0]
    return AudioSection(
        index=index,
        mid=mid,
        opus_pt=opus_pt,
        fmtp=fmtp,
        direction=_direction(document, attributes),
        ssrc=int(ssrc) if ssrc.isascii() and ssrc.isdigit() and int(ssrc) < 1 << 32 else None,
    )


def _direction(document: Document, attributes: Attributes) -> Direction:
    directions: tuple[Direction, ...] = ("sendrecv", "sendonly", "recvonly", "inactive")
    for source in (attributes, document.session):
        for direction in directions:
            if source.has(direction):
                return direction
    return "sendrecv"


def _sources(document: Document, media: MediaLines, bundle: tuple[str, ...]) -> tuple[Attributes, ...]:
    """Where transport attributes may stand, nearest first: the section, the BUNDLE group's tagged one, the
    session.
    """
    tagged = [other.attributes for other in document.media if bundle and _mid(other.attributes) == bundle[0]]
    in_group = media.attributes.first("mid") in bundle
    return (media.attributes, *(tagged[:1] if in_group else []), document.session)


def _nearest(sources: tuple[Attributes, ...], name: str) -> str | None:
    return next((value for source in sources if (value := source.first(name)) is not None), None)


def _ufrag(sources: tuple[Attributes, ...]) -> str:
    ufrag = _nearest(sources, "ice-ufrag")
    if ufrag is None:
        raise OfferError("no_ufrag", "the offer has no ICE username fragment", "a=ice-ufrag")
    if not _UFRAG.fullmatch(ufrag):
        raise OfferError(
            "no_ufrag", "the ICE username fragment must be 4..256 ice-chars", shown(f"a=ice-ufrag:{ufrag}")
        )
    return ufrag


def _pwd(sources: tuple[Attributes, ...]) -> str:
    pwd = _nearest(sources, "ice-pwd")
    if pwd is None or not _PWD.fullmatch(pwd):
        raise OfferError("no_pwd", "the offer needs an ICE password of 22..256 ice-chars", "a=ice-pwd")
    return pwd


def _fingerprints(sources: tuple[Attributes, ...]) -> tuple[Fingerprint, ...]:
    values = next((values for source in sources if (values := source.all("fingerprint"))), [])
    if not values:
        raise OfferError("no_fingerprint", "the offer has no certificate fingerprint", "a=fingerprint")
    usable: list[Fingerprint] = []
    for text in values:
        algorithm, _, value = text.partition(" ")
        size = _HASHES.get(algorithm.lower())
        octets = value.strip().upper().split(":")
        if size is None:
            continue
        if len(octets) != size or not all(re.fullmatch("[0-9A-F]{2}", octet) for octet in octets):
            raise OfferError("no_fingerprint", "the fingerprint is malformed", shown(f"a=fingerprint:{text}"))
        usable.append(Fingerprint(algorithm.lower(), ":".join(octets)))
    if not usable:
        wanted = ", ".join(_HASHES)
        raise OfferError(
            "no_fingerprint", f"no fingerprint uses {wanted}", shown(f"a=fingerprint:{values[0]}")
        )
    return tuple(usable)


def _setup(sources: tuple[Attributes, ...]) -> Setup:
    setup = (_nearest(sources, "setup") or "actpass").lower()
    known: tuple[Setup, ...] = ("actpass", "active", "passive")
    for each in known:
        if setup == each:
            return each
    raise OfferError("invalid_offer", "setup must be actpass, active or passive", shown(f"a=setup:{setup}"))


def _application(document: Document, audio_mid: str | None, bundle: tuple[str, ...]) -> DataSection | None:
    for index, media in enumerate(document.media):
        if media.kind != "application" or not (media.port or media.attributes.has("bundle-only")):
            continue
        port = _sctp_port(media)
        if port is None:
            continue
        mid = _mid(media.attributes)
        if mid not in bundle or audio_mid not in bundle:
            raise OfferError(
                "no_bundle", "audio and data channel must share one BUNDLE group", "a=group:BUNDLE"
            )
        size = media.attributes.first("max-message-size") or ""
        known = size.isascii() and size.isdigit()
        return DataSection(index, mid, port, int(size) if known else DEFAULT_MAX_MESSAGE_SIZE)
    return None


def _sctp_port(media: MediaLines) -> int | None:
    """The SCTP port (RFC 8841), also in the older form `DTLS/SCTP 5000`; `None` for another kind of
    application.
    """
    if "SCTP" not in media.protocol.upper():
        return None
    text = media.attributes.first("sctp-port") or media.formats[0]
    if text == "webrtc-datachannel":
        return 5000
    return int(text) if text.isascii() and text.isdigit() and 0 < int(text) <= 65535 else None
