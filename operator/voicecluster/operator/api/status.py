"""What the operator reports: `status` of VoiceCluster and VoiceRegion.

Written by the operator only. Reading is lenient: fields of a newer operator are ignored, and an absent status
reads as an empty one, so that a resource never becomes unreadable by what stands there.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from voicecluster.common.config.model import Model
from voicecluster.operator.api.rules import Distinct

ConditionStatus = Literal["True", "False", "Unknown"]
VipSource = Literal["Service", "Hostname", "Node", "Spec"]
Text = Annotated[str, Field(max_length=1024)]


class Status(Model):
    """Base of all of it: what is unknown is ignored."""

    model_config = ConfigDict(extra="ignore")


class Condition(Status):
    """One aspect of the present state, as kubectl, kstatus and GitOps tools read it."""

    type: Annotated[str, Field(min_length=1, max_length=316)]
    """`Ready`, `Reconciling`, `Stalled`, ...: one of each type."""
    status: ConditionStatus
    """Whether it is so."""
    reason: Annotated[str, Field(min_length=1, max_length=1024)]
    """One CamelCase word for programs."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """For people: which object, what is wrong with it, and what to do."""
    observed_generation: Annotated[int, Field(ge=0)]
    """The generation of the resource that this was found for."""
    last_transition_time: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]
    """When `status` last changed (RFC 3339)."""


class VipStatus(Status):
    """A public address that this region's relays serve, as answers name it."""

    address: Annotated[str, Field(max_length=45)]
    """IPv4 or IPv6 address."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """UDP port."""
    source: VipSource
    """`Service`: its load balancer's address. `Hostname`: resolved from its load balancer's name. `Node`: a node's
    own. `Spec`: as the resource says."""
    node: Annotated[str, Field(max_length=253)] | None = None
    """The node whose address it is (HostNetwork)."""


class RegionSummary(Status):
    """One region in the VoiceCluster's status."""

    name: Annotated[str, Field(max_length=20)]
    """Its name in the spec."""
    ready: bool
    """Whether it takes calls as asked for."""
    relays: Annotated[str, Field(max_length=32)]
    """Ready of wanted, such as `3/3`."""
    transceivers: Annotated[str, Field(max_length=32)]
    """Ready of wanted, such as `2/2`."""
    vips: Annotated[list[VipStatus], Field(max_length=10_000)] = Field(default=[])
    """What answers name."""


class Summary(Status):
    """The whole cluster in a few words, for kubectl's columns."""

    regions: Annotated[str, Field(max_length=32)] = ""
    """Ready of all, such as `2/2`."""
    relays: Annotated[str, Field(max_length=32)] = ""
    """Ready of wanted, in all regions."""
    transceivers: Annotated[str, Field(max_length=32)] = ""
    """Ready of wanted, in all regions."""


class SignalingStatus(Status):
    """Where the public API is."""

    urls: Annotated[list[Text], Field(max_length=64)] = Field(default=[])
    """As clients reach it: load balancer, node ports, or the name inside the Kubernetes cluster."""


class KeysStatus(Status):
    """The cluster's root keys: their names, never their values."""

    mint: Annotated[str, Field(max_length=1)] = ""
    """The id that new calls are minted with; empty until there are keys."""
    ids: Annotated[list[Annotated[str, Field(max_length=1)]], Field(max_length=62)] = Field(default=[])
    """All ids that relays accept."""


class VoiceClusterStatus(Status):
    """What the operator found."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    """The generation of the resource that this status is about."""
    conditions: Annotated[list[Condition], Field(max_length=32), Distinct("type")] = Field(default=[])
    """One of each type."""
    regions: Annotated[list[RegionSummary], Field(max_length=64)] = Field(default=[])
    """In the order of the spec."""
    summary: Summary = Summary()
    """The whole in a few words."""
    signaling: SignalingStatus = SignalingStatus()
    """Where the public API is."""
    keys: KeysStatus = KeysStatus()
    """Once there are ids here, the key Secrets are never generated again."""
    operator_version: Annotated[str, Field(max_length=64)] = ""
    """Of the operator that wrote this."""


class RelayCount(Status):
    """Relay pods of a region."""

    desired: Annotated[int, Field(ge=0)] = 0
    """One for each node that fits."""
    ready: Annotated[int, Field(ge=0)] = 0
    """Those that take packets."""
    updated: Annotated[int, Field(ge=0)] = 0
    """Those of the present template."""


class Draining(Status):
    """A transceiver that takes no new calls, and why."""

    pod: Annotated[str, Field(max_length=253)]
    """Its name."""
    reason: Annotated[str, Field(max_length=64)]
    """One CamelCase word: what it is drained for."""
    calls: Annotated[int, Field(ge=0)] | None = None
    """Calls left; absent while it has not told."""
    deadline: Annotated[str, Field(max_length=64, json_schema_extra={"format": "date-time"})]
    """When calls that are left end (RFC 3339)."""


class TransceiverCount(Status):
    """Transceiver pods of a region."""

    desired: Annotated[int, Field(ge=0)] = 0
    """As asked for; while some drain, more are running."""
    ready: Annotated[int, Field(ge=0)] = 0
    """Those that take new calls."""
    updated: Annotated[int, Field(ge=0)] = 0
    """Those of the present template."""
    draining: Annotated[list[Draining], Field(max_length=1024)] = Field(default=[])
    """Who waits for whose calls."""


class VoiceRegionStatus(Status):
    """What the operator found in one region."""

    observed_generation: Annotated[int, Field(ge=0)] = 0
    """The generation of the VoiceRegion that this status is about."""
    conditions: Annotated[list[Condition], Field(max_length=32), Distinct("type")] = Field(default=[])
    """One of each type."""
    replicas: Annotated[int, Field(ge=0)] = 0
    """Transceiver pods that exist: what the scale subresource reports."""
    ready_replicas: Annotated[int, Field(ge=0)] = 0
    """Transceiver pods that take new calls."""
    selector: Text = ""
    """Label selector of the transceiver pods, for autoscalers."""
    relay: RelayCount = RelayCount()
    """Relay pods."""
    transceiver: TransceiverCount = TransceiverCount()
    """Transceiver pods."""
    vips: Annotated[list[VipStatus], Field(max_length=10_000)] = Field(default=[])
    """What answers name."""
