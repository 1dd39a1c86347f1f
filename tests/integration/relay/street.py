"""A relay, a caller and an attacker as hosts of their own; the attacker can write any source address."""

from dataclasses import dataclass

from tests.integration.relay.harness import RelayProcess, Scene
from tests.integration.relay.namespaces import Namespace, Network
from tests.integration.relay.parties import Caller, Transceiver

VIP = "10.77.0.2"
VICTIM = ("10.77.1.2", 50000)
ATTACKER = "10.77.2.2"
OFF = 100_000_000
"""A limit that limits nothing."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The three hosts, linked so that relay and VIP are between the others."""

    relay: Namespace
    victim: Namespace
    attacker: Namespace


def hosts(network: Network) -> Hosts:
    made = Hosts(network.host("relay"), network.host("victim"), network.host("attacker"))
    network.link(made.relay, "10.77.1.1/24", made.victim, f"{VICTIM[0]}/24")
    network.link(made.relay, "10.77.2.1/24", made.attacker, f"{ATTACKER}/24")
    made.relay.run("ip", "address", "add", f"{VIP}/32", "dev", "lo")
    made.victim.run("ip", "route", "add", "default", "via", "10.77.1.1")
    made.attacker.run("ip", "route", "add", "default", "via", "10.77.2.1")
    return made


@dataclass(slots=True)
class Street:
    """The hosts with a relay, two transceivers, and a victim in a call that the first of them owns."""

    relay: RelayProcess
    owner: Transceiver
    others_owner: Transceiver
    victim: Caller
    attacker: Namespace
    scene: Scene


async def street(scene: Scene, network: Network, **limits: float) -> Street:
    """Start all of it; `limits` as in the relay's configuration."""
    where = hosts(network)
    owners = [scene.transceiver(ordinal, namespace=where.relay) for ordinal in range(2)]
    relay = await scene.relay(VIP, namespace=where.relay, limits=limits)
    victim = scene.caller(relay.vips[0], owners[0], VICTIM, where.victim)
    assert await victim.check() == VICTIM
    return Street(relay, owners[0], owners[1], victim, where.attacker, scene)
