"""A real API server takes what is planned as it is: nothing unknown, nothing stored differently, no change refused."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.kube.difference import differs
from voicecluster.operator.kube.port import CHILDREN
from voicecluster.operator.plan.kubernetes.cluster import objects
from voicecluster.operator.plan.kubernetes.quantity import canonical

from tests.integration.operator.apiserver import ApiServer
from tests.unit.operator.clusters import CLUSTERS, cluster, facts, region, stored

PATHS = {(kind.api_version, kind.kind): kind.plural for kind in CHILDREN}
NODES = {"networkPolicy": {"nodeCIDRs": ["10.0.0.0/16"]}}
MODES: dict[str, dict[str, Any]] = {
    "LoadBalancer": {"healthCheckPort": 8086, "sourceRanges": ["192.0.2.0/24"]},
    "External": {"addresses": ["192.0.2.1"]},
    "HostNetwork": {},
}


def put(server: ApiServer, wanted: Any) -> Mapping[str, Any]:
    """Server-side apply as the operator does it, with unknown fields refused; what is there afterwards."""
    version, kind = wanted["apiVersion"], wanted["kind"]
    metadata = wanted["metadata"]
    root = "api" if "/" not in version else "apis"
    path = f"/{root}/{version}/namespaces/{metadata['namespace']}/{PATHS[version, kind]}/{metadata['name']}"
    query = "?fieldManager=voicecluster.dev/operator&force=true&fieldValidation=Strict"
    return server.request("PATCH", path + query, wanted, media_type="application/apply-patch+yaml")


def planned(namespace: str, wanted: VoiceCluster) -> list[Any]:
    return list(objects(wanted, replace(facts(), namespace=namespace)))


@pytest.mark.parametrize("name", sorted(CLUSTERS))
def test_the_api_stores_every_object_as_it_is_wanted(apiserver: ApiServer, namespace: str, name: str) -> None:
    for wanted in planned(namespace, stored(name)):
        assert differs(wanted, put(apiserver, wanted)) == [], wanted["metadata"]["name"]


def test_applying_the_same_again_changes_nothing(apiserver: ApiServer, namespace: str) -> None:
    wanted = planned(namespace, stored("load-balancer"))
    first, second = ([put(apiserver, one)["metadata"]["resourceVersion"] for one in wanted] for _ in range(2))
    assert first == second


@pytest.mark.parametrize("before", MODES)
@pytest.mark.parametrize("after", MODES)
def test_a_vip_may_change_its_mode(apiserver: ApiServer, namespace: str, before: str, after: str) -> None:
    for mode in (before, after):
        wanted = cluster(region(relay={"vip": {"mode": mode, **MODES[mode]}}) | NODES)
        for one in planned(namespace, wanted):
            assert differs(one, put(apiserver, one)) == [], one["metadata"]["name"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, region(transceiver={"workers": 3, "replicas": 0, "limits": {"drainTimeoutSeconds": 7200}})),
        ({}, region(nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}])),
        (region(nodeSelector={"a": "b"}, tolerations=[{"operator": "Exists"}]), {}),
        (region(relay={"resources": {"cpu": "0.25", "memory": "1.5Gi"}}), {}),
        ({"signaling": {"service": {"type": "LoadBalancer", "loadBalancerClass": "a.example/b"}}}, {}),
        ({"images": {"pullSecrets": ["registry"], "redis": "redis:8"}}, {}),
        (region(relay={"vip": {"ipFamilyPolicy": "SingleStack"}}), region(relay={"vip": {"port": 443}})),
    ],
    ids=["workers", "placement", "no placement", "resources", "signaling", "images", "families"],
)
def test_what_may_change_in_a_resource_may_change_in_its_objects(
    apiserver: ApiServer, namespace: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    for spec in (before, after):
        for one in planned(namespace, cluster(spec)):
            assert differs(one, put(apiserver, one)) == [], one["metadata"]["name"]


def test_replicas_that_an_autoscaler_wrote_stay(apiserver: ApiServer, namespace: str) -> None:
    [ours] = [one for one in planned(namespace, cluster({})) if one["kind"] == "VoiceRegion"]
    put(apiserver, ours)
    apiserver.kubectl("scale", "voiceregion/demo-eu", "--replicas=7", "--namespace", namespace)
    assert put(apiserver, ours)["spec"]["replicas"] == 7


def test_the_api_stores_quantities_in_our_canonical_form(apiserver: ApiServer, namespace: str) -> None:
    written = [
        "1000m",
        "0.5",
        "1.5Gi",
        "1.0005Ki",
        "0.5Ki",
        "2000k",
        "1024",
        "0.0000000001",
        "1536Mi",
        "1024Ti",
    ]
    for text in written:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "one"},
            "spec": {"hard": {"limits.cpu": text}},
        }
        path = f"/api/v1/namespaces/{namespace}/resourcequotas?dryRun=All"
        stored_as = apiserver.request("POST", path, quota)["spec"]["hard"]["limits.cpu"]
        assert stored_as == canonical(text), text
