"""What one call's media counts."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RtpStats:
    """A snapshot. Counters are since the call's start, `*_ms` are now."""

    received: int
    """RTP packets that authenticated."""
    received_bytes: int
    lost: int
    """Packets given up by the jitter buffer."""
    late: int
    duplicates: int
    reordered: int
    overflowed: int
    """Packets dropped because the jitter buffer was full."""
    resyncs: int
    """Times the stream jumped: timestamp, sequence or source."""
    jitter_ms: float
    buffer_ms: float
    """The delay now added against jitter."""
    concealed: int
    """20 ms frames made up for lost or missing packets."""
    fec: int
    """Frames restored from in-band FEC."""
    comfort: int
    """Frames of the sender's own pauses (DTX)."""
    undecodable: int
    not_audio: int
    """Packets of another payload type, or empty ones."""
    rejected: dict[str, int]
    """Datagrams dropped, by reason: "authentication", "replay", "malformed", …"""
    sent: int
    sent_bytes: int
    unsent: int
    """Frames that needed no packet (DTX) or could not be sent."""
    rtt_ms: float | None
    """By RTCP; None before the first report."""
    remote_lost: int
    remote_jitter_ms: float
    remote_left: bool
    """The far end said BYE and has sent nothing since."""
