"""The largest cluster that the design allows for: 64 regions, 1,000 transceivers, on one operator."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.cluster import Cluster, manifest
from tests.integration.operator.process import Operator

REGIONS, TRANSCEIVERS = 64, 1000
SECONDS, BYTES = 60.0, 300_000_000
EVENTS = 400
RECONCILES = "voicecluster_operator_reconcile_seconds_count"
Operators = Callable[..., Operator]


def large() -> dict[str, Any]:
    """As many regions as may be, and the transceivers spread over them."""
    value = manifest(*(f"region-{index}" for index in range(REGIONS)))
    for index, region in enumerate(value["spec"]["regions"]):
        more = 1 if index < TRANSCEIVERS % REGIONS else 0
        region["transceiver"] = {"replicas": TRANSCEIVERS // REGIONS + more}
    return value


def pods(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """What the StatefulSet controller would have made, running and ready."""
    sets = cluster.apiserver.request("GET", cluster.path("statefulsets"))["items"]
    for each in sets:
        spec, metadata = each["spec"], each["metadata"]
        if not metadata["name"].endswith("-transceiver"):
            continue
        template = spec["template"]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        first = spec["ordinals"]["start"]
        for ordinal in range(first, first + spec["replicas"]):
            labels = template["metadata"]["labels"] | {"controller-revision-hash": "1"}
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{metadata['name']}-{ordinal}",
                    "labels": labels,
                    "ownerReferences": [owner | {"controller": True}],
                },
                "spec": template["spec"] | {"nodeName": "node"},
            }


def run(cluster: Cluster, pod: dict[str, Any]) -> None:
    """Make the pod, and say that it runs."""
    api = f"/api/v1/namespaces/{cluster.namespace}/pods"
    cluster.apiserver.request("POST", api, pod)
    now = "2030-01-01T00:00:00Z"
    states = [
        {
            "name": each["name"],
            "image": each["image"],
            "imageID": "",
            "ready": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": now}},
        }
        for each in pod["spec"]["containers"]
    ]
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
    status = {"phase": "Running", "conditions": ready, "containerStatuses": states, "podIP": "10.1.2.3"}
    where = f"{api}/{pod['metadata']['name']}/status"
    patch = {"status": status | {"podIPs": [{"ip": "10.1.2.3"}]}}
    cluster.apiserver.request("PATCH", where, patch, media_type="application/merge-patch+json")


@pytest.mark.timeout(300)
def test_64_regions_with_1000_transceivers_within_a_minute_and_300_mb(
    apiserver: ApiServer, namespace: str, operators: Operators
) -> None:
    cluster = Cluster(apiserver, namespace)
    operator = operators().start()
    until(lambda: operator.leads and operator.ready(), what="readiness")
    began = time.monotonic()
    cluster.apply(large())
    cluster.settled(seconds=SECONDS)
    took = time.monotonic() - began
    print(f"reconciled from nothing in {took:.1f} s with {operator.peak_bytes() / 1e6:.0f} MB")

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda pod: run(cluster, pod), pods(cluster)))

    quiet = cluster.quiet(seconds=3)
    assert operator.runs, operator.log()[-2000:]
    most = operator.peak_bytes()
    print(f"with all pods {most / 1e6:.0f} MB")
    operator.stop()
    again = operators().start()
    until(again.reconciled, seconds=SECONDS, what="the reconcile of a restarted operator")
    cpu = again.metric("process_cpu_seconds_total")
    print(f"restarted {cpu:.1f} s of CPU, {again.peak_bytes() / 1e6:.0f} MB")
    assert cluster.writes(quiet) == []
    assert took < SECONDS
    assert max(most, again.peak_bytes()) < BYTES


@pytest.mark.timeout(120)
def test_a_flood_of_events_neither_grows_memory_nor_hides_a_change(
    apiserver: ApiServer, namespace: str, operators: Operators
) -> None:
    cluster = Cluster(apiserver, namespace)
    cluster.apply(manifest("eu"))
    operator = operators().start()
    cluster.settled()
    cluster.quiet()
    before, reconciles = (
        operator.peak_bytes(),
        operator.metric(RECONCILES),
    )
    path = cluster.path("services", "demo-signaling")
    filler = "x" * 50_000

    def touch(number: int) -> None:
        patch = {"metadata": {"annotations": {"example.com/flood": f"{number}-{filler}"}}}
        apiserver.request("PATCH", path, patch, media_type="application/merge-patch+json")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(touch, range(EVENTS)))
    apiserver.request("DELETE", cluster.path("services", "demo-eu-media"))
    until(lambda: ("services", "demo-eu-media") in cluster.children(), seconds=5, what="the Service")
    assert operator.metric("voicecluster_operator_watch_events_total") > EVENTS
    assert operator.metric(RECONCILES) - reconciles < EVENTS / 2
    assert operator.peak_bytes() - before < 60_000_000
