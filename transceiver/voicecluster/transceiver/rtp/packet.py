"""The RTP header (RFC 3550 5.1), as little of it as a call needs."""

import struct
from typing import NamedTuple

_FIXED = struct.Struct("!BBHII")
_EXTENSION = struct.Struct("!HH")
HEADER_BYTES = 12


class RtpError(ValueError):
    """Not an RTP packet; the message is the counter's label."""


class RtpPacket(NamedTuple):
    """One packet, its extensions and contributing sources skipped and its padding taken off."""

    payload_type: int
    marker: bool
    sequence: int
    timestamp: int
    ssrc: int
    payload: bytes


def is_rtcp(datagram: bytes) -> bool:
    """Whether a datagram of the SRTP range is RTCP (RFC 5761 4)."""
    return len(datagram) > 1 and 192 <= datagram[1] <= 223


def parse(data: bytes) -> RtpPacket:
    """Read one packet. Header extensions of any length and form, CSRCs and padding are fine. Raises
    RtpError.
    """
    length = len(data)
    if length < HEADER_BYTES:
        raise RtpError("truncated")
    first, second, sequence, timestamp, ssrc = _FIXED.unpack_from(data)
    if first >> 6 != 2:
        raise RtpError("version")
    at = HEADER_BYTES + 4 * (first & 0x0F)
    if first & 0x10:
        if at + 4 > length:
            raise RtpError("extension")
        at += 4 + 4 * _EXTENSION.unpack_from(data, at)[1]
    end = length
    if first & 0x20:
        end -= data[-1]
        if not data[-1]:
            raise RtpError("padding")
    if at > end:
        raise RtpError("extension" if at > length else "padding")
    return RtpPacket(second & 0x7F, second > 0x7F, sequence, timestamp, ssrc, data[at:end])


def header(payload_type: int, *, marker: bool, sequence: int, timestamp: int, ssrc: int) -> bytes:
    """The 12 bytes before a payload."""
    return _FIXED.pack(0x80, payload_type | (0x80 if marker else 0), sequence, timestamp, ssrc)
