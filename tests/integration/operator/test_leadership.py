"""Two operators, one leader; and how a replica starts and ends."""

import time
from collections.abc import Callable

import pytest

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.cluster import Cluster, manifest
from tests.integration.operator.process import Operator
from tests.integration.operator.proxy import Fault, Proxy

Operators = Callable[..., Operator]


@pytest.fixture
def cluster(apiserver: ApiServer, namespace: str) -> Cluster:
    return Cluster(apiserver, namespace)


def leads(operator: Operator, *, seconds: float) -> None:
    until(lambda: operator.leads, seconds=seconds, what="leading")


def test_one_leads_and_the_other_is_ready_and_writes_nothing(cluster: Cluster, operators: Operators) -> None:
    first = operators("first").start()
    leads(first, seconds=10)
    second = operators("second", user="other-operator").start()
    cluster.apply(manifest("eu"))
    cluster.settled()
    assert not second.leads
    assert second.ready()
    assert cluster.writes(0, user="other-operator") == []


@pytest.mark.timeout(90)
def test_a_killed_leader_is_followed_within_twenty_seconds(cluster: Cluster, operators: Operators) -> None:
    first = operators("first").start()
    leads(first, seconds=10)
    second = operators("second").start()
    first.kill()
    leads(second, seconds=20)
    cluster.apply(manifest("eu"))
    cluster.settled()


def test_a_leader_that_is_stopped_gives_the_lease_back(cluster: Cluster, operators: Operators) -> None:
    first = operators("first").start()
    leads(first, seconds=10)
    second = operators("second").start()
    began = time.monotonic()
    assert first.stop() == 0
    assert time.monotonic() - began < 10
    leads(second, seconds=5)


@pytest.mark.timeout(90)
def test_a_leader_that_is_cut_off_ends_before_another_leads(
    cluster: Cluster, proxy: Proxy, operators: Operators
) -> None:
    first = operators("first", url=proxy.url).start()
    leads(first, seconds=10)
    second = operators("second").start()
    with proxy.fault(Fault(hits=lambda _: True, status=500)):
        until(lambda: not first.runs, seconds=20, what="the first one's end")
        assert not second.leads
        assert first.wait(1) == 1
        leads(second, seconds=20)
    assert any(line["message"] == "lost the Lease" for line in first.lines())


def test_a_stop_while_it_reconciles_is_quick(cluster: Cluster, proxy: Proxy, operators: Operators) -> None:
    cluster.apply(manifest("eu"))
    with proxy.fault(Fault(delay=30)) as slow:
        operator = operators(url=proxy.url).start()
        until(lambda: slow.seen, seconds=15, what="a reconcile")
        began = time.monotonic()
        assert operator.stop() == 0
        assert time.monotonic() - began < 8


def test_a_stop_while_it_waits_for_the_lease_is_quick(cluster: Cluster, operators: Operators) -> None:
    leads(operators("first").start(), seconds=10)
    second = operators("second").start()
    began = time.monotonic()
    assert second.stop() == 0
    assert time.monotonic() - began < 5


def test_an_api_server_that_is_away_is_waited_for(
    cluster: Cluster, proxy: Proxy, operators: Operators
) -> None:
    with proxy.fault(Fault(hits=lambda _: True, status=503)):
        operator = operators(url=proxy.url).start()
        until(lambda: "cannot get the Lease" in operator.log(), seconds=15, what="a complaint")
        assert operator.runs
    leads(operator, seconds=15)


def test_the_probes_tell_a_leader_that_has_listed_everything(cluster: Cluster, operators: Operators) -> None:
    operator = operators().start()
    until(lambda: operator.leads and operator.ready(), what="readiness")
    assert operator.health("/livez") == {"ok": True, "reasons": {}}


def test_missing_definitions_are_named_with_the_remedy(
    cluster: Cluster, proxy: Proxy, operators: Operators
) -> None:
    gone = Fault(hits=lambda request: "/voiceregions" in request.path and not request.watches, status=404)
    with proxy.fault(gone):
        operator = operators(url=proxy.url).start()
        until(lambda: not operator.ready(), seconds=15, what="a complaint")
        reason = operator.health("/readyz")["reasons"]["start"]
    assert "voiceregions.voicecluster.dev is missing; install the chart with crds.enabled" in reason
    until(operator.ready, seconds=15, what="readiness")


def test_metrics_tell_build_leader_queue_and_requests(cluster: Cluster, operators: Operators) -> None:
    operator = operators().start()
    cluster.apply(manifest("eu"))
    cluster.settled()
    for name in (
        "build_info",
        "leader",
        "queue_latency_seconds_count",
        "reconcile_seconds_count",
        "api_request_seconds_count",
        "watch_events_total",
    ):
        until(lambda name=name: operator.metric(f"voicecluster_operator_{name}"), seconds=5, what=name)
