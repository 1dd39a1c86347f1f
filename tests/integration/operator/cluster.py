"""A VoiceCluster in a namespace of the test API server, and what should be there because of it."""

import copy
import json
from typing import Any

from tests.integration.operator.apiserver import ApiServer, Call, until

KINDS = {
    "configmaps": "/api/v1",
    "secrets": "/api/v1",
    "serviceaccounts": "/api/v1",
    "services": "/api/v1",
    "daemonsets": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
    "roles": "/apis/rbac.authorization.k8s.io/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "voiceregions": "/apis/voicecluster.dev/v1alpha1",
}
"""Every kind of child, and the API that has it."""
GENERATED = ("demo-root-keys", "demo-api-keys", "demo-drain-token")
"""Secrets that are made once and never again."""
LABEL = "voicecluster.dev/cluster=demo"
Object = dict[str, Any]


def manifest(*regions: str, **spec: Any) -> Object:
    """VoiceCluster `demo` with these regions, each with an address of its own."""
    return {
        "apiVersion": "voicecluster.dev/v1alpha1",
        "kind": "VoiceCluster",
        "metadata": {"name": "demo"},
        "spec": {
            "clusterId": 7,
            "regions": [
                {
                    "name": name,
                    "index": index,
                    "relay": {"vip": {"mode": "External", "addresses": [f"203.0.113.{index + 1}"]}},
                }
                for index, name in enumerate(regions or ("eu",))
            ],
            **spec,
        },
    }


class Cluster:
    """VoiceCluster `demo` of one namespace."""

    def __init__(self, apiserver: ApiServer, namespace: str) -> None:
        self.apiserver = apiserver
        self.namespace = namespace

    def apply(self, value: Object) -> str:
        """`kubectl apply` it; returns what kubectl said."""
        return self.apiserver.kubectl("-n", self.namespace, "apply", "-f", "-", stdin=json.dumps(value))

    def resource(self) -> Object:
        """The VoiceCluster as it is."""
        return self.get("voiceclusters", "demo")

    def get(self, plural: str, name: str) -> Object:
        """One object. Raises HTTPError."""
        return self.apiserver.request("GET", self.path(plural, name))

    def path(self, plural: str, name: str = "") -> str:
        """Where the API has it."""
        api = KINDS.get(plural, "/apis/voicecluster.dev/v1alpha1")
        return f"{api}/namespaces/{self.namespace}/{plural}" + (f"/{name}" if name else "")

    def children(self) -> dict[tuple[str, str], Object]:
        """All children, by plural and name."""
        return {
            (plural, item["metadata"]["name"]): item
            for plural in KINDS
            for item in self.apiserver.request("GET", f"{self.path(plural)}?labelSelector={LABEL}")["items"]
        }

    def settled(self, *, seconds: float = 30.0) -> Object:
        """Wait until the operator has done all that it can without controllers; returns the VoiceCluster."""

        def done() -> Object | None:
            found = self.resource()
            status = found.get("status", {})
            current = status.get("observedGeneration") == found["metadata"]["generation"]
            regions = {region["name"] for region in status.get("regions", [])}
            wanted = {region["name"] for region in found["spec"]["regions"]}
            return found if current and regions == wanted else None

        found: Object = until(done, seconds=seconds, what="the VoiceCluster's status", every=0.2)
        return found

    def quiet(self, user: str = "operator", *, seconds: float = 1.5) -> int:
        """Wait until the operator has written nothing for so long; returns a mark of the audit log."""
        mark = self.apiserver.mark()

        def still() -> bool:
            nonlocal mark
            here = self.apiserver.mark()
            busy = self.writes(mark, user=user)
            if busy:
                mark = here
            return not busy

        until(still, every=seconds, seconds=30.0, what="quiet")
        return self.apiserver.mark()

    def writes(self, since: int, *, user: str = "operator") -> list[Call]:
        """What the operator wrote in this namespace, but to its Lease."""
        return [
            call
            for call in self.apiserver.calls(since, user=user)
            if call.writes and call.resource != "leases" and call.namespace == self.namespace
        ]


def essence(children: dict[tuple[str, str], Object]) -> dict[tuple[str, str], Object]:
    """What the operator is responsible for: without versions, times, uids and what the API server allocates."""
    found = {}
    for key, value in children.items():
        kept = copy.deepcopy(value)
        kept.pop("status", None)
        metadata = kept["metadata"]
        kept["metadata"] = {
            "labels": metadata.get("labels"),
            "annotations": {
                name: text
                for name, text in metadata.get("annotations", {}).items()
                if name != "deprecated.daemonset.template.generation"  # the API server's own count
            },
            "owners": [owner["name"] for owner in metadata.get("ownerReferences", [])],
        }
        spec = kept.get("spec", {})
        for allocated in ("clusterIP", "clusterIPs", "healthCheckNodePort"):
            if spec.get(allocated) not in (None, "None", ["None"]):
                spec.pop(allocated)
        for port in spec.get("ports", []) if key[0] == "services" else []:
            port.pop("nodePort", None)
        found[key] = kept
    return found
