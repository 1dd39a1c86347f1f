"""A relay that is told to stop while callers talk: it stays until they have somewhere to go, and cuts nobody off."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator

import pytest

from tests.integration.relay.harness import RelayProcess, Scene
from tests.integration.relay.parties import Caller, eventually
from tests.unit.common.kube.server import FakeApiServer

SLICES = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
QUIET_SECONDS = 10.0


@pytest.fixture
async def api() -> AsyncIterator[FakeApiServer]:
    api = FakeApiServer(SLICES)
    await api.start()
    yield api
    await api.stop()


async def publish(api: FakeApiServer, **ready: bool) -> None:
    """Put the slice of the relays' Service; every relay is on this node."""
    endpoints = [
        {
            "addresses": [f"10.0.0.{number}"],
            "conditions": {"ready": is_ready, "serving": is_ready, "terminating": False},
            "nodeName": "here",
            "targetRef": {"kind": "Pod", "name": pod.replace("_", "-")},
        }
        for number, (pod, is_ready) in enumerate(ready.items(), start=1)
    ]
    await api.put("relays", {"kubernetes.io/service-name": "relays"}, endpoints=endpoints)


async def in_call(scene: Scene, api: FakeApiServer, grace_seconds: float = 60) -> tuple[RelayProcess, Caller]:
    owner = scene.transceiver(0)
    leaving = {"namespace": "ns", "service": "relays", "sameNode": True, "graceSeconds": grace_seconds}
    relay = await scene.relay(
        settings={"leaving": leaving, "node": "here"}, environment={"KUBE_API_URL": api.url}
    )
    caller = scene.caller(relay.vips[0], owner)
    await caller.check()
    return relay, caller


async def test_a_relay_stays_ready_without_a_successor_and_forwards_on_with_one(
    scene: Scene, api: FakeApiServer
) -> None:
    await publish(api, relay_0=True, relay_1=False)
    relay, caller = await in_call(scene, api)
    relay.signal()
    await eventually(lambda: '"staying"' in relay.log())
    await caller.talk(2.0)
    assert relay.is_ready()
    await publish(api, relay_0=True, relay_1=True)
    await eventually(lambda: not relay.is_ready(), 2)
    assert relay.is_alive()
    await caller.talk(2.0)
    assert await caller.settled() == 0
    quiet = time.monotonic()
    async with asyncio.timeout(QUIET_SECONDS + 5):
        assert await relay.ended() == 0
    assert time.monotonic() - quiet > QUIET_SECONDS - 1


async def test_a_control_plane_killed_while_leaving_leaves_on_and_cuts_nobody_off(
    scene: Scene, api: FakeApiServer
) -> None:
    await publish(api, relay_0=True, relay_1=True)
    relay, caller = await in_call(scene, api)
    talking = asyncio.create_task(caller.talk(8.0))
    relay.signal()
    await eventually(lambda: '"moving"' in relay.log())
    dead = relay.kill("control")
    await eventually(lambda: (child := relay.child("control")) and child.pid != dead, 5)
    await eventually(relay.is_alive, 10)
    assert not relay.is_ready()
    await talking
    assert await caller.settled() == 0
    assert relay.is_running()


async def test_a_relay_whose_callers_never_go_ends_within_its_grace_period(
    scene: Scene, api: FakeApiServer
) -> None:
    await publish(api, relay_0=True)
    relay, caller = await in_call(scene, api, grace_seconds=4)
    talking = asyncio.create_task(caller.talk(5.0))
    assert await relay.stop(within_seconds=4) == 0
    talking.cancel()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_ends_a_leaving_relay_at_once(
    scene: Scene, api: FakeApiServer, number: signal.Signals
) -> None:
    await publish(api, relay_0=True)
    relay, _ = await in_call(scene, api)
    relay.signal()
    await eventually(lambda: '"staying"' in relay.log())
    assert await relay.stop(number, within_seconds=3) == 0


async def test_a_relay_whose_engine_hangs_does_not_wait_for_anybody(scene: Scene, api: FakeApiServer) -> None:
    await publish(api, relay_0=True)
    relay, _ = await in_call(scene, api)
    engine = relay.child("engine")
    assert engine is not None
    engine.suspend()
    await eventually(lambda: not relay.is_alive(), 10)
    assert await relay.stop(within_seconds=5) == 0
