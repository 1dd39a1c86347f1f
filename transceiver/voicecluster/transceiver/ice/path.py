"""A path: one way to a caller, named by (client address, VIP).

The relay in between is an attribute that may change.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

Address = tuple[str, int]
"""Host (an IP literal) and port."""


class IceCredentials(NamedTuple):
    """A username fragment and its password (RFC 8445 section 5.3). The password never shows in a repr."""

    ufrag: str
    pwd: str

    def __repr__(self) -> str:
        return f"IceCredentials(ufrag={self.ufrag!r})"


class TokenBucket:
    """Allows `rate` events a second and `burst` at once. Time is an argument."""

    __slots__ = ("_burst", "_rate", "_tokens", "_updated")

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._tokens = burst
        self._updated = now

    def take(self, now: float) -> bool:
        """Use one token; False where there is none left."""
        if now > self._updated:
            self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate)
            self._updated = now
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


@dataclass(slots=True, eq=False)
class Path:
    """What the agent knows of one path.

    `header` is the SPP header (client, VIP): the path's identity on the socket, and what stands before every
    datagram sent on it. `relay` is where to send it; only authenticated packets set it. Times are loop
    seconds.
    """

    header: bytes
    client: Address
    vip: Address
    relay: Address
    generation: int
    stun: TokenBucket
    heard_at: float
    """Newest authenticated packet of any kind."""
    priority: int = 0
    nominated: bool = False
    validated: bool = False
    uplink_at: float | None = None
    """Newest authenticated SRTP or DTLS."""
    consent_at: float | None = None
    """Newest answer to a check of ours (RFC 7675)."""
    rtt: float | None = None
    """Seconds, smoothed (RFC 6298 section 2)."""
    credit: int = 0
    """Bytes that may still be sent before the path is validated: three times what came from it."""
    attempts: int = 0
    check_at: float | None = None
    """When the next check of ours is due."""
    pending: dict[bytes, float] = field(default_factory=dict)
    """Transaction id → when the check was sent."""

    def measured(self, seconds: float) -> None:
        """Fold one round trip into the smoothed one."""
        self.rtt = seconds if self.rtt is None else self.rtt * 0.875 + seconds * 0.125


@dataclass(frozen=True, slots=True)
class PathChange:
    """One entry of a call's path history."""

    at: float
    client: Address
    vip: Address
    relay: Address
    reason: str
