"""What EndpointSlices say, read without an API server."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from voicecluster.common.config.relay import Leaving, SliceRoutes
from voicecluster.relay.slices import Listed, has_successor, routes_of

CONFIG = SliceRoutes(namespace="ns", selector="x=y", cluster_id=7, cache_file=Path("/none"))

Fields = dict[str, object]


def endpoint(hostname: object, address: object, **conditions: bool | None) -> Fields:
    conditions = {"ready": True, "serving": True, "terminating": False, **conditions}
    return {"hostname": hostname, "addresses": [address], "conditions": conditions}


def entry(*endpoints: object, workers: object = "1", kind: str = "IPv4", version: str = "1") -> Fields:
    labels = {"voicecluster.dev/workers": workers}
    return {
        "metadata": {"labels": labels, "resourceVersion": version},
        "addressType": kind,
        "endpoints": list(endpoints),
    }


def read(*slices: Fields, family: int = 4) -> Listed:
    return routes_of(slices, CONFIG, family=family)  # type: ignore[arg-type]


def addresses(*slices: Fields, family: int = 4) -> Mapping[int, str]:
    """Ordinal to address of worker 0."""
    routes = read(*slices, family=family).routes
    return {ordinal: address for (_, ordinal, worker), address in routes.items() if worker == 0}


def test_every_worker_of_an_endpoint_is_a_route() -> None:
    listed = read(entry(endpoint("c-eu-transceiver-1025", "10.0.0.5"), workers="2"))
    assert listed.routes == {(7, 1025, 0): "10.0.0.5:40000", (7, 1025, 1): "10.0.0.5:40001"}
    assert not listed.ignored


def test_slices_of_several_services_and_families_add_up() -> None:
    slices = (
        entry(endpoint("a-0", "10.0.0.1"), endpoint("a-1", "10.0.0.2")),
        entry(endpoint("b-1024", "fd00::9"), kind="IPv6"),
    )
    assert addresses(*slices) == {0: "10.0.0.1:40000", 1: "10.0.0.2:40000", 1024: "[fd00::9]:40000"}


@pytest.mark.parametrize(
    "conditions",
    [
        {"ready": False, "serving": False},
        {"terminating": True},
        {"ready": False, "serving": False, "terminating": True},
        {"ready": None, "serving": None, "terminating": None},
    ],
)
def test_an_endpoint_is_a_route_whatever_its_condition(conditions: dict[str, bool | None]) -> None:
    assert addresses(entry(endpoint("a-3", "10.0.0.1", **conditions))) == {3: "10.0.0.1:40000"}


def test_of_two_endpoints_with_one_ordinal_the_one_that_stays_counts() -> None:
    old = entry(endpoint("a-3", "10.0.0.1", terminating=True), version="9")
    new = entry(endpoint("a-3", "10.0.0.2"), version="2")
    assert addresses(old, new) == addresses(new, old) == {3: "10.0.0.2:40000"}


def test_of_two_that_stay_the_later_one_counts() -> None:
    old, new = (
        entry(endpoint("a-3", address), version=version)
        for address, version in (("10.0.0.1", "99"), ("10.0.0.2", "100"))
    )
    assert addresses(old, new) == addresses(new, old) == {3: "10.0.0.2:40000"}


@pytest.mark.parametrize(("family", "address"), [(4, "10.0.0.1:40000"), (6, "[fd00::1]:40000")])
def test_of_two_families_the_relays_own_counts(family: int, address: str) -> None:
    slices = entry(endpoint("a-3", "10.0.0.1")), entry(endpoint("a-3", "fd00::1"), kind="IPv6", version="9")
    assert addresses(*slices, family=family) == {3: address}


@pytest.mark.parametrize(
    ("endpoints", "reason"),
    [
        ([endpoint(None, "10.0.0.1")], "hostname"),
        ([endpoint("a", "10.0.0.1")], "hostname"),
        ([endpoint("a-65536", "10.0.0.1")], "hostname"),
        ([endpoint("a-007", "10.0.0.1")], "hostname"),
        ([endpoint("a-1", "example.org")], "address"),
        ([endpoint("a-1", "0.0.0.0")], "address"),
        ([endpoint("a-1", "224.0.0.1")], "address"),
        ([{"hostname": "a-1"}], "address"),
        ([{"hostname": "a-1", "addresses": []}], "address"),
    ],
)
def test_an_endpoint_that_makes_no_sense_is_counted_and_its_neighbour_kept(
    endpoints: list[Fields], reason: str
) -> None:
    listed = read(entry(*endpoints, endpoint("a-9", "10.0.0.9")))
    assert (list(listed.routes), listed.ignored) == ([(7, 9, 0)], {reason: 1})


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (entry(endpoint("a-1", "10.0.0.1"), workers=None), "workers"),
        (entry(endpoint("a-1", "10.0.0.1"), workers="0"), "workers"),
        (entry(endpoint("a-1", "10.0.0.1"), workers="257"), "workers"),
        (entry(endpoint("a-1", "10.0.0.1"), workers="many"), "workers"),
        (entry(endpoint("a-1", "x.example"), kind="FQDN"), "address_type"),
    ],
)
def test_a_slice_that_makes_no_sense_is_counted(broken: Fields, reason: str) -> None:
    assert (read(broken).routes, read(broken).ignored) == ({}, {reason: 1})


@pytest.mark.parametrize("nothing", [None, [], "text", [None, 3]])
def test_a_slice_without_endpoints_is_no_error(nothing: object) -> None:
    assert read({**entry(), "endpoints": nothing}) == Listed({}, {})


class TestSuccessor:
    def relay(self, pod: str, node: str, **conditions: bool) -> Fields:
        return {**endpoint(None, "10.0.0.1", **conditions), "targetRef": {"name": pod}, "nodeName": node}

    def found(self, *relays: Fields, same_node: bool = True) -> bool:
        leaving = Leaving(namespace="ns", service="relays", same_node=same_node, grace_seconds=60)
        return has_successor([entry(*relays)], leaving, pod="me", node="n1")  # type: ignore[list-item]

    def test_another_ready_relay_on_the_node_is_one(self) -> None:
        assert self.found(self.relay("me", "n1"), self.relay("next", "n1"))

    def test_the_relay_itself_is_none(self) -> None:
        assert not self.found(self.relay("me", "n1"))

    def test_one_that_is_not_ready_or_goes_itself_is_none(self) -> None:
        assert not self.found(self.relay("a", "n1", ready=False), self.relay("b", "n1", terminating=True))

    def test_one_elsewhere_is_one_unless_callers_stay_on_their_node(self) -> None:
        elsewhere = self.relay("next", "n2")
        assert (self.found(elsewhere), self.found(elsewhere, same_node=False)) == (False, True)
