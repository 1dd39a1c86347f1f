"""What the ICE agent decides, as values: what to send, what happened, why something was refused."""

from dataclasses import dataclass
from enum import StrEnum

from voicecluster.transceiver.ice.path import Address, Path


class Refusal(StrEnum):
    """Why a STUN message changed nothing; the value is the drop counter's reason."""

    MALFORMED = "stun_malformed"
    RATE = "stun_rate"
    INTEGRITY = "stun_integrity"
    USERNAME = "stun_username"
    OLD_GENERATION = "stun_old_generation"
    UNMATCHED = "stun_unmatched"


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send `payload` on `path`, by way of `relay`."""

    path: Path
    relay: Address
    payload: bytes


@dataclass(frozen=True, slots=True)
class PathAdded:
    """The first authentic check came by this path."""

    path: Path


@dataclass(frozen=True, slots=True)
class PathRemoved:
    """The path made room or fell silent; packets from it are strangers' again."""

    path: Path


@dataclass(frozen=True, slots=True)
class PathSelected:
    """Media goes this way from now on."""

    path: Path
    previous: Path | None


@dataclass(frozen=True, slots=True)
class GenerationEnded:
    """Checks for this local ufrag are refused from now on."""

    ufrag: str


@dataclass(frozen=True, slots=True)
class Expired:
    """Nothing authentic was heard for the expiry time."""


Event = PathAdded | PathRemoved | PathSelected | GenerationEnded | Expired
