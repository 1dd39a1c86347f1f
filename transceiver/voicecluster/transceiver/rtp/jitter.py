"""A jitter buffer bounded in time, packets and bytes. Integers and times in, decisions out.

Every packet is *due* at its sending time (by its timestamp) plus the shortest transit seen plus `target`,
the delay that most of the recent packets would have needed. `pull` returns everything that is due, in
order, so after a stall all late packets come out in one pull and the delay is back at once: nothing that
arrived in order is ever thrown away.

A missing packet is given up once a later one has waited long enough for stragglers (`reorder`, learnt, at
most `max_hold`); its successor is named so that FEC can restore it. When nothing arrives at all, sound is
made up in real time after `max_hold`; how much was made up is subtracted from the gap when the stream goes
on.
"""

from dataclasses import dataclass
from typing import Final

from voicecluster.transceiver.rtp.audio import FRAME_TICKS, RTP_RATE

_WINDOW: Final = 64
"""Packets whose delays decide the target: 1.3 s of speech, so the delay is back that long after a burst."""
_PERCENTILE: Final = 60
"""The target covers this many of the window's delays (95 %)."""
_RECALCULATE_EVERY: Final = 8
_MIN_TRANSIT_SECONDS: Final = 2.5
"""The shortest transit is that of the last one to two such spans: it follows clock drift and route changes.
"""
_REORDER_FLOOR: Final = 0.01
_RESYNC_SECONDS: Final = 1.0
"""A timestamp that differs from the arrival clock by more starts a new time line."""
_MAX_GAP_TICKS: Final = RTP_RATE
"""No more than a second is made up for one gap."""
_SLACK: Final = 0.001
"""A packet is due so much early, or rounding alone would make it miss its tick."""
_SEQUENCE_AHEAD: Final = 1000
_SEQUENCE_BEHIND: Final = 200
_DTX_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Packet:
    """One packet in order. `sequence` is extended beyond 16 bits; `ticks` is 0 if it holds no audio."""

    sequence: int
    timestamp: int
    payload: bytes
    ticks: int
    arrival: float


@dataclass(frozen=True, slots=True)
class Conceal:
    """`ticks` of sound are lost. The last `following.ticks` of them may be restored from `following`'s
    FEC.
    """

    ticks: int
    following: Packet | None = None


@dataclass(frozen=True, slots=True)
class Comfort:
    """`ticks` in which the sender sent nothing on purpose (DTX)."""

    ticks: int


Item = Packet | Conceal | Comfort


class JitterBuffer:
    """Driving contract: `push` each packet as it arrives, `pull` every 20 ms; `now` never goes back."""

    __slots__ = (
        "_base",
        "_bucket",
        "_bucket_end",
        "_bytes",
        "_delays",
        "_dtx",
        "_filled",
        "_high",
        "_jitter",
        "_last_arrival",
        "_last_timestamp",
        "_last_transit",
        "_max_bytes",
        "_max_hold",
        "_max_packets",
        "_next",
        "_next_timestamp",
        "_older",
        "_packets",
        "_pushed",
        "_reorder",
        "_target",
        "concealed_ticks",
        "duplicates",
        "late",
        "lost",
        "overflowed",
        "paused_ticks",
        "reordered",
        "resyncs",
    )

    def __init__(self, *, max_hold_ms: int, max_packets: int = 200, max_bytes: int = 131_072) -> None:
        """`max_hold_ms`: longest wait for a missing packet, and the most the target delay grows to."""
        self._max_hold = max_hold_ms / 1000
        self._max_packets = max_packets
        self._max_bytes = max_bytes
        self.duplicates = self.late = self.lost = self.overflowed = self.reordered = self.resyncs = 0
        self.concealed_ticks = self.paused_ticks = 0
        self._reorder = _REORDER_FLOOR
        self._jitter = 0.0
        self.reset()

    def reset(self) -> None:
        """Forget the stream (another SSRC follows); counters stay."""
        self._packets: dict[int, Packet] = {}
        self._bytes = 0
        self._next: int | None = None
        self._next_timestamp = 0
        self._high = -1
        self._last_timestamp = 0
        self._restart_clock()

    def _restart_clock(self) -> None:
        self._base = self._bucket = self._older = float("inf")
        self._bucket_end = self._last_arrival = self._last_transit = 0.0
        self._delays: list[float] = []
        self._pushed = 0
        self._target = 0.0
        self._filled = 0
        self._dtx = False

    @property
    def target_ms(self) -> float:
        """The delay now added on purpose."""
        return self._target * 1000

    @property
    def jitter_ms(self) -> float:
        """Interarrival jitter after RFC 3550 6.4.1."""
        return self._jitter * 1000

    @property
    def highest(self) -> int:
        """Extended highest sequence number received, -1 before the first."""
        return self._high

    def __len__(self) -> int:
        return len(self._packets)

    @property
    def held_bytes(self) -> int:
        """Payload bytes waiting."""
        return self._bytes

    def push(self, sequence: int, timestamp: int, payload: bytes, ticks: int, now: float) -> None:
        """Take a packet with its 16-bit `sequence` and 32-bit `timestamp`, sounding for `ticks` (0: not
        audio).
        """
        if self._next is None:
            self._high = extended = sequence
            self._last_timestamp = stamp = timestamp
            self._next, self._next_timestamp = extended, stamp
        else:
            step = (sequence - self._high + 0x8000 & 0xFFFF) - 0x8000
            stamp = (
                self._last_timestamp
                + (timestamp - self._last_timestamp + 0x80000000 & 0xFFFFFFFF)
                - 0x80000000
            )
            if step > _SEQUENCE_AHEAD or step < -_SEQUENCE_BEHIND:
                self._resync(sequence, timestamp)
                extended, stamp = sequence, timestamp
            else:
                extended = self._high + step
        if extended in self._packets:
            self.duplicates += 1
            return
        if extended < self._next:
            self.late += 1
            self._learn_reordering(now - stamp / RTP_RATE)
            return
        if extended < self._high:
            self.reordered += 1
            self._learn_reordering(now - stamp / RTP_RATE)
        if ticks:
            transit = now - stamp / RTP_RATE
            if self._pushed and abs(transit - self._last_transit) > _RESYNC_SECONDS:
                self.resyncs += 1
                self._restart_clock()
                if extended == self._next:
                    self._next_timestamp = stamp
            self._measure(transit, now)
            if extended >= self._high:
                self._last_timestamp = stamp
        self._high = max(self._high, extended)
        self._last_arrival = now
        self._packets[extended] = Packet(extended, stamp, payload, ticks, now)
        self._bytes += len(payload)
        while len(self._packets) > self._max_packets or self._bytes > self._max_bytes:
            self._drop_oldest()

    def _resync(self, sequence: int, timestamp: int) -> None:
        """Another numbering: what waits of the old one is dropped, what was counted stays."""
        self.resyncs += 1
        self.overflowed += len(self._packets)
        self.reset()
        self._high = self._next = sequence
        self._last_timestamp = self._next_timestamp = timestamp

    def _learn_reordering(self, transit: float) -> None:
        """A straggler came with `transit`: so much longer than its successor needed others may be
        waited for.
        """
        behind = transit - self._base - FRAME_TICKS / RTP_RATE + _REORDER_FLOOR
        self._reorder = min(self._max_hold, max(self._reorder, behind))

    def _measure(self, transit: float, now: float) -> None:
        if self._pushed:
            self._jitter += (abs(transit - self._last_transit) - self._jitter) / 16
        self._last_transit = transit
        if now >= self._bucket_end:
            self._older, self._bucket = self._bucket, transit
            self._bucket_end = now + _MIN_TRANSIT_SECONDS
        elif transit < self._bucket:
            self._bucket = transit
        self._base = min(self._older, self._bucket)
        delay = transit - self._base
        slot = self._pushed % _WINDOW
        if len(self._delays) < _WINDOW:
            self._delays.append(delay)
        else:
            self._delays[slot] = delay
        self._pushed += 1
        if self._pushed % _RECALCULATE_EVERY == 0:
            self._adapt()

    def _adapt(self) -> None:
        ranked = sorted(self._delays)
        wanted = ranked[min(len(ranked) - 1, _PERCENTILE * len(ranked) // _WINDOW)]
        self._target = min(self._max_hold, wanted)
        self._reorder = max(_REORDER_FLOOR, self._reorder * 0.98)

    def _drop_oldest(self) -> None:
        oldest = self._packets.pop(min(self._packets))
        self._bytes -= len(oldest.payload)
        self.overflowed += 1
        self._next = oldest.sequence + 1
        self._next_timestamp = oldest.timestamp + oldest.ticks
        self._filled = 0

    def pull(self, now: float) -> list[Item]:
        """What is due by `now`, in order; empty while what comes next may still arrive."""
        out: list[Item] = []
        if self._next is None:
            return out
        while self._packets:
            packet = self._packets.get(self._next)
            if packet is None:
                first = self._packets[min(self._packets)]
                if not self._given_up(first, now):
                    return out
                self.lost += first.sequence - self._next
                self._next = first.sequence
                self._bridge(first, out, lost=True)
                continue
            if packet.ticks and now < self._due(packet.timestamp) and now - packet.arrival < self._max_hold:
                return out
            self._take(packet, out)
        self._fill(now, out)
        return out

    def _due(self, timestamp: int) -> float:
        return self._base + timestamp / RTP_RATE + self._target - _SLACK

    def _given_up(self, first: Packet, now: float) -> bool:
        """Whether the packets before `first` are lost: they are due and stragglers had their time."""
        waited = now - first.arrival
        return waited >= self._max_hold or (
            waited >= self._reorder and now >= self._due(self._next_timestamp)
        )

    def _take(self, packet: Packet, out: list[Item]) -> None:
        del self._packets[packet.sequence]
        self._bytes -= len(packet.payload)
        self._next = packet.sequence + 1
        if not packet.ticks:
            return
        if packet.timestamp != self._next_timestamp:
            self._bridge(packet, out, lost=False)
        elif self._filled:
            self.concealed_ticks += self._filled  # it was only late
            self._filled = 0
        self._next_timestamp = packet.timestamp + packet.ticks
        self._dtx = len(packet.payload) <= _DTX_BYTES
        out.append(packet)

    def _bridge(self, packet: Packet, out: list[Item], *, lost: bool) -> None:
        """Make up for the time before `packet` that was not made up yet."""
        gap = packet.timestamp - self._next_timestamp - self._filled
        gap -= gap % FRAME_TICKS
        if not 0 < gap <= _MAX_GAP_TICKS:
            gap = 0
        elif lost:
            out.append(Conceal(gap, packet if packet.ticks else None))
        else:
            out.append(Comfort(gap))
        if lost:
            self.concealed_ticks += self._filled + gap
        else:
            self.paused_ticks += self._filled + gap
        self._filled = 0
        self._next_timestamp = packet.timestamp

    def _fill(self, now: float, out: list[Item]) -> None:
        """Nothing waits: after the hold (at once in a DTX pause) sound goes on in real time."""
        hold = 0.0 if self._dtx else self._max_hold
        if now - self._last_arrival < hold + FRAME_TICKS / RTP_RATE:
            return
        made = 0
        while made < _MAX_GAP_TICKS and self._due(self._next_timestamp + self._filled) + hold <= now:
            out.append(Comfort(FRAME_TICKS) if self._dtx else Conceal(FRAME_TICKS))
            self._filled += FRAME_TICKS
            made += FRAME_TICKS
