"""Attacks on other people's calls. Each is first shown to work with its guard off.

The relay, the caller and the attacker are hosts of their own (network namespaces); the attacker can write any
source address, and has a call of its own, so that its hints are valid.
"""

import asyncio
import sys
from pathlib import Path

from voicecluster.wire import Route

from tests.integration.relay.harness import Scene
from tests.integration.relay.namespaces import Network, needs_namespaces, udp_packet
from tests.integration.relay.parties import CLUSTER, check_for, mint, sealed
from tests.integration.relay.street import ATTACKER, OFF, VICTIM, VIP, Street, street

pytestmark = needs_namespaces


async def losses_while_forged_checks_come(there: Street) -> float:
    """The share of the victim's packets lost while valid checks of another call come in its name, 5/s."""
    check = check_for(mint(there.others_owner.route))
    packet = udp_packet(VICTIM, there.relay.vips[0], check)
    talking = asyncio.create_task(there.victim.talk(3.0))
    with there.attacker.raw_socket() as raw:
        while not talking.done():
            raw.sendto(packet, (VIP, 0))
            await asyncio.wait([talking], timeout=0.2)
    await there.victim.settled(1.0)
    assert there.others_owner.checks[VICTIM] >= 1, "the forged check did not even arrive"
    return there.victim.stream.lost / len(there.victim.stream.sent)


async def test_forged_checks_in_a_callers_name_cut_the_call_where_incumbents_are_not_protected(
    scene: Scene, network: Network
) -> None:
    there = await street(scene, network, challengeSeconds=0.001)
    assert await losses_while_forged_checks_come(there) > 0.2


async def test_forged_checks_in_a_callers_name_cost_it_nothing(scene: Scene, network: Network) -> None:
    there = await street(scene, network)
    assert await losses_while_forged_checks_come(there) == 0
    assert there.relay.metric("evictions_total", reason="displaced") == 0


async def addresses_answered_after_replays(there: Street, sources: int) -> int:
    """How many addresses the owner answers when one observed check is sent again from many."""
    check = check_for(there.victim.ufrag)
    talking = asyncio.create_task(there.victim.talk(1.0))
    with there.attacker.raw_socket() as raw:
        for number in range(sources):
            source = (f"192.0.2.{1 + number % 250}", 1024 + number)
            raw.sendto(udp_packet(source, there.relay.vips[0], check), (VIP, 0))
            await asyncio.sleep(0.5 / sources)
    await talking
    assert await there.victim.settled() == 0
    return len(there.owner.checks) - 1


async def test_a_replayed_check_makes_flows_without_end_where_they_are_not_limited(
    scene: Scene, network: Network
) -> None:
    there = await street(scene, network, newFlowsPerUfrag=OFF, newFlowsPerSource=OFF)
    assert await addresses_answered_after_replays(there, 200) > 150


async def test_a_replayed_check_makes_few_flows_and_leaves_the_call_alone(
    scene: Scene, network: Network
) -> None:
    there = await street(scene, network)
    assert await addresses_answered_after_replays(there, 200) <= 8
    assert there.relay.drops("ufrag_rate") >= 190
    assert there.relay.metric("flows") <= 8


async def test_media_never_goes_to_an_address_that_only_replayed_a_check(
    scene: Scene, network: Network
) -> None:
    there = await street(scene, network)
    eavesdropper = there.scene.caller(there.relay.vips[0], there.owner, (ATTACKER, 0), there.attacker)
    eavesdropper.ufrag = there.victim.ufrag
    await eavesdropper.check()
    await there.victim.talk(0.5)
    assert await there.victim.settled() == 0
    assert eavesdropper.received == []


async def packets_let_through_of_a_flood(there: Street) -> tuple[int, float]:
    """57,000 packets in a second on one flow of a call of the same worker: how many reach the worker, how
    long it took to send them.
    """
    attacker = there.scene.caller(there.relay.vips[0], there.owner, (ATTACKER, 0), there.attacker)
    await attacker.check()
    source = attacker.address
    before = there.relay.metric("packets_total", direction="client_to_transceiver")
    talking = asyncio.create_task(there.victim.talk(2.0))
    flood = await asyncio.create_subprocess_exec(
        sys.executable,
        Path(__file__).with_name("flood.py"),
        str(attacker.socket.fileno()),
        *(str(value) for value in (*attacker.vip, 57_000, 57_000)),
        # What its owner cannot decrypt: it costs the worker most and comes back to nobody.
        sealed(Route(CLUSTER, 999, 0), bytes(60)).hex(),
        pass_fds=[attacker.socket.fileno()],
        stdout=asyncio.subprocess.PIPE,
    )
    took, _ = await flood.communicate()
    await talking
    assert source in there.owner.checks
    after = there.relay.metric("packets_total", direction="client_to_transceiver")
    return int(after - before), float(took)


async def test_a_flood_on_one_flow_reaches_its_worker_where_flows_are_not_limited(
    scene: Scene, network: Network
) -> None:
    there = await street(scene, network, flowPackets=OFF, flowBurst=OFF, routePackets=OFF)
    through, _ = await packets_let_through_of_a_flood(there)
    assert through > 20_000


async def test_a_flood_on_one_flow_is_cut_down_and_harms_no_other(scene: Scene, network: Network) -> None:
    there = await street(scene, network)
    through, took = await packets_let_through_of_a_flood(there)
    assert await there.victim.settled() == 0
    own = len(there.victim.stream.sent) + 10
    assert through <= 300 + 150 * (took + 0.5) + own
    assert there.relay.drops("flow_rate") > 50_000
