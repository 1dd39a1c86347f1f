"""Hostile datagrams: dropped, counted by reason, not logged one by one, and nobody's call is harmed."""

import asyncio
import secrets
import zlib

import pytest
from voicecluster.wire import Route, spp_encode

from tests.integration.relay.harness import Scene
from tests.integration.relay.parties import CLUSTER, check_for, eventually, mint, udp_socket

EACH = 25
GOOD = check_for(mint(Route(CLUSTER, 0, 0)))


def refingerprinted(message: bytes) -> bytes:
    crc = zlib.crc32(message[:-8]) ^ 0x5354554E
    return message[:-4] + crc.to_bytes(4)


def renamed(ufrag: str) -> bytes:
    """A check with a ufrag of the same length in place of the right one, and a right FINGERPRINT."""
    at = GOOD.index(b":caller") - 23
    return refingerprinted(GOOD[:at] + ufrag.encode() + GOOD[at + 23 :])


HOSTILE = {
    "empty": b"",
    "oversize": b"\x80" + bytes(1472),
    "unknown_protocol": b"\x50" + secrets.token_bytes(60),
    "bad_stun": GOOD[:4] + b"\x00" + GOOD[5:],
    "bad_fingerprint": GOOD[:-1] + bytes([GOOD[-1] ^ 1]),
    "unknown_method": refingerprinted(b"\x00\x03" + GOOD[2:]),
    "no_username": b"\x00\x01\x00\x00\x21\x12\xa4\x42" + bytes(12),
    "bad_hint": renamed("A" + "x" * 22),
    "unknown_route": check_for(mint(Route(CLUSTER, 900, 0))),
    "unknown_flow": b"\x80" + bytes(100),
}


@pytest.mark.parametrize("reason", HOSTILE)
async def test_a_hostile_datagram_is_dropped_counted_and_harms_no_call(scene: Scene, reason: str) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    caller, attacker = (scene.caller(relay.vips[0], owner) for _ in range(2))
    await caller.check()
    logged = len(relay.log().splitlines())
    talking = asyncio.create_task(caller.talk(0.5))
    for _ in range(EACH):
        attacker.send(HOSTILE[reason])
        await asyncio.sleep(0.01)
    await talking
    assert await caller.settled() == 0
    assert relay.drops(reason) == EACH
    assert relay.metric("drops_total") == EACH
    assert owner.checks.keys() == {caller.address}
    assert len(relay.log().splitlines()) - logged < 5


async def test_truncated_messages_are_dropped_whatever_their_length(scene: Scene) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    attacker = scene.caller(relay.vips[0], owner)
    for length in range(1, len(GOOD)):
        attacker.send(GOOD[:length])
    await eventually(lambda: relay.drops("bad_stun") == len(GOOD) - 1)
    assert not owner.relays


async def test_from_inside_only_the_owner_of_a_flow_may_send(scene: Scene) -> None:
    owner, other = scene.transceiver(0), scene.transceiver(1)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], owner)
    await caller.check()
    forged = spp_encode(caller.address, relay.vips[0]) + b"\x80forged"
    other.socket.sendto(forged, relay.backbone)
    with udp_socket(("127.0.102.77", 0)) as stranger:
        stranger.sendto(forged, relay.backbone)
        stranger.sendto(b"nonsense", relay.backbone)
        stranger.sendto(b"", relay.backbone)
    await eventually(lambda: relay.metric("drops_total") == 4)
    assert relay.drops("not_owner") == 2
    owner.send(caller.address, relay.vips[0], b"\x80true")
    await eventually(lambda: caller.received)
    assert caller.received == [b"\x80true"]


async def test_no_packet_leaves_for_an_address_that_never_called(scene: Scene) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    caller = scene.caller(relay.vips[0], owner)
    await caller.check()
    with udp_socket(("127.0.0.1", 0)) as victim:
        owner.send(victim.getsockname(), relay.vips[0], b"\x80unasked")
        await eventually(lambda: relay.drops("unknown_flow") == 1)
        with pytest.raises(BlockingIOError):
            victim.recv(100)
