"""The transceivers of a region, and what all of them know: the VIPs and one another."""

from pathlib import Path

from voicecluster.common.config.model import join_address
from voicecluster.common.config.pod import ADMIN_PORT, INTERNAL_PORT, MEDIA_PORT
from voicecluster.common.config.transceiver import (
    Auth,
    DirectoryFile,
    DirectoryRegion,
    ObjectFile,
    Sibling,
    Tls,
    TransceiverConfig,
    TransceiverSettings,
    Vip,
    VipsFile,
)
from voicecluster.operator.api.v1alpha1 import Region, VoiceCluster
from voicecluster.operator.plan.placement import Mount, Placement
from voicecluster.operator.plan.process import Port, Process, Volume, completed, render
from voicecluster.operator.plan.relay import CONFIG, VIPS

ROOT_KEYS, API_KEYS, TLS, DIRECTORY = "root-keys", "api-keys", "tls", "directory"
CERTIFICATE, PRIVATE_KEY = "tls.crt", "tls.key"


def transceiver_settings(
    cluster: VoiceCluster,
    region: Region,
    mount: Mount,
    *,
    drain_token: Path | None,
    tls: bool,
    vips_watch: ObjectFile | None,
) -> TransceiverSettings:
    """What all transceivers of the region share, wherever they run."""
    spec = region.transceiver
    signaling = cluster.spec.signaling
    by_key = signaling.auth.mode == "APIKey"
    return TransceiverSettings(
        cluster_id=cluster.spec.cluster_id,
        region=region.name,
        workers=spec.workers,
        keys_file=mount(ROOT_KEYS) / "keys.yaml",
        vips_file=mount(VIPS) / "vips.yaml" if vips_watch is None else vips_watch.file,
        vips_watch=vips_watch,
        directory_file=mount(DIRECTORY) / "directory.yaml",
        drain_token_file=drain_token,
        auth=Auth(mode=signaling.auth.mode, api_keys_dir=mount(API_KEYS) if by_key else None),
        cors_origins=signaling.cors_origins,
        tls=_tls(mount) if tls else None,
        ice_mode=spec.ice_mode,
        default_agent=cluster.spec.agents.default,
        limits=spec.limits,
        media=spec.media,
        log_level=cluster.spec.log_level,
    )


def build_transceiver(
    cluster: VoiceCluster, region: Region, ordinal: int, place: Placement, *, tls: bool
) -> tuple[Process, Volume]:
    """The process of one transceiver and the volume with its configuration."""
    name = f"{region.name}-transceiver-{ordinal}"
    host = place.transceiver_host(region, ordinal)
    workers = range(region.transceiver.workers)
    config = completed(
        transceiver_settings(cluster, region, place.mount, drain_token=None, tls=tls, vips_watch=None),
        TransceiverConfig,
        name=name,
        ordinal=ordinal,
        media_address=host,
        media_port=MEDIA_PORT,
        internal_address=host,
        internal_port=INTERNAL_PORT,
        admin=join_address(host, ADMIN_PORT),
        signaling=join_address(*place.signaling()),
    )
    by_key = config.auth.mode == "APIKey"
    secrets = (ROOT_KEYS, *([API_KEYS] if by_key else []), *([TLS] if tls else []))
    process = Process(
        name=name,
        role="transceiver",
        region=region.name,
        command=("voicecluster-transceiver", "--config", str(place.mount(name) / CONFIG)),
        volumes=(name, VIPS, DIRECTORY, *secrets),
        ports=(
            *(Port(f"media-{n}", "udp", host, MEDIA_PORT + n) for n in workers),
            *(Port(f"internal-{n}", "tcp", host, INTERNAL_PORT + n) for n in workers),
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


def _tls(mount: Mount) -> Tls:
    return Tls(cert_file=mount(TLS) / CERTIFICATE, key_file=mount(TLS) / PRIVATE_KEY)
