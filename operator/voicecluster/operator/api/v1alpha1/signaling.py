"""The public HTTP API: who may call, and how they reach it."""

from typing import Annotated, Literal

from pydantic import Field
from voicecluster.operator.api.effects import Acts, Change
from voicecluster.operator.api.rules import Distinct, Spec, must, only_in, stays
from voicecluster.operator.api.v1alpha1.scalars import Annotations, ObjectName, Origin, Port


class SignalingAuth(Spec):
    """Who may call: holders of an API key, or anybody."""

    mode: Literal["APIKey", "None"] = "APIKey"
    """`APIKey`: requests bring a key, or a client secret made with one. `None`: anybody may call."""
    api_keys_secret: Annotated[
        ObjectName | None, Acts("transceiver StatefulSet", Change.TRANSCEIVERS_DRAIN)
    ] = None
    """Mode `APIKey` only: a Secret of yours with one entry per key, its name and the key; entries may come and go
    without a restart. Absent: one key is generated, in the Secret `<name>-api-keys`."""

    _secret = only_in("apiKeysSecret", "APIKey", default="APIKey")


class SignalingService(Spec):
    """The Service in front of the signaling API: ready transceivers of all regions."""

    type: Literal["ClusterIP", "NodePort", "LoadBalancer"] = "ClusterIP"
    """As in any Service; its URLs are in the status."""
    port: Port = 80
    """TCP port of the Service."""
    annotations: Annotations = Field(default={})
    """For the Service, as a load balancer or a DNS controller wants them."""
    load_balancer_class: Annotated[
        Annotated[str, Field(min_length=1, max_length=253)] | None, Acts("signaling Service", Change.NEVER)
    ] = None
    """Type `LoadBalancer` only: which implementation serves the Service; absent: the cluster's default one."""

    _class = only_in("loadBalancerClass", "LoadBalancer", of="type", default="ClusterIP")

    @must(
        "self.?type.orValue('') != 'LoadBalancer' || oldSelf.?type.orValue('') != 'LoadBalancer'"
        f" || {stays('loadBalancerClass')}",
        "loadBalancerClass cannot change while there is a Service; write the old one, or another type first",
        at=".loadBalancerClass",
        reason="FieldValueForbidden",
    )
    def _class_stays(self) -> bool:
        return True  # about a change: only the API server knows what was there before


class Signaling(Spec):
    """The public HTTP API and the page."""

    auth: Annotated[SignalingAuth, Acts("transceivers", Change.LIVE)] = SignalingAuth()
    """Who may call."""
    cors_origins: Annotated[
        list[Origin], Field(max_length=64), Distinct(), Acts("transceivers", Change.LIVE)
    ] = Field(default=["*"])
    """Origins whose pages may call; `*` means all."""
    service: Annotated[SignalingService, Acts("signaling Service", Change.AT_ONCE)] = SignalingService()
    """The Service in front of ready transceivers of all regions."""
