"""The relay of a region, and the two files that all relays watch."""

from pathlib import Path

from voicecluster.common.config.model import join_address
from voicecluster.common.config.pod import ADMIN_PORT, BACKBONE_PORT, MEDIA_PORT
from voicecluster.common.config.relay import (
    Leaving,
    Listener,
    RelayConfig,
    RelaySettings,
    RouteEntry,
    RoutesFile,
    SliceRoutes,
)
from voicecluster.operator.api.v1alpha1 import Region, VoiceCluster
from voicecluster.operator.plan.placement import Mount, Placement
from voicecluster.operator.plan.process import Port, Process, Volume, completed, render

CONFIG = "config.yaml"
ROUTES, HINT_KEYS, VIPS = "routes", "hint-keys", "vips"


def relay_settings(
    cluster: VoiceCluster,
    region: Region,
    mount: Mount,
    *,
    leaving: Leaving | None,
    routes: Path | SliceRoutes,
) -> RelaySettings:
    """What all relays of the region share, wherever they run."""
    return RelaySettings(
        region=region.name,
        workers=region.relay.workers,
        routes_file=routes if isinstance(routes, Path) else None,
        routes_from=routes if isinstance(routes, SliceRoutes) else None,
        keys_file=mount(HINT_KEYS) / "keys.yaml",
        vips_file=mount(VIPS) / "vips.yaml",
        leaving=leaving,
        log_level=cluster.spec.log_level,
        limits=region.relay.limits,
    )


def build_relay(cluster: VoiceCluster, region: Region, place: Placement) -> tuple[Process, Volume]:
    """The relay's process and the volume with its configuration."""
    name = f"{region.name}-relay"
    host = place.relay_host(region)
    vips = place.vips(region)
    config = completed(
        relay_settings(
            cluster, region, place.mount, leaving=None, routes=place.mount(ROUTES) / "routes.yaml"
        ),
        RelayConfig,
        name=name,
        listeners=[
            Listener(name=f"vip-{n}", bind=join_address(*vip.bind), advertise=join_address(*vip.advertise))
            for n, vip in enumerate(vips)
        ],
        backbone=join_address(host, BACKBONE_PORT),
        admin=join_address(host, ADMIN_PORT),
    )
    process = Process(
        name=name,
        role="relay",
        region=region.name,
        command=("voicecluster-relay-engine", "supervise", "--config", str(place.mount(name) / CONFIG)),
        volumes=(name, ROUTES, HINT_KEYS, VIPS),
        ports=(
            *(Port(f"vip-{n}", "udp", *vip.bind) for n, vip in enumerate(vips)),
            Port("backbone", "udp", host, BACKBONE_PORT),
            Port("admin", "tcp", host, ADMIN_PORT),
        ),
    )
    return process, Volume(name, {CONFIG: render(config)})


def routes(cluster: VoiceCluster, place: Placement) -> RoutesFile:
    """A route for every worker of every transceiver: a relay of any region serves callers of all."""
    return RoutesFile(
        routes=[
            RouteEntry(
                cluster=cluster.spec.cluster_id,
                ordinal=ordinal,
                worker=worker,
                address=join_address(place.transceiver_host(region, ordinal), MEDIA_PORT + worker),
            )
            for region in cluster.spec.regions
            for ordinal in region.ordinals
            for worker in range(region.transceiver.workers)
        ]
    )
