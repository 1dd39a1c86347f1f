"""What a list shows that the watch had not."""

from collections.abc import Sequence

import pytest
from voicecluster.operator import sweep as module
from voicecluster.operator.health import Health, Watch
from voicecluster.operator.kube.port import SERVICES, Kind, Object
from voicecluster.operator.queue import Key
from voicecluster.operator.store import Objects
from voicecluster.operator.sweep import Sweeper

WATCH: Watch = (SERVICES, None)


def service(name: str, version: int = 1) -> Object:
    return {
        "metadata": {
            "namespace": "voice",
            "name": name,
            "uid": name,
            "resourceVersion": str(version),
            "labels": {"voicecluster.dev/cluster": "demo"},
        }
    }


class Lists:
    """An API server that has these, at resource version 10."""

    def __init__(self, *values: Object) -> None:
        self._values = values

    async def list_metadata(
        self, kind: Kind, namespace: str | None, *, label_selector: str | None = None
    ) -> tuple[Sequence[Object], str]:
        assert label_selector == "ours"
        return self._values, "10"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.0)


async def swept(objects: Objects, *there: Object) -> tuple[Health, list[Key]]:
    health, added = Health(), list[Key]()
    sweeper = Sweeper(Lists(*there), objects, health, add=added.append, selector=lambda _: "ours")
    await sweeper.sweep(WATCH)
    return health, added


async def test_a_watch_that_has_brought_everything_is_fine() -> None:
    objects = Objects(nodes=False)
    objects.put(SERVICES, service("a", 5))
    health, added = await swept(objects, service("a", 5))
    assert not any(health.live().values())
    assert added == []


async def test_a_watch_that_has_missed_an_object_is_deaf() -> None:
    health = Health()
    health.starts_watching([WATCH])
    objects = Objects(nodes=False)
    sweeper = Sweeper(Lists(service("a", 5)), objects, health, add=lambda _: None, selector=lambda _: "ours")
    await sweeper.sweep(WATCH)
    assert health.live() == {"watch services": "the watch has not brought Service voice/a"}


async def test_what_vanished_unseen_makes_its_cluster_reconcile() -> None:
    objects = Objects(nodes=False)
    objects.put(SERVICES, service("a", 5))
    _, added = await swept(objects)
    assert added == [Key("voice", "demo")]
    assert objects.get(SERVICES, "voice", "a") is None
