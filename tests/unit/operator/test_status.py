"""What status says of a state: every condition that can be False with object, cause and remedy, and kstatus' rules."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from voicecluster.operator.api.status import Condition, VoiceClusterStatus, VoiceRegionStatus
from voicecluster.operator.decisions import Decisions
from voicecluster.operator.drain.decide import Drain, DrainPlan
from voicecluster.operator.keys import KeyState
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Kind, NotFound, Object
from voicecluster.operator.plan.keys import KeyMaterial
from voicecluster.operator.redis import embedded
from voicecluster.operator.status.cluster import begun, cluster_status, region_status, signaling_urls, stalled
from voicecluster.operator.status.conditions import (
    MESSAGE_CHARACTERS,
    Fault,
    Finding,
    Reason,
    Type,
    conditions,
    judged,
)
from voicecluster.operator.status.region import report
from voicecluster.operator.status.write import content, write_status
from voicecluster.operator.vips import discover

from tests.unit.operator.world import (
    World,
    child,
    daemon_set,
    node,
    pod,
    region,
    stateful_set,
    vip_service,
    voice_cluster,
    voice_region,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
KEYS = KeyState(KeyMaterial("A", {"A": bytes(32)}, {}), token="t")
HOSTED = {"mode": "HostNetwork"}
OPEN = {"networkPolicy": {"enabled": False}}


@dataclass
class Said:
    """Both statuses of a world."""

    cluster: VoiceClusterStatus
    region: VoiceRegionStatus

    def condition(self, kind: str) -> Condition | None:
        return next((each for each in self.cluster.conditions if each.type == kind), None)

    def of_region(self, kind: str) -> str | None:
        return next((each.status for each in self.region.conditions if each.type == kind), None)


def say(
    world: World,
    *,
    keys: KeyState = KEYS,
    drains: Mapping[str, DrainPlan] | None = None,
    now: datetime = NOW,
    **more: Any,
) -> Said:
    observed = world.observe()
    decisions = Decisions(
        keys=keys,
        vips={each.spec.name: discover(each, observed.nodes, {}) for each in observed.regions},
        drains={each.spec.name: DrainPlan(each.wish) for each in observed.regions} | dict(drains or {}),
        redis=embedded(observed.redis),
        **more,
    )
    reports = [report(observed, each, decisions) for each in observed.regions]
    return Said(cluster_status(observed, decisions, reports, now), region_status(reports[0], now))


def working(*more: Object, cluster: Object | None = None) -> World:
    """A cluster with one region in which all is well, but for `more`."""
    redis = child(
        port.STATEFUL_SETS,
        "demo-redis",
        "redis",
        spec={"replicas": 1},
        status={"replicas": 1, "readyReplicas": 1},
    )
    there = (daemon_set(), stateful_set(), voice_region(), redis)
    return World(cluster or voice_cluster(), *there, *more)


def failing(kind: str, reason: str, message: str) -> Object:
    component = "relay" if kind == "r" else "transceiver"
    return pod(f"{kind}-1", component, ready=False, phase="Pending", waiting=(reason, message))


EXTERNAL = {"mode": "External", "addresses": ["203.0.113.5"]}
BALANCED = {"mode": "LoadBalancer"}
FORBIDDEN = voice_cluster(region(vip=HOSTED), **OPEN)
TABLE: dict[str, tuple[World, dict[str, Any], str, str, tuple[str, ...]]] = {
    "no daemon set": (
        World(voice_cluster(), stateful_set()),
        {},
        "RelaysAvailable",
        "PodsMissing",
        ("DaemonSet demo-eu-relay", "does not exist"),
    ),
    "unseen daemon set": (
        working(daemon_set(desired=0, seen=0)),
        {},
        "RelaysAvailable",
        "PodsMissing",
        ("DaemonSet demo-eu-relay", "its controller has not seen it", "kube-controller-manager"),
    ),
    "no node": (
        working(daemon_set(desired=0), cluster=voice_cluster(region(nodeSelector={"zone": "b"}))),
        {},
        "RelaysAvailable",
        "NoNodes",
        ("DaemonSet demo-eu-relay", "no node with the labels zone=b", "label nodes, or change nodeSelector"),
    ),
    "namespace forbids": (
        working(daemon_set(desired=2), cluster=FORBIDDEN),
        {"enforced": "baseline"},
        "RelaysAvailable",
        "NamespaceForbidsHostNetwork",
        (
            "DaemonSet demo-eu-relay",
            "namespace voice enforces",
            "baseline",
            "kubectl label --overwrite namespace voice",
        ),
    ),
    "image": (
        working(daemon_set(ready=0), failing("r", "ErrImagePull", "manifest unknown")),
        {},
        "RelaysAvailable",
        "PodsFailing",
        ("DaemonSet demo-eu-relay: 0 of 1", "Pod r-1: ErrImagePull (manifest unknown)", "pullSecrets"),
    ),
    "pods not made": (
        working(daemon_set(desired=3, ready=2), pod("r-1", "relay"), pod("r-2", "relay")),
        {},
        "RelaysAvailable",
        "PodsMissing",
        ("DaemonSet demo-eu-relay: 2 of 3", "1 missing", "kubectl describe daemonset demo-eu-relay"),
    ),
    "node outside": (
        working(
            pod("r-1", "relay", address="192.0.2.7"),
            cluster=voice_cluster(region(vip=HOSTED), networkPolicy={"nodeCIDRs": ["10.0.0.0/8"]}),
        ),
        {},
        "RelaysAvailable",
        "NodeOutsideCIDRs",
        (
            "DaemonSet demo-eu-relay",
            "node n1 (192.0.2.7)",
            "none of networkPolicy.nodeCIDRs",
            "add the node's network",
        ),
    ),
    "node lost": (
        working(daemon_set(ready=0), pod("r-1", "relay", ready=False), node("n1", ready=False)),
        {},
        "RelaysAvailable",
        "PodsNotReady",
        ("DaemonSet demo-eu-relay", "Node n1 is not Ready", "kubectl describe node n1"),
    ),
    "relay not ready": (
        working(daemon_set(ready=0), pod("r-1", "relay", ready=False)),
        {},
        "RelaysAvailable",
        "PodsNotReady",
        ("Pod r-1 is not ready", "kubectl logs r-1"),
    ),
    "no stateful set": (
        World(voice_cluster(), daemon_set()),
        {},
        "TransceiversAvailable",
        "PodsMissing",
        ("StatefulSet demo-eu-transceiver", "does not exist"),
    ),
    "unschedulable": (
        working(
            stateful_set(ready=0),
            pod(
                "t-0",
                ready=False,
                phase="Pending",
                unschedulable="0/3 nodes are available: 3 Insufficient cpu",
            ),
        ),
        {},
        "TransceiversAvailable",
        "PodsFailing",
        (
            "StatefulSet demo-eu-transceiver",
            "t-0: Unschedulable (0/3 nodes are available",
            "add or free nodes",
        ),
    ),
    "crash": (
        working(stateful_set(ready=0), failing("t", "CrashLoopBackOff", "back-off")),
        {},
        "TransceiversAvailable",
        "PodsFailing",
        ("StatefulSet demo-eu-transceiver", "CrashLoopBackOff", "kubectl logs t-1 --previous"),
    ),
    "vip": (
        working(vip_service(), cluster=voice_cluster(region(vip=BALANCED))),
        {},
        "VIPsAssigned",
        "VIPPending",
        ("Service demo-eu-relay", "no load balancer address yet", "HostNetwork or External"),
    ),
    "keys": (
        working(),
        {"keys": KeyState(None, faults=(Fault(Reason.KEYS_MISSING, "Secret s is gone; restore it."),))},
        "KeysAvailable",
        "KeysMissing",
        ("Secret s is gone; restore it.",),
    ),
    "private": (
        working(cluster=voice_cluster(region(vip={"mode": "External", "addresses": ["192.168.1.1"]}))),
        {},
        "VIPsPublic",
        "PrivateAddresses",
        ("Region eu: 192.168.1.1", "no public address", "External"),
    ),
    "redis": (
        World(voice_cluster(), daemon_set(), stateful_set(), voice_region()),
        {},
        "RedisReady",
        "PodsNotReady",
        ("StatefulSet demo-redis", "has no ready pod", "kubectl describe pod demo-redis-0"),
    ),
}
LOWERS_READY = ("RelaysAvailable", "TransceiversAvailable", "VIPsAssigned", "KeysAvailable")


@pytest.mark.parametrize("case", TABLE.values(), ids=TABLE)
def test_a_condition_that_is_false_names_object_cause_and_remedy(
    case: tuple[World, dict[str, Any], str, str, tuple[str, ...]],
) -> None:
    world, more, kind, reason, words = case
    said = say(world, **more)
    condition = said.condition(kind)
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", reason)
    assert [word for word in words if word not in condition.message] == []
    ready = said.condition("Ready")
    assert ready is not None
    if kind in LOWERS_READY:
        assert (ready.status, ready.reason) == ("False", reason)
    else:
        assert ready.status == "True"


def test_every_reason_has_a_line_that_says_what_it_means() -> None:
    lines = Path(conditions.__code__.co_filename).read_text(encoding="utf-8")
    for reason in Reason:
        assert f'= "{reason.value}"\n    """' in lines, reason


def test_a_cluster_in_which_all_is_well_is_ready_and_nothing_else() -> None:
    public = region(vip={"mode": "External", "addresses": ["8.8.8.8"]})
    said = say(working(cluster=voice_cluster(public)))
    assert {each.type: each.status for each in said.cluster.conditions} == {
        "Ready": "True",
        "KeysAvailable": "True",
        "RedisReady": "True",
        "RelaysAvailable": "True",
        "TransceiversAvailable": "True",
        "VIPsAssigned": "True",
        "VIPsPublic": "True",
    }
    assert said.of_region("Ready") == "True"
    assert said.cluster.observed_generation == 3


def test_the_columns_count_what_is_ready() -> None:
    status = say(working(daemon_set(desired=3, ready=2), pod("r", "relay"))).cluster
    assert (status.summary.regions, status.summary.relays, status.summary.transceivers) == (
        "0/1",
        "2/3",
        "1/1",
    )
    (eu,) = status.regions
    assert (eu.name, eu.ready, eu.relays, eu.transceivers) == ("eu", False, "2/3", "1/1")


def test_a_region_without_transceivers_is_available() -> None:
    said = say(working(stateful_set(replicas=0), cluster=voice_cluster(region(replicas=0))))
    assert said.of_region("TransceiversAvailable") == "True"


def test_a_first_status_is_in_progress_for_tools_that_wait() -> None:
    status = begun(working().observe(), NOW)
    assert status.observed_generation == 3
    assert {each.type: each.status for each in status.conditions} == {
        "Ready": "Unknown",
        "Reconciling": "True",
    }


def test_a_rollout_is_reconciling_until_all_pods_have_the_template() -> None:
    condition = say(working(daemon_set(desired=3, updated=1))).condition("Reconciling")
    assert condition is not None
    assert condition.reason == "RollingOut"
    assert "DaemonSet demo-eu-relay: 1 of 3" in condition.message


def test_a_rollout_that_is_stuck_says_on_what() -> None:
    world = working(daemon_set(desired=3, updated=1), failing("r", "ErrImagePull", "manifest unknown"))
    said = say(world)
    condition = said.condition("Reconciling")
    assert condition is not None
    assert "1 of 3" in condition.message
    assert "Pod r-1: ErrImagePull (manifest unknown): check the image's name" in condition.message
    assert said.of_region("RelaysAvailable") == "True"


def test_a_rollout_of_hosted_relays_may_lack_one() -> None:
    cluster = voice_cluster(region(vip=HOSTED), **OPEN)
    pods = [pod(f"r-{n}", "relay", node=f"n{n}") for n in range(3)]
    rolling = working(daemon_set(desired=3, ready=2, updated=1), *pods, cluster=cluster)
    assert say(rolling).of_region("RelaysAvailable") == "True"
    lost = working(daemon_set(desired=3, ready=2, updated=3), *pods, cluster=cluster)
    assert say(lost).of_region("RelaysAvailable") == "False"


def draining() -> Mapping[str, DrainPlan]:
    drain = Drain("demo-eu-transceiver-1", "ScaleDown", NOW + timedelta(hours=1), calls=3)
    return {"eu": DrainPlan(2, drains=(drain,))}


def test_a_drain_is_reconciling_and_the_region_says_who_waits_for_how_many_calls() -> None:
    world = working(stateful_set(replicas=2, ready=1), cluster=voice_cluster(region(replicas=1)))
    said = say(world, drains=draining())
    condition = said.condition("Reconciling")
    assert condition is not None
    assert condition.reason == "Draining"
    assert "Pod demo-eu-transceiver-1 waits for its calls until 2026-11-30T13:00:00Z" in condition.message
    (entry,) = said.region.transceiver.draining
    assert (entry.pod, entry.calls, entry.deadline) == ("demo-eu-transceiver-1", 3, "2026-11-30T13:00:00Z")
    assert said.of_region("TransceiversAvailable") == "True"


def test_a_pod_that_shall_drain_and_does_not_answer_is_told_with_what_to_check() -> None:
    world = working(stateful_set(replicas=2), cluster=voice_cluster(region(replicas=1)))
    plan = draining()["eu"]
    silent = {"eu": replace(plan, drains=(replace(plan.drains[0], calls=None),))}
    condition = say(world, drains=silent).condition("Reconciling")
    assert condition is not None
    for words in ("Pod demo-eu-transceiver-1", "does not answer on its admin port", "NetworkPolicies"):
        assert words in condition.message


def test_a_region_whose_only_transceiver_drains_takes_no_calls_and_says_why() -> None:
    name = "demo-eu-transceiver-0"
    world = working(stateful_set(ready=0, updated=0), pod(name, ready=False, revision="old"))
    drain = Drain(name, "Outdated", NOW + timedelta(hours=1), calls=3)
    condition = say(world, drains={"eu": DrainPlan(1, drains=(drain,))}).condition("TransceiversAvailable")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "Draining")
    assert f"0 of 1 pods take new calls while Pod {name} drains" in condition.message
    assert "one replica more" in condition.message


def test_the_message_of_a_drain_stays_while_calls_end() -> None:
    world = working(stateful_set(replicas=2, ready=1), cluster=voice_cluster(region(replicas=1)))
    plan = draining()["eu"]
    fewer = {"eu": replace(plan, drains=(replace(plan.drains[0], calls=1),))}
    assert say(world, drains=draining()).cluster == say(world, drains=fewer).cluster


def test_a_stall_is_told_by_stalled_and_ready() -> None:
    said = say(working(), stalled=(Fault(Reason.NODES_SHARED, "Regions a and b share node n."),))
    for kind, status in (("Stalled", "True"), ("Ready", "False")):
        condition = said.condition(kind)
        assert condition is not None
        assert (condition.status, condition.reason) == (status, "NodesShared")


def test_a_spec_that_cannot_be_understood_stalls_and_leaves_the_rest() -> None:
    before = say(working()).cluster
    status = stalled(before, 4, Fault(Reason.INVALID_SPEC, "spec.x: unknown field."), NOW)
    assert status.observed_generation == 4
    assert status.regions == before.regions
    found = {each.type: (each.status, each.reason) for each in status.conditions}
    assert found["Stalled"] == ("True", "InvalidSpec")
    assert found["Ready"] == ("False", "InvalidSpec")
    assert found["VIPsAssigned"] == ("True", "Available")


def paused(**status: Any) -> World:
    ready = {"type": "Ready", "status": "True", "reason": "Available", "message": "All is as asked for."}
    before = {"observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z", **ready}
    before["observedGeneration"] = 3
    cluster = voice_cluster(paused=True, status={"conditions": [before], **status})
    return World(cluster, daemon_set(ready=0), stateful_set(), voice_region(status={"conditions": [before]}))


def test_what_is_paused_keeps_ready_and_tells_the_rest() -> None:
    said = say(paused())
    found = {each.type: each.status for each in said.cluster.conditions}
    assert (found["Paused"], found["Ready"], found["RelaysAvailable"]) == ("True", "True", "False")
    assert (said.of_region("Paused"), said.of_region("Ready")) == ("True", "True")


def test_known_keys_stay_in_status_while_their_secret_is_missing() -> None:
    world = working(cluster=voice_cluster(status={"keys": {"mint": "A", "ids": ["A"]}}))
    status = say(world, keys=KeyState(None, faults=(Fault(Reason.KEYS_MISSING, "gone"),))).cluster
    assert status.keys.ids == ["A"]


def finding(status: Any) -> list[Finding]:
    return [Finding(Type.READY, status, Reason.AVAILABLE)]


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    first = conditions(finding("True"), (), 1, NOW)
    later = conditions(finding("True"), first, 2, NOW + timedelta(hours=1))
    assert later[0].last_transition_time == first[0].last_transition_time
    assert later[0].observed_generation == 2
    changed = conditions(finding("False"), later, 2, NOW + timedelta(hours=1))
    assert changed[0].last_transition_time == "2026-11-30T13:00:00Z"


def test_many_faults_fit_into_one_message() -> None:
    faults = [Fault(Reason.VIP_PENDING, f"Service {n} has no address. {'x' * 200}") for n in range(20)]
    found = judged(Type.VIPS_ASSIGNED, faults)
    assert found.reason == Reason.VIP_PENDING
    assert "more)" in found.message
    assert len(found.message) <= MESSAGE_CHARACTERS + 16


class Api:
    """Takes statuses."""

    def __init__(self) -> None:
        self.written: list[Object] = []
        self.gone = False

    async def apply_status(self, wanted: Object) -> Object:
        if self.gone:
            raise NotFound("gone")
        self.written.append(wanted)
        return wanted

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        raise AssertionError("nothing is read")

    async def apply(self, wanted: Object) -> Object:
        raise AssertionError("nothing is applied")

    create = apply

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        raise AssertionError("nothing is deleted")


async def test_a_status_that_says_the_same_is_not_written() -> None:
    api, status = Api(), say(working()).cluster
    assert await write_status(api, voice_cluster(), status)
    assert not await write_status(api, voice_cluster(status=content(status)), status)
    assert len(api.written) == 1


async def test_a_status_is_written_without_nulls_and_without_spec() -> None:
    api = Api()
    await write_status(api, voice_cluster(), say(working()).cluster)
    (wanted,) = api.written
    assert set(wanted) == {"apiVersion", "kind", "metadata", "status"}
    assert "None" not in str(wanted)


async def test_the_status_of_what_was_deleted_meanwhile_is_nobodys() -> None:
    api = Api()
    api.gone = True
    assert not await write_status(api, voice_cluster(), say(working()).cluster)


@pytest.mark.parametrize(
    ("kind", "status", "urls"),
    [
        ("ClusterIP", {}, ["http://demo-signaling.voice.svc"]),
        (
            "LoadBalancer",
            {"loadBalancer": {"ingress": [{"ip": "2001:db8::1"}, {"hostname": "lb.example.com"}]}},
            ["http://[2001:db8::1]", "http://lb.example.com", "http://demo-signaling.voice.svc"],
        ),
        ("NodePort", {}, ["http://203.0.113.1:30080", "http://demo-signaling.voice.svc"]),
    ],
)
def test_signaling_urls_are_those_outside_and_the_one_inside(
    kind: str, status: dict[str, Any], urls: list[str]
) -> None:
    ports = [{"port": 80, "nodePort": 30080 if kind == "NodePort" else None}]
    service = child(
        port.SERVICES, "demo-signaling", "signaling", spec={"type": kind, "ports": ports}, status=status
    )
    nodes = (node("n1", external=["203.0.113.1"], internal=["10.0.0.1"]), node("n2", ready=False))
    assert signaling_urls(working(service, *nodes).observe()) == urls
