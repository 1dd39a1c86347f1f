"""What a reconcile does with resources that it cannot or need not work on; the rest is tested on an API server."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from voicecluster.operator.api.status import VipStatus
from voicecluster.operator.drain.decide import Told
from voicecluster.operator.kube.port import CLUSTERS, Kind, Object
from voicecluster.operator.queue import Key
from voicecluster.operator.reconcile import Reconciler, vip_changes
from voicecluster.operator.redis import RedisCheck
from voicecluster.operator.resolve import Resolver
from voicecluster.operator.workloads import Pod

from tests.unit.operator.clusters import DEFAULTS
from tests.unit.operator.world import NAMESPACE, World, voice_cluster, voice_region

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Api:
    """Writes down what is done; statuses get into the world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.done: list[tuple[str, Object]] = []

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        return self.world.get(kind, namespace, name)

    async def apply(self, wanted: Object) -> Object:
        self.done.append(("apply", wanted))
        return wanted

    async def create(self, wanted: Object) -> Object:
        self.done.append(("create", wanted))
        return wanted

    async def apply_status(self, wanted: Object) -> Object:
        self.done.append(("status", wanted))
        before = self.world.get(CLUSTERS, NAMESPACE, "demo")
        if before is not None and wanted["kind"] == "VoiceCluster":
            self.world.put({**before, "status": wanted["status"]})
        return wanted

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        self.done.append(("delete", {"name": name}))


class Silent:
    """Transceivers that do not answer."""

    async def ask(self, pods: Iterable[Pod], token: str) -> Mapping[str, Told | None]:
        return {pod.name: None for pod in pods}

    async def drain(self, pod: Pod, token: str, deadline: datetime) -> Told | None:
        return None

    async def cancel(self, pod: Pod, token: str) -> Told | None:
        return None


def operator(world: World) -> tuple[Api, Reconciler]:
    api = Api(world)
    reconciler = Reconciler(
        api,
        world,
        DEFAULTS,
        transceivers=Silent(),
        redis=RedisCheck(api, lambda: 0.0),
        resolver=Resolver(lambda: 0.0),
        now=lambda: NOW,
    )
    return api, reconciler


KEY = Key(NAMESPACE, "demo")


async def test_a_cluster_that_is_gone_needs_nothing() -> None:
    api, reconciler = operator(World())
    assert await reconciler.reconcile(KEY) is None
    assert api.done == []


async def test_a_cluster_that_is_being_deleted_needs_nothing() -> None:
    resource: Any = voice_cluster()
    metadata = {**resource["metadata"], "deletionTimestamp": "2026-11-30T12:00:00Z"}
    api, reconciler = operator(World({**resource, "metadata": metadata}))
    assert await reconciler.reconcile(KEY) is None
    assert api.done == []


async def test_a_spec_that_the_crd_should_have_refused_stalls_with_field_and_remedy() -> None:
    api, reconciler = operator(World(voice_cluster(colour="blue")))
    assert await reconciler.reconcile(KEY) is None
    ((verb, written),) = api.done
    status: Any = written["status"]
    found = {each["type"]: each for each in status["conditions"]}
    assert verb == "status"
    assert (found["Stalled"]["status"], found["Stalled"]["reason"]) == ("True", "InvalidSpec")
    assert "VoiceCluster voice/demo: spec.colour: unknown field; remove it" in found["Stalled"]["message"]
    assert found["Ready"]["status"] == "False"
    await reconciler.reconcile(KEY)
    assert len(api.done) == 1


async def test_a_paused_cluster_gets_a_status_and_nothing_else() -> None:
    api, reconciler = operator(World(voice_cluster(paused=True)))
    await reconciler.reconcile(KEY)
    assert {verb for verb, _ in api.done} == {"status"}


def vips(*addresses: str) -> list[VipStatus]:
    return [VipStatus(address=address, port=3478, source="Service") for address in addresses]


def test_vips_that_stay_are_no_news_and_those_that_go_are() -> None:
    before = [each.model_dump(exclude_none=True) for each in vips("203.0.113.1")]
    about = voice_region(status={"vips": before})
    region = World(voice_cluster(), about).observe().regions[0]
    assert vip_changes(about, region, vips("203.0.113.1")) == []
    (told,) = vip_changes(about, region, [])
    assert (told.reason.value, told.message) == (
        "VIPChanged",
        "Callers reach it at no address, before at 203.0.113.1:3478.",
    )
