"""Which public addresses a region's relays serve. Pure; names that must be resolved are passed in resolved.

Answers name what is found here, so an address is listed only while packets to it reach a ready relay, as far as
the objects say. One region's trouble never hides another's addresses.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from voicecluster.operator.api.status import VipSource, VipStatus
from voicecluster.operator.api.v1alpha1 import Region
from voicecluster.operator.observe import Node, Observed, RegionState, Taint
from voicecluster.operator.status.conditions import Fault, Reason


@dataclass(frozen=True, slots=True)
class Discovery:
    """The VIPs of one region, and what keeps it from having (more of) them."""

    vips: tuple[VipStatus, ...]
    fault: Fault | None = None
    """Why there are none."""
    note: str = ""
    """What is left out though there are some."""


def hostnames(observed: Observed) -> frozenset[str]:
    """The names of load balancers, which must be resolved."""
    return frozenset(
        way.hostname
        for region in observed.regions
        if region.spec.relay.vip.mode == "LoadBalancer"
        for way in region.vip.ingress
        if way.hostname and not way.address
    )


def discover(
    region: RegionState, nodes: Sequence[Node] | None, resolved: Mapping[str, Sequence[str]]
) -> Discovery:
    """The VIPs of a region, in the order answers prefer them."""
    mode = region.spec.relay.vip.mode
    if mode == "External":
        found = [_vip(region, address, "Spec") for address in region.spec.relay.vip.addresses]
        return Discovery(tuple(found))
    if mode == "HostNetwork":
        return _of_nodes(region, nodes)
    return _of_load_balancer(region, resolved)


def _vip(region: RegionState, address: str, source: VipSource, node: str | None = None) -> VipStatus:
    return VipStatus(address=address, port=region.spec.relay.vip.port, source=source, node=node)


def _of_load_balancer(region: RegionState, resolved: Mapping[str, Sequence[str]]) -> Discovery:
    service = f"Service {region.vip.name}"
    found = [_vip(region, way.address, "Service") for way in region.vip.ingress if way.address]
    unresolved = []
    for way in region.vip.ingress:
        if way.hostname and not way.address:
            addresses = resolved.get(way.hostname, ())
            found += [_vip(region, address, "Hostname") for address in addresses]
            unresolved += [] if addresses else [way.hostname]
    if found:
        unique = {vip.address: vip for vip in found}
        note = f"{service}: {', '.join(unresolved)} has no addresses and is left out." if unresolved else ""
        return Discovery(tuple(unique.values()), note=note)
    if unresolved:
        cause = f"{service}: its load balancer's name {', '.join(unresolved)} has no addresses"
        remedy = "check that the operator's DNS resolves it; it is tried again every 30 seconds."
        return Discovery((), Fault(Reason.HOSTNAME_UNRESOLVED, f"{cause}; {remedy}"))
    cause = f"{service} has no load balancer address yet"
    remedy = (
        f"see `kubectl describe service {region.vip.name}`; a cluster without a load balancer controller needs one,"
        f" or relay.vip.mode HostNetwork or External in region {region.spec.name}."
    )
    return Discovery((), Fault(Reason.VIP_PENDING, f"{cause}; {remedy}"))


def _of_nodes(region: RegionState, nodes: Sequence[Node] | None) -> Discovery:
    wanted = region.spec.relay.vip.node_address_type
    if nodes is None:
        message = (
            f"Region {region.spec.name}: the operator may not read nodes, whose addresses HostNetwork relays serve;"
            " install the operator's chart with hostNetwork.enabled=true."
        )
        return Discovery((), Fault(Reason.NODES_UNREADABLE, message))
    serving = _serving(region)
    found, without = [], []
    for node in nodes:
        if node.ready and node.name in serving:
            addresses = [address for kind, address in node.addresses if kind == wanted]
            found += [_vip(region, address, "Node", node.name) for address in addresses]
            without += [] if addresses else [node.name]
    if without:
        other = "InternalIP" if wanted == "ExternalIP" else "ExternalIP"
        lacking = (
            f"Region {region.spec.name}: node {', '.join(without)} has no {wanted}; write"
            f" relay.vip.nodeAddressType: {other}, or let the nodes' provider set it."
        )
        if not found:
            return Discovery((), Fault(Reason.NODE_ADDRESS_MISSING, lacking))
        return Discovery(tuple(found), note=lacking)
    if not found:
        message = (
            f"DaemonSet {region.relays.name}: no Ready node has a ready relay, so region {region.spec.name} has no"
            " VIP; see the condition RelaysAvailable."
        )
        return Discovery((), Fault(Reason.NO_READY_RELAY, message))
    return Discovery(tuple(found))


def _serving(region: RegionState) -> frozenset[str]:
    """Nodes with a ready relay that stays; if all are leaving, theirs are better than none."""
    ready = [pod for pod in region.relay_pods if pod.ready]
    staying = [pod for pod in ready if not pod.terminating]
    return frozenset(pod.node for pod in staying or ready)


def private(vips: Sequence[VipStatus]) -> tuple[VipStatus, ...]:
    """Those that callers on the internet cannot reach."""
    return tuple(vip for vip in vips if not ipaddress.ip_address(vip.address).is_global)


def shared_nodes(observed: Observed) -> Fault | None:
    """Two HostNetwork regions that would run relays on one node, where they fight for its ports."""
    hosted = [region.spec for region in observed.regions if region.spec.relay.vip.mode == "HostNetwork"]
    for one, other in combinations(hosted, 2):
        if observed.nodes is None:
            continue
        both = [node.name for node in observed.nodes if _fits(one, node) and _fits(other, node)]
        if both:
            message = (
                f"Regions {one.name} and {other.name} both have HostNetwork relays on node {both[0]}, where their"
                " ports collide; give regions[].nodeSelector labels that no node has both of."
            )
            return Fault(Reason.NODES_SHARED, message)
    return None


def _fits(region: Region, node: Node) -> bool:
    if any(node.labels.get(key) != value for key, value in region.node_selector.items()):
        return False
    return all(
        taint.effect not in ("NoSchedule", "NoExecute") or _tolerated(region, taint) for taint in node.taints
    )


def _tolerated(region: Region, taint: Taint) -> bool:
    if taint.key.startswith("node.kubernetes.io/"):
        return True  # conditions that pass, and that DaemonSets tolerate
    return any(
        (each.key is None or each.key == taint.key)
        and (each.effect is None or each.effect == taint.effect)
        and (each.operator == "Exists" or (each.value or "") == taint.value)
        for each in region.tolerations
    )
