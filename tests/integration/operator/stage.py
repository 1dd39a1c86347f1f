"""The operator's reconciler in this process, one call at a time, against the real API server.

There are no controllers, so tests write the status of workloads, Services and pods themselves: as soon as a call
has returned, its effect can be read and nothing else happens.
"""

import base64
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from kubernetes.aio.client import Configuration
from voicecluster.operator.drain.admin import AdminPorts
from voicecluster.operator.kube import port
from voicecluster.operator.kube.client import KubeClient
from voicecluster.operator.kube.kinds import path
from voicecluster.operator.kube.port import Kind
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.facts import Defaults
from voicecluster.operator.queue import Key
from voicecluster.operator.reconcile import Reconciler
from voicecluster.operator.redis import RedisCheck
from voicecluster.operator.resolve import Resolver

from tests.integration.operator.apiserver import ApiServer

DEFAULTS = Defaults(
    relay_image="example.com/voicecluster/relay:1",
    transceiver_image="example.com/voicecluster/transceiver:1",
    redis_image="docker.io/library/redis:7.4-bookworm",
    operator_namespace="voicecluster-system",
    operator_labels={"app.kubernetes.io/name": "voicecluster-operator"},
)
Fields = Mapping[str, Any]


class Stage:
    """One VoiceCluster, `demo`, in a namespace of its own."""

    def __init__(self, server: ApiServer, namespace: str, *, nodes: bool = True, admin_port: int = 0) -> None:
        self.server = server
        self.namespace = namespace
        self.names: dict[str, list[str]] = {}
        """What the resolver knows; may be changed."""
        self.monotonic = 0.0
        """Of the caches' clock, in seconds; may be changed."""
        self._nodes = nodes
        self._transceivers = AdminPorts(admin_port)

    async def __aenter__(self) -> Self:
        configuration = Configuration(host=self.server.url)
        configuration.ssl_ca_cert = str(self.server.ca_file)
        configuration.api_key = {"authorization": "Bearer operator-token"}
        self._kube = KubeClient(configuration)
        self._reconciler = Reconciler(
            self._kube,
            _Fresh(self),
            DEFAULTS,
            transceivers=self._transceivers,
            redis=RedisCheck(self._kube, lambda: self.monotonic),
            resolver=Resolver(lambda: self.monotonic, self._lookup),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._transceivers.close()
        await self._kube.close()

    async def reconcile(self) -> float | None:
        """Once."""
        return await self._reconciler.reconcile(Key(self.namespace, "demo"))

    def get(self, kind: Kind, name: str) -> Any:
        """An object as it is now."""
        return self.server.request("GET", path(kind, self.namespace if kind.namespaced else None, name))

    def all(self, kind: Kind) -> Any:
        """All objects of a kind in the namespace."""
        return self.server.request("GET", path(kind, self.namespace if kind.namespaced else None))["items"]

    def create(self, value: Fields) -> Any:
        """A new object in the namespace, or outside of any."""
        kind = _kind(value)
        return self.server.request("POST", path(kind, self.namespace if kind.namespaced else None), value)

    def patch(self, kind: Kind, name: str, change: Fields, *, subresource: str | None = None) -> Any:
        """Merge into an object."""
        where = path(kind, self.namespace if kind.namespaced else None, name, subresource=subresource)
        return self.server.request("PATCH", where, change, media_type="application/merge-patch+json")

    def delete(self, kind: Kind, name: str) -> None:
        """Without grace: there is no kubelet to end a pod."""
        where = path(kind, self.namespace if kind.namespaced else None, name)
        self.server.request("DELETE", f"{where}?gracePeriodSeconds=0")

    def cluster(self, *regions: Fields, **spec: Any) -> Any:
        """Create the VoiceCluster; without regions it has one, `eu`, of mode External."""
        return self.create(
            {
                "apiVersion": "voicecluster.dev/v1alpha1",
                "kind": "VoiceCluster",
                "metadata": {"name": "demo"},
                "spec": {"clusterId": 7, "regions": list(regions) or [region()], **spec},
            }
        )

    def change(self, **spec: Any) -> Any:
        """Merge into the VoiceCluster's spec."""
        return self.patch(port.CLUSTERS, "demo", {"spec": spec})

    def condition(self, kind: str) -> tuple[str, str, str]:
        """Status, reason and message of one of the VoiceCluster's conditions; the empty status if it has none."""
        for found in self.get(port.CLUSTERS, "demo").get("status", {}).get("conditions", []):
            if found["type"] == kind:
                return found["status"], found["reason"], found.get("message", "")
        return "", "", ""

    def works(self, of: str = "eu", *, relays: int = 1, transceivers: int | None = None) -> None:
        """What controllers would write when all pods of a region are ready."""
        daemon_set = self.get(port.DAEMON_SETS, names.relay("demo", of))
        counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
        status = dict.fromkeys(counts, relays) | {"numberMisscheduled": 0}
        status["observedGeneration"] = daemon_set["metadata"]["generation"]
        self.patch(port.DAEMON_SETS, names.relay("demo", of), {"status": status}, subresource="status")
        name = names.transceiver("demo", of)
        stateful_set = self.get(port.STATEFUL_SETS, name)
        there = stateful_set["spec"]["replicas"] if transceivers is None else transceivers
        status = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), there)
        status |= {"observedGeneration": stateful_set["metadata"]["generation"]}
        revision = {"updateRevision": "new", "currentRevision": "new"}
        self.patch(port.STATEFUL_SETS, name, {"status": {**status, **revision}}, subresource="status")

    def redis_works(self) -> None:
        """What controllers would write when the embedded Redis is ready."""
        found = self.get(port.STATEFUL_SETS, names.redis("demo"))
        status = {"replicas": 1, "readyReplicas": 1, "observedGeneration": found["metadata"]["generation"]}
        self.patch(port.STATEFUL_SETS, names.redis("demo"), {"status": status}, subresource="status")

    def balanced(self, of: str, *ingress: Fields) -> None:
        """What a load balancer's controller would write."""
        status = {"status": {"loadBalancer": {"ingress": list(ingress)}}}
        self.patch(port.SERVICES, names.relay("demo", of), status, subresource="status")

    def pod(self, name: str, component: names.Component, of: str = "eu", **status: Any) -> Any:
        """A pod of a region, and what a kubelet would say of it."""
        labels = names.labels("demo", component, of) | {
            "controller-revision-hash": status.pop("revision", "new")
        }
        container = {"name": "program", "image": "example.com/none"}
        node = status.pop("node", "n1")
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels},
                "spec": {"containers": [container], "nodeName": node, "automountServiceAccountToken": False},
            }
        )
        ready = "True" if status.pop("ready", True) else "False"
        state = {"waiting": waiting} if (waiting := status.pop("waiting", None)) else {"running": {}}
        found = {
            "phase": "Pending" if waiting else "Running",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [
                {
                    "name": "program",
                    "state": state,
                    "ready": True,
                    "restartCount": 0,
                    "image": "",
                    "imageID": "",
                }
            ],
            **status,
        }
        return self.patch(port.PODS, name, {"status": found}, subresource="status")

    def secret(self, name: str, entries: Mapping[str, str]) -> Any:
        """A Secret as a user makes it."""
        data = {key: base64.b64encode(value.encode()).decode() for key, value in entries.items()}
        return self.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data})

    async def _lookup(self, name: str) -> list[str]:
        if name not in self.names:
            raise OSError("no such name")
        return self.names[name]


class _Fresh:
    """A store that asks every time: watches that are never late."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def get(self, kind: Kind, namespace: str | None, name: str) -> Any:
        found = [each for each in self._list(kind, namespace) if each["metadata"]["name"] == name]
        return found[0] if found else None

    def children(self, kind: Kind, namespace: str, cluster: str) -> Any:
        listed = self._list(kind, namespace)
        return [each for each in listed if each["metadata"].get("labels", {}).get(names.CLUSTER) == cluster]

    def nodes(self) -> Any:
        return self._list(port.NODES, None) if self._stage._nodes else None

    def _list(self, kind: Kind, namespace: str | None) -> Any:
        found = self._stage.server.request("GET", path(kind, namespace))["items"]
        return [{"apiVersion": kind.api_version, "kind": kind.kind, **each} for each in found]


def region(
    name: str = "eu",
    index: int = 0,
    *,
    vip: Fields | None = None,
    transceiver: Fields | None = None,
    **more: Any,
) -> Fields:
    """A region of a spec; of mode External unless told."""
    found = vip or {"mode": "External", "addresses": [f"203.0.113.{index + 1}"]}
    return {"name": name, "index": index, "relay": {"vip": found}, "transceiver": transceiver or {}, **more}


def _kind(value: Fields) -> Kind:
    kinds = [each for each in vars(port).values() if isinstance(each, Kind)]
    return next(
        each for each in kinds if (each.api_version, each.kind) == (value["apiVersion"], value["kind"])
    )
