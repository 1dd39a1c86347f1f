"""Every field does something, and a change of it gets into force the way the reference says.

Fields whose effect is not in the plan are named with the tests that show it.
"""

import copy
from pathlib import Path
from typing import Any

import pytest
from voicecluster.operator.api.effects import Change
from voicecluster.operator.api.reference import spec_fields
from voicecluster.operator.api.v1alpha1 import VoiceCluster

from tests.unit.operator.clusters import Found, cluster, planned, template

ROOT = Path(__file__).parents[3]
REGION, VIP = "regions.0", "regions.0.relay.vip"
HOST = {f"{VIP}.mode": "HostNetwork", "networkPolicy.nodeCIDRs": ["10.0.0.0/16"]}
EXTERNAL = {f"{VIP}.mode": "External", f"{VIP}.addresses": ["192.0.2.1"]}
TOLERATION = {f"{REGION}.tolerations": [{"key": "a", "operator": "Equal", "effect": "NoExecute"}]}

ELSEWHERE = {
    "spec.paused": "tests/integration/operator/test_conditions.py",
    "spec.regions.paused": "tests/integration/operator/test_conditions.py",
    "spec.regions.relay.vip.addresses": "tests/unit/operator/test_vips.py",
    "spec.regions.relay.vip.nodeAddressType": "tests/unit/operator/test_vips.py",
    "spec.redis.external.secret": "tests/integration/operator/test_conditions.py",
}
"""Fields that the reconciler acts on without changing an object."""

LIMITS = {
    "flowPackets": 100, "flowBurst": 200, "flowStun": 10, "routePackets": 1000, "flowsPerUfrag": 4,
    "newFlowsPerUfrag": 2, "newFlowsPerSource": 100, "newFlows": 1000, "confirmedFlows": 1000,
    "provisionalFlows": 1000, "idleSeconds": 30, "provisionalSeconds": 3, "challengeSeconds": 8,
}  # fmt: skip
CALLS = {
    "callsPerWorker": 10, "callSeconds": 60, "setupSeconds": 5, "expirySeconds": 10, "sdpBytes": 9000,
    "drainTimeoutSeconds": 600,
}  # fmt: skip
CHANGES: dict[str, tuple[dict[str, Any], Any]] = {
    "clusterId": ({}, 8),
    "logLevel": ({}, "DEBUG"),
    "agents.default": ({}, "echo"),
    f"{REGION}.name": ({}, "us"),
    f"{REGION}.index": ({}, 5),
    f"{REGION}.nodeSelector": ({}, {"example.com/a": "b"}),
    f"{REGION}.tolerations.0.key": (TOLERATION, "b"),
    f"{REGION}.tolerations.0.operator": (TOLERATION, "Exists"),
    f"{REGION}.tolerations.0.value": (TOLERATION, "c"),
    f"{REGION}.tolerations.0.effect": (TOLERATION, "NoSchedule"),
    f"{REGION}.tolerations.0.tolerationSeconds": (TOLERATION, 30),
    f"{REGION}.relay.workers": ({}, 2),
    f"{REGION}.relay.resources.cpu": ({}, "2"),
    f"{REGION}.relay.resources.memory": ({}, "1Gi"),
    f"{VIP}.mode": ({"networkPolicy.nodeCIDRs": ["10.0.0.0/16"]}, "HostNetwork"),
    f"{VIP}.port": ({}, 443),
    f"{VIP}.annotations": ({}, {"example.com/a": "b"}),
    f"{VIP}.loadBalancerClass": ({}, "example.com/lb"),
    f"{VIP}.sourceRanges": ({}, ["192.0.2.0/24"]),
    f"{VIP}.externalTrafficPolicy": ({}, "Cluster"),
    f"{VIP}.ipFamilyPolicy": ({}, "SingleStack"),
    f"{VIP}.healthCheckPort": ({}, 8086),
    **{f"{REGION}.relay.limits.{name}": ({}, value) for name, value in LIMITS.items()},
    f"{REGION}.transceiver.replicas": ({}, 5),
    f"{REGION}.transceiver.workers": ({}, 2),
    f"{REGION}.transceiver.iceMode": ({}, "Full"),
    f"{REGION}.transceiver.resources.cpu": ({}, "2"),
    f"{REGION}.transceiver.resources.memory": ({}, "1Gi"),
    **{f"{REGION}.transceiver.limits.{name}": ({}, value) for name, value in CALLS.items()},
    f"{REGION}.transceiver.media.bitrate": ({}, 24_000),
    f"{REGION}.transceiver.media.complexity": ({}, 5),
    f"{REGION}.transceiver.media.maxHoldMs": ({}, 80),
    "signaling.auth.mode": ({}, "None"),
    "signaling.auth.apiKeysSecret": ({}, "mine"),
    "signaling.corsOrigins": ({}, ["https://a.example"]),
    "signaling.service.type": ({}, "NodePort"),
    "signaling.service.port": ({}, 8080),
    "signaling.service.annotations": ({}, {"example.com/a": "b"}),
    "signaling.service.loadBalancerClass": ({"signaling.service.type": "LoadBalancer"}, "example.com/lb"),
    "redis.mode": ({}, "None"),
    "redis.resources.cpu": ({}, "2"),
    "redis.resources.memory": ({}, "1Gi"),
    "images.relay": ({}, "example.com/other:1"),
    "images.transceiver": ({}, "example.com/other:1"),
    "images.redis": ({}, "example.com/other:1"),
    "images.pullPolicy": ({}, "Always"),
    "images.pullSecrets": ({}, ["registry"]),
    "networkPolicy.enabled": ({}, False),
    "networkPolicy.nodeCIDRs": (HOST, ["10.1.0.0/16"]),
    "networkPolicy.metricsNamespaces": ({}, ["monitoring"]),
}
"""What stands before, and another value of the field."""

RESTARTED: dict[Change, set[str]] = {
    Change.AT_ONCE: set(),
    Change.LIVE: set(),
    Change.NEXT_CALLS: set(),
    Change.SCALES: set(),
    Change.RELAYS_ROLL: {"relay"},
    Change.TRANSCEIVERS_DRAIN: {"transceiver"},
    Change.PODS: {"relay", "transceiver"},
    Change.REDIS_RESTARTS: {"redis"},
}
"""Whose pods are made anew."""
OF_ALL_PODS = {"spec.images.pullPolicy", "spec.images.pullSecrets"}
"""Of Redis too."""

FIELDS = {field.path: field for field in spec_fields(VoiceCluster)}


def with_values(values: dict[str, Any]) -> Found:
    """The plan of a cluster with one region and these fields."""
    spec: dict[str, Any] = {"regions": [{"name": "eu", "index": 0}]}
    for path, value in values.items():
        *way, last = path.split(".")
        at: Any = spec
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
        at[last] = copy.deepcopy(value)
    return planned(cluster(spec))


def field_path(path: str) -> str:
    """`regions.0.name` as the reference has it."""
    return ".".join(["spec", *(step for step in path.split(".") if not step.isdigit())])


def workloads(found: Found) -> dict[tuple[str, str], Any]:
    return {name: one for name, one in found.items() if name[0] in ("DaemonSet", "StatefulSet")}


def component(workload: Any) -> str:
    name: str = workload["metadata"]["labels"]["app.kubernetes.io/component"]
    return name


def test_every_field_is_tried() -> None:
    assert {field_path(path) for path in CHANGES} | set(ELSEWHERE) == set(FIELDS)


@pytest.mark.parametrize("path", CHANGES)
def test_another_value_changes_the_plan(path: str) -> None:
    before, value = CHANGES[path]
    assert with_values(before) != with_values({**before, path: value})


@pytest.mark.parametrize(
    "path", [path for path in CHANGES if FIELDS[field_path(path)].change is not Change.NEVER]
)
def test_another_value_restarts_only_what_the_reference_says(path: str) -> None:
    before, value = CHANGES[path]
    old, new = workloads(with_values(before)), workloads(with_values({**before, path: value}))
    both = old.keys() & new.keys()
    restarted = {component(new[name]) for name in both if template(old[name]) != template(new[name])}
    wanted = RESTARTED[FIELDS[field_path(path)].change]
    assert restarted == wanted | ({"redis"} if field_path(path) in OF_ALL_PODS else set())


@pytest.mark.parametrize(("path", "tests"), ELSEWHERE.items())
def test_what_acts_elsewhere_is_tested_there(path: str, tests: str) -> None:
    name = path.rpartition(".")[2]
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    text = (ROOT / tests).read_text(encoding="utf-8")
    assert name in text or snake in text
