"""What acts on a field, and how a change of it gets into force: said beside the field, shown in the reference."""

from dataclasses import dataclass
from enum import Enum


class Change(Enum):
    """How a changed field gets into force: a word, and what it means."""

    NEVER = "never changes", "the API server refuses another value"
    AT_ONCE = "at once", "an object of the API is updated; no pod restarts"
    LIVE = "live", "running pods read their mounted configuration again, within two minutes; no pod restarts"
    NEXT_CALLS = "for new calls", "the same; calls keep what they began with"
    RELAYS_ROLL = "relays roll", "each after its successor is ready; in mode HostNetwork one node at a time"
    TRANSCEIVERS_DRAIN = (
        "transceivers drain",
        "one at a time in each region, each is replaced when its calls have ended or `drainTimeoutSeconds` is over",
    )
    SCALES = "scales", "transceivers come; or they drain, one at a time in each region, and go"
    PODS = "relays roll, transceivers drain", "both"
    REDIS_RESTARTS = "Redis restarts", "the embedded Redis is replaced; calls do not need what it holds"

    def __init__(self, word: str, meaning: str) -> None:
        """Both are for the reference."""
        self.word = word
        self.meaning = meaning


@dataclass(frozen=True, slots=True)
class Acts:
    """Who acts on a field, and on those below it that do not say otherwise."""

    who: str
    change: Change
