"""What operator, relays and transceivers may do is what they do: the API server's audit log says so.

They come last: what was forbidden is read for the whole run.
"""

from typing import Any

import pytest

from tests.e2e.cluster import Cluster, Machine, Object, within
from tests.e2e.conftest import OPERATOR_NAMESPACE, RELEASE, Deploy
from tests.e2e.voice import Deployed, of_spec
from tests.integration.operator.grants import account, forbidden, grants, records, used, user

NAME = "rbac"
MAIN: Object = {
    "name": "main",
    "index": 0,
    "relay": {"vip": {"mode": "External", "addresses": ["203.0.113.1"]}},
}
EDGE: Object = {
    "name": "edge",
    "index": 1,
    "nodeSelector": {"topology.kubernetes.io/region": "eu-west"},
    "relay": {"vip": {"mode": "HostNetwork", "port": 3999, "nodeAddressType": "InternalIP"}},
}


def spec(*regions: Object, **more: Any) -> Object:
    return {"clusterId": 72, "regions": list(regions), **more}


@pytest.fixture(scope="module")
def audit(machine: Machine, cluster: Cluster, deployed: Deploy) -> list[dict[str, Any]]:
    """The audit log after a cluster was made, lost a region and what it does not need, and got another image."""
    nodes = {"nodeCIDRs": ["10.0.0.0/8", "fd00::/8"]}
    voice = deployed(of_spec(NAME, spec(MAIN, EDGE, networkPolicy=nodes)), seconds=150)
    [pod] = voice.pods("transceiver", "main")
    upgraded = {"transceiver": cluster.images.of("transceiver", upgraded=True)}
    less = {"networkPolicy": {"enabled": False}, "redis": {"mode": "None"}, "images": upgraded}
    cluster.apply(voice.namespace, of_spec(NAME, spec(MAIN, **less)))
    within(120, lambda: gone(voice, pod), "deleting the pod of an old image")
    within(120, lambda: not voice.pods("transceiver", "edge"), "removing a region")
    within(120, lambda: not cluster.list("networkpolicies", voice.namespace), "removing the policies")
    return list(records(machine.audit_log))


def gone(voice: Deployed, pod: Object) -> bool:
    return pod["metadata"]["uid"] not in [
        each["metadata"]["uid"] for each in voice.pods("transceiver", "main")
    ]


def bound(cluster: Cluster, namespace: str | None, name: str) -> list[Object]:
    """The Roles of a namespace, or with None the ClusterRoles, that are bound to a service account."""
    _, _, own, account_name = name.split(":")
    kind, where = ("clusterrole", "") if namespace is None else ("role", namespace)
    return [
        cluster.get(kind, binding["roleRef"]["name"], where)
        for binding in cluster.list(f"{kind}binding", where)
        if {"kind": "ServiceAccount", "name": account_name, "namespace": own} in binding.get("subjects", [])
    ]


def test_the_operator_uses_every_verb_that_it_has_and_never_needed_another(
    cluster: Cluster, audit: list[dict[str, Any]]
) -> None:
    name = account(OPERATOR_NAMESPACE, f"{RELEASE}-voicecluster-operator")
    granted = grants(bound(cluster, None, name) + bound(cluster, OPERATOR_NAMESPACE, name))
    assert granted
    assert sorted(map(str, granted - used(audit, {name}))) == []
    assert forbidden(audit, {name}) == set()


@pytest.mark.parametrize("component", ["relay", "transceiver"])
def test_a_component_uses_every_verb_that_it_has_and_never_needed_another(
    cluster: Cluster, audit: list[dict[str, Any]], namespace: str, component: str
) -> None:
    name = account(namespace, f"{NAME}-{component}")
    granted = grants(bound(cluster, namespace, name))
    everywhere = {each for each in map(user, audit) if each.endswith(f"-{component}")}
    assert granted
    assert sorted(map(str, granted - used(audit, {name}))) == []
    assert forbidden(audit, everywhere, but=granted) == set()
