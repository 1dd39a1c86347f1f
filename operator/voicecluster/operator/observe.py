"""What is there: the objects of one VoiceCluster as typed values, read from the watches. Pure.

An object that does not exist reads as one with zeroes and `exists` False, so that nobody downstream branches on
None; counts that a controller wrote for an older generation are told apart by `settled`.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from voicecluster.operator.api.status import VoiceClusterStatus, VoiceRegionStatus
from voicecluster.operator.api.v1alpha1 import Region, VoiceCluster
from voicecluster.operator.fields import at, is_true, items, mapping, number, text, texts
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Json, Object, Store
from voicecluster.operator.plan.kubernetes import names


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a pod does not run, in Kubernetes' own words."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a region."""

    name: str
    uid: str
    node: str
    address: str
    """Empty until it has one."""
    running: bool
    """All its containers run: only such a pod can have calls."""
    ready: bool
    terminating: bool
    revision: str
    """Of the template that it was made from."""
    workers: int = 0
    """Of a transceiver, as its label says."""
    problem: Problem | None = None

    @property
    def ordinal(self) -> int:
        """The number at the end of the name, -1 where there is none."""
        number = re.search(r"-(\d+)$", self.name)
        return int(number[1]) if number else -1


@dataclass(frozen=True, slots=True)
class Workload:
    """A DaemonSet or StatefulSet."""

    kind: str
    name: str
    exists: bool = False
    settled: bool = False
    """Whether its controller has seen its present spec: the counts below are about that."""
    desired: int = 0
    """Pods that it is to have."""
    existing: int = 0
    ready: int = 0
    updated: int = 0
    """Pods of the present template."""
    revision: str = ""
    """Of the present template (StatefulSets)."""
    secrets: frozenset[str] = frozenset()
    """Names of the Secrets that its pods mount."""


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
        pods[labels.get(names.REGION, ""), labels.get(names.COMPONENT, "")].append(_pod(pod))
    return Observed(
        cluster=cluster,
        namespace=namespace,
        uid=text(resource, "metadata", "uid"),
        generation=number(resource, "metadata", "generation"),
        status=VoiceClusterStatus.model_validate(mapping(resource, "status")),
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
    scale = at(resource, "spec", "replicas")
    asked = region.transceiver.replicas
    if asked is None:
        asked = scale if isinstance(scale, int) else 1
    transceivers = sorted(pods.get((region.name, "transceiver"), ()), key=lambda pod: pod.ordinal)
    return RegionState(
        name=names.region(cluster, region.name),
        spec=region,
        relays=_daemon_set(store, namespace, names.relay(cluster, region.name)),
        relay_pods=tuple(pods.get((region.name, "relay"), ())),
        transceivers=_stateful_set(store, namespace, names.transceiver(cluster, region.name)),
        transceiver_pods=tuple(transceivers),
        vip=_service(store, namespace, names.relay(cluster, region.name)),
        resource=resource,
        status=VoiceRegionStatus.model_validate(mapping(resource, "status")),
        wish=asked,
    )


def _daemon_set(store: Store, namespace: str, name: str) -> Workload:
    found = store.get(port.DAEMON_SETS, namespace, name)
    if found is None:
        return Workload("DaemonSet", name)
    return Workload(
        "DaemonSet",
        name,
        exists=True,
        settled=_settled(found),
        desired=number(found, "status", "desiredNumberScheduled"),
        existing=number(found, "status", "currentNumberScheduled"),
        ready=number(found, "status", "numberReady"),
        updated=number(found, "status", "updatedNumberScheduled"),
        secrets=_secrets(found),
    )


def _stateful_set(store: Store, namespace: str, name: str) -> Workload:
    found = store.get(port.STATEFUL_SETS, namespace, name)
    if found is None:
        return Workload("StatefulSet", name)
    return Workload(
        "StatefulSet",
        name,
        exists=True,
        settled=_settled(found),
        desired=number(found, "spec", "replicas"),
        existing=number(found, "status", "replicas"),
        ready=number(found, "status", "readyReplicas"),
        updated=number(found, "status", "updatedReplicas"),
        revision=text(found, "status", "updateRevision"),
        secrets=_secrets(found),
    )


def _settled(workload: Object) -> bool:
    return number(workload, "status", "observedGeneration") >= number(workload, "metadata", "generation")


def _secrets(workload: Object) -> frozenset[str]:
    volumes = items(workload, "spec", "template", "spec", "volumes")
    named = [text(volume, "secret", "secretName") for volume in volumes]
    named += [
        text(source, "secret", "name")
        for volume in volumes
        for source in items(volume, "projected", "sources")
    ]
    return frozenset(filter(None, named))


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


def _pod(pod: Object) -> Pod:
    labels = texts(pod, "metadata", "labels")
    containers = items(pod, "status", "containerStatuses")
    running = text(pod, "status", "phase") == "Running"
    return Pod(
        name=text(pod, "metadata", "name"),
        uid=text(pod, "metadata", "uid"),
        node=text(pod, "spec", "nodeName"),
        address=text(pod, "status", "podIP"),
        running=running and all(at(each, "state", "running") is not None for each in containers),
        ready=is_true(items(pod, "status", "conditions"), "Ready"),
        terminating=at(pod, "metadata", "deletionTimestamp") is not None,
        revision=labels.get("controller-revision-hash", ""),
        workers=int(workers) if (workers := labels.get(names.WORKERS, "")).isdecimal() else 0,
        problem=_problem(pod, containers),
    )


def _problem(pod: Object, containers: Sequence[Json]) -> Problem | None:
    for container in containers:
        waiting = mapping(container, "state", "waiting")
        reason = text(waiting, "reason")
        if reason and reason not in ("ContainerCreating", "PodInitializing"):
            ended = mapping(container, "lastState", "terminated")
            return Problem(reason, _ending(ended) if ended else text(waiting, "message"))
        if ended := mapping(container, "state", "terminated"):
            return Problem(text(ended, "reason") or "Terminated", _ending(ended))
    for condition in items(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return Problem(text(condition, "reason") or "Unschedulable", text(condition, "message"))
    if text(pod, "status", "phase") == "Failed":
        return Problem(text(pod, "status", "reason") or "Failed", text(pod, "status", "message"))
    return None


def _ending(ended: Object) -> str:
    said = text(ended, "message").strip().splitlines()
    code = f"exit code {number(ended, 'exitCode')}"
    return f"{code}: {said[-1]}" if said else code
