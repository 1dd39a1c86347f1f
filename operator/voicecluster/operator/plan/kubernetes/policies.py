"""NetworkPolicies: who may reach our pods. They say nothing about what our pods may reach.

A relay in HostNetwork mode is no pod to a policy: it is let in by its node's address (`networkPolicy.nodeCIDRs`).
Sources are pods, namespaces and, for nodes, networks of either family; a rule without sources admits both families.
"""

from collections.abc import Sequence

from voicecluster.common.config.pod import (
    ADMIN_PORT,
    BACKBONE_PORT,
    INTERNAL_PORT,
    MEDIA_PORT,
    SIGNALING_PORT,
)
from voicecluster.operator.api.v1alpha1 import Region
from voicecluster.operator.kube.port import NETWORK_POLICIES, Json, Object
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.redis import PORT as REDIS_PORT
from voicecluster.operator.plan.kubernetes.relay import LISTEN_PORT
from voicecluster.operator.plan.kubernetes.scope import Scope


def policies(scope: Scope) -> list[Object]:
    """All NetworkPolicies; none where they are switched off. Ours: all of each."""
    spec = scope.cluster.spec
    if not spec.network_policy.enabled:
        return []
    return [
        relay_policy(scope),
        *(
            health_policy(scope, region)
            for region in spec.regions
            if region.relay.vip.mode == "LoadBalancer" and region.relay.vip.health_check_port is not None
        ),
        transceiver_policy(scope),
        *([redis_policy(scope)] if spec.redis.mode == "Embedded" else []),
    ]


def relay_policy(scope: Scope) -> Object:
    """Anybody reaches a VIP, transceivers the backbone, operator and monitoring the admin port."""
    rules = [
        _rule([_port(LISTEN_PORT, "UDP")]),
        _rule([_port(BACKBONE_PORT, "UDP")], [_pods(scope, "transceiver")]),
        _admin(scope),
    ]
    return _policy(scope, "relay", rules)


def health_policy(scope: Scope, region: Region) -> Object:
    """Load balancers reach the health of this region's relays, from addresses nobody can list."""
    name = names.relay(scope.name, region.name)
    spec: dict[str, Json] = {
        "podSelector": {"matchLabels": names.selector(scope.name, "relay", region.name)},
        "policyTypes": ["Ingress"],
        "ingress": [_rule([_port(ADMIN_PORT, "TCP")])],
    }
    return scope.object(NETWORK_POLICIES, name, "relay", region, spec=spec)


def transceiver_policy(scope: Scope) -> Object:
    """Relays reach media ports, siblings the internal ones, anybody signaling, the operator drains.

    The ranges of ports are as long as the region with most workers needs.
    """
    workers = max(scope.workers(region) for region in scope.cluster.spec.regions)
    rules = [
        _rule([_port(MEDIA_PORT, "UDP", workers)], _relays(scope)),
        _rule([_port(INTERNAL_PORT, "TCP", workers)], [_pods(scope, "transceiver")]),
        _rule([_port(SIGNALING_PORT, "TCP")]),
        _admin(scope),
    ]
    return _policy(scope, "transceiver", rules)


def redis_policy(scope: Scope) -> Object:
    """Relays and transceivers reach Redis, nobody else."""
    return _policy(
        scope, "redis", [_rule([_port(REDIS_PORT, "TCP")], [*_relays(scope), _pods(scope, "transceiver")])]
    )


def _policy(scope: Scope, component: names.Everywhere, rules: Sequence[Json]) -> Object:
    spec: dict[str, Json] = {
        "podSelector": {"matchLabels": names.selector(scope.name, component)},
        "policyTypes": ["Ingress"],
        "ingress": list(rules),
    }
    return scope.object(NETWORK_POLICIES, names.everywhere(scope.name, component), component, spec=spec)


def _admin(scope: Scope) -> Json:
    defaults = scope.facts.defaults
    operator: dict[str, Json] = {
        **_namespace(defaults.operator_namespace),
        "podSelector": {"matchLabels": dict(defaults.operator_labels)},
    }
    monitoring = [_namespace(name) for name in scope.cluster.spec.network_policy.metrics_namespaces]
    return _rule([_port(ADMIN_PORT, "TCP")], [operator, *monitoring])


def _relays(scope: Scope) -> list[Json]:
    nodes = scope.cluster.spec.network_policy.node_cidrs if scope.hosted else []
    return [_pods(scope, "relay"), *({"ipBlock": {"cidr": network}} for network in nodes)]


def _pods(scope: Scope, component: names.Component) -> Json:
    return {"podSelector": {"matchLabels": names.selector(scope.name, component)}}


def _namespace(name: str) -> dict[str, Json]:
    return {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}


def _rule(ports: Sequence[Json], sources: Sequence[Json] = ()) -> dict[str, Json]:
    return {**({"from": list(sources)} if sources else {}), "ports": list(ports)}


def _port(number: int, protocol: str, count: int = 1) -> dict[str, Json]:
    found: dict[str, Json] = {"port": number, "protocol": protocol}
    return found | ({"endPort": number + count - 1} if count > 1 else {})
