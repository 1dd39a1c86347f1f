"""Packets of calls find their owner and come back, over real sockets."""

import pytest
from voicecluster.wire import Route

from tests.integration.relay.harness import Scene
from tests.integration.relay.parties import CLUSTER, Arrived, eventually, mint


async def test_a_callers_packets_reach_the_owner_and_come_back(scene: Scene) -> None:
    owner, other = scene.transceiver(0), scene.transceiver(1)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], owner)
    assert await caller.check() == caller.address
    packet = caller.media(b"hello")
    await eventually(lambda: caller.received == [packet])
    assert owner.media == [Arrived(caller.address, relay.vips[0], packet)]
    assert not other.relays


async def test_ipv4_and_ipv6_callers_share_a_relay(scene: Scene) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay("127.0.102.2", "::1")
    callers = [scene.caller(vip, owner) for vip in relay.vips]
    for caller in callers:
        assert await caller.check() == caller.address
        packet = caller.media(b"hello", first=0x16)
        await eventually(lambda caller=caller, packet=packet: caller.received == [packet])
    assert {arrived.vip for arrived in owner.media} == set(relay.vips)


async def test_many_callers_each_reach_their_own_owner(scene: Scene) -> None:
    owners = [scene.transceiver(ordinal) for ordinal in range(4)]
    relay = await scene.relay()
    callers = [scene.caller(relay.vips[0], owners[number % 4]) for number in range(40)]
    for number, caller in enumerate(callers):
        await caller.check()
        caller.media(number.to_bytes())
    await eventually(lambda: all(caller.received for caller in callers))
    for ordinal, owner in enumerate(owners):
        assert sorted(packet[3] for packet in owner.payloads()) == list(range(ordinal, 40, 4))


async def test_packets_are_counted_by_direction(scene: Scene) -> None:
    relay_owner = scene.transceiver(0)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], relay_owner)
    await caller.check()
    await caller.talk(0.2)
    assert await caller.settled() == 0
    for direction in ("client_to_transceiver", "transceiver_to_client"):
        # A check at least, one more at the start of the stream, and ten packets.
        assert relay.metric("packets_total", direction=direction) >= 12
        assert relay.metric("bytes_total", direction=direction) > 12 * 60
    assert relay.metric("flows", state="confirmed") == 1
    assert relay.metric("decodes_total", result="ok") == 1


async def test_an_ice_restart_keeps_the_flow(scene: Scene) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], owner)
    await caller.check()
    caller.ufrag = mint(owner.route)
    await caller.check()
    await caller.talk(0.2)
    assert await caller.settled() == 0
    assert relay.metric("flows") == 1


async def test_a_transceiver_that_comes_back_elsewhere_is_followed(scene: Scene) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], owner)
    await caller.check()
    successor = scene.transceiver(0, "127.0.102.99")
    relay.route(successor)
    await caller.check_until(lambda: successor.checks[caller.address])
    packet = caller.media(b"hello")
    await eventually(lambda: successor.payloads() == [packet])


async def test_a_call_whose_transceiver_is_unknown_goes_nowhere(scene: Scene) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], owner)
    caller.ufrag = mint(Route(CLUSTER, 5, 0))
    with pytest.raises(TimeoutError):
        await caller.check(0.5)
    assert relay.drops("unknown_route") >= 1
    assert relay.metric("decodes_total", result="unknown_route") == relay.drops("unknown_route")
    assert not owner.relays
