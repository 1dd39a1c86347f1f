"""`plan()`: the whole of a cluster."""

from dataclasses import dataclass, field

from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.plan.keys import KeyMaterial, hint_keys, root_keys
from voicecluster.operator.plan.placement import Placement
from voicecluster.operator.plan.process import Plan, Process, Volume, render
from voicecluster.operator.plan.relay import HINT_KEYS, ROUTES, VIPS, build_relay, routes
from voicecluster.operator.plan.transceiver import (
    API_KEYS,
    CERTIFICATE,
    DIRECTORY,
    PRIVATE_KEY,
    ROOT_KEYS,
    TLS,
    build_transceiver,
    directory,
    vips,
)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The certificate chain and private key of the signaling port, PEM."""

    chain: str
    private_key: str = field(repr=False)


def plan(
    cluster: VoiceCluster, place: Placement, keys: KeyMaterial, *, certificate: Certificate | None = None
) -> Plan:
    """All processes of `cluster` and the files they read. With a certificate, signaling is HTTPS.

    Raises ValueError when the placement has no room for the resource.
    """
    processes: list[Process] = []
    volumes = _shared_volumes(cluster, place, keys, certificate)
    for region in cluster.spec.regions:
        built = [build_relay(cluster, region, place)]
        built += [
            build_transceiver(cluster, region, ordinal, place, tls=certificate is not None)
            for ordinal in region.ordinals
        ]
        for process, config in built:
            processes.append(process)
            volumes.append(config)
    return Plan(tuple(volumes), tuple(processes))


def _shared_volumes(
    cluster: VoiceCluster, place: Placement, keys: KeyMaterial, certificate: Certificate | None
) -> list[Volume]:
    volumes = [
        Volume(ROUTES, {"routes.yaml": render(routes(cluster, place))}),
        Volume(HINT_KEYS, {"keys.yaml": render(hint_keys(keys, cluster.spec.cluster_id))}, secret=True),
        Volume(ROOT_KEYS, {"keys.yaml": render(root_keys(keys))}, secret=True),
        Volume(VIPS, {"vips.yaml": render(vips(cluster, place))}),
        Volume(DIRECTORY, {"directory.yaml": render(directory(cluster, place))}),
    ]
    if cluster.spec.signaling.auth.mode == "APIKey":
        volumes.append(Volume(API_KEYS, dict(keys.api_keys), secret=True))
    if certificate is not None:
        files = {CERTIFICATE: certificate.chain, PRIVATE_KEY: certificate.private_key}
        volumes.append(Volume(TLS, files, secret=True))
    return volumes
