"""What all regions share: the VIPs, the directory, the derived keys, and the way to the signaling API."""

import base64

from voicecluster.common.config.pod import INTERNAL_PORT, SIGNALING_PORT
from voicecluster.common.config.transceiver import DirectoryFile, DirectoryRegion, SiblingRange, VipsFile
from voicecluster.operator.api.v1alpha1 import ORDINALS_PER_REGION
from voicecluster.operator.kube.port import CONFIG_MAPS, SECRETS, SERVICES, Json, Object
from voicecluster.operator.plan.keys import hint_keys
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.relay import service_port
from voicecluster.operator.plan.kubernetes.scope import Scope
from voicecluster.operator.plan.process import render


def shared_objects(scope: Scope) -> list[Object]:
    """All of them; the derived keys only while there is something to derive them from."""
    return [*hint_keys_secret(scope), vips(scope), directory(scope), signaling_service(scope)]


def hint_keys_secret(scope: Scope) -> list[Object]:
    """What relays decode ufrags with. Ours: `data`."""
    keys = scope.facts.keys
    if keys is None:
        return []
    text = render(hint_keys(keys, scope.cluster.spec.cluster_id))
    data: dict[str, Json] = {"keys.yaml": base64.b64encode(text.encode()).decode("ascii")}
    return [scope.object(SECRETS, names.hint_keys(scope.name), "keys", data=data)]


def vips(scope: Scope) -> Object:
    """What answers name, as discovered: by region, in the order answers prefer them. Ours: `data`."""
    regions = scope.cluster.spec.regions
    found = VipsFile(regions={region.name: list(scope.facts.vips.get(region.name, ())) for region in regions})
    return scope.object(CONFIG_MAPS, names.vips(scope.name), "config", data={"vips.yaml": render(found)})


def directory(scope: Scope) -> Object:
    """How transceivers reach one another: by the names that a StatefulSet gives its pods. Ours: `data`."""
    found = DirectoryFile(
        regions=[
            DirectoryRegion(
                name=region.name,
                index=region.index,
                range=SiblingRange(
                    first=region.index * ORDINALS_PER_REGION,
                    count=scope.replicas(region),
                    host=(
                        f"{names.transceiver(scope.name, region.name)}-{{ordinal}}"
                        f".{names.media(scope.name, region.name)}.{scope.facts.namespace}.svc"
                    ),
                    internal_port=INTERNAL_PORT,
                    workers=scope.workers(region),
                ),
            )
            for region in scope.cluster.spec.regions
        ]
    )
    name = names.directory(scope.name)
    return scope.object(CONFIG_MAPS, name, "config", data={"directory.yaml": render(found)})


def signaling_service(scope: Scope) -> Object:
    """The signaling API: the ready transceivers of all regions, any of which serves any call.

    Ours: type, port without node port, selector, and what the user wrote for the provider. Left to others:
    addresses, node ports, further annotations, status.
    """
    wanted = scope.cluster.spec.signaling.service
    spec: dict[str, Json] = {
        "type": wanted.type,
        "selector": names.selector(scope.name, "transceiver"),
        "ports": [service_port("http", wanted.port, SIGNALING_PORT, "TCP")],
    }
    if wanted.load_balancer_class is not None and wanted.type == "LoadBalancer":
        spec["loadBalancerClass"] = wanted.load_balancer_class
    name = names.signaling(scope.name)
    return scope.object(SERVICES, name, "signaling", annotations=wanted.annotations, spec=spec)
