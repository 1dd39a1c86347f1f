"""What a reconcile has decided and found out beyond the objects, for the plan and for the status."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from voicecluster.operator.drain.decide import DrainPlan
from voicecluster.operator.keys import KeyState
from voicecluster.operator.observe import Observed
from voicecluster.operator.status.conditions import Fault, Finding
from voicecluster.operator.vips import Discovery


@dataclass(frozen=True, slots=True)
class Decisions:
    """By region where it is a mapping."""

    keys: KeyState
    vips: Mapping[str, Discovery]
    drains: Mapping[str, DrainPlan]
    redis: Finding | None
    """None where no Redis is wanted."""
    enforced: str = ""
    """The pod security level that the namespace enforces, empty if none or unknown."""
    stalled: tuple[Fault, ...] = field(default=())
    """What no further try will heal."""


def paused(observed: Observed, region: str) -> bool:
    """Whether nothing of this region may change."""
    spec = observed.cluster.spec
    return spec.paused or any(each.paused for each in spec.regions if each.name == region)
