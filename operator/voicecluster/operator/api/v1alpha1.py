"""`VoiceCluster`, voicecluster.dev/v1alpha1: what a user asks for.

A field is here only when something acts on it. Unknown fields are errors, and what is refused says what to
do. The same models read the file of `voicecluster up` and make the CRD, so defaults are applied in memory
only.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal, Self, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, field_validator, model_validator
from voicecluster.common.config.model import LogLevel, Model, join_address
from voicecluster.common.config.relay import RelayLimits
from voicecluster.common.config.transceiver import CallLimits, MediaConfig
from voicecluster.operator.api.status import VoiceClusterStatus, VoiceRegionStatus

API_VERSION = "voicecluster.dev/v1alpha1"
T = TypeVar("T")

ORDINALS_PER_REGION = 1024
"""A transceiver's ordinal is its region's index times this, plus its own number."""


def _dns_label(text: str) -> str:
    allowed = text.isascii() and text.replace("-", "").isalnum() and text == text.lower()
    if not allowed or not text[0].isalpha() or text.endswith("-"):
        raise ValueError(
            f"'{text}' is not a DNS label; use lower-case letters, digits and '-', starting with a letter"
        )
    return text


def _ip_address(text: str) -> str:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(
            f"'{text}' is not an IP address; write one such as 203.0.113.5, without a port"
        ) from None
    if address.is_unspecified or address.is_multicast:
        raise ValueError(f"'{text}' cannot be called; write the address that callers reach")
    return str(address)


def _object_name(text: str) -> str:
    for label in text.split("."):
        if (
            not label
            or label.strip("-") != label
            or not label.replace("-", "").isalnum()
            or label != label.lower()
        ):
            raise ValueError(
                f"'{text}' is not a name of a Kubernetes object; use lower-case letters, digits, '-', '.'"
            )
    return text


def _network(text: str) -> str:
    try:
        return str(ipaddress.ip_network(text))
    except ValueError:
        raise ValueError(f"'{text}' is not a network; write one such as 10.0.0.0/16") from None


ClusterName = Annotated[str, Field(min_length=1, max_length=19), AfterValidator(_dns_label)]
"""At most 19: `<cluster>-<region>-transceiver` names a StatefulSet, whose limit is 52."""
RegionName = Annotated[str, Field(min_length=1, max_length=20), AfterValidator(_dns_label)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_object_name)]
IpAddress = Annotated[str, AfterValidator(_ip_address)]
Network = Annotated[str, AfterValidator(_network)]
NamespaceName = Annotated[str, Field(min_length=1, max_length=63), AfterValidator(_dns_label)]
Port = Annotated[int, Field(ge=1, le=65535)]
Quantity = Annotated[str, Field(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$")]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=32)]

UNPRIVILEGED_PORT = 1024


class Vip(Model):
    """The public addresses of a region's relays, and how packets to them get there."""

    mode: Literal["LoadBalancer", "HostNetwork", "External"] = "LoadBalancer"
    """`LoadBalancer`: a Service of that type. `HostNetwork`: the nodes' own addresses. `External`: `addresses`,
    which somebody else brings to the relays."""
    port: Port = 3478
    """UDP port that callers send to."""
    addresses: Annotated[list[IpAddress], Field(max_length=8)] = Field(default=[])
    """`External` only: what answers name."""
    annotations: Annotations = Field(default={})
    """`LoadBalancer` only: for the Service, as the provider wants them."""
    load_balancer_class: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    source_ranges: Annotated[list[Network], Field(max_length=64)] = Field(default=[])
    """`LoadBalancer` only: who may call; empty means everybody."""
    external_traffic_policy: Literal["Local", "Cluster"] = "Local"
    """`Cluster` hides callers' addresses behind the nodes' (and makes limits per source useless)."""
    ip_family_policy: Literal["SingleStack", "PreferDualStack", "RequireDualStack"] = "PreferDualStack"
    health_check_port: Port | None = None
    """`LoadBalancer` only: a TCP port of the Service that leads to the relays' health, for clouds whose load
    balancers cannot check UDP."""
    node_address_type: Literal["ExternalIP", "InternalIP"] = "ExternalIP"
    """`HostNetwork` only: which of a node's addresses answers name."""

    @field_validator("addresses")
    @classmethod
    def _one_per_address(cls, addresses: list[str]) -> list[str]:
        for address in _repeated(addresses):
            raise ValueError(f"{address} is listed twice; remove one")
        return addresses

    @model_validator(mode="after")
    def _fields_of_the_mode(self) -> Self:
        if self.mode == "External" and not self.addresses:
            raise ValueError("mode External needs addresses; list what callers reach")
        if self.mode != "External" and self.addresses:
            raise ValueError("addresses are for mode External; remove them or change the mode")
        if self.mode == "HostNetwork" and self.port < UNPRIVILEGED_PORT:
            raise ValueError("mode HostNetwork cannot bind ports below 1024; write 3478, for example")
        return self


class Resources(Model):
    """What one pod asks for and may use at most, as Kubernetes quantities."""

    cpu: Quantity | None = None
    """Requested cores; there is no limit on them: throttling is heard."""
    memory: Quantity | None = None
    """Requested bytes, and the limit too."""


class Toleration(Model):
    """As in a pod's spec."""

    key: Annotated[str, Field(max_length=316)] | None = None
    operator: Literal["Exists", "Equal"] | None = None
    value: Annotated[str, Field(max_length=63)] | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None


class Relay(Model):
    """The relays of a region: one on each of its nodes."""

    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Packet threads of one relay, each with its own socket per VIP."""
    vip: Vip
    resources: Resources = Resources()
    limits: RelayLimits = RelayLimits()


class Transceiver(Model):
    """The transceivers of a region; with no replicas the region is a pure ingress point."""

    replicas: Annotated[int, Field(ge=0, le=ORDINALS_PER_REGION)] | None = None
    """Absent: one at first, then as the VoiceRegion's scale subresource says (`kubectl scale`, an autoscaler)."""
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    """Processes of one transceiver, each with its own media port."""
    ice_mode: Literal["Lite", "Full"] = "Lite"
    resources: Resources = Resources()
    limits: CallLimits = CallLimits()
    media: MediaConfig = MediaConfig()


class Region(Model):
    """A named part of the cluster with its own relays, VIPs and transceivers."""

    name: RegionName
    index: Annotated[int, Field(ge=0, le=63)]
    """Never changes: it is part of every ufrag."""
    paused: bool = False
    """Nothing of this region is changed while it is true."""
    node_selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=16)] = Field(
        default={}
    )
    """Labels of the nodes that this region's pods run on; empty means all."""
    tolerations: Annotated[list[Toleration], Field(max_length=16)] = Field(default=[])
    relay: Relay
    transceiver: Transceiver = Transceiver()

    @property
    def ordinals(self) -> range:
        """The ordinals of this region's transceivers, as many as the resource itself asks for."""
        first = self.index * ORDINALS_PER_REGION
        replicas = self.transceiver.replicas
        return range(first, first + (1 if replicas is None else replicas))


class SignalingAuth(Model):
    """Who may call: holders of an API key, or anybody."""

    mode: Literal["APIKey", "None"] = "APIKey"
    api_keys_secret: ObjectName | None = None
    """A Secret of yours with one entry per key: its name and the key. Absent: one key is generated, in the
    Secret `<name>-api-keys`."""


class SignalingService(Model):
    """The Service in front of the signaling API: ready transceivers of all regions."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    port: Port = 80
    annotations: Annotations = Field(default={})
    load_balancer_class: Annotated[str, Field(min_length=1, max_length=253)] | None = None


class Signaling(Model):
    """The public HTTP API and the page."""

    auth: SignalingAuth = SignalingAuth()
    cors_origins: list[Annotated[str, Field(max_length=253)]] = Field(default=["*"], max_length=64)
    service: SignalingService = SignalingService()


class Agents(Model):
    """Which agent speaks when a call names none, or one we do not have."""

    default: Literal["parrot", "echo"] = "parrot"


class ExternalRedis(Model):
    """A Redis of yours."""

    secret: ObjectName
    """A Secret with the entry `url` (redis:// or rediss://, with user and password) and, for a private
    certificate authority, `ca.crt`."""


class Redis(Model):
    """The relays' fast memory of flows. Without it calls go on; a flow that moves waits for the next check."""

    mode: Literal["Embedded", "External", "None"] = "Embedded"
    resources: Resources = Resources()
    """`Embedded` only."""
    external: ExternalRedis | None = None
    """`External` only."""

    @model_validator(mode="after")
    def _fields_of_the_mode(self) -> Self:
        if (self.mode == "External") != (self.external is not None):
            raise ValueError("mode External needs external.secret, and no other mode may have it")
        return self


class Images(Model):
    """Whole image references; absent ones are the operator's own version of each."""

    relay: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    transceiver: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    redis: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    pull_secrets: Annotated[list[ObjectName], Field(max_length=8)] = Field(default=[])


class NetworkPolicy(Model):
    """Who may reach what inside the Kubernetes cluster."""

    enabled: bool = True
    node_cidrs: Annotated[list[Network], Field(max_length=16)] = Field(default=[], alias="nodeCIDRs")
    """Addresses of the nodes: relays in HostNetwork mode are not pods to a NetworkPolicy."""
    metrics_namespaces: Annotated[list[NamespaceName], Field(max_length=16)] = Field(default=[])
    """Namespaces whose pods may read metrics."""


class VoiceClusterSpec(Model):
    """What the cluster shall be."""

    cluster_id: Annotated[int, Field(ge=1, le=65535)]
    """Never changes: it is part of every ufrag."""
    paused: bool = False
    """Nothing is changed while it is true; status goes on."""
    regions: Annotated[list[Region], Field(min_length=1, max_length=64)]
    signaling: Signaling = Signaling()
    agents: Agents = Agents()
    redis: Redis = Redis()
    images: Images = Images()
    network_policy: NetworkPolicy = NetworkPolicy()
    log_level: LogLevel = "INFO"

    @field_validator("regions")
    @classmethod
    def _regions_are_distinct(cls, regions: list[Region]) -> list[Region]:
        for name in _repeated(region.name for region in regions):
            raise ValueError(f"two regions are named '{name}'; give each its own name")
        for index in _repeated(region.index for region in regions):
            raise ValueError(f"two regions have index {index}; give each its own index (0..63)")
        for vip in _repeated(
            join_address(address, region.relay.vip.port)
            for region in regions
            for address in region.relay.vip.addresses
        ):
            raise ValueError(f"two regions have the VIP {vip}; give each its own address or port")
        return regions

    @model_validator(mode="after")
    def _policies_know_the_nodes(self) -> Self:
        hosted = [region.name for region in self.regions if region.relay.vip.mode == "HostNetwork"]
        if hosted and self.network_policy.enabled and not self.network_policy.node_cidrs:
            raise ValueError(
                f"region '{hosted[0]}' has mode HostNetwork; list the nodes' networks in networkPolicy.nodeCIDRs,"
                " or set networkPolicy.enabled: false"
            )
        return self


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
    """One cluster of relays and transceivers."""

    api_version: Literal["voicecluster.dev/v1alpha1"]
    kind: Literal["VoiceCluster"]
    metadata: Metadata
    spec: VoiceClusterSpec
    status: VoiceClusterStatus = VoiceClusterStatus()


class VoiceRegionSpec(Model):
    """One region of a VoiceCluster, generated. Only `replicas` is for others to write, by the scale subresource."""

    cluster: ClusterName
    region: RegionName
    replicas: Annotated[int, Field(ge=0, le=ORDINALS_PER_REGION)] = 1


class VoiceRegion(Model):
    """A region's scale, status and events. Named `<cluster>-<region>`."""

    api_version: Literal["voicecluster.dev/v1alpha1"]
    kind: Literal["VoiceRegion"]
    metadata: Metadata
    spec: VoiceRegionSpec
    status: VoiceRegionStatus = VoiceRegionStatus()


def _repeated(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]
