"""The relays of a region: one on each of its nodes, their VIP, and how they see one another."""

from collections.abc import Sequence

from voicecluster.common.config.pod import ADMIN_PORT, BACKBONE_PORT, MEDIA_PORT
from voicecluster.common.config.relay import Leaving, RelayPodSettings, SliceRoutes
from voicecluster.operator.api.v1alpha1 import Region
from voicecluster.operator.kube.port import CONFIG_MAPS, DAEMON_SETS, SERVICES, Json, Object
from voicecluster.operator.plan.kubernetes import names, pods
from voicecluster.operator.plan.kubernetes.scope import Scope
from voicecluster.operator.plan.process import completed, render
from voicecluster.operator.plan.relay import CONFIG, HINT_KEYS, VIPS, relay_settings

LISTEN_PORT = 13478
"""Where pods serve a VIP: above 1024, whatever the VIP's own port is. In HostNetwork mode it is the VIP's."""
READY_FAILURES = 5
"""Seconds without an answer until a relay is not ready. A control plane that restarts must not move every flow, and
one that leaves forwards for ten seconds after it said so."""
GRACE_SECONDS = 120
"""How long a relay may go on after it was told to leave: until its callers' packets come elsewhere."""


def relay_objects(scope: Scope, region: Region) -> list[Object]:
    """Everything of the region's relays."""
    return [
        config(scope, region),
        *vip_service(scope, region),
        pods_service(scope, region),
        daemon_set(scope, region),
    ]


def config(scope: Scope, region: Region) -> Object:
    """The relays' configuration. Ours: `data`. Relays re-read it; no pod changes with it."""
    namespace = scope.facts.namespace
    vip = region.relay.vip
    settings = relay_settings(
        scope.cluster,
        region,
        pods.mount,
        leaving=Leaving(
            namespace=namespace,
            service=names.relay_pods(scope.name, region.name),
            same_node=vip.mode != "HostNetwork" and vip.external_traffic_policy == "Local",
            grace_seconds=GRACE_SECONDS,
        ),
        routes=SliceRoutes(
            namespace=namespace,
            selector=names.text(names.selector(scope.name, "transceiver")),
            cluster_id=scope.cluster.spec.cluster_id,
            media_port=MEDIA_PORT,
            cache_file=pods.RUN / "routes.json",
        ),
    )
    text = render(completed(settings, RelayPodSettings, listen_port=_listen_port(region)))
    name = names.relay(scope.name, region.name)
    return scope.object(CONFIG_MAPS, name, "relay", region, data={CONFIG: text})


def daemon_set(scope: Scope, region: Region) -> Object:
    """A relay on each of the region's nodes.

    Ours: selector, update strategy, and of the template everything we say. Left to others: what the API defaults.
    The template changes for image, workers, resources, placement and VIP mode only, as these need new pods. A new
    relay is ready before the old one leaves, but in HostNetwork mode, where both would want the same port.
    """
    hosted = region.relay.vip.mode == "HostNetwork"
    images = scope.cluster.spec.images
    name = names.relay(scope.name, region.name)
    volumes = (
        pods.config_map(pods.CONFIG, name),
        pods.secret(HINT_KEYS, names.hint_keys(scope.name)),
        pods.config_map(VIPS, names.vips(scope.name)),
    )
    program = pods.container(
        scope,
        "relay",
        images.relay or scope.facts.defaults.relay_image,
        command=("voicecluster-relay-engine", "supervise", "--config", str(pods.mount(pods.CONFIG) / CONFIG)),
        volumes=volumes,
        resources=pods.requirements(region.relay.resources, cpu="100m", memory="64Mi"),
        ports=() if hosted else _container_ports(),
        ready_seconds=1,
        ready_failures=READY_FAILURES,
    )
    network: dict[str, Json] = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"} if hosted else {}
    template = pods.pod(
        scope,
        "relay",
        region,
        user=pods.USER,
        account=names.everywhere(scope.name, "relay"),
        containers=[program],
        volumes=[*volumes, pods.scratch("run"), pods.scratch("tmp")],
        annotations={names.LISTEN_PORT: str(_listen_port(region))} if hosted else None,
        labels={names.WORKERS: str(region.relay.workers)},
        terminationGracePeriodSeconds=GRACE_SECONDS,
        **network,
    )
    surge, unavailable = (0, 1) if hosted else (1, 0)
    spec: dict[str, Json] = {
        "selector": {"matchLabels": names.selector(scope.name, "relay", region.name)},
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable},
        },
        "template": template,
    }
    return scope.object(DAEMON_SETS, name, "relay", region, spec=spec)


def vip_service(scope: Scope, region: Region) -> list[Object]:
    """What brings a VIP's packets to the relays; none in HostNetwork mode.

    Ours: type, ports without node ports, selector, policies, and what the user wrote for the provider. Left to
    others: addresses, node ports, further annotations, status.
    """
    vip = region.relay.vip
    if vip.mode == "HostNetwork":
        return []
    balanced = vip.mode == "LoadBalancer"
    ports = [service_port("vip", vip.port, LISTEN_PORT, "UDP")]
    if balanced and vip.health_check_port is not None:
        ports.append(service_port("health", vip.health_check_port, ADMIN_PORT, "TCP"))
    spec: dict[str, Json] = {
        "type": "LoadBalancer" if balanced else "NodePort",
        "selector": names.selector(scope.name, "relay", region.name),
        "externalTrafficPolicy": vip.external_traffic_policy,
        "ipFamilyPolicy": vip.ip_family_policy,
        "ports": ports,
    }
    if balanced and vip.load_balancer_class is not None:
        spec["loadBalancerClass"] = vip.load_balancer_class
    if balanced and vip.source_ranges:
        spec["loadBalancerSourceRanges"] = list(vip.source_ranges)
    name = names.relay(scope.name, region.name)
    annotations = vip.annotations if balanced else None
    return [scope.object(SERVICES, name, "relay", region, annotations=annotations, spec=spec)]


def pods_service(scope: Scope, region: Region) -> Object:
    """The region's relays by their own addresses, ready or not: who leaves sees here that others are ready.

    Ours: everything but what the API defaults.
    """
    spec: dict[str, Json] = {
        "clusterIP": "None",
        "ipFamilyPolicy": "SingleStack",
        "selector": names.selector(scope.name, "relay", region.name),
        "ports": [service_port("admin", ADMIN_PORT, ADMIN_PORT, "TCP")],
    }
    return scope.object(SERVICES, names.relay_pods(scope.name, region.name), "relay", region, spec=spec)


def service_port(name: str, number: int, target: int, protocol: str) -> dict[str, Json]:
    """A port of a Service; the protocol is always said, since it is part of the key that ports are merged by."""
    return {"name": name, "port": number, "targetPort": target, "protocol": protocol}


def _listen_port(region: Region) -> int:
    vip = region.relay.vip
    return vip.port if vip.mode == "HostNetwork" else LISTEN_PORT


def _container_ports() -> Sequence[Json]:
    return (
        pods.port("vip", LISTEN_PORT, "UDP"),
        pods.port("backbone", BACKBONE_PORT, "UDP"),
        pods.port("admin", ADMIN_PORT, "TCP"),
    )
