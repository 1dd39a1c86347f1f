"""The transceivers of a region, and what all of them know: the VIPs and one another."""

from voicecluster.common.config.model import join_address
from voicecluster.common.config.transceiver import (
    Auth,
    DirectoryFile,
    DirectoryRegion,
    Sibling,
    Tls,
    TransceiverConfig,
    Vip,
    VipsFile,
)
from voicecluster.operator.api.v1alpha1 import Region, VoiceCluster
from voicecluster.operator.plan.placement import ADMIN_PORT, INTERNAL_PORT, MEDIA_PORT, Placement
from voicecluster.operator.plan.process import Port, Process, Volume, render

CONFIG = "config.yaml"
ROOT_KEYS, API_KEYS, TLS, VIPS, DIRECTORY = "root-keys", "api-keys", "tls", "vips", "directory"
CERTIFICATE, PRIVATE_KEY = "tls.crt", "tls.key"


def build_transceiver(
    cluster: VoiceCluster, region: Region, ordinal: int, place: Placement, *, tls: bool
) -> tuple[Process, Volume]:
    """The process of one transceiver and the volume with its configuration."""
    name = f"{region.name}-transceiver-{ordinal}"
    host = place.transceiver_host(region, ordinal)
    spec = region.transceiver
    by_key = cluster.spec.signaling.auth.mode == "APIKey"
    config = TransceiverConfig(
        name=name,
        cluster_id=cluster.spec.cluster_id,
        region=region.name,
        ordinal=ordinal,
        workers=spec.workers,
        media_address=host,
        media_port=MEDIA_PORT,
        internal_address=host,
        internal_port=INTERNAL_PORT,
        admin=join_address(host, ADMIN_PORT),
        signaling=join_address(*place.signaling()),
        tls=_tls(place) if tls else None,
        auth=Auth(
            mode=cluster.spec.signaling.auth.mode, api_keys_dir=place.mount(API_KEYS) if by_key else None
        ),
        cors_origins=cluster.spec.signaling.cors_origins,
        keys_file=place.mount(ROOT_KEYS) / "keys.yaml",
        vips_file=place.mount(VIPS) / "vips.yaml",
        directory_file=place.mount(DIRECTORY) / "directory.yaml",
        ice_mode=spec.ice_mode,
        default_agent=cluster.spec.agents.default,
        limits=spec.limits,
        media=spec.media,
    )
    secrets = (ROOT_KEYS, *([API_KEYS] if by_key else []), *([TLS] if tls else []))
    process = Process(
        name=name,
        role="transceiver",
        region=region.name,
        command=("voicecluster-transceiver", "--config", str(place.mount(name) / CONFIG)),
        volumes=(name, VIPS, DIRECTORY, *secrets),
        ports=(
            *(Port(f"media-{n}", "udp", host, MEDIA_PORT + n) for n in range(spec.workers)),
            *(Port(f"internal-{n}", "tcp", host, INTERNAL_PORT + n) for n in range(spec.workers)),
            Port("signaling", "tcp", *place.signaling(), shared=True),
            Port("admin", "tcp", host, ADMIN_PORT),
        ),
    )
    return process, Volume(name, {CONFIG: render(config)})


def vips(cluster: VoiceCluster, place: Placement) -> VipsFile:
    """What answers may name as candidates."""
    return VipsFile(
        regions={
            region.name: [Vip(address=vip.advertise[0], port=vip.advertise[1]) for vip in place.vips(region)]
            for region in cluster.spec.regions
        }
    )


def directory(cluster: VoiceCluster, place: Placement) -> DirectoryFile:
    """How transceivers reach one another."""
    return DirectoryFile(
        regions=[
            DirectoryRegion(
                name=region.name,
                index=region.index,
                transceivers=[
                    Sibling(
                        ordinal=ordinal,
                        host=place.transceiver_host(region, ordinal),
                        internal_port=INTERNAL_PORT,
                        workers=region.transceiver.workers,
                    )
                    for ordinal in region.ordinals
                ],
            )
            for region in cluster.spec.regions
        ]
    )


def _tls(place: Placement) -> Tls:
    return Tls(cert_file=place.mount(TLS) / CERTIFICATE, key_file=place.mount(TLS) / PRIVATE_KEY)
