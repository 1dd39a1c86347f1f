"""What is there: the objects of one VoiceCluster as typed values, read from the watches. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voicecluster.operator.api.status import VoiceClusterStatus, VoiceRegionStatus
from voicecluster.operator.api.v1alpha1 import Region, VoiceCluster
from voicecluster.operator.fields import at, is_true, items, mapping, number, text, texts
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Object, Store
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.status.write import read_status
from voicecluster.operator.workloads import Pod, Workload, read_daemon_set, read_pod, read_stateful_set


@dataclass(frozen=True, slots=True)
class Ingress:
    """One way into a Service of type LoadBalancer: an address, or a name that resolves to some."""

    address: str
    hostname: str


@dataclass(frozen=True, slots=True)
class Service:
    """A Service, as far as callers outside see it."""

    name: str
    exists: bool = False
    type: str = "ClusterIP"
    ingress: tuple[Ingress, ...] = ()
    node_ports: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps pods off a node."""

    key: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Node:
    """A machine of the cluster."""

    name: str
    ready: bool
    addresses: tuple[tuple[str, str], ...]
    """Type and address."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()


@dataclass(frozen=True, slots=True)
class RegionState:
    """What there is of one region."""

    name: str
    """Of its VoiceRegion."""
    spec: Region
    relays: Workload
    relay_pods: tuple[Pod, ...]
    transceivers: Workload
    transceiver_pods: tuple[Pod, ...]
    vip: Service
    resource: Object | None
    """The VoiceRegion itself."""
    status: VoiceRegionStatus
    """Its status as last written."""
    wish: int
    """How many transceivers are asked for: by the VoiceCluster, else by the VoiceRegion's scale."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What there is of one VoiceCluster."""

    cluster: VoiceCluster
    namespace: str
    uid: str
    generation: int
    status: VoiceClusterStatus
    """As last written."""
    first: bool
    """There is no status yet."""
    regions: tuple[RegionState, ...]
    nodes: tuple[Node, ...] | None
    """None where the operator may not read them."""
    redis: Workload
    signaling: Service

    @property
    def name(self) -> str:
        """The VoiceCluster's."""
        return self.cluster.metadata.name


def observe(store: Store, resource: Object, cluster: VoiceCluster) -> Observed:
    """All that belongs to `cluster`, which is `resource` parsed."""
    namespace, name = text(resource, "metadata", "namespace"), cluster.metadata.name
    nodes = store.nodes()
    pods: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in store.children(port.PODS, namespace, name):
        labels = texts(pod, "metadata", "labels")
        pods[labels.get(names.REGION, ""), labels.get(names.COMPONENT, "")].append(read_pod(pod))
    return Observed(
        cluster=cluster,
        namespace=namespace,
        uid=text(resource, "metadata", "uid"),
        generation=number(resource, "metadata", "generation"),
        status=read_status(VoiceClusterStatus, resource),
        first=not mapping(resource, "status"),
        regions=tuple(_region(store, namespace, name, region, pods) for region in cluster.spec.regions),
        nodes=None if nodes is None else tuple(_node(node) for node in nodes),
        redis=_stateful_set(store, namespace, names.redis(name)),
        signaling=_service(store, namespace, names.signaling(name)),
    )


def _region(
    store: Store,
    namespace: str,
    cluster: str,
    region: Region,
    pods: Mapping[tuple[str, str], Sequence[Pod]],
) -> RegionState:
    resource = store.get(port.REGIONS, namespace, names.region(cluster, region.name))
    there = _stateful_set(store, namespace, names.transceiver(cluster, region.name))
    transceivers = sorted(pods.get((region.name, "transceiver"), ()), key=lambda pod: pod.ordinal)
    return RegionState(
        name=names.region(cluster, region.name),
        spec=region,
        relays=_daemon_set(store, namespace, names.relay(cluster, region.name)),
        relay_pods=tuple(pods.get((region.name, "relay"), ())),
        transceivers=there,
        transceiver_pods=tuple(transceivers),
        vip=_service(store, namespace, names.relay(cluster, region.name)),
        resource=resource,
        status=read_status(VoiceRegionStatus, resource),
        wish=_wish(region, resource, there),
    )


def _wish(region: Region, resource: Object | None, there: Workload) -> int:
    asked = region.transceiver.replicas
    if asked is None and resource is None and there.exists:
        return there.desired  # somebody deleted the VoiceRegion, and with it the number
    scale = at(resource, "spec", "replicas")
    return asked if asked is not None else scale if isinstance(scale, int) else 1


def _daemon_set(store: Store, namespace: str, name: str) -> Workload:
    return read_daemon_set(name, store.get(port.DAEMON_SETS, namespace, name))


def _stateful_set(store: Store, namespace: str, name: str) -> Workload:
    return read_stateful_set(name, store.get(port.STATEFUL_SETS, namespace, name))


def _service(store: Store, namespace: str, name: str) -> Service:
    found = store.get(port.SERVICES, namespace, name)
    if found is None:
        return Service(name)
    ingress = items(found, "status", "loadBalancer", "ingress")
    ports = [number(each, "nodePort") for each in items(found, "spec", "ports")]
    return Service(
        name,
        exists=True,
        type=text(found, "spec", "type"),
        ingress=tuple(Ingress(text(way, "ip"), text(way, "hostname")) for way in ingress),
        node_ports=tuple(filter(None, ports)),
    )


def _node(node: Object) -> Node:
    addresses = items(node, "status", "addresses")
    taints = items(node, "spec", "taints")
    return Node(
        name=text(node, "metadata", "name"),
        ready=is_true(items(node, "status", "conditions"), "Ready"),
        addresses=tuple((text(each, "type"), text(each, "address")) for each in addresses),
        labels=texts(node, "metadata", "labels"),
        taints=tuple(Taint(text(each, "key"), text(each, "value"), text(each, "effect")) for each in taints),
    )
