"""What acts on a field, and how a change of it gets into force: said beside the field, shown in the reference."""

from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    """How a changed field gets into force. None of them ends a call but where it says so."""

    NEVER = "never changes"
    """The API server refuses it."""
    AT_ONCE = "at once"
    """An object of the API is updated; no pod restarts."""
    LIVE = "live"
    """Running pods read their mounted configuration again, within two minutes; no pod restarts."""
    RELAYS_ROLL = "relays roll"
    """Relays are replaced one by one, each after its successor is ready."""
    TRANSCEIVERS_DRAIN = "transceivers drain"
    """Transceivers are replaced one at a time in each region, each when its calls have ended."""
    PODS = "relays roll, transceivers drain"
    """Both of the above."""
    REDIS_RESTARTS = "Redis restarts"
    """The embedded Redis is replaced; it holds nothing that calls need."""
    NEXT_CALLS = "for new calls"
    """Running pods learn it within seconds or two minutes; calls keep what they began with."""


@dataclass(frozen=True, slots=True)
class Acts:
    """Who acts on a field, and on those below it that do not say otherwise."""

    who: str
    change: Change
