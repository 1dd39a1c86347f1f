"""What the operator's log tells, and what it never tells."""

import base64
from collections.abc import Callable

import pytest

from tests.integration.operator.apiserver import ApiServer
from tests.integration.operator.cluster import GENERATED, Cluster, manifest
from tests.integration.operator.process import Operator
from tests.integration.operator.proxy import Fault, Proxy

Operators = Callable[..., Operator]


@pytest.fixture
def cluster(apiserver: ApiServer, namespace: str) -> Cluster:
    return Cluster(apiserver, namespace)


def test_every_change_is_one_line_with_its_object_and_its_reconcile(
    cluster: Cluster, operators: Operators
) -> None:
    operator = operators().start()
    cluster.apply(manifest("eu"))
    cluster.settled()
    applied = [line for line in operator.lines() if line["message"] == "applied"]
    objects = [line["object"] for line in applied]
    assert f"Service {cluster.namespace}/demo-signaling" in objects
    assert len(objects) == len(set(objects))
    assert {line["voicecluster"] for line in applied} == {f"{cluster.namespace}/demo"}
    assert all(line["reconcile"] for line in applied)


def test_a_quiet_operator_says_nothing(cluster: Cluster, operators: Operators) -> None:
    operator = operators().start()
    cluster.apply(manifest("eu"))
    cluster.settled()
    cluster.quiet()
    before = operator.log()
    cluster.apply(manifest("eu"))
    cluster.quiet()
    assert operator.log() == before


def test_the_log_never_has_a_secret_in_it(cluster: Cluster, proxy: Proxy, operators: Operators) -> None:
    """At the highest level, with refusals of every kind, and with Secrets that were broken by hand."""
    operator = operators(url=proxy.url, options=("--log-level", "debug"))
    with proxy.fault(Fault(status=409, times=2)), proxy.fault(Fault(status=500, times=2)):
        operator.start()
        cluster.apply(manifest("eu"))
        cluster.settled()
    known = {name: cluster.get("secrets", name)["data"] for name in (*GENERATED, "demo-hint-keys")}
    for name, broken in (
        ("demo-root-keys", "bWludDogY2hvcHBlZC1rZXk="),
        ("demo-hint-keys", "Y2hvcHBlZC10b28="),
    ):
        entries = dict.fromkeys(known[name], broken)
        cluster.apiserver.request(
            "PATCH",
            cluster.path("secrets", name),
            {"data": entries},
            media_type="application/merge-patch+json",
        )
    cluster.quiet()
    log = operator.log()
    secrets = [value for entries in known.values() for value in entries.values()]
    for secret in [*secrets, "bWludDogY2hvcHBlZC1rZXk="]:
        plain = base64.b64decode(secret).decode(errors="replace")
        parts = [
            secret,
            *(part for part in plain.replace(":", " ").replace('"', " ").split() if len(part) > 10),
        ]
        assert not [part for part in parts if part in log]
