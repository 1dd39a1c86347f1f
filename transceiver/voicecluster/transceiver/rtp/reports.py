"""What RTCP needs remembered: our reception for their reports, their reception and the round trip for
ours.
"""

from typing import Final

from voicecluster.transceiver.rtp import rtcp
from voicecluster.transceiver.rtp.audio import RTP_RATE

_NTP_SECOND: Final = 1 << 32


class Reception:
    """Counts one source as RFC 3550 appendix A.3 does, and keeps its last sender report."""

    __slots__ = ("_count", "_expected_before", "_first", "_highest", "_received_before", "_sr", "_sr_at")

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Another source."""
        self._first: int | None = None
        self._highest = self._count = self._expected_before = self._received_before = 0
        self._sr = 0
        self._sr_at = 0.0

    def count(self, sequence: int) -> None:
        """One packet with this 16-bit number."""
        self._count += 1
        if self._first is None:
            self._first = self._highest = sequence
            return
        step = (sequence - self._highest + 0x8000 & 0xFFFF) - 0x8000
        if step > 0:
            self._highest += step

    def sender_report(self, report: rtcp.SenderReport, now: float) -> None:
        """Remember whose clock said what when."""
        self._sr = report.ntp >> 16 & 0xFFFFFFFF
        self._sr_at = now

    def blocks(self, ssrc: int | None, jitter_ms: float, now: float) -> tuple[rtcp.ReportBlock, ...]:
        """The block about `ssrc` since the last one; none before its first packet."""
        if ssrc is None or self._first is None:
            return ()
        expected = self._highest - self._first + 1
        fresh = expected - self._expected_before
        missing = fresh - (self._count - self._received_before)
        self._expected_before, self._received_before = expected, self._count
        delay = round((now - self._sr_at) * 65536) if self._sr else 0
        return (
            rtcp.ReportBlock(
                ssrc=ssrc,
                fraction_lost=min(255, max(0, missing) * 256 // fresh) if fresh > 0 else 0,
                cumulative_lost=expected - self._count,
                highest_sequence=self._highest & 0xFFFFFFFF,
                jitter=min(0xFFFFFFFF, round(jitter_ms * RTP_RATE / 1000)),
                last_sr=self._sr,
                delay_since_sr=min(0xFFFFFFFF, max(0, delay)),
            ),
        )


class RoundTrip:
    """Reads what the far end reports about us. Our NTP time is the loop's clock: RFC 3550 6.4.1 allows
    elapsed time.
    """

    __slots__ = ("_ssrc", "remote_jitter_ms", "remote_lost", "rtt_ms")

    def __init__(self, ssrc: int) -> None:
        self._ssrc = ssrc
        self.rtt_ms: float | None = None
        self.remote_lost = 0
        self.remote_jitter_ms = 0.0

    def ntp(self, now: float) -> int:
        """`now` as a 64-bit NTP time."""
        return round(now * _NTP_SECOND) & 0xFFFFFFFFFFFFFFFF

    def take(self, block: rtcp.ReportBlock, now: float) -> bool:
        """Whether the block is about us; then the round trip and their losses are updated."""
        if block.ssrc != self._ssrc:
            return False
        self.remote_lost = block.cumulative_lost
        self.remote_jitter_ms = block.jitter * 1000 / RTP_RATE
        if block.last_sr:
            passed = (self.ntp(now) >> 16 & 0xFFFFFFFF) - block.last_sr - block.delay_since_sr & 0xFFFFFFFF
            if passed < 60 * 65536:
                self.rtt_ms = passed * 1000 / 65536
        return True
