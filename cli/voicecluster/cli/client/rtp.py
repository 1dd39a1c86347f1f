"""RTP and RTCP of one call (RFC 3550), as much as a measuring client needs. Plain packets; no SRTP here."""

import secrets
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass

CLOCK = 48_000
FRAME_TICKS = 960
FRAME_SECONDS = 0.02
RTCP_SECONDS = 5.0
NTP_EPOCH_SECONDS = 2_208_988_800
_HEADER = struct.Struct("!BBHLL")


@dataclass(frozen=True, slots=True)
class StreamStats:
    """What came and went. `lost` counts gaps in the sequence numbers that were never filled."""

    sent: int
    received: int
    lost: int
    longest_loss: int
    """The most packets missing in a row, since the stream began or `watch_losses`."""
    jitter_ms: float
    remote_lost: int | None
    """What the other side's reports say it lost; None before the first."""
    report_rtt_ms: float | None
    """Round trip by sender report and report block (RFC 3550 6.4.1)."""

    @property
    def loss(self) -> float:
        """Lost as a share of expected, 0..1."""
        expected = self.received + self.lost
        return self.lost / expected if expected else 0.0


class AudioStream:
    """Sends prepared Opus frames over and over, counts what comes back."""

    def __init__(
        self, frames: Sequence[bytes], *, ssrc: int, payload_type: int, cname: str, first_frame: int = 0
    ) -> None:
        """`first_frame`: where in `frames` to begin, so that many calls do not speak in chorus."""
        self.on_payload: Callable[[float, int, bytes], None] | None = None
        """Called with (arrival, RTP timestamp, Opus payload) of every packet received."""
        self.first_arrival: float | None = None
        self.last_arrival: float | None = None
        self.sent = self.received = 0
        self.ssrc = ssrc
        self._frames = frames
        self._next = first_frame % len(frames)
        self._pt = payload_type
        self._cname = cname.encode()
        self._seq = secrets.randbits(15)
        self._timestamp = secrets.randbits(31)
        self._octets = 0
        self._remote_ssrc = 0
        self._base = self._highest = -1
        self._longest_loss = 0
        self._jitter = 0.0
        self._transit: float | None = None
        self._remote_lost: int | None = None
        self._report_rtt: float | None = None
        self._last_sr: tuple[int, float] | None = None

    @property
    def position(self) -> int:
        """Which of the frames is sent next."""
        return self._next

    def next_packet(self) -> bytes:
        """The packet of the next 20 ms."""
        payload = self._frames[self._next]
        self._next = (self._next + 1) % len(self._frames)
        self._seq = (self._seq + 1) & 0xFFFF
        self._timestamp = (self._timestamp + FRAME_TICKS) & 0xFFFFFFFF
        self.sent += 1
        self._octets += len(payload)
        return _HEADER.pack(0x80, self._pt, self._seq, self._timestamp, self.ssrc) + payload

    def receive(self, packet: bytes, now: float) -> None:
        """Count one RTP packet. Other payload types (comfort noise, DTMF) count, but hold no audio for us."""
        if len(packet) < 12:
            return
        first, second, seq, timestamp, ssrc = _HEADER.unpack_from(packet)
        if self._highest < 0 or ssrc != self._remote_ssrc:
            self._remote_ssrc = ssrc
            self._base = self._highest = seq
            self.received, self._transit = 0, None
        else:
            step = ((seq - self._highest + 0x8000) & 0xFFFF) - 0x8000
            self._highest += max(step, 0)
            self._longest_loss = max(self._longest_loss, step - 1)
        self.received += 1
        self.last_arrival = now
        if self.first_arrival is None:
            self.first_arrival = now
        transit = now * CLOCK - timestamp
        if self._transit is not None:
            change = abs(transit - self._transit)
            if change < CLOCK:  # a wrapped or restarted clock says nothing about jitter
                self._jitter += (change - self._jitter) / 16
        self._transit = transit
        if self.on_payload is not None and second & 0x7F == self._pt:
            self.on_payload(now, timestamp, _payload(packet, first))

    def watch_losses(self) -> None:
        """Begin `longest_loss` anew."""
        self._longest_loss = 0

    def report(self, now: float, wall: float) -> bytes:
        """A compound SR (with one block once something came) + SDES. `wall`: seconds since 1970."""
        ntp = int((wall + NTP_EPOCH_SECONDS) * (1 << 32)) & 0xFFFFFFFFFFFFFFFF
        block = b""
        if self._highest >= 0:
            lsr, delay = 0, 0
            if self._last_sr is not None:
                lsr, arrived = self._last_sr
                delay = int((now - arrived) * 65536)
            lost = self._lost() & 0xFFFFFF
            block = struct.pack(
                "!LLLLLL", self._remote_ssrc, lost, self._highest & 0xFFFFFFFF, int(self._jitter), lsr, delay
            )
        count = 1 if block else 0
        header = struct.pack("!BBH", 0x80 | count, 200, 6 + 6 * count)
        sender = struct.pack("!LQLLL", self.ssrc, ntp, self._timestamp, self.sent, self._octets & 0xFFFFFFFF)
        chunk = struct.pack("!L", self.ssrc) + bytes((1, len(self._cname))) + self._cname + b"\0"
        chunk += b"\0" * (-len(chunk) % 4)
        return header + sender + block + struct.pack("!BBH", 0x81, 202, len(chunk) // 4) + chunk

    def receive_report(self, compound: bytes, now: float, wall: float) -> None:
        """Take the other side's SR and RR in; anything else, and anything malformed, is passed over."""
        offset = 0
        while offset + 8 <= len(compound):
            first, kind, words = struct.unpack_from("!BBH", compound, offset)
            end = offset + 4 * (words + 1)
            if end > len(compound):
                return
            blocks = offset + 8
            if kind == 200 and end >= offset + 28:
                self._last_sr = (int.from_bytes(compound[offset + 10 : offset + 14], "big"), now)
                blocks = offset + 28
            if kind in (200, 201):
                for index in range(first & 0x1F):
                    self._receive_block(
                        compound[blocks + 24 * index : min(blocks + 24 * (index + 1), end)], wall
                    )
            offset = end

    def stats(self) -> StreamStats:
        """A snapshot."""
        return StreamStats(
            sent=self.sent,
            received=self.received,
            lost=self._lost(),
            longest_loss=self._longest_loss,
            jitter_ms=1000 * self._jitter / CLOCK,
            remote_lost=self._remote_lost,
            report_rtt_ms=self._report_rtt,
        )

    def _receive_block(self, block: bytes, wall: float) -> None:
        if len(block) < 24 or int.from_bytes(block[:4], "big") != self.ssrc:
            return
        self._remote_lost = int.from_bytes(block[5:8], "big", signed=True)
        lsr, delay = struct.unpack_from("!LL", block, 16)
        if lsr:
            middle = int((wall + NTP_EPOCH_SECONDS) * 65536) & 0xFFFFFFFF
            round_trip = (middle - lsr - delay) & 0xFFFFFFFF
            if round_trip < 0x80000000:  # a clock step makes it negative
                self._report_rtt = 1000 * round_trip / 65536

    def _lost(self) -> int:
        return max(0, self._highest - self._base + 1 - self.received) if self._highest >= 0 else 0


def _payload(packet: bytes, first: int) -> bytes:
    """The payload without contributing sources, header extension and padding (RFC 3550 5.1)."""
    start = 12 + 4 * (first & 0x0F)
    if first & 0x10 and len(packet) >= start + 4:
        start += 4 + 4 * int.from_bytes(packet[start + 2 : start + 4], "big")
    end = len(packet) - packet[-1] if first & 0x20 else len(packet)
    return packet[start:end]
