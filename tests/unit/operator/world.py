"""Objects as an API server would have them, and a store over them: what the operator looks at in unit tests."""

from collections.abc import Mapping, Sequence
from typing import Any

from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.kube import port
from voicecluster.operator.kube.kinds import kind_of
from voicecluster.operator.kube.port import Kind, Object
from voicecluster.operator.observe import Observed, observe
from voicecluster.operator.plan.kubernetes import names

NAMESPACE = "voice"
CLUSTER_UID = "6f1b2c3d-0000-4000-8000-000000000000"


class World:
    """A namespace `voice` and its nodes. Implements `port.Store`; `put` replaces."""

    def __init__(self, *objects: Object, readable_nodes: bool = True) -> None:
        self.objects: dict[tuple[str, str | None, str], Object] = {}
        self.readable_nodes = readable_nodes
        for each in objects:
            self.put(each)

    def put(self, value: Object) -> None:
        kind, metadata = kind_of(value), value["metadata"]
        assert isinstance(metadata, Mapping)
        namespace = metadata.get("namespace") if kind.namespaced else None
        self.objects[kind.kind, namespace, metadata["name"]] = value  # type: ignore[index]

    def drop(self, kind: Kind, name: str) -> None:
        del self.objects[kind.kind, NAMESPACE if kind.namespaced else None, name]

    def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        return self.objects.get((kind.kind, namespace, name))

    def children(self, kind: Kind, namespace: str, cluster: str) -> Sequence[Object]:
        found = {
            name: value
            for (its, where, name), value in self.objects.items()
            if its == kind.kind and where == namespace and labels(value).get(names.CLUSTER) == cluster
        }
        return [found[name] for name in sorted(found)]

    def nodes(self) -> Sequence[Object] | None:
        if not self.readable_nodes:
            return None
        return [value for (kind, _, _), value in sorted(self.objects.items(), key=str) if kind == "Node"]

    def observe(self) -> Observed:
        """The one VoiceCluster of this world."""
        resource = next(value for (kind, _, _), value in self.objects.items() if kind == "VoiceCluster")
        without = {key: value for key, value in resource.items() if key != "status"}
        return observe(self, resource, VoiceCluster.model_validate(without))


def labels(value: Object) -> Mapping[str, str]:
    return value["metadata"].get("labels", {})  # type: ignore[union-attr,return-value]


def voice_cluster(
    *regions: Mapping[str, Any], status: Mapping[str, Any] | None = None, **spec: Any
) -> Object:
    """`demo`; without regions it has one, `eu`, of mode External."""
    found: dict[str, Any] = {
        "apiVersion": "voicecluster.dev/v1alpha1",
        "kind": "VoiceCluster",
        "metadata": {"name": "demo", "namespace": NAMESPACE, "uid": CLUSTER_UID, "generation": 3},
        "spec": {"clusterId": 7, "regions": list(regions) or [region()], **spec},
    }
    return found | ({"status": status} if status is not None else {})


def region(
    name: str = "eu",
    index: int = 0,
    *,
    vip: Mapping[str, Any] | None = None,
    replicas: int | None = None,
    **more: Any,
) -> dict[str, Any]:
    found = vip or {"mode": "External", "addresses": ["203.0.113.5"]}
    transceiver = {} if replicas is None else {"replicas": replicas}
    return {"name": name, "index": index, "relay": {"vip": found}, "transceiver": transceiver, **more}


def child(kind: Kind, name: str, component: Any = "config", of: str | None = None, **content: Any) -> Object:
    """An object of the cluster, of region `of`."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "generation": 1,
            "resourceVersion": "1",
            "labels": names.labels("demo", component, of),
        },
        **content,
    }


def daemon_set(
    of: str = "eu", *, desired: int = 1, ready: int | None = None, updated: int | None = None, seen: int = 1
) -> Object:
    status = {
        "observedGeneration": seen,
        "desiredNumberScheduled": desired,
        "currentNumberScheduled": desired,
        "numberReady": desired if ready is None else ready,
        "updatedNumberScheduled": desired if updated is None else updated,
    }
    return child(port.DAEMON_SETS, names.relay("demo", of), "relay", of, spec={}, status=status)


def stateful_set(
    of: str = "eu",
    *,
    replicas: int = 1,
    ready: int | None = None,
    updated: int | None = None,
    existing: int | None = None,
    revision: str = "new",
    secrets: Sequence[str] = (),
) -> Object:
    volumes = [{"name": f"v{n}", "secret": {"secretName": name}} for n, name in enumerate(secrets)]
    there = replicas if existing is None else existing
    return child(
        port.STATEFUL_SETS,
        names.transceiver("demo", of),
        "transceiver",
        of,
        spec={"replicas": replicas, "template": {"spec": {"volumes": volumes}}},
        status={
            "observedGeneration": 1,
            "replicas": there,
            "readyReplicas": there if ready is None else ready,
            "updatedReplicas": there if updated is None else updated,
            "updateRevision": revision,
        },
    )


def voice_region(of: str = "eu", *, status: Mapping[str, Any] | None = None, **spec: Any) -> Object:
    content = {"spec": {"cluster": "demo", "region": of, **spec}} | ({"status": status} if status else {})
    return child(port.REGIONS, names.region("demo", of), "config", of, **content)


def vip_service(of: str = "eu", *ingress: Mapping[str, str]) -> Object:
    status = {"loadBalancer": {"ingress": list(ingress)} if ingress else {}}
    return child(
        port.SERVICES, names.relay("demo", of), "relay", of, spec={"type": "LoadBalancer"}, status=status
    )


def pod(
    name: str,
    component: Any = "transceiver",
    of: str = "eu",
    *,
    node: str = "n1",
    ready: bool = True,
    phase: str = "Running",
    revision: str = "new",
    terminating: bool = False,
    address: str = "10.0.0.9",
    waiting: tuple[str, str] | None = None,
    unschedulable: str = "",
) -> Object:
    found: Any = child(port.PODS, name, component, of, spec={"nodeName": node})
    found["metadata"]["labels"]["controller-revision-hash"] = revision
    if terminating:
        found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    if unschedulable:
        conditions.append(
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": unschedulable}
        )
    state: Any = {"running": {}} if phase == "Running" else {}
    if waiting is not None:
        state = {"waiting": {"reason": waiting[0], "message": waiting[1]}}
    found["status"] = {
        "phase": phase,
        "podIP": address,
        "conditions": conditions,
        "containerStatuses": [{"name": "program", "state": state}] if state else [],
    }
    return found  # type: ignore[no-any-return]


def node(
    name: str,
    *,
    ready: bool = True,
    external: Sequence[str] = (),
    internal: Sequence[str] = (),
    labelled: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Object:
    addresses = [{"type": "ExternalIP", "address": address} for address in external]
    addresses += [{"type": "InternalIP", "address": address} for address in internal]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": dict(labelled or {})},
        "spec": {"taints": list(taints)},
        "status": {
            "addresses": addresses,
            "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
        },
    }
