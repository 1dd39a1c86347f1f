"""Our answer to an offer, in the taste of Chromium and Firefox.

What is not in it is as deliberate as what is: no header extensions, no feedback and no transport-wide
congestion control (callers then send plain RTCP), no `usedtx` (the downlink follows the uplink, so callers
must keep sending 50 packets/s), no `renomination`, no candidate but the VIPs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from voicecluster.transceiver.sdp.offer import AudioSection, Direction, Offer, Section

MAX_MESSAGE_SIZE = 262_144
"""Bytes of one data channel message that we take."""

_MIRRORED: dict[Direction, Direction] = {
    "sendrecv": "sendrecv",
    "sendonly": "recvonly",
    "recvonly": "sendonly",
    "inactive": "inactive",
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A VIP as a host candidate.

    `priority` after RFC 8445 section 5.1.2; TCP VIPs are passive and come last.
    """

    address: str
    port: int
    protocol: Literal["udp", "tcp"] = "udp"
    priority: int | None = None

    def value(self, foundation: int) -> str:
        """The value of its `a=candidate` attribute."""
        priority = self.priority if self.priority is not None else _priority(self, foundation)
        tcp = " tcptype passive" if self.protocol == "tcp" else ""
        return f"{foundation} 1 {self.protocol} {priority} {self.address} {self.port} typ host{tcp}"


def _priority(candidate: Candidate, foundation: int) -> int:
    type_preference = 126 if candidate.protocol == "udp" else 90
    local_preference = 65_535 - foundation - (0 if ":" in candidate.address else 256)
    return (type_preference << 24) + (local_preference << 8) + 255


def build_answer(
    offer: Offer,
    *,
    ufrag: str,
    pwd: str,
    fingerprint: str,
    setup: Literal["active", "passive"],
    candidates: Sequence[Candidate],
    ssrc: int,
    cname: str,
    session_id: int,
    ice_lite: bool,
) -> str:
    """Build the answer.

    Args:
        fingerprint: as in SDP, `sha-256 AA:BB:…`.
        candidates: the VIPs; exactly these, in this order, are what the caller may send to.
        ssrc: of the audio we send; left out where the caller receives none.
        session_id: the `o=` line's number, below 2^62.
    """
    accepted = [offer.audio.index] + ([offer.application.index] if offer.application else [])
    order = sorted(accepted)
    transport = [
        f"a=ice-ufrag:{ufrag}",
        f"a=ice-pwd:{pwd}",
        f"a=fingerprint:{fingerprint}",
        f"a=setup:{setup}",
    ]
    lines = ["v=0", f"o=- {session_id} 2 IN IP4 127.0.0.1", "s=-", "t=0 0"]
    if ice_lite:
        lines.append("a=ice-lite")
    if offer.bundle:
        mids = (offer.sections[index].mid for index in order)
        lines.append(
            " ".join(["a=group:BUNDLE", *(mid for mid in mids if mid is not None and mid in offer.bundle)])
        )
    lines.append("a=msid-semantic: WMS *")
    first = candidates[0] if candidates else None
    place = (first.port, _connection(first.address)) if first else (9, _connection("0.0.0.0"))
    for index, section in enumerate(offer.sections):
        if index not in accepted:
            lines += _declined(section)
            continue
        is_audio = index == offer.audio.index
        body = _audio(offer.audio, section, place, ssrc, cname) if is_audio else _data(section, place)
        lines += [*body[:2], *_mid(section), *transport]
        if index == order[0]:
            lines += [f"a=candidate:{candidate.value(n)}" for n, candidate in enumerate(candidates, 1)]
            lines.append("a=end-of-candidates")
        lines += body[2:]
    return "\r\n".join(lines) + "\r\n"


def build_fragment(
    *, ufrag: str, pwd: str, candidates: Sequence[Candidate], mid: str | None, ice_lite: bool
) -> str:
    """Our side of an ICE restart (RFC 8840): new credentials and the same VIPs."""
    lines = ["a=ice-lite"] if ice_lite else []
    lines += [f"a=ice-ufrag:{ufrag}", f"a=ice-pwd:{pwd}", "m=audio 9 UDP/TLS/RTP/SAVPF 0"]
    lines += [f"a=mid:{mid}"] if mid is not None else []
    lines += [f"a=candidate:{candidate.value(n)}" for n, candidate in enumerate(candidates, 1)]
    return "\r\n".join([*lines, "a=end-of-candidates"]) + "\r\n"


def _connection(address: str) -> str:
    return f"c=IN IP{6 if ':' in address else 4} {address}"


def _mid(section: Section) -> list[str]:
    return [f"a=mid:{section.mid}"] if section.mid is not None else []


def _declined(section: Section) -> list[str]:
    media = f"m={section.kind} 0 {section.protocol} {' '.join(section.formats)}"
    return [media, "c=IN IP4 0.0.0.0", *_mid(section), "a=inactive"]


def _audio(audio: AudioSection, section: Section, place: tuple[int, str], ssrc: int, cname: str) -> list[str]:
    direction = _MIRRORED[audio.direction]
    port, connection = place
    lines = [
        f"m=audio {port} {section.protocol} {audio.opus_pt}",
        connection,
        f"a={direction}",
        "a=rtcp-mux",
        f"a=rtpmap:{audio.opus_pt} opus/48000/2",
        f"a=fmtp:{audio.opus_pt} minptime=10;useinbandfec=1",
    ]
    if direction in ("sendrecv", "sendonly"):
        lines += ["a=msid:voicecluster audio", f"a=ssrc:{ssrc} cname:{cname}"]
    return lines


def _data(section: Section, place: tuple[int, str]) -> list[str]:
    port, connection = place
    media = f"m=application {port} {section.protocol} {' '.join(section.formats)}"
    if section.formats[0] == "webrtc-datachannel":
        return [media, connection, "a=sctp-port:5000", f"a=max-message-size:{MAX_MESSAGE_SIZE}"]
    return [media, connection, f"a=sctpmap:{section.formats[0]} webrtc-datachannel 1024"]
