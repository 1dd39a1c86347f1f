"""Every condition that can be False, driven False once on a real API server and read for object, cause, remedy."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from voicecluster.operator.kube import port

from tests.integration.operator.apiserver import ApiServer
from tests.integration.operator.stage import Stage, region


@pytest.fixture
async def stage(apiserver: ApiServer, namespace: str) -> AsyncIterator[Stage]:
    async with Stage(apiserver, namespace) as found:
        yield found


async def working(stage: Stage, *regions: Any, **spec: Any) -> None:
    """A cluster whose every pod is ready."""
    stage.cluster(*regions, **spec)
    await stage.reconcile()
    stage.redis_works()
    for each in regions or (region(),):
        stage.works(each["name"])
    await stage.reconcile()


async def test_a_cluster_whose_pods_are_ready_is_ready(stage: Stage) -> None:
    await working(stage)
    status, reason, _ = stage.condition("Ready")
    assert (status, reason) == ("True", "Available")
    for kind in ("KeysAvailable", "RedisReady", "RelaysAvailable", "TransceiversAvailable", "VIPsAssigned"):
        assert stage.condition(kind)[0] == "True", kind
    assert stage.condition("Reconciling") == ("", "", "")
    assert stage.condition("Stalled") == ("", "", "")


async def test_a_ready_cluster_is_written_no_more(stage: Stage) -> None:
    await working(stage)
    before = stage.server.mark()
    await stage.reconcile()
    assert [str(call) for call in stage.server.calls(before, user="operator") if call.writes] == []


HOSTED = {"mode": "HostNetwork"}
BALANCED = {"mode": "LoadBalancer"}
OPEN: dict[str, Any] = {"networkPolicy": {"enabled": False}}


def is_false(stage: Stage, kind: str, reason: str, *words: str) -> None:
    """The condition is False for this reason, and its message has all of the words."""
    status, why, message = stage.condition(kind)
    assert (status, why) == ("False", reason), message
    for word in words:
        assert word in message, f"'{word}' is not in: {message}"


async def test_a_new_cluster_says_so_before_anything_is_done(stage: Stage) -> None:
    stage.cluster()
    before = stage.server.mark()
    await stage.reconcile()
    first = next(call for call in stage.server.calls(before, user="operator") if call.writes)
    assert (first.resource, first.subresource) == ("voiceclusters", "status")
    assert first.body is not None
    said = {each["type"]: each["status"] for each in first.body["status"]["conditions"]}
    assert said == {"Ready": "Unknown", "Reconciling": "True"}


async def test_root_keys_that_are_gone_are_named_and_not_invented(stage: Stage) -> None:
    await working(stage)
    stage.delete(port.SECRETS, "demo-root-keys")
    await stage.reconcile()
    is_false(
        stage, "KeysAvailable", "KeysMissing", "Secret demo-root-keys", "is gone", "restore it from a backup"
    )
    is_false(stage, "Ready", "KeysMissing", "Secret demo-root-keys")


async def test_api_keys_that_the_user_did_not_make_are_named(stage: Stage) -> None:
    await working(stage, signaling={"auth": {"apiKeysSecret": "callers"}})
    is_false(stage, "KeysAvailable", "KeysMissing", "Secret callers", "apiKeysSecret", "create it")


async def test_relays_that_no_node_fits_name_the_daemon_set_and_the_selector(stage: Stage) -> None:
    stage.cluster(region(nodeSelector={"zone": "b"}))
    await stage.reconcile()
    stage.works(relays=0)
    await stage.reconcile()
    is_false(stage, "RelaysAvailable", "NoNodes", "DaemonSet demo-eu-relay", "zone=b", "label nodes")


async def test_a_daemon_set_that_no_controller_has_seen_is_named(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    is_false(stage, "RelaysAvailable", "PodsMissing", "DaemonSet demo-eu-relay", "kube-controller-manager")


async def test_an_image_that_cannot_be_pulled_is_told_in_the_kubelets_words(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    stage.works(relays=1)
    counts = {"numberReady": 0, "numberAvailable": 0}
    stage.patch(port.DAEMON_SETS, "demo-eu-relay", {"status": counts}, subresource="status")
    waiting = {"reason": "ImagePullBackOff", "message": "pull access denied for example.com/none"}
    stage.pod("demo-eu-relay-x", "relay", ready=False, waiting=waiting)
    await stage.reconcile()
    is_false(
        stage,
        "RelaysAvailable",
        "PodsFailing",
        "DaemonSet demo-eu-relay: 0 of 1",
        "Pod demo-eu-relay-x: ImagePullBackOff (pull access denied for example.com/none)",
        "spec.images.pullSecrets",
    )


async def test_a_namespace_that_forbids_host_network_is_named_with_the_label(stage: Stage) -> None:
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    stage.patch(port.NAMESPACES, stage.namespace, label)
    stage.cluster(region(vip=HOSTED), **OPEN)
    await stage.reconcile()
    assert await stage.reconcile() is not None
    is_false(
        stage,
        "RelaysAvailable",
        "NamespaceForbidsHostNetwork",
        "DaemonSet demo-eu-relay",
        f"namespace {stage.namespace} enforces pod security level restricted",
        f"kubectl label --overwrite namespace {stage.namespace} pod-security.kubernetes.io/enforce=privileged",
    )


async def test_a_node_outside_of_the_policies_is_named_with_its_address(stage: Stage) -> None:
    await working(stage, region(vip=HOSTED), networkPolicy={"nodeCIDRs": ["10.0.0.0/8"]})
    stage.pod("demo-eu-relay-x", "relay", podIP="192.0.2.7", podIPs=[{"ip": "192.0.2.7"}])
    await stage.reconcile()
    is_false(
        stage,
        "RelaysAvailable",
        "NodeOutsideCIDRs",
        "DaemonSet demo-eu-relay",
        "node n1 (192.0.2.7)",
        "networkPolicy.nodeCIDRs",
        "add the node's network",
    )


async def test_a_transceiver_that_crashes_names_the_pod_and_where_its_log_is(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    stage.works()
    none = {"readyReplicas": 0, "availableReplicas": 0}
    stage.patch(port.STATEFUL_SETS, "demo-eu-transceiver", {"status": none}, subresource="status")
    waiting = {"reason": "CrashLoopBackOff", "message": "back-off 5m0s restarting"}
    stage.pod("demo-eu-transceiver-0", "transceiver", ready=False, waiting=waiting)
    await stage.reconcile()
    is_false(
        stage,
        "TransceiversAvailable",
        "PodsFailing",
        "StatefulSet demo-eu-transceiver",
        "CrashLoopBackOff",
        "kubectl logs demo-eu-transceiver-0 --previous",
    )


async def test_a_load_balancer_without_address_names_the_service(stage: Stage) -> None:
    await working(stage, region(vip=BALANCED))
    is_false(stage, "VIPsAssigned", "VIPPending", "Service demo-eu-relay", "load balancer controller")
    assert stage.condition("VIPsPublic")[0] == "Unknown"


async def test_a_load_balancers_name_that_does_not_resolve_is_named(stage: Stage) -> None:
    await working(stage, region(vip=BALANCED))
    stage.balanced("eu", {"hostname": "lb.example.com"})
    assert await stage.reconcile() is not None
    is_false(stage, "VIPsAssigned", "HostnameUnresolved", "Service demo-eu-relay", "lb.example.com", "DNS")


async def test_nodes_that_may_not_be_read_name_the_charts_value(apiserver: ApiServer, namespace: str) -> None:
    async with Stage(apiserver, namespace, nodes=False) as stage:
        await working(stage, region(vip=HOSTED), **OPEN)
        is_false(stage, "VIPsAssigned", "NodesUnreadable", "Region eu", "hostNetwork.enabled=true")


async def test_a_node_without_the_asked_address_is_named_with_what_to_write(stage: Stage) -> None:
    node(stage, "inside", {"type": "InternalIP", "address": "10.0.0.1"})
    await working(stage, region(vip=HOSTED), **OPEN)
    stage.pod("demo-eu-relay-x", "relay", node=f"inside-{stage.namespace}")
    await stage.reconcile()
    is_false(
        stage,
        "VIPsAssigned",
        "NodeAddressMissing",
        f"node inside-{stage.namespace} has no ExternalIP",
        "relay.vip.nodeAddressType: InternalIP",
    )


async def test_hosted_relays_that_are_not_ready_leave_no_vip(stage: Stage) -> None:
    await working(stage, region(vip=HOSTED), **OPEN)
    is_false(stage, "VIPsAssigned", "NoReadyRelay", "DaemonSet demo-eu-relay", "RelaysAvailable")


async def test_private_addresses_are_pointed_out_and_ready_stays(stage: Stage) -> None:
    await working(stage, region(vip={"mode": "External", "addresses": ["10.1.2.3"]}))
    is_false(stage, "VIPsPublic", "PrivateAddresses", "Region eu: 10.1.2.3", "public one")
    assert stage.condition("Ready")[0] == "True"


async def test_an_embedded_redis_that_is_not_ready_is_named_and_ready_stays(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    stage.works()
    await stage.reconcile()
    is_false(
        stage, "RedisReady", "PodsNotReady", "StatefulSet demo-redis", "kubectl describe pod demo-redis-0"
    )
    assert stage.condition("Ready")[0] == "True"


async def test_the_secret_of_an_external_redis_that_is_missing_is_named(stage: Stage) -> None:
    stage.cluster(redis={"mode": "External", "external": {"secret": "flows"}})
    await stage.reconcile()
    is_false(
        stage, "RedisReady", "RedisSecretInvalid", "Secret flows", "does not exist", "redis://USER:PASSWORD@"
    )


async def test_an_external_redis_that_does_not_answer_is_told_without_its_password(stage: Stage) -> None:
    stage.secret("flows", {"url": "redis://relay:hunter2@127.0.0.1:1/0"})
    stage.cluster(redis={"mode": "External", "external": {"secret": "flows"}})
    await stage.reconcile()
    is_false(
        stage, "RedisReady", "RedisUnreachable", "Secret flows", "refused the connection", "check the server"
    )
    assert "hunter2" not in str(stage.get(port.CLUSTERS, "demo")["status"])


async def test_hosted_regions_on_one_node_stall_with_the_remedy(stage: Stage) -> None:
    labels = {f"{stage.namespace}-a": "yes", f"{stage.namespace}-b": "yes"}
    node(stage, "both", {"type": "ExternalIP", "address": "203.0.113.9"}, labels=labels)
    regions = [
        region(name, n, vip=HOSTED, nodeSelector={f"{stage.namespace}-{which}": "yes"})
        for n, (name, which) in enumerate((("eu", "a"), ("us", "b")))
    ]
    await working(stage, *regions, **OPEN)
    status, reason, message = stage.condition("Stalled")
    assert (status, reason) == ("True", "NodesShared")
    assert f"Regions eu and us both have HostNetwork relays on node both-{stage.namespace}" in message
    assert "nodeSelector" in message
    is_false(stage, "Ready", "NodesShared")


async def test_an_object_that_the_api_server_refuses_stalls_in_its_words(stage: Stage) -> None:
    stage.cluster(region(vip={**BALANCED, "loadBalancerClass": "No Class!"}))
    with pytest.raises(port.Refused, match="demo-eu-relay"):
        await stage.reconcile()
    status, reason, message = stage.condition("Stalled")
    assert (status, reason) == ("True", "Refused")
    assert "Service" in message
    assert "loadBalancerClass" in message


async def test_what_is_paused_keeps_ready_and_is_not_changed(stage: Stage) -> None:
    await working(stage)
    stage.change(paused=True)
    stage.delete(port.DAEMON_SETS, "demo-eu-relay")
    before = stage.server.mark()
    await stage.reconcile()
    writes = [call for call in stage.server.calls(before, user="operator") if call.writes]
    assert {call.subresource for call in writes} == {"status"}
    assert stage.condition("Paused")[:2] == ("True", "Paused")
    assert stage.condition("Ready")[0] == "True"
    is_false(stage, "RelaysAvailable", "PodsMissing", "DaemonSet demo-eu-relay does not exist", "paused")


async def test_a_paused_region_is_not_changed_and_the_others_are(stage: Stage) -> None:
    await working(stage, region("eu", 0), region("us", 1))
    stage.change(regions=[{**region("eu", 0), "paused": True}, region("us", 1)])
    for name in ("demo-eu-media", "demo-us-media"):
        stage.delete(port.SERVICES, name)
    await stage.reconcile()
    services = {each["metadata"]["name"] for each in stage.all(port.SERVICES)}
    assert "demo-us-media" in services
    assert "demo-eu-media" not in services
    status, _, message = stage.condition("Paused")
    assert status == "True"
    assert "region eu" in message
    paused = stage.get(port.REGIONS, "demo-eu")["status"]["conditions"]
    assert {each["type"]: each["status"] for each in paused}["Paused"] == "True"


async def test_every_condition_of_both_kinds_has_the_generation_it_was_found_for(stage: Stage) -> None:
    await working(stage)
    stage.change(logLevel="DEBUG")
    await stage.reconcile()
    for found in (stage.get(port.CLUSTERS, "demo"), stage.get(port.REGIONS, "demo-eu")):
        generation, status = found["metadata"]["generation"], found["status"]
        assert status["observedGeneration"] == generation
        assert {each["observedGeneration"] for each in status["conditions"]} == {generation}


def node(stage: Stage, name: str, *addresses: Any, labels: Any = None) -> None:
    """A Ready node; nodes are shared by all tests, so their names have the namespace's."""
    metadata = {"name": f"{name}-{stage.namespace}", "labels": labels or {}}
    stage.create({"apiVersion": "v1", "kind": "Node", "metadata": metadata})
    conditions = [{"type": "Ready", "status": "True"}]
    status = {"status": {"conditions": conditions, "addresses": list(addresses)}}
    stage.patch(port.NODES, metadata["name"], status, subresource="status")
