"""`VoiceCluster`: the whole of what a user asks for."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from voicecluster.common.config.model import Model, Unit, join_address
from voicecluster.operator.api.effects import Acts, Change
from voicecluster.operator.api.rules import Cel, Distinct, Must, Spec, immutable, must, only_in, repeated
from voicecluster.operator.api.status import VoiceClusterStatus
from voicecluster.operator.api.v1alpha1.region import Region, Resources
from voicecluster.operator.api.v1alpha1.scalars import ClusterName, Image, NamespaceName, Network, ObjectName
from voicecluster.operator.api.v1alpha1.signaling import Signaling

API_VERSION = "voicecluster.dev/v1alpha1"


class Agents(Spec):
    """Which agent speaks when a call names none, or one that is not there."""

    default: Literal["parrot", "echo"] = "parrot"
    """`parrot` listens, then says the same again, and can be interrupted; `echo` returns what it hears."""


class ExternalRedis(Spec):
    """A Redis of yours."""

    secret: ObjectName
    """A Secret with the entry `url` (redis:// or rediss://, with user and password) and, for a private certificate
    authority, `ca.crt`."""


class Redis(Spec):
    """The relays' fast memory of flows. Without it calls go on; a flow that moves waits for the next check."""

    mode: Literal["Embedded", "External", "None"] = "Embedded"
    """`Embedded`: one is run. `External`: yours. `None`: none."""
    resources: Annotated[Resources, Acts("Redis StatefulSet", Change.REDIS_RESTARTS)] = Resources()
    """Mode `Embedded` only: what it asks for. Absent: 50m cores and 64Mi; it uses three quarters of its memory."""
    external: Annotated[ExternalRedis | None, Acts("operator", Change.AT_ONCE)] = None
    """Mode `External` only: where yours is."""

    _resources = only_in("resources", "Embedded", default="Embedded")
    _external = only_in("external", "External", default="Embedded")

    @must(
        "self.?mode.orValue('') != 'External' || has(self.external)",
        "mode External needs external.secret; name the Secret that has your Redis' url",
        at=".external",
        reason="FieldValueRequired",
    )
    def _external_is_named(self) -> bool:
        return self.mode != "External" or self.external is not None


class Images(Spec):
    """Whole image references; absent ones are those that the operator was installed with."""

    relay: Annotated[Image | None, Acts("relay DaemonSet", Change.RELAYS_ROLL)] = None
    """Of relays; absent: the operator's own version."""
    transceiver: Annotated[Image | None, Acts("transceiver StatefulSet", Change.TRANSCEIVERS_DRAIN)] = None
    """Of transceivers; absent: the operator's own version."""
    redis: Annotated[Image | None, Acts("Redis StatefulSet", Change.REDIS_RESTARTS)] = None
    """Of the embedded Redis; absent: the one that the operator was installed with."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """As in a pod's containers."""
    pull_secrets: Annotated[list[ObjectName], Field(max_length=8), Distinct()] = Field(default=[])
    """Secrets with the registries' credentials."""


class NetworkPolicy(Spec):
    """Who may reach what inside the Kubernetes cluster."""

    enabled: bool = True
    """Whether there are policies: only relays reach media ports, only the operator drains, and so on."""
    node_cidrs: Annotated[list[Network], Field(max_length=16), Distinct()] = Field(
        default=[], alias="nodeCIDRs"
    )
    """Networks of the nodes: relays in mode `HostNetwork` are nodes, not pods, to a NetworkPolicy."""
    metrics_namespaces: Annotated[list[NamespaceName], Field(max_length=16), Distinct()] = Field(default=[])
    """Namespaces whose pods may read metrics."""


def _indices_differ(regions: list[Region]) -> bool:
    return not repeated(region.index for region in regions)


def _vips_differ(regions: list[Region]) -> bool:
    vips = ((region.relay.vip.addresses, region.relay.vip.port) for region in regions)
    return not repeated(join_address(address, port) for addresses, port in vips for address in addresses)


def _hosts_differ(regions: list[Region]) -> bool:
    hosted = [region for region in regions if region.relay.vip.mode == "HostNetwork"]
    return len(hosted) < 2 or all(region.node_selector for region in hosted)


UNIQUE_INDICES = Must(
    Cel(
        "self.all(a, self.exists_one(b, b.index == a.index))",
        "two regions have the same index; give each its own (0 to 63)",
    ),
    _indices_differ,
)
UNIQUE_VIPS = Must(
    Cel(
        "self.all(a, !has(a.relay) || !has(a.relay.vip) || !has(a.relay.vip.addresses)"
        " || self.all(b, a.index == b.index || !has(b.relay) || !has(b.relay.vip) || !has(b.relay.vip.addresses)"
        " || a.relay.vip.?port.orValue(3478) != b.relay.vip.?port.orValue(3478)"
        " || !a.relay.vip.addresses.exists(x, x in b.relay.vip.addresses)))",
        "two regions have the same VIP; give each its own address or port",
    ),
    _vips_differ,
)
SEPARATE_HOSTS = Must(
    Cel(
        "self.filter(r, r.?relay.?vip.?mode.orValue('') == 'HostNetwork').size() < 2 || self.all(r,"
        " r.?relay.?vip.?mode.orValue('') != 'HostNetwork' || size(r.?nodeSelector.orValue({})) > 0)",
        "relays of two regions in mode HostNetwork cannot share a node; give each such region a nodeSelector",
    ),
    _hosts_differ,
)


class VoiceClusterSpec(Spec):
    """What the cluster shall be."""

    cluster_id: Annotated[
        int,
        Field(ge=1, le=65535),
        Unit("number"),
        immutable(
            "clusterId is part of every ufrag and never changes; write the old one, or make another VoiceCluster"
        ),
        Acts("keys, relays, transceivers", Change.NEVER),
    ]
    """The cluster's number in every ufrag; clusters that may ever be peers each have their own."""
    paused: Annotated[bool, Acts("operator", Change.AT_ONCE)] = False
    """Nothing is changed while it is true; status goes on."""
    regions: Annotated[
        list[Region],
        Field(min_length=1, max_length=64),
        Distinct("name"),
        UNIQUE_INDICES,
        UNIQUE_VIPS,
        SEPARATE_HOSTS,
        Acts("objects of each region", Change.AT_ONCE),
    ]
    """The parts of the cluster. Removing one ends its calls at once: with no replicas first, they end by themselves."""
    signaling: Signaling = Signaling()
    """The public HTTP API and the page."""
    agents: Annotated[Agents, Acts("transceivers", Change.NEXT_CALLS)] = Agents()
    """Who speaks."""
    redis: Annotated[Redis, Acts("Redis StatefulSet, relays", Change.AT_ONCE)] = Redis()
    """The relays' fast memory of flows."""
    images: Annotated[Images, Acts("relays, transceivers, Redis", Change.PODS)] = Images()
    """What pods run."""
    network_policy: Annotated[NetworkPolicy, Acts("NetworkPolicies", Change.AT_ONCE)] = NetworkPolicy()
    """Who may reach what inside the Kubernetes cluster."""
    log_level: Annotated[
        Literal["DEBUG", "INFO", "WARNING", "ERROR"], Acts("relays, transceivers", Change.LIVE)
    ] = "INFO"
    """Of all relays and transceivers."""

    @must(
        "!self.?networkPolicy.?enabled.orValue(true) || size(self.?networkPolicy.?nodeCIDRs.orValue([])) > 0"
        " || !self.regions.exists(r, r.?relay.?vip.?mode.orValue('') == 'HostNetwork')",
        "a region has mode HostNetwork, so its relays have the nodes' addresses: list the nodes' networks, such as"
        " 10.0.0.0/16, or set networkPolicy.enabled: false",
        at=".networkPolicy.nodeCIDRs",
        reason="FieldValueRequired",
    )
    def _policies_know_the_nodes(self) -> bool:
        policy = self.network_policy
        hosted = any(region.relay.vip.mode == "HostNetwork" for region in self.regions)
        return not (hosted and policy.enabled) or bool(policy.node_cidrs)


class Metadata(Model):
    """Kubernetes' own fields; those that mean nothing to us are not kept."""

    model_config = ConfigDict(extra="ignore")

    name: ClusterName
    namespace: str | None = None
    uid: str | None = None
    generation: int | None = None
    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})


class VoiceCluster(Model):
    """One cluster of relays and transceivers: voice agents over WebRTC behind one UDP port per region."""

    api_version: Literal["voicecluster.dev/v1alpha1"]
    kind: Literal["VoiceCluster"]
    metadata: Metadata
    spec: VoiceClusterSpec
    """What the cluster shall be."""
    status: VoiceClusterStatus = VoiceClusterStatus()
    """What the operator found."""
