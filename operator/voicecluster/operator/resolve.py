"""Addresses of load balancers that have only a name: resolved anew every 30 seconds, never waited for long.

The last addresses of a name stay in force while its resolver fails: a DNS outage takes nobody's VIP.
"""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

log = logging.getLogger(__name__)

LIFETIME_SECONDS = 30.0
TIMEOUT_SECONDS = 2.0
MAX_ADDRESSES = 16
"""Of one name."""
MAX_NAMES = 1024

Lookup = Callable[[str], Awaitable[Sequence[str]]]
"""Addresses of a name; raises OSError where there are none."""


async def system_lookup(name: str) -> Sequence[str]:
    """As this machine resolves names."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    return [str(address[0]) for *_, address in found]


@dataclass(slots=True)
class _Answer:
    addresses: tuple[str, ...]
    expires: float


class Resolver:
    """A cache of names. `clock` is monotonic, in seconds."""

    def __init__(self, clock: Callable[[], float], lookup: Lookup = system_lookup) -> None:
        """Resolves nothing yet."""
        self._clock = clock
        self._lookup = lookup
        self._known: dict[str, _Answer] = {}

    async def resolve(self, names: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """The addresses of each name, IPv4 first, each family in order; empty where none were ever found."""
        now = self._clock()
        wanted = sorted(names)[:MAX_NAMES]
        stale = [name for name in wanted if name not in self._known or self._known[name].expires <= now]
        for name, addresses in zip(stale, await asyncio.gather(*map(self._ask, stale)), strict=True):
            last = self._known[name].addresses if name in self._known else ()
            self._known[name] = _Answer(addresses or last, now + LIFETIME_SECONDS)
        if len(self._known) > MAX_NAMES:
            self._known = {name: self._known[name] for name in wanted}
        return {name: self._known[name].addresses for name in wanted}

    async def _ask(self, name: str) -> tuple[str, ...]:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                found = {ipaddress.ip_address(address) for address in await self._lookup(name)}
        except (OSError, TimeoutError, ValueError) as error:
            log.warning("cannot resolve %s: %s", name, error or "no answer in time")
            return ()
        ordered = sorted(found, key=lambda address: (address.version, address.packed))
        return tuple(str(address) for address in ordered[:MAX_ADDRESSES])
