"""Names of load balancers are resolved with a cache, and an outage of DNS takes no address."""

from collections.abc import Sequence

from voicecluster.operator.resolve import Resolver


class Names:
    """What DNS knows, and the clock of the cache."""

    def __init__(self) -> None:
        self.known: dict[str, Sequence[str]] = {"lb": ["2001:db8::1", "203.0.113.9", "203.0.113.10"]}
        self.asked = 0
        self.now = 0.0

    async def lookup(self, name: str) -> Sequence[str]:
        self.asked += 1
        if name not in self.known:
            raise OSError("no such name")
        return self.known[name]

    def resolver(self) -> Resolver:
        return Resolver(lambda: self.now, self.lookup)


async def test_addresses_come_in_one_order_ipv4_first() -> None:
    names = Names()
    assert await names.resolver().resolve(["lb"]) == {"lb": ("203.0.113.9", "203.0.113.10", "2001:db8::1")}


async def test_an_answer_is_kept_for_thirty_seconds() -> None:
    names = Names()
    resolver = names.resolver()
    await resolver.resolve(["lb"])
    names.now = 29.9
    await resolver.resolve(["lb"])
    assert names.asked == 1
    names.now = 30.0
    names.known["lb"] = ["203.0.113.11"]
    assert await resolver.resolve(["lb"]) == {"lb": ("203.0.113.11",)}


async def test_the_last_addresses_stay_while_dns_fails() -> None:
    names = Names()
    resolver = names.resolver()
    before = await resolver.resolve(["lb"])
    names.known, names.now = {}, 60.0
    assert await resolver.resolve(["lb"]) == before


async def test_a_name_that_was_never_known_has_no_addresses() -> None:
    assert await Names().resolver().resolve(["other"]) == {"other": ()}


async def test_an_answer_that_is_no_address_is_none() -> None:
    names = Names()
    names.known["lb"] = ["nonsense"]
    assert await names.resolver().resolve(["lb"]) == {"lb": ()}
