"""What dies comes back within two seconds, and calls go on."""

import asyncio

from tests.integration.relay.harness import RelayProcess, Scene
from tests.integration.relay.parties import Caller, eventually

BACK_WITHIN_SECONDS = 2.0


async def in_call(scene: Scene) -> tuple[RelayProcess, Caller]:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], owner)
    await caller.check()
    return relay, caller


async def test_killing_the_control_plane_loses_no_packet(scene: Scene) -> None:
    relay, caller = await in_call(scene)
    talking = asyncio.create_task(caller.talk(2.0))
    relay.kill("control")
    await talking
    assert await caller.settled() == 0


async def test_a_killed_control_plane_is_back_and_ready(scene: Scene) -> None:
    relay, _ = await in_call(scene)
    dead = relay.kill("control")
    await eventually(
        lambda: (child := relay.child("control")) and child.pid != dead and relay.is_ready(),
        BACK_WITHIN_SECONDS,
    )


async def test_a_killed_engine_is_back_and_the_call_goes_on_with_its_next_check(scene: Scene) -> None:
    relay, caller = await in_call(scene)
    before = relay.metric("packets_total")
    dead = relay.kill("engine")
    await caller.check(BACK_WITHIN_SECONDS)
    child = relay.child("engine")
    assert child is not None
    assert child.pid != dead
    await caller.talk(0.2)
    assert await caller.settled() == 0
    assert relay.metric("packets_total") > before


async def test_a_killed_engine_is_ready_again(scene: Scene) -> None:
    relay, _ = await in_call(scene)
    relay.kill("engine")
    await eventually(lambda: not relay.is_ready(), BACK_WITHIN_SECONDS)
    await eventually(relay.is_ready, BACK_WITHIN_SECONDS)


async def test_a_new_control_plane_continues_with_changed_routes(scene: Scene) -> None:
    relay, caller = await in_call(scene)
    successor = scene.transceiver(0, "127.0.102.99")
    relay.kill("control")
    relay.route(successor)
    await caller.check_until(lambda: successor.checks[caller.address], 10)


async def test_an_engine_that_hangs_is_not_alive_until_it_goes_on(scene: Scene) -> None:
    relay, caller = await in_call(scene)
    engine = relay.child("engine")
    assert engine is not None
    engine.suspend()
    try:
        await eventually(lambda: not relay.is_alive(), 10)
    finally:
        engine.resume()
    await eventually(relay.is_alive, 5)
    await eventually(relay.is_ready, 5)
    await caller.check()


async def test_sigterm_ends_supervisor_engine_and_control_plane(scene: Scene) -> None:
    relay, _ = await in_call(scene)
    children = [relay.child("engine"), relay.child("control")]
    async with asyncio.timeout(3):
        assert await relay.stop() == 0
    assert not any(child is None or child.is_running() for child in children)


async def test_ufrags_and_callers_stay_out_of_the_log(scene: Scene) -> None:
    relay, caller = await in_call(scene)
    await caller.talk(0.1)
    await relay.stop()
    assert caller.ufrag not in relay.log()
    assert f":{caller.address[1]}" not in relay.log()
