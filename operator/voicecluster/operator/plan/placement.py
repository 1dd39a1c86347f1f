"""Where processes live: the one question whose answer differs between pods and local processes."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from voicecluster.operator.api.v1alpha1 import Region, VoiceCluster

Mount = Callable[[str], Path]
"""The directory in which a process finds the files of a volume, by the volume's name."""


@dataclass(frozen=True, slots=True)
class VipPlace:
    """One public address of a region, and the local address a relay serves it on."""

    advertise: tuple[str, int]
    bind: tuple[str, int]


class Placement(Protocol):
    """Answers must depend on the arguments only: the same question, the same answer."""

    def mount(self, volume: str) -> Path:
        """The directory in which a process finds the files of a volume."""

    def relay_host(self, region: Region) -> str:
        """The internal address of the region's relay; never a public one."""

    def transceiver_host(self, region: Region, ordinal: int) -> str:
        """The internal address of a transceiver; never a public one."""

    def vips(self, region: Region) -> tuple[VipPlace, ...]:
        """The region's VIPs, in the order answers prefer them."""

    def signaling(self) -> tuple[str, int]:
        """Where workers serve the public HTTP API."""


@dataclass(frozen=True, slots=True)
class LocalPlacement:
    """Every process on this machine, at a loopback address of its own: address checks mean something.

    Relays get .1, .2, … of the `internal` /24 by the regions' order, transceivers follow from .10 (or behind
    the relays). A relay binds its VIPs as they are. With `public` there is one address for all: region i has
    the VIP `public`:3478+i.
    """

    cluster: VoiceCluster
    state: Path
    """Volumes are directories below it."""
    signaling_at: tuple[str, int]
    internal: ipaddress.IPv4Network
    public: str | None = None

    def mount(self, volume: str) -> Path:
        """See `Placement`."""
        return self.state / "volumes" / volume

    def relay_host(self, region: Region) -> str:
        """See `Placement`."""
        return self._host(1 + self.cluster.spec.regions.index(region))

    def transceiver_host(self, region: Region, ordinal: int) -> str:
        """See `Placement`."""
        regions = self.cluster.spec.regions
        before = sum(len(other.ordinals) for other in regions[: regions.index(region)])
        return self._host(max(10, 1 + len(regions)) + before + ordinal - region.ordinals.start)

    def vips(self, region: Region) -> tuple[VipPlace, ...]:
        """See `Placement`. Raises ValueError for a VIP that only Kubernetes can give."""
        vip = region.relay.vip
        if self.public is not None:
            place = (self.public, vip.port + self.cluster.spec.regions.index(region))
            return (VipPlace(advertise=place, bind=place),)
        if vip.mode != "External":
            raise ValueError(
                f"region '{region.name}' has a VIP of mode {vip.mode}, which only Kubernetes can give; write mode"
                " External with addresses of this machine, or serve all regions on one address with --address"
            )
        places = [(address, vip.port) for address in vip.addresses]
        return tuple(VipPlace(advertise=place, bind=place) for place in places)

    def signaling(self) -> tuple[str, int]:
        """See `Placement`."""
        return self.signaling_at

    def _host(self, number: int) -> str:
        if number >= self.internal.num_addresses - 1:
            raise ValueError(
                f"more processes than {self.internal} has addresses; use fewer replicas or regions"
            )
        return str(self.internal[number])
