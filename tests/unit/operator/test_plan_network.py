"""Services lead where programs listen, and NetworkPolicies let in whom the design names."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from voicecluster.operator.plan.kubernetes import names

from tests.unit.operator.clusters import cluster, facts, planned, region, stored, template


def sources(policy: Mapping[str, Any], port: int) -> Any:
    """Who a NetworkPolicy lets in at the port; None: everybody."""
    [rule] = [rule for rule in policy["spec"]["ingress"] if rule["ports"][0]["port"] == port]
    return rule.get("from")


def test_a_vip_service_leads_to_where_relays_listen() -> None:
    vip = {"port": 443, "healthCheckPort": 443}
    service = planned(cluster(region(relay={"vip": vip})))["Service", "demo-eu-relay"]["spec"]
    assert service["ports"] == [
        {"name": "vip", "port": 443, "targetPort": 13478, "protocol": "UDP"},
        {"name": "health", "port": 443, "targetPort": 8086, "protocol": "TCP"},
    ]


def test_an_external_vip_gets_node_ports_of_the_apis_choice() -> None:
    vip = {"mode": "External", "addresses": ["192.0.2.1"]}
    service = planned(cluster(region(relay={"vip": vip})))["Service", "demo-eu-relay"]["spec"]
    assert service["type"] == "NodePort"
    assert not {"nodePort", "clusterIP", "externalIPs"} & (service.keys() | service["ports"][0].keys())


def test_media_addresses_are_published_ready_or_not_and_signaling_only_ready_ones() -> None:
    found = planned(cluster({}))
    assert found["Service", "demo-eu-media"]["spec"]["publishNotReadyAddresses"] is True
    signaling = found["Service", "demo-signaling"]["spec"]
    assert "publishNotReadyAddresses" not in signaling
    assert signaling["selector"] == names.selector("demo", "transceiver")


def test_routes_to_more_workers_stay_while_a_transceiver_has_them() -> None:
    wanted = cluster(region(transceiver={"workers": 1}))
    before, after = planned(wanted, facts(workers={"eu": 4})), planned(wanted)
    for found, workers in ((before, "4"), (after, "1")):
        assert found["Service", "demo-eu-media"]["metadata"]["labels"][names.WORKERS] == workers
        pod = template(found["StatefulSet", "demo-eu-transceiver"])
        assert pod["metadata"]["labels"][names.WORKERS] == "1"
    [media] = before["NetworkPolicy", "demo-transceiver"]["spec"]["ingress"][0]["ports"]
    assert (media["port"], media["endPort"]) == (40000, 40003)


def test_only_relays_reach_media_ports() -> None:
    policy = planned(cluster({}))["NetworkPolicy", "demo-transceiver"]
    assert sources(policy, 40000) == [{"podSelector": {"matchLabels": names.selector("demo", "relay")}}]


def test_relays_with_their_nodes_addresses_are_let_in_by_these_in_both_families() -> None:
    found = planned(stored("host-network"))
    assert sources(found["NetworkPolicy", "demo-transceiver"], 40000) == [
        {"podSelector": {"matchLabels": names.selector("demo", "relay")}},
        {"ipBlock": {"cidr": "10.89.0.0/16"}},
        {"ipBlock": {"cidr": "fd00:89::/64"}},
    ]


def test_nodes_are_let_in_nowhere_where_no_relay_has_their_address() -> None:
    found = planned(cluster({"networkPolicy": {"nodeCIDRs": ["10.0.0.0/16"]}}))
    assert "ipBlock" not in json.dumps([one for (kind, _), one in found.items() if kind == "NetworkPolicy"])


def test_only_siblings_reach_internal_ports() -> None:
    policy = planned(cluster({}))["NetworkPolicy", "demo-transceiver"]
    assert sources(policy, 9000) == [{"podSelector": {"matchLabels": names.selector("demo", "transceiver")}}]


@pytest.mark.parametrize("component", ["relay", "transceiver"])
def test_only_the_operator_and_monitoring_reach_admin_ports(component: str) -> None:
    found = planned(cluster({"networkPolicy": {"metricsNamespaces": ["mon"]}}))
    assert sources(found["NetworkPolicy", f"demo-{component}"], 8086) == [
        {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "voicecluster-system"}},
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "voicecluster-operator"}},
        },
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "mon"}}},
    ]


def test_only_relays_and_transceivers_reach_redis() -> None:
    policy = planned(cluster({}))["NetworkPolicy", "demo-redis"]
    assert sources(policy, 6379) == [
        {"podSelector": {"matchLabels": names.selector("demo", "relay")}},
        {"podSelector": {"matchLabels": names.selector("demo", "transceiver")}},
    ]


def test_everybody_of_both_families_reaches_vips_and_signaling() -> None:
    found = planned(cluster({}))
    assert sources(found["NetworkPolicy", "demo-relay"], 13478) is None
    assert sources(found["NetworkPolicy", "demo-transceiver"], 8080) is None


def test_load_balancers_reach_the_health_of_relays_only_where_asked_to() -> None:
    spec = {
        "regions": [
            {"name": "eu", "index": 0, "relay": {"vip": {"healthCheckPort": 8086}}},
            {"name": "us", "index": 1},
        ]
    }
    found = planned(cluster(spec))
    policy = found["NetworkPolicy", "demo-eu-relay"]
    assert policy["spec"]["podSelector"] == {"matchLabels": names.selector("demo", "relay", "eu")}
    assert sources(policy, 8086) is None
    assert ("NetworkPolicy", "demo-us-relay") not in found


def test_policies_can_be_switched_off() -> None:
    assert not [
        kind for kind, _ in planned(cluster({"networkPolicy": {"enabled": False}})) if "Policy" in kind
    ]
