"""Events are written once, and never get in the way."""

from datetime import UTC, datetime

from voicecluster.operator.events import EventReason, Occurrence, Recorder, as_event
from voicecluster.operator.kube.port import Exists, Kind, Object, Unavailable

from tests.unit.operator.world import voice_cluster, voice_region

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


class Api:
    """Takes events by name."""

    def __init__(self) -> None:
        self.events: dict[str, Object] = {}
        self.tries = 0
        self.fails = False

    async def create(self, wanted: Object) -> Object:
        self.tries += 1
        name = wanted["metadata"]["name"]  # type: ignore[index,call-overload]
        if self.fails:
            raise Unavailable("too many requests")
        if name in self.events:
            raise Exists(name)
        self.events[name] = wanted
        return wanted

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        raise AssertionError("events are not read")

    async def apply(self, wanted: Object) -> Object:
        raise AssertionError("events are not applied")

    apply_status = apply

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        raise AssertionError("events are not deleted")


def started(once: str = "pod-uid") -> Occurrence:
    return Occurrence(voice_region(), EventReason.DRAIN_STARTED, "Pod t-1 takes no new calls.", once)


async def test_the_same_thing_is_written_once() -> None:
    api = Api()
    recorder = Recorder(api, lambda: NOW)
    await recorder.record(started())
    await recorder.record(started())
    assert api.tries == 1


async def test_another_process_does_not_write_it_again() -> None:
    api = Api()
    for _ in range(2):
        await Recorder(api, lambda: NOW).record(started())
    assert len(api.events) == 1


async def test_the_same_thing_at_another_time_is_another_event() -> None:
    api = Api()
    recorder = Recorder(api, lambda: NOW)
    await recorder.record(started("one"))
    await recorder.record(started("other"))
    assert len(api.events) == 2


async def test_an_event_that_cannot_be_written_is_tried_again_and_hurts_nobody() -> None:
    api = Api()
    recorder = Recorder(api, lambda: NOW)
    api.fails = True
    await recorder.record(started())
    api.fails = False
    await recorder.record(started())
    assert len(api.events) == 1


def test_an_event_names_its_object_and_the_reason() -> None:
    event = as_event(Occurrence(voice_cluster(), EventReason.KEYS_GENERATED, "made"), NOW)
    about = event["involvedObject"]
    assert isinstance(about, dict)
    assert (about["kind"], about["name"], about["namespace"]) == ("VoiceCluster", "demo", "voice")
    assert event["reason"] == "KeysGenerated"
    assert event["lastTimestamp"] == "2026-11-30T12:00:00Z"
