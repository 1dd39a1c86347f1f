"""Scale-down and update together, with the operator killed at any of its calls: no call is cut, and it gets there.

The cluster is a simulation: a StatefulSet's controller and transceivers whose calls end only once they drain. What
the operator asks of either may kill it, before or after it has had its effect; another one then starts anew.
"""

import copy
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from voicecluster.operator.drain.decide import Told
from voicecluster.operator.kube import port
from voicecluster.operator.kube.kinds import kind_of
from voicecluster.operator.kube.port import Exists, Kind, Object
from voicecluster.operator.queue import Key
from voicecluster.operator.reconcile import Reconciler
from voicecluster.operator.redis import RedisCheck
from voicecluster.operator.resolve import Resolver
from voicecluster.operator.workloads import Pod

from tests.unit.operator.clusters import DEFAULTS
from tests.unit.operator.world import NAMESPACE, World, pod, region, voice_cluster

NAME = "demo-eu-transceiver"
CALLS = 2


class Killed(BaseException):
    """The operator ends here."""


@dataclass
class Session:
    """One transceiver process."""

    calls: int = CALLS
    deadline: datetime | None = None


@dataclass
class Cluster:
    """Kubernetes and the transceivers; implements `port.Kube` and `Transceivers`. `kill_at`: which call, from 0."""

    kill_at: int
    after: bool
    world: World = field(default_factory=lambda: World(voice_cluster(region(replicas=3))))
    sessions: dict[str, Session] = field(default_factory=dict)
    asked: int = 0
    cut: list[str] = field(default_factory=list)
    """Pods that went with calls."""
    now: datetime = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
    version: int = 1

    def change(self, replicas: int, image: str) -> None:
        """What the user asks for from now on."""
        before: Any = self.world.get(port.CLUSTERS, NAMESPACE, "demo")
        spec = {**before["spec"], "regions": [region(replicas=replicas)], "images": {"transceiver": image}}
        generation = before["metadata"]["generation"] + 1
        self.world.put({**before, "metadata": {**before["metadata"], "generation": generation}, "spec": spec})

    def turn(self) -> None:
        """What controllers do, and callers: who drains loses a call, others have as many as ever."""
        self.now += timedelta(seconds=2)
        for session in self.sessions.values():
            session.calls = max(0, session.calls - 1) if session.deadline else CALLS
        there: Any = self.world.get(port.STATEFUL_SETS, NAMESPACE, NAME)
        if there is None:
            return
        revision = there["spec"]["template"]["spec"]["containers"][0]["image"]
        wanted = {f"{NAME}-{n}" for n in range(there["spec"]["replicas"])}
        for name in self.pods() - wanted:
            self.remove(name)
        for name in wanted - self.pods():
            self.version += 1
            made: Any = pod(name, revision=revision)
            made["metadata"]["uid"] = f"uid-{self.version}"
            self.sessions[name] = Session()
            self.world.put(made)
        for name in self.pods():
            before: Any = self.world.get(port.PODS, NAMESPACE, name)
            ready = "False" if self.sessions[name].deadline else "True"
            status = {**before["status"], "conditions": [{"type": "Ready", "status": ready}]}
            self.world.put({**before, "status": status})
        pods: list[Any] = [self.world.get(port.PODS, NAMESPACE, name) for name in self.pods()]
        new = [each for each in pods if each["metadata"]["labels"]["controller-revision-hash"] == revision]
        ready_pods = [name for name in self.pods() if not self.sessions[name].deadline]
        status = {
            "observedGeneration": there["metadata"]["generation"],
            "replicas": len(pods),
            "readyReplicas": len(ready_pods),
            "updatedReplicas": len(new),
            "updateRevision": revision,
        }
        self.world.put({**there, "status": status})

    def pods(self) -> set[str]:
        return {name for kind, _, name in self.world.objects if kind == "Pod"}

    def remove(self, name: str) -> None:
        if self.sessions.pop(name).calls:
            self.cut.append(name)
        self.world.drop(port.PODS, name)

    def reach(self, *, done: bool) -> None:
        """The operator is about to ask something, or has its answer."""
        if done == self.after and self.asked == self.kill_at:
            self.asked += 1
            raise Killed
        self.asked += done

    def write(self, wanted: Object, *, status: bool = False) -> Object:
        self.reach(done=False)
        metadata: Any = wanted["metadata"]
        live: Any = self.world.get(kind_of(wanted), NAMESPACE, metadata["name"]) or {"metadata": {}}
        self.version += 1
        changed = not status and live.get("spec") != wanted.get("spec")
        uid = {"uid": live["metadata"].get("uid", f"uid-{self.version}")}
        fresh = {"resourceVersion": str(self.version), **uid}
        generation = live["metadata"].get("generation", 0) + changed
        kept: Any = json.loads(json.dumps({**live, **wanted}))
        kept["metadata"] = {**live["metadata"], **metadata, **fresh, "generation": generation}
        self.world.put(kept)
        self.reach(done=True)
        return kept  # type: ignore[no-any-return]

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        return self.world.get(kind, namespace, name)  # killed here is killed before the next write

    async def apply(self, wanted: Object, *, manager: str = port.FIELD_MANAGER) -> Object:
        return self.write(wanted)

    async def apply_status(self, wanted: Object) -> Object:
        return self.write(wanted, status=True)

    async def create(self, wanted: Object) -> Object:
        metadata: Any = wanted["metadata"]
        if self.world.get(kind_of(wanted), NAMESPACE, metadata["name"]) is not None:
            raise Exists("there is one")
        return self.write(wanted)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        self.reach(done=False)
        found: Any = self.world.get(kind, namespace, name)
        if found is not None and found["metadata"]["uid"] == uid:
            self.remove(name)
        self.reach(done=True)

    async def ask(self, pods: Iterable[Pod], token: str) -> Mapping[str, Told | None]:
        return {each.name: self.told(each.name) for each in pods}

    async def drain(self, pod: Pod, token: str, deadline: datetime) -> Told | None:
        self.reach(done=False)
        if pod.name in self.sessions:
            self.sessions[pod.name].deadline = deadline
        self.reach(done=True)
        return self.told(pod.name)

    async def cancel(self, pod: Pod, token: str) -> Told | None:
        self.reach(done=False)
        if pod.name in self.sessions:
            self.sessions[pod.name].deadline = None
        self.reach(done=True)
        return self.told(pod.name)

    def told(self, name: str) -> Told | None:
        session = self.sessions.get(name)
        return None if session is None else Told(bool(session.deadline), session.calls, session.deadline)

    def operator(self) -> Reconciler:
        return Reconciler(
            self,
            self.world,
            DEFAULTS,
            transceivers=self,
            redis=RedisCheck(self, lambda: 0.0),
            resolver=Resolver(lambda: 0.0),
            now=lambda: self.now,
        )

    async def live(self, steps: int) -> None:
        """Until there is nothing left to do, for so many steps at most."""
        idle = 0
        operator = self.operator()
        for _ in range(steps):
            before = self.asked
            try:
                await operator.reconcile(Key(NAMESPACE, "demo"))
            except* Killed:
                operator = self.operator()
            self.turn()
            idle = idle + 1 if self.asked == before else 0
            if idle == 3:
                return

    def events(self, reason: str) -> int:
        told: list[Any] = [value for (kind, _, _), value in self.world.objects.items() if kind == "Event"]
        return sum(each["reason"] == reason for each in told)


NEVER = 10**6


async def settled(kill_at: int, *, after: bool) -> Cluster:
    """A cluster of three transceivers that was changed to two with another image, and left alone for a while."""
    cluster = copy.deepcopy(await _three())
    cluster.asked, cluster.kill_at, cluster.after = 0, kill_at, after
    cluster.change(2, "example.com/other:2")
    await cluster.live(60)
    return cluster


_MADE: list[Cluster] = []


async def _three() -> Cluster:
    if not _MADE:
        _MADE.append(Cluster(kill_at=NEVER, after=False))
        await _MADE[0].live(60)
        assert len(_MADE[0].pods()) == 3
    return _MADE[0]


def is_as_asked_for(cluster: Cluster) -> None:
    assert cluster.cut == []
    assert cluster.pods() == {f"{NAME}-0", f"{NAME}-1"}
    assert [session.deadline for session in cluster.sessions.values()] == [None, None]
    for name in cluster.pods():
        found: Any = cluster.world.get(port.PODS, NAMESPACE, name)
        assert found["metadata"]["labels"]["controller-revision-hash"] == "example.com/other:2"
    status: Any = cluster.world.get(port.REGIONS, NAMESPACE, "demo-eu")
    assert status["status"]["transceiver"]["draining"] == []


async def test_without_a_kill_it_gets_there_and_tells_of_each_drain_once() -> None:
    cluster = await settled(NEVER, after=False)
    is_as_asked_for(cluster)
    assert (cluster.events("DrainStarted"), cluster.events("DrainFinished")) == (3, 3)
    assert cluster.events("DrainCancelled") == 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_killed_at_any_call_it_gets_there_without_cutting_a_call(after: bool) -> None:
    calls = (await settled(NEVER, after=after)).asked
    assert calls > 20
    for number in range(calls):
        is_as_asked_for(await settled(number, after=after))
