"""The relay of a region, and the two files that all relays watch."""

from voicecluster.common.config.model import join_address
from voicecluster.common.config.relay import Listener, RelayConfig, RouteEntry, RoutesFile
from voicecluster.operator.api.v1alpha1 import Region, VoiceCluster
from voicecluster.operator.plan.placement import ADMIN_PORT, BACKBONE_PORT, MEDIA_PORT, Placement
from voicecluster.operator.plan.process import Port, Process, Volume, render

CONFIG = "config.yaml"
ROUTES, HINT_KEYS = "routes", "hint-keys"


def build_relay(region: Region, place: Placement) -> tuple[Process, Volume]:
    """The relay's process and the volume with its configuration."""
    name = f"{region.name}-relay"
    host = place.relay_host(region)
    vips = place.vips(region)
    config = RelayConfig(
        name=name,
        region=region.name,
        workers=region.relay.workers,
        listeners=[
            Listener(name=f"vip-{n}", bind=join_address(*vip.bind), advertise=join_address(*vip.advertise))
            for n, vip in enumerate(vips)
        ],
        backbone=join_address(host, BACKBONE_PORT),
        routes_file=place.mount(ROUTES) / "routes.yaml",
        keys_file=place.mount(HINT_KEYS) / "keys.yaml",
        admin=join_address(host, ADMIN_PORT),
        limits=region.relay.limits,
    )
    process = Process(
        name=name,
        role="relay",
        region=region.name,
        command=("voicecluster-relay-engine", "supervise", "--config", str(place.mount(name) / CONFIG)),
        volumes=(name, ROUTES, HINT_KEYS),
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
