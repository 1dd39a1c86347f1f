"""The public addresses of a region's relays."""

from typing import Annotated, Literal

from pydantic import Field
from voicecluster.operator.api.effects import Acts, Change
from voicecluster.operator.api.rules import Distinct, Spec, must, only_in
from voicecluster.operator.api.v1alpha1.scalars import Annotations, IpAddress, Network, Port

UNPRIVILEGED_PORT = 1024
BACKBONE_PORT = 13479

SERVICE = Acts("VIP Service", Change.AT_ONCE)
ANSWERS = Acts("answers of transceivers", Change.NEXT_CALLS)


class Vip(Spec):
    """The public addresses of a region's relays, and how packets to them get there."""

    mode: Annotated[
        Literal["LoadBalancer", "HostNetwork", "External"],
        Acts("relay DaemonSet and VIP Service", Change.RELAYS_ROLL),
    ] = "LoadBalancer"
    """`LoadBalancer`: a Service of that type. `HostNetwork`: the nodes' own addresses. `External`: `addresses`,
    which somebody else brings to the relays. Relays roll only from and to `HostNetwork`."""
    port: Annotated[Port, SERVICE] = 3478
    """UDP port that callers send to. Where the mode is `HostNetwork`, another one makes the relays roll."""
    addresses: Annotated[list[IpAddress], Field(max_length=8), Distinct(), ANSWERS] = Field(default=[])
    """Mode `External` only: what answers name, one of each family."""
    annotations: Annotated[Annotations, SERVICE] = Field(default={})
    """Mode `LoadBalancer` only: for the Service, as the provider wants them."""
    load_balancer_class: Annotated[
        Annotated[str, Field(min_length=1, max_length=253)] | None, Acts("VIP Service", Change.NEVER)
    ] = None
    """Mode `LoadBalancer` only: which implementation serves the Service; absent: the cluster's default one."""
    source_ranges: Annotated[list[Network], Field(max_length=64), Distinct(), SERVICE] = Field(default=[])
    """Mode `LoadBalancer` only: networks that may call; empty means everybody."""
    external_traffic_policy: Annotated[Literal["Local", "Cluster"], SERVICE] = "Local"
    """Modes with a Service only. `Cluster` hides callers' addresses behind the nodes', which makes limits per source
    useless."""
    ip_family_policy: Annotated[Literal["SingleStack", "PreferDualStack", "RequireDualStack"], SERVICE] = (
        "PreferDualStack"
    )
    """Modes with a Service only: the address families of the Service."""
    health_check_port: Annotated[Port | None, SERVICE] = None
    """Mode `LoadBalancer` only: a TCP port of the Service that leads to the relays' health, for clouds whose load
    balancers cannot check UDP; absent: no such port."""
    node_address_type: Annotated[Literal["ExternalIP", "InternalIP"], ANSWERS] = "ExternalIP"
    """Mode `HostNetwork` only: which of a node's addresses answers name."""

    _annotations = only_in("annotations", "LoadBalancer", default="LoadBalancer")
    _class = only_in("loadBalancerClass", "LoadBalancer", default="LoadBalancer")
    _ranges = only_in("sourceRanges", "LoadBalancer", default="LoadBalancer")
    _health = only_in("healthCheckPort", "LoadBalancer", default="LoadBalancer")
    _policy = only_in("externalTrafficPolicy", "LoadBalancer", "External", default="LoadBalancer")
    _families = only_in("ipFamilyPolicy", "LoadBalancer", "External", default="LoadBalancer")
    _node_address = only_in("nodeAddressType", "HostNetwork", default="LoadBalancer")
    _addresses = only_in("addresses", "External", default="LoadBalancer")

    @must(
        "self.?mode.orValue('') != 'External' || size(self.?addresses.orValue([])) > 0",
        "mode External needs addresses; list the IP addresses that callers reach",
        at=".addresses",
        reason="FieldValueRequired",
    )
    def _external_has_addresses(self) -> bool:
        return self.mode != "External" or bool(self.addresses)

    @must(
        f"self.?mode.orValue('') != 'HostNetwork' || !has(self.port) || self.port >= {UNPRIVILEGED_PORT}",
        "relays are not root and cannot bind a port below 1024 of a node; write 3478, for example",
        at=".port",
    )
    def _host_port_is_unprivileged(self) -> bool:
        return self.mode != "HostNetwork" or self.port >= UNPRIVILEGED_PORT

    @must(
        f"self.?mode.orValue('') != 'HostNetwork' || !has(self.port) || self.port != {BACKBONE_PORT}",
        f"relays use port {BACKBONE_PORT} of a node among themselves; write 3478, for example",
        at=".port",
    )
    def _host_port_is_free(self) -> bool:
        return self.mode != "HostNetwork" or self.port != BACKBONE_PORT
