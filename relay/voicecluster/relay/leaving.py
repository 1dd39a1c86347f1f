"""How a relay leaves without losing a packet (DESIGN section 2, rule 9). No clock, no socket, no API server.

    STAYING ──a successor is ready──> MOVING ──no packet for 10 s, or out of time──> GONE
       └──────────no packet for 10 s, or out of time────────────────────────────────────┘

STAYING, the relay is as ready as before: kube-proxy would have nobody to move its flows to. MOVING, it is not ready,
so that kube-proxy moves them, and it forwards what still comes. A successor that turns out to be none brings it back
to STAYING. Nothing is cut before its time: with neither a successor nor silence it forwards to the end.
"""

from enum import Enum

QUIET_SECONDS = 10.0
"""Without a packet from callers for so long there is nobody left: browsers check every 6 s at the latest. It is
also the shortest time from not being ready to the end: proxies take a second or two to move flows."""
MARGIN_SECONDS = 6.0
"""What the rest of a pod's end takes, out of its grace period."""


class Stage(Enum):
    """Where a leaving relay is."""

    STAYING = "staying"
    MOVING = "moving"
    GONE = "gone"


class LeavingRelay:
    """One relay that was told to stop. Call `update` often; times are seconds of any steady clock."""

    def __init__(self, *, told_at: float, now: float, grace_seconds: float, packets: int) -> None:
        """Begin, or go on where a process before this one was killed.

        Args:
            told_at: When the relay was told to stop.
            now: The time; silence is counted from here.
            grace_seconds: How long after `told_at` it will be killed.
            packets: How many packets had come from callers by now, as in `update`.
        """
        margin = min(MARGIN_SECONDS, grace_seconds / 2)
        self._ends_at = told_at + grace_seconds - margin
        self._packets = packets
        self._silent_since = now
        self.stage = Stage.STAYING

    @property
    def is_ready(self) -> bool:
        """Whether the relay still is to be called ready, as far as leaving is concerned."""
        return self.stage is Stage.STAYING

    def update(self, *, now: float, successor: bool, packets: int) -> Stage:
        """Take what is known now, and return the stage that follows.

        Args:
            now: The time.
            successor: Whether another relay is ready to take this one's callers.
            packets: How many packets have come from callers; only changes matter.
        """
        if packets != self._packets:
            self._packets, self._silent_since = packets, now
        if self.stage is Stage.GONE:
            return self.stage
        if now >= self._ends_at or now - self._silent_since >= QUIET_SECONDS:
            self.stage = Stage.GONE
        elif successor and self.stage is Stage.STAYING:
            self.stage = Stage.MOVING
            self._silent_since = now
        elif not successor:
            self.stage = Stage.STAYING
        return self.stage
