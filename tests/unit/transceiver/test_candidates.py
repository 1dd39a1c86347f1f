"""Which VIPs an answer names, and how little that changes when a node comes or goes."""

from collections import Counter

from voicecluster.common.config.transceiver import Vip
from voicecluster.transceiver.candidates import MOST_CANDIDATES, candidates_of

NODES = [f"node-{n}" for n in range(10)]
CALLS = [f"ufrag{n:018}" for n in range(2_000)]


def vip(address: str, node: str | None = None, port: int = 3478) -> Vip:
    return Vip(address=address, port=port, node=node)


def vips_of(nodes: list[str]) -> list[Vip]:
    """One IPv4 and one IPv6 address of each node."""
    return [
        vip(address, node)
        for node in nodes
        for address in (f"192.0.2.{node.removeprefix('node-')}", f"2001:db8::{node.removeprefix('node-')}")
    ]


def nodes_named(nodes: list[str], call: str) -> set[str]:
    known = {each.address: each.node for each in vips_of(nodes)}
    return {str(known[candidate.address]) for candidate in candidates_of(vips_of(nodes), call)}


def test_of_vips_without_a_node_one_of_each_family_is_named_the_ipv6_one_first() -> None:
    vips = [vip("192.0.2.1"), vip("192.0.2.2"), vip("2001:db8::1")]
    vips.append(Vip(address="192.0.2.1", port=443, protocol="tcp"))
    chosen = candidates_of(vips, "call")
    assert [":" in each.address for each in chosen] == [True, False]
    assert all(each.protocol == "udp" for each in chosen)


def test_calls_spread_over_vips_of_the_same_family() -> None:
    vips = [vip("192.0.2.1"), vip("192.0.2.2")]
    counts = Counter(candidates_of(vips, call)[0].address for call in CALLS)
    assert all(abs(count - len(CALLS) / 2) < len(CALLS) / 20 for count in counts.values())


def test_without_vips_there_are_no_candidates() -> None:
    assert candidates_of([], "call") == []


def test_of_vips_with_nodes_two_nodes_are_named_in_each_family() -> None:
    chosen = candidates_of(vips_of(NODES), CALLS[0])
    assert [":" in each.address for each in chosen] == [True, False, True, False]
    assert len(nodes_named(NODES, CALLS[0])) == 2


def test_a_single_node_is_named_alone() -> None:
    assert nodes_named(NODES[:1], CALLS[0]) == {NODES[0]}


def test_an_answer_names_the_same_whatever_order_the_vips_come_in() -> None:
    vips = vips_of(NODES)
    assert candidates_of(vips, CALLS[1]) == candidates_of(vips[::-1], CALLS[1])


def test_calls_spread_evenly_over_nodes() -> None:
    counts = Counter(node for call in CALLS for node in nodes_named(NODES, call))
    fair = 2 * len(CALLS) / len(NODES)
    assert set(counts) == set(NODES)
    assert all(abs(count - fair) < 0.15 * fair for count in counts.values())


def test_losing_a_node_moves_only_the_calls_that_named_it() -> None:
    lost = NODES[3]
    left = [node for node in NODES if node != lost]
    for call in CALLS[:500]:
        before, after = nodes_named(NODES, call), nodes_named(left, call)
        assert before - {lost} <= after
        assert lost in before or before == after


def test_an_ice_restart_names_the_same_although_a_heavier_node_has_come() -> None:
    before = {call: candidates_of(vips_of(NODES[:5]), call) for call in CALLS[:100]}
    assert any(before[call] != candidates_of(vips_of(NODES), call) for call in before)
    for call, told in before.items():
        assert candidates_of(vips_of(NODES), call, keep=told) == told


def test_an_ice_restart_names_another_node_in_the_place_of_one_that_went() -> None:
    told = candidates_of(vips_of(NODES), CALLS[0])
    gone, stays = (node for node in sorted(nodes_named(NODES, CALLS[0])))
    left = vips_of([node for node in NODES if node != gone])
    again = candidates_of(left, CALLS[0], keep=told)
    kept = {each.address for each in vips_of([stays])}
    assert kept < {each.address for each in again}
    assert len(again) == 4


def test_no_answer_names_more_than_five() -> None:
    vips = [vip("198.51.100.1"), vip("2001:db8:1::1"), *vips_of(NODES)]
    assert len(candidates_of(vips, CALLS[0])) == MOST_CANDIDATES == 5
