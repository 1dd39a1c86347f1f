"""A VIP that changes is in the ConfigMap that transceivers watch, and in status, within five seconds."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.cluster import Cluster, manifest
from tests.integration.operator.process import Operator

Operators = Callable[..., Operator]
MERGE = "application/merge-patch+json"
SECONDS = 5.0


def started(
    apiserver: ApiServer, namespace: str, operators: Operators, vip: dict[str, Any], *options: str
) -> Cluster:
    """A cluster with one region and its operator at rest."""
    cluster = Cluster(apiserver, namespace)
    wanted = manifest("eu", networkPolicy={"enabled": False})
    wanted["spec"]["regions"][0]["relay"]["vip"] = vip
    wanted["spec"]["regions"][0]["nodeSelector"] = {"pool": namespace}
    cluster.apply(wanted)
    operators(options=options).start()
    cluster.settled()
    return cluster


def published(cluster: Cluster) -> list[str]:
    """What answers name."""
    text = cluster.get("configmaps", "demo-vips")["data"]["vips.yaml"]
    return [vip["address"] for vip in yaml.safe_load(text)["regions"]["eu"]]


def reported(cluster: Cluster) -> list[tuple[str, str]]:
    """What status says: address and source."""
    vips = cluster.get("voiceregions", "demo-eu")["status"]["vips"]
    return [(vip["address"], vip["source"]) for vip in vips]


def balance(cluster: Cluster, *ingress: dict[str, str]) -> None:
    """What a load balancer's controller would write."""
    status = {"status": {"loadBalancer": {"ingress": list(ingress)}}}
    where = cluster.path("services", "demo-eu-relay") + "/status"
    cluster.apiserver.request("PATCH", where, status, media_type=MERGE)


def events(cluster: Cluster) -> list[tuple[str, str]]:
    found = cluster.apiserver.request("GET", f"/api/v1/namespaces/{cluster.namespace}/events")["items"]
    vips = [each for each in found if each["reason"].startswith("VIP")]
    return [(each["reason"], each["message"]) for each in sorted(vips, key=lambda each: each["reason"])]


def test_a_load_balancers_addresses_are_published_and_so_is_their_change(
    apiserver: ApiServer, namespace: str, operators: Operators
) -> None:
    cluster = started(apiserver, namespace, operators, {"mode": "LoadBalancer"})
    assert published(cluster) == []
    balance(cluster, {"ip": "203.0.113.7"}, {"ip": "2001:db8::7"})
    until(lambda: published(cluster) == ["203.0.113.7", "2001:db8::7"], seconds=SECONDS)
    until(lambda: events(cluster), what="an event")
    balance(cluster, {"ip": "203.0.113.8"})
    until(lambda: published(cluster) == ["203.0.113.8"], seconds=SECONDS)
    until(lambda: reported(cluster) == [("203.0.113.8", "Service")], seconds=SECONDS)
    until(lambda: len(events(cluster)) == 2, what="a second event")
    assert events(cluster) == [
        ("VIPAssigned", "Callers reach it at 203.0.113.7:3478, [2001:db8::7]:3478."),
        (
            "VIPChanged",
            "Callers reach it at 203.0.113.8:3478, before at 203.0.113.7:3478, [2001:db8::7]:3478.",
        ),
    ]


def test_a_load_balancer_with_a_name_is_resolved(
    apiserver: ApiServer, namespace: str, operators: Operators
) -> None:
    cluster = started(apiserver, namespace, operators, {"mode": "LoadBalancer"})
    balance(cluster, {"hostname": "localhost"})
    until(lambda: "127.0.0.1" in published(cluster), seconds=SECONDS)
    until(lambda: ("127.0.0.1", "Hostname") in reported(cluster), seconds=SECONDS)


@pytest.fixture
def node(apiserver: ApiServer, namespace: str) -> str:
    """A node of the test's own, with a public and an internal address."""
    name = f"node-{namespace}"
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"pool": namespace}}}
    apiserver.request("POST", "/api/v1/nodes", body)
    say(apiserver, name, "True")
    return name


def say(apiserver: ApiServer, node: str, ready: str, external: str = "203.0.113.21") -> None:
    """What a kubelet, or the controller that misses one, would write."""
    addresses = [
        {"type": "ExternalIP", "address": external},
        {"type": "InternalIP", "address": "10.0.0.21"},
    ]
    status = {"conditions": [{"type": "Ready", "status": ready}], "addresses": addresses}
    where = f"/api/v1/nodes/{node}/status"
    apiserver.request("PATCH", where, {"status": status}, media_type=MERGE)


def relay_pod(cluster: Cluster, node: str) -> str:
    """A ready relay on that node, as a DaemonSet's controller and a kubelet would have it."""
    template = cluster.get("daemonsets", "demo-eu-relay")["spec"]["template"]
    pods = f"/api/v1/namespaces/{cluster.namespace}/pods"
    container = {"name": "program", "image": "registry.test/relay:1"}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "relay-1", "labels": template["metadata"]["labels"]},
        "spec": {"nodeName": node, "containers": [container]},
    }
    cluster.apiserver.request("POST", pods, body)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    cluster.apiserver.request("PATCH", f"{pods}/relay-1/status", {"status": status}, media_type=MERGE)
    return f"{pods}/relay-1"


def test_a_nodes_address_is_published_while_node_and_relay_are_ready(
    apiserver: ApiServer, namespace: str, operators: Operators, node: str
) -> None:
    cluster = started(apiserver, namespace, operators, {"mode": "HostNetwork"}, "--nodes")
    relay_pod(cluster, node)
    until(lambda: published(cluster) == ["203.0.113.21"], seconds=SECONDS)
    say(apiserver, node, "True", external="203.0.113.22")
    until(lambda: published(cluster) == ["203.0.113.22"], seconds=SECONDS)
    say(apiserver, node, "Unknown", external="203.0.113.22")
    until(lambda: published(cluster) == [], seconds=SECONDS)


def test_a_relay_that_leaves_takes_its_nodes_address_along(
    apiserver: ApiServer, namespace: str, operators: Operators, node: str
) -> None:
    cluster = started(apiserver, namespace, operators, {"mode": "HostNetwork"}, "--nodes")
    pod = relay_pod(cluster, node)
    until(lambda: published(cluster) == ["203.0.113.21"], seconds=SECONDS)
    apiserver.request("DELETE", f"{pod}?gracePeriodSeconds=0")
    until(lambda: published(cluster) == [], seconds=SECONDS)
