"""Which VIPs an answer names: where the caller may send its packets.

VIPs that belong to nodes go away with their node, so an answer names those of two nodes, chosen by rendezvous
hash: each node is weighed by a hash of the call and itself, and the two heaviest win. Calls spread evenly over
nodes, every transceiver weighs alike, and when a node goes only the calls that named it are moved. A VIP of no
node (a load balancer's) stays: one of each address family is enough.
"""

import hashlib
from collections.abc import Collection, Iterable, Sequence

from voicecluster.common.config.transceiver import Vip
from voicecluster.transceiver.sdp.answer import Candidate

NODES = 2
MOST_CANDIDATES = 5
"""More would cost every caller checks, and Firefox paces them."""


def candidates_of(vips: Sequence[Vip], call: str, *, keep: Iterable[Candidate] = ()) -> list[Candidate]:
    """The candidates of `call` (any text that stays the same through its life), the best first.

    UDP, one of each address family of each node, IPv6 first as RFC 8421 recommends. VIPs in `keep`, what the call
    was told before, are preferred to better ones as long as they exist.
    """
    kept = {(candidate.address, candidate.port) for candidate in keep}
    by_node: dict[str | None, list[Vip]] = {}
    for vip in vips:
        if vip.protocol == "udp":
            by_node.setdefault(vip.node, []).append(vip)
    of_no_node = by_node.pop(None, [])
    kept_nodes = {vip.node for vip in vips if (vip.address, vip.port) in kept} if kept else set()
    weights = sorted(((node in kept_nodes, _hash(call, str(node)), node) for node in by_node), reverse=True)
    chosen: list[Vip] = []
    for group in (of_no_node, *(by_node[node] for _, _, node in weights[:NODES])):
        for is_ipv6 in (True, False):
            family = [vip for vip in group if (":" in vip.address) is is_ipv6]
            chosen += _heaviest(family, call, kept)
    return [Candidate(vip.address, vip.port) for vip in chosen[:MOST_CANDIDATES]]


def _heaviest(vips: Sequence[Vip], call: str, kept: Collection[tuple[str, int]]) -> Sequence[Vip]:
    """One of `vips`, or none of none."""
    if len(vips) < 2:
        return vips

    def weight(vip: Vip) -> tuple[bool, bytes]:
        return (vip.address, vip.port) in kept, _hash(call, f"{vip.address} {vip.port}")

    return [max(vips, key=weight)]


def _hash(call: str, what: str) -> bytes:
    return hashlib.blake2b(f"{call} {what}".encode(), digest_size=8).digest()
