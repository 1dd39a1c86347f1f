"""Which addresses answers name, in each mode, and what is said where there are none."""

from collections.abc import Mapping

import pytest
from voicecluster.operator.observe import Observed
from voicecluster.operator.status.conditions import Reason
from voicecluster.operator.vips import Discovery, discover, hostnames, private, shared_nodes

from tests.unit.operator.world import World, daemon_set, node, pod, region, vip_service, voice_cluster

HOSTED = {"mode": "HostNetwork"}
BALANCED = {"mode": "LoadBalancer"}
OPEN = {"networkPolicy": {"enabled": False}}
ZONE_A = {"nodeSelector": {"zone": "a"}}
POOL = {"nodeSelector": {"pool": "voice"}}


def discovered(world: World, resolved: dict[str, list[str]] | None = None) -> Discovery:
    observed = world.observe()
    return discover(observed.regions[0], observed.nodes, resolved or {})


def addresses(found: Discovery) -> list[str]:
    return [vip.address for vip in found.vips]


def test_external_addresses_are_those_of_the_spec() -> None:
    vip = {"mode": "External", "addresses": ["203.0.113.5", "2001:db8::5"], "port": 4000}
    found = discovered(World(voice_cluster(region(vip=vip))))
    assert [(each.address, each.port, each.source) for each in found.vips] == [
        ("203.0.113.5", 4000, "Spec"),
        ("2001:db8::5", 4000, "Spec"),
    ]


def test_a_load_balancers_addresses_of_both_families_are_vips() -> None:
    service = vip_service("eu", {"ip": "203.0.113.7"}, {"ip": "2001:db8::7"})
    found = discovered(World(voice_cluster(region(vip=BALANCED)), service))
    assert addresses(found) == ["203.0.113.7", "2001:db8::7"]
    assert found.fault is None


def test_a_load_balancer_with_a_name_only_is_resolved() -> None:
    world = World(voice_cluster(region(vip=BALANCED)), vip_service("eu", {"hostname": "lb.example.com"}))
    assert hostnames(world.observe()) == {"lb.example.com"}
    found = discovered(world, {"lb.example.com": ["203.0.113.8"]})
    assert [(each.address, each.source) for each in found.vips] == [("203.0.113.8", "Hostname")]


def test_a_load_balancer_that_has_an_address_needs_no_name_resolved() -> None:
    service = vip_service("eu", {"hostname": "lb.example.com", "ip": "203.0.113.7"})
    assert hostnames(World(voice_cluster(region(vip=BALANCED)), service).observe()) == frozenset()


def test_a_name_without_addresses_is_told_with_the_service() -> None:
    world = World(voice_cluster(region(vip=BALANCED)), vip_service("eu", {"hostname": "lb.example.com"}))
    fault = discovered(world).fault
    assert fault is not None
    assert fault.reason == Reason.HOSTNAME_UNRESOLVED
    assert "Service demo-eu-relay" in fault.message
    assert "lb.example.com" in fault.message


def test_a_load_balancer_without_address_says_what_it_needs() -> None:
    fault = discovered(World(voice_cluster(region(vip=BALANCED)), vip_service("eu"))).fault
    assert fault is not None
    assert fault.reason == Reason.VIP_PENDING
    assert "kubectl describe service demo-eu-relay" in fault.message


def hosted(*objects: object, vip: dict[str, str] = HOSTED, readable: bool = True) -> World:
    cluster = voice_cluster(region(vip=vip), **OPEN)
    return World(cluster, *objects, readable_nodes=readable)  # type: ignore[arg-type]


def test_the_addresses_of_ready_nodes_with_a_ready_relay_are_vips() -> None:
    world = hosted(
        node("n1", external=["203.0.113.1", "2001:db8::1"]),
        node("n2", external=["203.0.113.2"]),
        node("n3", external=["203.0.113.3"], ready=False),
        node("n4", external=["203.0.113.4"]),
        pod("r1", "relay", node="n1"),
        pod("r2", "relay", node="n2", ready=False),
        pod("r3", "relay", node="n3"),
    )
    found = discovered(world)
    assert [(each.address, each.node) for each in found.vips] == [
        ("203.0.113.1", "n1"),
        ("2001:db8::1", "n1"),
    ]


def test_a_node_whose_relay_leaves_is_not_named_while_another_stays() -> None:
    nodes = [node(f"n{n}", external=[f"203.0.113.{n}"]) for n in (1, 2)]
    leaving = pod("r1", "relay", node="n1", terminating=True)
    assert addresses(discovered(hosted(*nodes, leaving, pod("r2", "relay", node="n2")))) == ["203.0.113.2"]
    assert addresses(discovered(hosted(*nodes, leaving))) == ["203.0.113.1"]


def test_the_type_of_node_address_is_the_one_asked_for() -> None:
    vip = {"mode": "HostNetwork", "nodeAddressType": "InternalIP"}
    world = hosted(node("n1", external=["203.0.113.1"], internal=["10.0.0.1"]), pod("r", "relay"), vip=vip)
    assert addresses(discovered(world)) == ["10.0.0.1"]


def test_nodes_without_the_asked_address_are_named_with_the_other_type() -> None:
    fault = discovered(hosted(node("n1", internal=["10.0.0.1"]), pod("r", "relay"))).fault
    assert fault is not None
    assert fault.reason == Reason.NODE_ADDRESS_MISSING
    assert "node n1 has no ExternalIP" in fault.message
    assert "nodeAddressType: InternalIP" in fault.message


def test_a_node_without_address_does_not_hide_another_that_has_one() -> None:
    world = hosted(
        node("n1", internal=["10.0.0.1"]),
        node("n2", external=["203.0.113.2"]),
        pod("r1", "relay", node="n1"),
        pod("r2", "relay", node="n2"),
    )
    found = discovered(world)
    assert addresses(found) == ["203.0.113.2"]
    assert found.fault is None
    assert "node n1 has no ExternalIP" in found.note


def test_unreadable_nodes_name_the_charts_value() -> None:
    fault = discovered(hosted(pod("r", "relay"), readable=False)).fault
    assert fault is not None
    assert fault.reason == Reason.NODES_UNREADABLE
    assert "hostNetwork.enabled=true" in fault.message


def test_no_ready_relay_is_told_with_the_daemon_set() -> None:
    fault = discovered(hosted(node("n1", external=["203.0.113.1"]), daemon_set())).fault
    assert fault is not None
    assert fault.reason == Reason.NO_READY_RELAY
    assert "DaemonSet demo-eu-relay" in fault.message


@pytest.mark.parametrize("address", ["10.1.2.3", "192.168.1.1", "100.64.0.1", "fd00::1", "169.254.0.1"])
def test_addresses_that_the_internet_cannot_reach_are_private(address: str) -> None:
    vip = {"mode": "External", "addresses": [address, "8.8.8.8"]}
    found = discovered(World(voice_cluster(region(vip=vip))))
    assert [each.address for each in private(found.vips)] == [address]


def two_hosted(one: Mapping[str, object], other: Mapping[str, object], *nodes: object) -> Observed:
    regions = [region("eu", 0, vip=HOSTED, **one), region("us", 1, vip=HOSTED, **other)]
    return World(voice_cluster(*regions, **OPEN), *nodes).observe()  # type: ignore[arg-type]


def test_two_hosted_regions_on_one_node_are_told_with_it() -> None:
    fault = shared_nodes(two_hosted(ZONE_A, POOL, node("n1", labelled={"zone": "a", "pool": "voice"})))
    assert fault is not None
    assert fault.reason == Reason.NODES_SHARED
    assert "Regions eu and us" in fault.message
    assert "node n1" in fault.message
    assert "nodeSelector" in fault.message


def test_hosted_regions_on_distinct_nodes_are_fine() -> None:
    nodes = (node("n1", labelled={"zone": "a"}), node("n2", labelled={"pool": "voice"}))
    assert shared_nodes(two_hosted(ZONE_A, POOL, *nodes)) is None


def test_hosted_regions_that_taints_keep_apart_are_fine() -> None:
    def tolerating(value: str) -> dict[str, object]:
        return {**POOL, "tolerations": [{"key": "for", "value": value, "effect": "NoSchedule"}]}

    def tainted(name: str, value: str) -> object:
        taint = {"key": "for", "value": value, "effect": "NoSchedule"}
        return node(name, labelled={"pool": "voice"}, taints=[taint])

    nodes = (tainted("n1", "a"), tainted("n2", "b"))
    assert shared_nodes(two_hosted(tolerating("a"), tolerating("b"), *nodes)) is None
