"""Which VIP each listener advertises. No file, no clock.

A VIP stands in every datagram towards a transceiver and is part of a path's identity, so all relays of a region have
to name the same one for the same listener (DESIGN section 2, SPP): only the file decides, not a relay's history.
"""

import ipaddress
from collections.abc import Sequence

from voicecluster.common.config.model import join_address, split_address
from voicecluster.common.config.relay import Listener, RelayConfig
from voicecluster.common.config.transceiver import VipsFile


def advertised(config: RelayConfig, vips: VipsFile | None, before: Sequence[str] = ()) -> list[str]:
    """Return what each listener advertises, in their order.

    A listener that does not say it itself takes the first UDP VIP of its region, its address family and (where VIPs
    are nodes' own) its node that no listener before it has. Where there is none, it advertises on what it did
    `before`, or its own address.
    """
    known = vips.regions.get(config.region, []) if vips is not None else []
    free = [
        (vip.address, join_address(vip.address, vip.port))
        for vip in known
        if vip.protocol == "udp" and vip.node in (None, config.node)
    ]
    chosen = {listener.advertise for listener in config.listeners}
    result = []
    for at, listener in enumerate(config.listeners):
        fallbacks = [*before[at : at + 1], listener.bind]
        result.append(listener.advertise or _choose(listener, free, fallbacks, chosen))
        chosen.add(result[-1])
    return result


def _choose(
    listener: Listener, free: Sequence[tuple[str, str]], fallbacks: Sequence[str], chosen: set[str | None]
) -> str:
    version = _version(split_address(listener.bind)[0])
    candidates = [vip for address, vip in free if _version(address) == version]
    return next((vip for vip in [*candidates, *fallbacks] if vip not in chosen), listener.bind)


def _version(host: str) -> int:
    return ipaddress.ip_address(host).version
