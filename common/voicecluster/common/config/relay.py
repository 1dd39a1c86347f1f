"""The relay's configuration and the two files it watches: routes and hint keys."""

import ipaddress
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator
from voicecluster.common.config.keys import Key, KeyId
from voicecluster.common.config.model import Address, LogLevel, Model, Unit, split_address

Count = Annotated[int, Field(ge=1, le=100_000_000)]
PacketsPerSecond = Annotated[Count, Unit("packets/s")]
FlowsPerSecond = Annotated[Count, Unit("flows/s")]
Flows = Annotated[Count, Unit("flows")]


class Listener(Model):
    """One VIP as this relay serves it. Packets that come to `bind` belong to the VIP `advertise`."""

    name: Annotated[str, Field(min_length=1, max_length=63)]
    bind: Address
    advertise: Address | None = None
    """Absent: the VIP of `bind`'s address family that the VIPs file has for this region (and, where VIPs belong to
    nodes, for this node); until it has one, `bind` itself."""


class RelayLimits(Model):
    """Bounds of the packet engine; each refusal is counted by reason. Rates are per second."""

    flow_packets: PacketsPerSecond = 150
    """What one flow may send, sustained."""
    flow_burst: Annotated[Count, Unit("packets")] = 300
    """What one flow may send at once."""
    flow_stun: PacketsPerSecond = 20
    """STUN that one flow may send."""
    route_packets: PacketsPerSecond = 200_000
    """What one worker of a transceiver is sent, from all flows."""
    flows_per_ufrag: Annotated[int, Field(ge=1, le=8), Unit("flows")] = 8
    """Flows of one call; another one replaces the idlest."""
    new_flows_per_ufrag: FlowsPerSecond = 4
    """New flows of one call."""
    new_flows_per_source: FlowsPerSecond = 200
    """New flows from one /24 (IPv4) or /48 (IPv6)."""
    new_flows: FlowsPerSecond = 50_000
    """New flows in all."""
    confirmed_flows: Flows = 200_000
    """Size of the table of confirmed flows; a full one drops the idlest."""
    provisional_flows: Flows = 20_000
    """Size of the table of flows that no transceiver has confirmed yet."""
    idle_seconds: Annotated[float, Field(gt=0, le=3600), Unit("s")] = 60.0
    """How long a silent flow is kept."""
    provisional_seconds: Annotated[float, Field(gt=0, le=60), Unit("s")] = 5.0
    """How long an unconfirmed flow is kept."""
    challenge_seconds: Annotated[float, Field(gt=0, le=60), Unit("s")] = 7.0
    """An incumbent without a confirmed check for so long gives way to a confirmed challenger. Less than the
    2.5 to 6 s between browsers' checks takes the protection away: tests do so to show the attack."""


class SliceRoutes(Model):
    """Routes from the EndpointSlices of the transceivers' headless Services. Kubernetes only.

    A route is (the endpoint's address, `media_port` + worker); its ordinal is the number that the endpoint's
    `hostname` ends with, the number of workers the slice's label `voicecluster.dev/workers` (Kubernetes copies the
    labels of a Service to its slices).
    """

    namespace: str
    selector: str
    """Label selector of the slices, as kubectl takes it."""
    cluster_id: Annotated[int, Field(ge=1, le=65535)]
    media_port: Annotated[int, Field(ge=1, le=65535)] = 40000
    cache_file: Path
    """The last routes in force, for a start while the API server is absent."""


class Leaving(Model):
    """How a relay leaves on SIGTERM (DESIGN section 2, rule 9). Kubernetes only; absent: at once."""

    namespace: str
    service: str
    """The relays' own Service: a successor is another ready endpoint of it."""
    same_node: bool
    """Whether a successor must be on this node (`externalTrafficPolicy: Local`)."""
    grace_seconds: Annotated[float, Field(ge=1, le=86_400)]
    """The pod's terminationGracePeriodSeconds."""


class RelaySettings(Model):
    """What all relays of a region share."""

    region: str
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    pin_workers: bool = False
    routes_file: Path | None = None
    routes_from: SliceRoutes | None = None
    """Exactly one of `routes_file` and `routes_from`."""
    keys_file: Path
    vips_file: Path | None = None
    """Needed where a listener does not say what it advertises."""
    leaving: Leaving | None = None
    log_level: LogLevel = "INFO"
    limits: RelayLimits = RelayLimits()

    @model_validator(mode="after")
    def _one_source_of_routes(self) -> Self:
        if (self.routes_file is None) == (self.routes_from is None):
            raise ValueError("write either routesFile or routesFrom")
        return self


class RelayPodSettings(RelaySettings):
    """The configuration file of relays in pods; `config.pod` makes a `RelayConfig` of it."""

    listen_port: Annotated[int, Field(ge=1, le=65535)]
    """UDP port of the VIP listeners, one on each of the pod's addresses."""


class RelayConfig(RelaySettings):
    """`voicecluster-relay --config FILE`."""

    name: str
    node: str | None = None
    """The Kubernetes node it runs on."""
    listeners: Annotated[list[Listener], Field(min_length=1, max_length=64)]
    backbone: Address
    """The internal address that SPP datagrams leave from and come back to; never a public one."""
    admin: Address
    """Health and metrics."""

    @field_validator("listeners")
    @classmethod
    def _distinct(cls, listeners: list[Listener]) -> list[Listener]:
        for what, values in (
            ("name", [listener.name for listener in listeners]),
            ("bind", [listener.bind for listener in listeners]),
            ("advertise", [listener.advertise for listener in listeners if listener.advertise is not None]),
        ):
            if (twice := _repeated(values)) is not None:
                raise ValueError(f"two listeners have {what} '{twice}'; give each its own")
        return listeners

    @field_validator("backbone")
    @classmethod
    def _specific(cls, backbone: str) -> str:
        if ipaddress.ip_address(split_address(backbone)[0]).is_unspecified:
            raise ValueError(f"'{backbone}' would listen on public addresses too; write the internal address")
        return backbone


class RouteEntry(Model):
    """One worker of one transceiver and the address its media socket has."""

    cluster: Annotated[int, Field(ge=1, le=65535)]
    ordinal: Annotated[int, Field(ge=0, le=65535)]
    worker: Annotated[int, Field(ge=0, le=255)]
    address: Address


class RoutesFile(Model):
    """All routes a relay may forward to; replaced atomically, re-read on change."""

    routes: list[RouteEntry]

    @field_validator("routes")
    @classmethod
    def _distinct(cls, routes: list[RouteEntry]) -> list[RouteEntry]:
        names = (f"{route.cluster}/{route.ordinal}/{route.worker}" for route in routes)
        if (twice := _repeated(names)) is not None:
            raise ValueError(f"route {twice} (cluster/ordinal/worker) is listed twice; keep one")
        return routes


class RelayKeysFile(Model):
    """K_hint by cluster and key id, base64 of 32 bytes each. A relay holds no root secret."""

    clusters: dict[Annotated[str, Field(pattern=r"^[1-9][0-9]{0,4}$")], dict[KeyId, Key]]

    @field_validator("clusters")
    @classmethod
    def _in_range(cls, clusters: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
        for cluster in clusters:
            if int(cluster) > 65535:
                raise ValueError(f"cluster {cluster} is out of range; write 1 to 65535")
        return clusters


def _repeated(values: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            return value
        seen.add(value)
    return None
