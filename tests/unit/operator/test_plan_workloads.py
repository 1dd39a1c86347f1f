"""Pods: what they run, what rolls them, what they may use and do."""

from typing import Any

import pytest
import yaml
from voicecluster.operator.plan.kubernetes import names

from tests.unit.operator.clusters import cluster, facts, planned, region, stored, template


def test_relays_surge_but_where_two_would_want_the_same_port_of_a_node() -> None:
    balanced, hosted = (
        planned(cluster(region(relay={"vip": vip}) | {"networkPolicy": {"nodeCIDRs": ["10.0.0.0/16"]}}))[
            "DaemonSet", "demo-eu-relay"
        ]["spec"]
        for vip in ({}, {"mode": "HostNetwork"})
    )
    assert balanced["updateStrategy"]["rollingUpdate"] == {"maxSurge": 1, "maxUnavailable": 0}
    assert hosted["updateStrategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    pod = hosted["template"]["spec"]
    assert (pod["hostNetwork"], pod["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")
    assert "ports" not in pod["containers"][0], "a declared port of a hostNetwork pod is a hostPort"


def test_what_pods_read_again_rolls_none_of_them() -> None:
    def templates(spec: dict[str, Any]) -> list[Any]:
        return [
            template(found)
            for (kind, _), found in planned(cluster(spec), facts(replicas={"eu": 2})).items()
            if kind in {"DaemonSet", "StatefulSet"}
        ]

    changed = region(
        relay={"vip": {"port": 5000, "externalTrafficPolicy": "Cluster"}, "limits": {"flowPackets": 99}},
        transceiver={
            "replicas": 5,
            "iceMode": "Full",
            "limits": {"callsPerWorker": 7, "drainTimeoutSeconds": 30},
            "media": {"bitrate": 24000},
        },
    ) | {
        "signaling": {
            "auth": {"mode": "None"},
            "corsOrigins": ["https://a.example"],
            "service": {"port": 81},
        },
        "agents": {"default": "echo"},
        "logLevel": "DEBUG",
        "networkPolicy": {"metricsNamespaces": ["mon"]},
    }
    assert templates(changed) == templates({})


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("relay", {"relay": {"workers": 2}}),
        ("relay", {"relay": {"resources": {"memory": "1Gi"}}}),
        ("relay", {"nodeSelector": {"a": "b"}}),
        ("transceiver", {"transceiver": {"workers": 2}}),
        ("transceiver", {"transceiver": {"limits": {"drainTimeoutSeconds": 7200}}}),
    ],
)
def test_what_needs_new_pods_changes_the_template(kind: str, fields: dict[str, Any]) -> None:
    workload = ("DaemonSet" if kind == "relay" else "StatefulSet", f"demo-eu-{kind}")
    before, after = (template(planned(cluster(spec))[workload]) for spec in ({}, region(**fields)))
    assert before != after


def test_the_drain_timeout_fits_into_the_time_that_a_pod_has_to_end() -> None:
    for asked, given in ((0, 3615), (3600, 3615), (7200.5, 7216)):
        spec = region(transceiver={"limits": {"drainTimeoutSeconds": asked}})
        pod = template(planned(cluster(spec))["StatefulSet", "demo-eu-transceiver"])["spec"]
        assert pod["terminationGracePeriodSeconds"] == given


def test_ordinals_and_replicas_of_a_stateful_set_are_the_regions() -> None:
    spec = {"regions": [{"name": "eu", "index": 3, "transceiver": {"replicas": 2}}]}
    found = planned(cluster(spec), facts(replicas={"eu": 9}))
    workload = found["StatefulSet", "demo-eu-transceiver"]["spec"]
    assert (workload["ordinals"], workload["replicas"]) == ({"start": 3072}, 9)
    assert (workload["podManagementPolicy"], workload["updateStrategy"]) == ("Parallel", {"type": "OnDelete"})
    directory = yaml.safe_load(found["ConfigMap", "demo-directory"]["data"]["directory.yaml"])
    assert (directory["regions"][0]["range"]["first"], directory["regions"][0]["range"]["count"]) == (3072, 9)


def test_a_region_without_transceivers_can_be_scaled_up() -> None:
    found = planned(cluster(region(transceiver={"replicas": 0})), facts(replicas={"eu": 0}))
    assert found["StatefulSet", "demo-eu-transceiver"]["spec"]["replicas"] == 0


@pytest.mark.parametrize(
    ("transceiver", "replicas"), [({}, None), ({"replicas": 0}, 0), ({"replicas": 4}, 4)]
)
def test_replicas_of_a_voice_region_are_ours_only_where_the_resource_says_them(
    transceiver: dict[str, Any], replicas: int | None
) -> None:
    spec = planned(cluster(region(transceiver=transceiver)))["VoiceRegion", "demo-eu"]["spec"]
    assert spec.get("replicas") == replicas


@pytest.mark.parametrize("mode", [{"mode": "None"}, {"mode": "External", "external": {"secret": "mine"}}])
def test_redis_is_deployed_only_where_it_is_embedded(mode: dict[str, Any]) -> None:
    assert not [name for _, name in planned(cluster({"redis": mode})) if "redis" in name]


def test_redis_keeps_nothing_and_stays_below_its_memory() -> None:
    found = planned(cluster({"redis": {"resources": {"memory": "1Gi"}}}))
    [container] = template(found["StatefulSet", "demo-redis"])["spec"]["containers"]
    options = dict(zip(container["args"][::2], container["args"][1::2], strict=True))
    assert (options["--save"], options["--appendonly"]) == ("", "no")
    assert int(options["--maxmemory"]) == 3 * 2**28
    assert container["resources"]["limits"] == {"memory": "1Gi"}


def test_there_is_a_limit_only_of_memory_and_only_where_asked_for() -> None:
    asked = {"resources": {"cpu": "0.5", "memory": "2048Mi"}}
    silent, asking = (
        template(planned(cluster(spec))["StatefulSet", "demo-eu-transceiver"])["spec"]["containers"][0][
            "resources"
        ]
        for spec in (region(transceiver={"workers": 4}), region(transceiver=asked))
    )
    assert silent == {"requests": {"cpu": "1", "memory": "1Gi"}}
    assert asking == {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}}


def test_every_pod_is_confined_as_the_restricted_standard_wants() -> None:
    for (kind, name), found in planned(stored("load-balancer")).items():
        if kind not in {"DaemonSet", "StatefulSet"}:
            continue
        pod = template(found)["spec"]
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert "hostNetwork" not in pod
        assert pod["enableServiceLinks"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            }


def test_pods_may_ask_the_api_for_exactly_what_they_watch() -> None:
    found = planned(cluster({}))
    assert found["Role", "demo-relay"]["rules"] == [
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]}
    ]
    assert found["Role", "demo-transceiver"]["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["demo-vips"],
            "verbs": ["list", "watch"],
        }
    ]
    for (kind, name), one in found.items():
        if kind in {"DaemonSet", "StatefulSet"}:
            pod = template(one)["spec"]
            account = pod.get("serviceAccountName")
            assert pod["automountServiceAccountToken"] is (account is not None), name
            assert account is None or ("ServiceAccount", account) in found


def test_one_transceiver_at_a_time_may_be_evicted_and_any_unhealthy_one() -> None:
    budget = planned(cluster({}))["PodDisruptionBudget", "demo-eu-transceiver"]["spec"]
    assert (budget["maxUnavailable"], budget["unhealthyPodEvictionPolicy"]) == (1, "AlwaysAllow")
    assert budget["selector"]["matchLabels"] == names.selector("demo", "transceiver", "eu")


def test_an_api_key_of_the_users_own_is_mounted_and_pods_start_before_it_is_there() -> None:
    spec = {"signaling": {"auth": {"apiKeysSecret": "mine"}}}
    for wanted, name in (({}, "demo-api-keys"), (spec, "mine")):
        pod = template(planned(cluster(wanted))["StatefulSet", "demo-eu-transceiver"])["spec"]
        [volume] = [volume for volume in pod["volumes"] if volume["name"] == "api-keys"]
        assert (volume["secret"]["secretName"], volume["secret"]["optional"]) == (name, True)


def test_images_are_the_users_or_those_that_the_operator_was_installed_with() -> None:
    found = planned(cluster({"images": {"relay": "example.com/mine:3", "pullPolicy": "Always"}}))
    [relay] = template(found["DaemonSet", "demo-eu-relay"])["spec"]["containers"]
    [redis] = template(found["StatefulSet", "demo-redis"])["spec"]["containers"]
    assert (relay["image"], relay["imagePullPolicy"]) == ("example.com/mine:3", "Always")
    assert redis["image"] == "docker.io/library/redis:7.4-bookworm"
