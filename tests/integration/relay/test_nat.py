"""Two callers behind a NAT that uses one port towards two VIPs: the VIP tells their flows apart."""

from tests.integration.relay.harness import Scene
from tests.integration.relay.namespaces import Network, needs_namespaces

pytestmark = needs_namespaces

VIPS = ("198.51.100.10", "198.51.100.20")


async def test_two_callers_with_one_address_and_port_reach_their_own_owners(
    scene: Scene, network: Network
) -> None:
    relay_host, nat, first, second = (network.host(name) for name in ("relay", "nat", "one", "two"))
    network.link(nat, "198.51.100.1/24", relay_host, f"{VIPS[0]}/24")
    relay_host.run("ip", "address", "add", f"{VIPS[1]}/32", "dev", "lo")
    nat.run("ip", "route", "add", f"{VIPS[1]}/32", "via", VIPS[0])
    for number, inside in enumerate((first, second), start=1):
        network.link(nat, f"192.168.{number}.1/24", inside, f"192.168.{number}.2/24")
        inside.run("ip", "route", "add", "default", "via", f"192.168.{number}.1")
    masquerade = "ip daddr 198.51.100.0/24 masquerade;"
    nat.nft(f"table ip nat {{ chain out {{ type nat hook postrouting priority srcnat; {masquerade} }}; }}")
    owners = [scene.transceiver(ordinal, namespace=relay_host) for ordinal in range(2)]
    relay = await scene.relay(*VIPS, namespace=relay_host)
    callers = [
        scene.caller(vip, owner, (f"192.168.{number}.2", 50000), inside)
        for number, (vip, owner, inside) in enumerate(
            zip(relay.vips, owners, (first, second), strict=True), 1
        )
    ]
    seen = [await caller.check() for caller in callers]
    assert seen == [("198.51.100.1", 50000)] * 2, "the NAT did not use one port twice: nothing is shown"
    for caller in callers:
        await caller.talk(0.5)
    assert [await caller.settled() for caller in callers] == [0, 0]
    for caller, owner, vip in zip(callers, owners, relay.vips, strict=True):
        assert set(owner.payloads()) == caller.stream.sent
        assert {arrived.vip for arrived in owner.media} == {vip}
    assert relay.metric("flows", state="challenged") == 0
