"""A region: its place, its relays, its transceivers."""

from typing import Annotated, Literal

from pydantic import Field
from voicecluster.common.config.model import Unit
from voicecluster.common.config.relay import RelayLimits
from voicecluster.common.config.transceiver import CallLimits, MediaConfig
from voicecluster.operator.api.effects import Acts, Change
from voicecluster.operator.api.rules import Spec, immutable, must, stays
from voicecluster.operator.api.v1alpha1.scalars import LabelValue, NodeLabels, Quantity, RegionName
from voicecluster.operator.api.v1alpha1.vip import Vip

ORDINALS_PER_REGION = 1024
"""A transceiver's ordinal is its region's index times this, plus its own number."""


class Resources(Spec):
    """What one pod asks for and may use at most, as Kubernetes quantities."""

    cpu: Annotated[Quantity, Unit("cores")] | None = None
    """Requested cores; absent: as said above. There is no limit on them: throttling is heard."""
    memory: Annotated[Quantity, Unit("bytes")] | None = None
    """Requested bytes, and the limit too; absent: requested as said above, and no limit."""


class Toleration(Spec):
    """As in a pod's spec."""

    key: Annotated[str, Field(max_length=316)] | None = None
    """The taint's key; absent, with operator `Exists`: every taint."""
    operator: Literal["Exists", "Equal"] | None = None
    """`Equal` (where absent): the taint's value must be `value`."""
    value: LabelValue | None = None
    """The taint's value."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """The taint's effect; absent: every one."""
    toleration_seconds: Annotated[int, Field(ge=0), Unit("s")] | None = None
    """Effect `NoExecute` only: how long pods stay; absent: for ever."""

    @must(
        "(has(self.key) && size(self.key) > 0) || self.?operator.orValue('') == 'Exists'",
        "write the taint's key, or operator: Exists to tolerate every taint",
        at=".key",
        reason="FieldValueRequired",
    )
    def _names_a_taint(self) -> bool:
        return bool(self.key) or self.operator == "Exists"

    @must(
        "self.?operator.orValue('') != 'Exists' || size(self.?value.orValue('')) == 0",
        "operator Exists takes no value; remove it or write operator: Equal",
        at=".value",
        reason="FieldValueForbidden",
    )
    def _exists_has_no_value(self) -> bool:
        return self.operator != "Exists" or not self.value

    @must(
        "!has(self.tolerationSeconds) || self.?effect.orValue('') == 'NoExecute'",
        "tolerationSeconds is for effect NoExecute only; remove it or change the effect",
        at=".tolerationSeconds",
        reason="FieldValueForbidden",
    )
    def _seconds_are_for_eviction(self) -> bool:
        return self.toleration_seconds is None or self.effect == "NoExecute"


class Relay(Spec):
    """The relays of a region: one on each of its nodes."""

    workers: Annotated[
        int, Field(ge=1, le=64), Unit("threads"), Acts("relay DaemonSet and engine", Change.RELAYS_ROLL)
    ] = 1
    """Packet threads of one relay, each with its own socket per VIP."""
    vip: Vip = Vip()
    """The public addresses, and how packets to them get there."""
    resources: Annotated[Resources, Acts("relay DaemonSet", Change.RELAYS_ROLL)] = Resources()
    """What one relay asks for. Absent: 100m cores and 64Mi."""
    limits: Annotated[RelayLimits, Acts("relay engine", Change.LIVE)] = RelayLimits()
    """Bounds of the packet engine; what is refused is counted by reason."""


class Transceiver(Spec):
    """The transceivers of a region; with no replicas the region is a pure ingress point."""

    replicas: Annotated[
        Annotated[int, Field(ge=0, le=ORDINALS_PER_REGION), Unit("pods")] | None,
        Acts("transceiver StatefulSet", Change.SCALES),
    ] = None
    """Transceiver pods; fewer of them drain first. Absent: one at first, then as the VoiceRegion's scale subresource
    says (`kubectl scale`, an autoscaler); who removes a number scales to one until somebody else scales."""
    workers: Annotated[
        int,
        Field(ge=1, le=256),
        Unit("processes"),
        Acts("transceiver StatefulSet", Change.TRANSCEIVERS_DRAIN),
    ] = 1
    """Processes of one transceiver, each with its own media port."""
    ice_mode: Annotated[Literal["Lite", "Full"], Acts("transceivers", Change.NEXT_CALLS)] = "Lite"
    """Whether answers say `a=ice-lite`."""
    resources: Annotated[Resources, Acts("transceiver StatefulSet", Change.TRANSCEIVERS_DRAIN)] = Resources()
    """What one transceiver asks for. Absent: 250m cores and 256Mi for each worker."""
    limits: Annotated[CallLimits, Acts("transceivers", Change.NEXT_CALLS)] = CallLimits()
    """Bounds of one worker and of one call."""
    media: Annotated[MediaConfig, Acts("transceivers", Change.NEXT_CALLS)] = MediaConfig()
    """Opus and the jitter buffer."""


class Region(Spec):
    """A named part of the cluster with its own relays, VIPs and transceivers."""

    name: Annotated[RegionName, Acts("every object of the region", Change.NEVER)]
    """What callers ask for and what its objects are called; another name is another region."""
    index: Annotated[
        int,
        Field(ge=0, le=63),
        Unit("number"),
        immutable(
            "a region's index is part of every ufrag and never changes; write the old one, or add a region of another"
            " name and remove this one"
        ),
        Acts("transceivers' ordinals", Change.NEVER),
    ]
    """The region's number in every ufrag; each has its own."""
    paused: Annotated[bool, Acts("operator", Change.AT_ONCE)] = False
    """Nothing of this region is changed while it is true; its status goes on."""
    node_selector: Annotated[NodeLabels, Acts("relay DaemonSet, transceiver StatefulSet", Change.PODS)] = (
        Field(default={})
    )
    """Labels of the nodes that this region's pods run on; empty means all."""
    tolerations: Annotated[
        list[Toleration],
        Field(max_length=16),
        Acts("relay DaemonSet, transceiver StatefulSet", Change.PODS),
    ] = Field(default=[])
    """Taints of nodes that this region's pods put up with."""
    relay: Relay = Relay()
    """The relays: one on each of its nodes."""
    transceiver: Transceiver = Transceiver()
    """The transceivers: where calls live."""

    @must(
        "self.?relay.?vip.?mode.orValue('LoadBalancer') != 'LoadBalancer'"
        " || oldSelf.?relay.?vip.?mode.orValue('LoadBalancer') != 'LoadBalancer'"
        f" || {stays('relay.vip.loadBalancerClass')}",
        "loadBalancerClass cannot change while there is a Service; write the old one, or add a region of another name",
        at=".relay.vip.loadBalancerClass",
        reason="FieldValueForbidden",
    )
    def _class_stays(self) -> bool:
        return True  # about a change: only the API server knows what was there before

    @property
    def ordinals(self) -> range:
        """The ordinals of this region's transceivers, as many as the resource itself asks for."""
        first = self.index * ORDINALS_PER_REGION
        replicas = self.transceiver.replicas
        return range(first, first + (1 if replicas is None else replicas))
