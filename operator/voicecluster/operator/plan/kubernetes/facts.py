"""What a plan needs to know beyond the resource: who owns it, what was discovered, what may change now."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from voicecluster.common.config.transceiver import Vip
from voicecluster.operator.plan.keys import KeyMaterial


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operator was installed with."""

    relay_image: str
    transceiver_image: str
    redis_image: str
    operator_namespace: str
    operator_labels: Mapping[str, str]
    """Of the operator's own pods: NetworkPolicies let them reach admin ports."""


@dataclass(frozen=True, slots=True)
class Facts:
    """The present state as far as a plan depends on it."""

    namespace: str
    uid: str
    """Of the VoiceCluster: every object is owned by it."""
    defaults: Defaults
    keys: KeyMaterial | None = field(repr=False)
    """None while the root keys are missing: then what is made of them is left out, and must not be pruned."""
    vips: Mapping[str, tuple[Vip, ...]]
    """What was discovered, by region."""
    replicas: Mapping[str, int]
    """What each region's StatefulSet shall have now: more than asked for while transceivers drain."""
    workers: Mapping[str, int] = field(default_factory=dict)
    """By region, the most workers that one of its present transceivers has (label `names.WORKERS` of its pod). A
    region that shall have fewer keeps the routes to them until these pods are gone: there are calls on them."""
