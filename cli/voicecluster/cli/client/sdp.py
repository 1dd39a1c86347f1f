"""The SDP a client writes and reads: one audio section in the offer, what matters to us in the answer."""

from dataclasses import dataclass
from typing import Literal

from voicecluster.cli.client.errors import CallError
from voicecluster.cli.client.ice import Address, Credentials, RemoteCandidate

OPUS = 111
Setup = Literal["active", "passive"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What an answer says about reaching the other side."""

    remote: Credentials
    candidates: tuple[RemoteCandidate, ...]
    """UDP candidates with an IP address; others are not for this client."""
    fingerprint: tuple[str, str]
    """Hash name in lower case and colon-separated upper case hex."""
    setup: Setup
    """The other side's DTLS role: `active` sends the ClientHello."""
    opus: int
    """The payload type of Opus."""


def host_priority(*, ipv6: bool) -> int:
    """RFC 8445 5.1.2.1 for a host candidate of component 1; IPv6 goes before IPv4 (RFC 8421)."""
    return (126 << 24) + ((65535 if ipv6 else 65000) << 8) + 255


def build_offer(
    local: Credentials, hosts: tuple[Address, ...], *, fingerprint: str, ssrc: int, cname: str
) -> str:
    """A sendrecv Opus offer with `hosts` as its candidates. `fingerprint` is `sha-256 AB:CD:…`."""
    lines = [
        "v=0",
        f"o=- {ssrc} 1 IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
        "a=group:BUNDLE 0",
        "a=msid-semantic: WMS voicecluster",
        f"m=audio 9 UDP/TLS/RTP/SAVPF {OPUS}",
        "c=IN IP4 0.0.0.0",
        "a=rtcp:9 IN IP4 0.0.0.0",
        *(f"a={line}" for line in candidate_lines(hosts)),
        f"a=ice-ufrag:{local.ufrag}",
        f"a=ice-pwd:{local.pwd}",
        "a=end-of-candidates",
        f"a=fingerprint:{fingerprint}",
        "a=setup:actpass",
        "a=mid:0",
        "a=sendrecv",
        "a=msid:voicecluster microphone",
        "a=rtcp-mux",
        f"a=rtpmap:{OPUS} opus/48000/2",
        f"a=fmtp:{OPUS} minptime=10;useinbandfec=1",
        f"a=ssrc:{ssrc} cname:{cname}",
    ]
    return "\r\n".join(lines) + "\r\n"


def candidate_lines(hosts: tuple[Address, ...]) -> list[str]:
    """Host candidates as `candidate:` lines (RFC 8839 5.1), best first."""
    ranked = sorted(hosts, key=lambda host: ":" not in host[0])
    return [
        f"candidate:{index} 1 udp {host_priority(ipv6=':' in address)} {address} {port} typ host"
        for index, (address, port) in enumerate(ranked, start=1)
    ]


def build_fragment(local: Credentials) -> str:
    """What `PATCH` sends to restart ICE (RFC 8840 section 9)."""
    credentials = f"a=ice-ufrag:{local.ufrag}\r\na=ice-pwd:{local.pwd}\r\n"
    return f"{credentials}m=audio 9 UDP/TLS/RTP/SAVPF {OPUS}\r\na=mid:0\r\n"


def parse_answer(sdp: str) -> Answer:
    """Read an answer. Raises CallError("signaling") that names what is missing."""
    values = _attributes(sdp)
    algorithm, _, digest = _one(values, "fingerprint").partition(" ")
    opus = next(
        (
            line.split()[0]
            for line in values.get("rtpmap", [])
            if line.lower().split()[-1:] == ["opus/48000/2"]
        ),
        "",
    )
    if not opus.isdigit():
        raise CallError("signaling", "the answer accepts no Opus: it has no 'a=rtpmap:… opus/48000/2'")
    setup = _one(values, "setup")
    if setup not in ("active", "passive"):
        raise CallError("signaling", f"the answer says 'a=setup:{setup}'; it must choose active or passive")
    return Answer(
        remote=Credentials(_one(values, "ice-ufrag"), _one(values, "ice-pwd")),
        candidates=_candidates(values.get("candidate", [])),
        fingerprint=(algorithm.lower(), digest.strip().upper()),
        setup="active" if setup == "active" else "passive",
        opus=int(opus),
    )


def parse_fragment(fragment: str) -> tuple[Credentials, tuple[RemoteCandidate, ...]]:
    """Read the answer to a restart: new credentials, and candidates if it names any."""
    values = _attributes(fragment)
    remote = Credentials(_one(values, "ice-ufrag"), _one(values, "ice-pwd"))
    return remote, _candidates(values.get("candidate", []))


def _attributes(sdp: str) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for line in sdp.splitlines():
        if line.startswith("a="):
            name, _, value = line[2:].partition(":")
            values.setdefault(name, []).append(value.strip())
    return values


def _one(values: dict[str, list[str]], name: str) -> str:
    found = values.get(name)
    if not found or not found[0]:
        raise CallError("signaling", f"the answer has no 'a={name}:' line")
    return found[0]


def _candidates(lines: list[str]) -> tuple[RemoteCandidate, ...]:
    found = []
    for line in lines:
        parts = line.split()
        if len(parts) >= 8 and parts[2].lower() == "udp" and not parts[4].endswith(".local"):
            found.append(RemoteCandidate((parts[4], int(parts[5])), int(parts[3])))
    return tuple(dict.fromkeys(found))
