"""Whatever stands between the operator and its API server, the end is the same: all that is wanted, and no more."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.cluster import GENERATED, Cluster, manifest
from tests.integration.operator.process import Operator
from tests.integration.operator.proxy import Fault, Proxy, Request, any_write

LEASES = "/apis/coordination.k8s.io/v1"
Operators = Callable[..., Operator]


@pytest.fixture
def cluster(apiserver: ApiServer, namespace: str) -> Cluster:
    """Applied, and not yet seen by any operator."""
    cluster = Cluster(apiserver, namespace)
    cluster.apply(manifest("eu"))
    return cluster


@pytest.fixture(scope="session")
def names(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> set[tuple[str, str]]:
    """The children that an undisturbed operator makes of the same VoiceCluster."""
    apiserver.kubectl("create", "namespace", "undisturbed")
    cluster = Cluster(apiserver, "undisturbed")
    cluster.apply(manifest("eu"))
    home = tmp_path_factory.mktemp("undisturbed")
    operator = Operator(apiserver, home, namespace="undisturbed", lease_namespace="undisturbed")
    operator.start()
    cluster.settled()
    operator.stop()
    return set(cluster.children())


def test_a_first_reconcile_without_trouble_makes_every_child(names: set[tuple[str, str]]) -> None:
    assert {("secrets", name) for name in GENERATED} <= names


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=409, times=3),
        Fault(status=429, retry_after=1, times=3),
        Fault(status=500, times=3),
        Fault(hits=lambda request: request.writes and "/services/" in request.path, status=503, times=8),
        Fault(lose_answer=True, times=8),
        Fault(hits=lambda request: not request.about_lease, delay=0.3),
    ],
    ids=["409", "429", "500", "503", "answers lost", "slow"],
)
def test_the_operator_converges_through(
    fault: Fault, cluster: Cluster, proxy: Proxy, operators: Operators, names: set[tuple[str, str]]
) -> None:
    with proxy.fault(fault):
        operators(url=proxy.url).start()
        cluster.settled(seconds=40)
        assert fault.seen, "it was put to the test"
    assert set(cluster.children()) == names


def test_a_server_that_asks_for_patience_gets_it(
    cluster: Cluster, proxy: Proxy, operators: Operators
) -> None:
    asked: list[float] = []
    fault = Fault(
        hits=lambda request: any_write(request) and request.path.endswith("/status"),
        status=429,
        retry_after=4,
        times=1,
    )

    def note(request: Request) -> None:
        if request.writes:
            asked.append(time.monotonic())

    proxy.before = note
    with proxy.fault(fault):
        operators(url=proxy.url).start()
        cluster.settled()
    assert asked[1] - asked[0] >= 4.0


def test_dropped_watches_are_taken_up_again(cluster: Cluster, proxy: Proxy, operators: Operators) -> None:
    operators(url=proxy.url).start()
    cluster.settled()
    cluster.quiet()
    for _ in range(3):
        proxy.drop_watches()
        cluster.apiserver.request("DELETE", cluster.path("services", "demo-signaling"))
        until(
            lambda: ("services", "demo-signaling") in cluster.children(),
            seconds=5,
            what="the Service, although the watches were dropped",
        )


def test_what_vanished_while_nothing_was_heard_is_made_again(
    cluster: Cluster, proxy: Proxy, operators: Operators
) -> None:
    """The watch cannot be resumed, so kopf lists anew and does not tell what is missing: the sweep finds it."""
    operators(url=proxy.url).start()
    cluster.settled()
    cluster.quiet()
    proxy.deaf = True
    cluster.apiserver.request("DELETE", cluster.path("services", "demo-signaling"))
    until(lambda: b"demo-signaling" in proxy.swallowed, what="an event that the operator does not get")
    gone = Fault(hits=lambda request: request.watches and "/services" in request.path, status=410, times=1)
    with proxy.fault(gone):
        proxy.deaf = False
        proxy.drop_watches()
        until(lambda: gone.seen, what="the watch's end")
    until(lambda: ("services", "demo-signaling") in cluster.children(), seconds=10, what="the Service")


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("moment", "lives_for"), [("before", 4), ("after", 3)])
def test_killed_every_few_writes_it_converges_and_leaves_no_orphan(
    moment: str,
    lives_for: int,
    proxy: Proxy,
    operators: Operators,
    cluster: Cluster,
    names: set[tuple[str, str]],
) -> None:
    """One operator after the other is killed at its n-th write, before or after the server has done it.

    So each begins where the last one was torn away, three writes further, until one finds nothing left to do.
    """
    known: dict[tuple[str, str], Any] = {}
    proxy.one_by_one, deaths = True, 0
    while True:
        operator, fatal = operators(url=proxy.url), threading.Event()
        strike = _executioner(operator, fatal, lives_for)
        proxy.before = strike if moment == "before" else lambda _, fatal=fatal: not fatal.is_set()
        proxy.after = strike if moment == "after" else lambda _: None
        operator.launch()
        until(
            lambda operator=operator: not operator.runs or operator.reconciled(), seconds=30, what="its end"
        )
        now = survivors(cluster)
        assert now | known == now, "a key was made twice"
        known = now
        if not fatal.is_set():
            break
        deaths += 1
        cluster.apiserver.request(
            "DELETE", f"{LEASES}/namespaces/{cluster.namespace}/leases/voicecluster-operator"
        )
    assert deaths > 5, "it was put to the test"
    assert set(cluster.children()) == names
    cluster.quiet()
    assert set(cluster.children()) == names


def survivors(cluster: Cluster) -> dict[tuple[str, str], Any]:
    """The generated Secrets' contents: each is made once, whatever happens."""
    return {key: value["data"] for key, value in cluster.children().items() if key[1] in GENERATED}


def _executioner(operator: Operator, fatal: threading.Event, lives_for: int) -> Callable[[Request], bool]:
    """Kills at the last write of so many; what was on its way is lost then."""
    left = lives_for

    def strike(request: Request) -> bool:
        nonlocal left
        if request.writes and not fatal.is_set():
            left -= 1
            if left == 0:
                fatal.set()
                operator.kill()
        return not fatal.is_set()

    return strike
