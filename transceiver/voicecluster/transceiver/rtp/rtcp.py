"""RTCP of one call: sender and receiver reports, SDES, BYE (RFC 3550 section 6). Pure: bytes to values and
back.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

SR: Final = 200
RR: Final = 201
SDES: Final = 202
BYE: Final = 203

_HEADER = struct.Struct("!BBH")
_WORD = struct.Struct("!I")
_SENDER = struct.Struct("!IQIII")
_BLOCK = struct.Struct("!IIIIII")
_CNAME: Final = 1


class RtcpError(ValueError):
    """Not an RTCP compound packet."""


@dataclass(frozen=True, slots=True)
class ReportBlock:
    """What one side received of `ssrc` (RFC 3550 6.4.1)."""

    ssrc: int
    fraction_lost: int
    """Of 256, since the report before."""
    cumulative_lost: int
    highest_sequence: int
    jitter: int
    """Timestamp units."""
    last_sr: int
    """Middle 32 bits of the NTP time of the last SR, 0 if none came."""
    delay_since_sr: int
    """Units of 1/65536 s."""


@dataclass(frozen=True, slots=True)
class SenderReport:
    """What `ssrc` sent, and its clock: NTP time in units of 2^-32 s."""

    ssrc: int
    ntp: int
    rtp: int
    packets: int
    octets: int
    blocks: tuple[ReportBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class ReceiverReport:
    """What `ssrc` received; it sends nothing itself."""

    ssrc: int
    blocks: tuple[ReportBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class Sdes:
    """The name that ties one side's streams together."""

    ssrc: int
    cname: str


@dataclass(frozen=True, slots=True)
class Bye:
    """These sources say that they stop."""

    sources: tuple[int, ...]


Report = SenderReport | ReceiverReport | Sdes | Bye


def parse(data: bytes) -> list[Report]:
    """The reports of a compound packet; other kinds (feedback, XR, APP) are skipped. Raises RtcpError."""
    return list(_reports(data))


def _reports(data: bytes) -> Iterator[Report]:
    at = 0
    while at < len(data):
        if len(data) - at < 4:
            raise RtcpError("truncated header")
        first, kind, words = _HEADER.unpack_from(data, at)
        end = at + 4 + 4 * words
        if first >> 6 != 2:
            raise RtcpError("version is not 2")
        if end > len(data):
            raise RtcpError("length beyond the datagram")
        body = data[at + 4 : end]
        if first & 0x20:
            if not body or not 0 < body[-1] <= len(body):
                raise RtcpError("padding beyond the packet")
            body = body[: -body[-1]]
        try:
            report = _report(kind, first & 0x1F, body)
        except struct.error:
            raise RtcpError("shorter than its count says") from None
        if report is not None:
            yield report
        at = end


def _report(kind: int, count: int, body: bytes) -> Report | None:
    match kind:
        case 200:
            ssrc, ntp, rtp, packets, octets = _SENDER.unpack_from(body)
            return SenderReport(ssrc, ntp, rtp, packets, octets, _blocks(body, _SENDER.size, count))
        case 201:
            return ReceiverReport(_WORD.unpack_from(body)[0], _blocks(body, _WORD.size, count))
        case 202:
            return _sdes(body) if count else None
        case 203:
            return Bye(tuple(_WORD.unpack_from(body, 4 * index)[0] for index in range(count)))
        case _:
            return None


def _blocks(body: bytes, at: int, count: int) -> tuple[ReportBlock, ...]:
    blocks = []
    for index in range(count):
        ssrc, loss, highest, jitter, last, delay = _BLOCK.unpack_from(body, at + _BLOCK.size * index)
        lost = loss & 0xFFFFFF
        blocks.append(
            ReportBlock(
                ssrc, loss >> 24, lost - 0x1000000 if lost & 0x800000 else lost, highest, jitter, last, delay
            )
        )
    return tuple(blocks)


def _sdes(body: bytes) -> Sdes | None:
    """The CNAME of the first chunk."""
    ssrc = _WORD.unpack_from(body)[0]
    at = 4
    while at + 2 <= len(body) and body[at]:
        kind, length = body[at], body[at + 1]
        if kind == _CNAME:
            return Sdes(ssrc, body[at + 2 : at + 2 + length].decode("utf-8", "replace"))
        at += 2 + length
    return None


def build(reports: list[Report]) -> bytes:
    """One compound packet."""
    return b"".join(_build(report) for report in reports)


def _build(report: Report) -> bytes:
    match report:
        case SenderReport():
            body = _SENDER.pack(report.ssrc, report.ntp, report.rtp, report.packets, report.octets)
            return _packet(SR, len(report.blocks), body + _pack_blocks(report.blocks))
        case ReceiverReport():
            return _packet(RR, len(report.blocks), _WORD.pack(report.ssrc) + _pack_blocks(report.blocks))
        case Sdes():
            name = report.cname.encode()[:255]
            chunk = _WORD.pack(report.ssrc) + bytes((_CNAME, len(name))) + name
            return _packet(SDES, 1, chunk + bytes(4 - len(chunk) % 4))
        case Bye():
            return _packet(BYE, len(report.sources), b"".join(map(_WORD.pack, report.sources)))


def _pack_blocks(blocks: tuple[ReportBlock, ...]) -> bytes:
    return b"".join(
        _BLOCK.pack(
            block.ssrc,
            block.fraction_lost << 24 | max(-0x800000, min(0x7FFFFF, block.cumulative_lost)) & 0xFFFFFF,
            block.highest_sequence & 0xFFFFFFFF,
            block.jitter,
            block.last_sr,
            block.delay_since_sr,
        )
        for block in blocks
    )


def _packet(kind: int, count: int, body: bytes) -> bytes:
    return _HEADER.pack(0x80 | count, kind, len(body) // 4) + body
