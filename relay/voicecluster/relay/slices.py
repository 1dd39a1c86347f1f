"""What EndpointSlices say: which routes there are, and whether another relay can take over. No socket, no clock.

A transceiver's endpoint is a route whether it is ready or not, also while it terminates: readiness is about new
calls (signaling), a route carries those that are there until the address is gone.
"""

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from voicecluster.common.config.model import join_address
from voicecluster.common.config.relay import Leaving, SliceRoutes
from voicecluster.common.kube.watched import Json, Object
from voicecluster.relay.routes import RouteKey

WORKERS = "voicecluster.dev/workers"
"""Label of the media Services, and so of their slices: how many workers each of their transceivers has."""

_ORDINAL = re.compile(r"(?:^|-)(0|[1-9][0-9]{0,4})$")
_MOST_ORDINAL = 65535
_MOST_WORKERS = 256


@dataclass(frozen=True, slots=True)
class Listed:
    """The routes that slices name, and how many endpoints (or whole slices) were no use, by reason."""

    routes: Mapping[RouteKey, str]
    ignored: Mapping[str, int]


def routes_of(slices: Iterable[Object], config: SliceRoutes, *, family: int) -> Listed:
    """Read the routes of all slices.

    Two endpoints may have one ordinal for a moment: a pod that comes where another goes, or one that moves from
    slice to slice. The one that is not terminating counts, then that of the relay's own address `family` (4 or 6),
    then that of the slice which changed last.
    """
    ignored: Counter[str] = Counter()
    best: dict[int, tuple[tuple[bool, bool, int], str, int]] = {}
    for entry in slices:
        workers = _number(_mapping(_mapping(entry.get("metadata")).get("labels")).get(WORKERS))
        if entry.get("addressType") not in ("IPv4", "IPv6"):
            ignored["address_type"] += 1
        elif workers is None or not 1 <= workers <= _MOST_WORKERS or config.media_port + workers > 65536:
            ignored["workers"] += 1
        else:
            changed = _number(_mapping(entry.get("metadata")).get("resourceVersion")) or 0
            for endpoint in _endpoints(entry):
                address, ordinal = _address(endpoint), _ordinal(endpoint)
                if address is None:
                    ignored["address"] += 1
                elif ordinal is None:
                    ignored["hostname"] += 1
                else:
                    rank = (not _is(endpoint, "terminating"), address.version == family, changed)
                    if ordinal not in best or rank > best[ordinal][0]:
                        best[ordinal] = rank, str(address), workers
    routes = {
        (config.cluster_id, ordinal, worker): join_address(address, config.media_port + worker)
        for ordinal, (_, address, workers) in best.items()
        for worker in range(workers)
    }
    return Listed(routes, ignored)


def has_successor(slices: Iterable[Object], leaving: Leaving, *, pod: str, node: str | None) -> bool:
    """Return whether another relay than `pod` is ready to take this one's callers."""
    return any(
        _is(endpoint, "ready", otherwise=True)
        and not _is(endpoint, "terminating")
        and _mapping(endpoint.get("targetRef")).get("name") != pod
        and (not leaving.same_node or endpoint.get("nodeName") == node)
        for entry in slices
        for endpoint in _endpoints(entry)
    )


def _endpoints(entry: Object) -> Iterator[Object]:
    endpoints = entry.get("endpoints")
    if isinstance(endpoints, list):
        yield from (endpoint for endpoint in endpoints if isinstance(endpoint, Mapping))


def _address(endpoint: Object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The first address: Kubernetes says that the others mean the same."""
    addresses = endpoint.get("addresses")
    if not isinstance(addresses, list) or not addresses:
        return None
    try:
        address = ipaddress.ip_address(str(addresses[0]))
    except ValueError:
        return None
    unusable = address.is_unspecified or address.is_multicast
    return None if unusable else address


def _ordinal(endpoint: Object) -> int | None:
    hostname = endpoint.get("hostname")
    found = _ORDINAL.search(hostname) if isinstance(hostname, str) else None
    return int(found[1]) if found and int(found[1]) <= _MOST_ORDINAL else None


def _is(endpoint: Object, condition: str, *, otherwise: bool = False) -> bool:
    """A condition of an endpoint. Absent means unknown: `otherwise` then."""
    value = _mapping(endpoint.get("conditions")).get(condition)
    return value if isinstance(value, bool) else otherwise


def _mapping(value: Json) -> Object:
    return value if isinstance(value, Mapping) else {}


def _number(value: Json) -> int | None:
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else None
