"""`VoiceCluster`, voicecluster.dev/v1alpha1: what a user asks for.

A field is here only when something acts on it. Unknown fields are errors, and what is refused says what to
do. The same models read the file of `voicecluster up` and will make the CRD, so defaults are applied in
memory only.
"""

import ipaddress
from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field, field_validator
from voicecluster.common.config.model import Model, join_address
from voicecluster.common.config.relay import RelayLimits
from voicecluster.common.config.transceiver import CallLimits, MediaConfig

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


ClusterName = Annotated[str, Field(min_length=1, max_length=40), AfterValidator(_dns_label)]
RegionName = Annotated[str, Field(min_length=1, max_length=20), AfterValidator(_dns_label)]
IpAddress = Annotated[str, AfterValidator(_ip_address)]


class Vip(Model):
    """The public addresses of a region's relays. `External`: somebody else brings them to the relays."""

    mode: Literal["External"]
    addresses: Annotated[list[IpAddress], Field(min_length=1, max_length=8)]
    port: Annotated[int, Field(ge=1, le=65535)] = 3478

    @field_validator("addresses")
    @classmethod
    def _one_per_address(cls, addresses: list[str]) -> list[str]:
        for address in _repeated(addresses):
            raise ValueError(f"{address} is listed twice; remove one")
        return addresses


class Relay(Model):
    """The relays of a region."""

    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Packet threads of one relay, each with its own socket per VIP."""
    vip: Vip
    limits: RelayLimits = RelayLimits()


class Transceiver(Model):
    """The transceivers of a region; with no replicas the region is a pure ingress point."""

    replicas: Annotated[int, Field(ge=0, le=ORDINALS_PER_REGION)] = 1
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    """Processes of one transceiver, each with its own media port."""
    ice_mode: Literal["Lite", "Full"] = "Lite"
    limits: CallLimits = CallLimits()
    media: MediaConfig = MediaConfig()


class Region(Model):
    """A named part of the cluster with its own relays, VIPs and transceivers."""

    name: RegionName
    index: Annotated[int, Field(ge=0, le=63)]
    """Never changes: it is part of every ufrag."""
    relay: Relay
    transceiver: Transceiver = Transceiver()

    @property
    def ordinals(self) -> range:
        """The ordinals of this region's transceivers."""
        first = self.index * ORDINALS_PER_REGION
        return range(first, first + self.transceiver.replicas)


class SignalingAuth(Model):
    """Who may call: holders of an API key, or anybody."""

    mode: Literal["APIKey", "None"] = "APIKey"


class Signaling(Model):
    """The public HTTP API and the page."""

    auth: SignalingAuth = SignalingAuth()
    cors_origins: list[str] = Field(default=["*"], max_length=64)


class Agents(Model):
    """Which agent speaks when a call names none, or one we do not have."""

    default: Literal["parrot", "echo"] = "parrot"


class VoiceClusterSpec(Model):
    """What the cluster shall be."""

    cluster_id: Annotated[int, Field(ge=1, le=65535)]
    """Never changes: it is part of every ufrag."""
    regions: Annotated[list[Region], Field(min_length=1, max_length=64)]
    signaling: Signaling = Signaling()
    agents: Agents = Agents()

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


class Metadata(Model):
    """Kubernetes' own fields that a file may carry; only the name matters to us."""

    name: ClusterName
    namespace: str | None = None
    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})


class VoiceCluster(Model):
    """One cluster of relays and transceivers."""

    api_version: Literal["voicecluster.dev/v1alpha1"]
    kind: Literal["VoiceCluster"]
    metadata: Metadata
    spec: VoiceClusterSpec


def _repeated(values: Iterable[T]) -> list[T]:
    return [value for value, count in Counter(values).items() if count > 1]
