"""A check replayed from another address: the transceiver's ICE agent behind a relay, with and without its
guard.

A check carries no freshness, so anybody who saw one (the caller itself included) can send it again with a
bystander's source address. Without return routability the media would follow it there: 50 packets a second
for one packet.
"""

import asyncio
import socket

import pytest
from voicecluster.transceiver.ice.agent import IceAgent
from voicecluster.transceiver.ice.path import IceCredentials, Path
from voicecluster.wire import SPP_LEN, ice_pwd

from tests.integration.relay.harness import Scene
from tests.integration.relay.namespaces import Network, needs_namespaces, udp_packet
from tests.integration.relay.parties import (
    CALLER_PWD,
    CALLER_UFRAG,
    PWD_KEY,
    Peer,
    Reading,
    Transceiver,
    check_for,
    eventually,
    sealed,
    udp_socket,
)
from tests.integration.relay.street import ATTACKER, VICTIM, VIP, hosts

pytestmark = needs_namespaces

BYSTANDER = (ATTACKER, 53053)


class AgentTransceiver(Transceiver):
    """A transceiver with the real ICE agent, that speaks all the time: 50 packets a second where the agent
    says.
    """

    def begin(self, ufrag: str, *, validate_paths: bool) -> None:
        """Take the call of `ufrag`."""
        self._loop = asyncio.get_running_loop()
        self.agent = IceAgent(
            IceCredentials(ufrag, ice_pwd(PWD_KEY, ufrag)),
            IceCredentials(CALLER_UFRAG, CALLER_PWD),
            now=self._loop.time(),
            validate_paths=validate_paths,
        )
        self._connected = False
        self._speak()

    def got(self, datagram: bytes, source: Peer) -> None:
        header, payload, now = datagram[:SPP_LEN], datagram[SPP_LEN:], self._loop.time()
        if payload[0] > 3:
            path = self.agent.paths[header]
            if not self._connected:
                self.agent.dtls_connected(path, now)
                self._connected = True
            self.agent.authenticated(path, source, now)
        elif payload[0] == 0:
            self.agent.handle_check(payload, header, source, now)
        else:
            self.agent.handle_response(payload, header, source, now)
        self._flush()

    def close(self) -> None:
        self._timer.cancel()
        super().close()

    def _speak(self) -> None:
        self._timer = self._loop.call_later(0.02, self._speak)
        now = self._loop.time()
        self.agent.handle_timeout(now)
        self._flush()
        path = self.agent.media_path(now)
        if path is not None:
            self._send(path, path.relay, sealed(self.route, b"speech" * 10))

    def _flush(self) -> None:
        for transmit in self.agent.poll_transmit():
            self._send(transmit.path, transmit.relay, transmit.payload)

    def _send(self, path: Path, relay: Peer, payload: bytes) -> None:
        self.socket.sendto(path.header + payload, relay)


class Bystander(Reading):
    """A host that takes part in nothing."""

    def __init__(self, bound: socket.socket) -> None:
        super().__init__(bound)
        self.media = 0
        self.bytes = 0

    def got(self, datagram: bytes, source: Peer) -> None:
        self.media += datagram[0] > 3
        self.bytes += len(datagram)


@pytest.fixture
async def hit(scene: Scene, network: Network, request: pytest.FixtureRequest) -> tuple[Bystander, int]:
    """A bystander after 2.5 s of checks of a silent caller replayed in its name, and how many bytes those
    were.
    """
    where = hosts(network)
    with where.relay.entered():
        bound = udp_socket(("127.0.102.10", 0))
    owner = scene.add(AgentTransceiver(bound, 0))
    relay = await scene.relay(VIP, namespace=where.relay)
    with where.attacker.entered():
        bystander = scene.add(Bystander(udp_socket(BYSTANDER)))
    caller = scene.caller(relay.vips[0], owner, VICTIM, where.victim)
    owner.begin(caller.ufrag, validate_paths=request.param)
    await caller.check()
    caller.media(b"hello")
    await eventually(lambda: len(caller.received) > 5)
    observed = check_for(caller.ufrag, nominate=True)
    packet = udp_packet(BYSTANDER, relay.vips[0], observed)
    with where.victim.raw_socket() as raw:
        for _ in range(25):
            raw.sendto(packet, (VIP, 0))
            await asyncio.sleep(0.1)
    assert bystander.bytes > 0, "the replayed check did not even arrive"
    return bystander, 25 * len(observed)


@pytest.mark.parametrize("hit", [False], indirect=True)
async def test_a_replayed_check_aims_the_media_at_a_bystander_where_paths_are_not_validated(
    hit: tuple[Bystander, int],
) -> None:
    assert hit[0].media > 20


@pytest.mark.parametrize("hit", [True], indirect=True)
async def test_a_replayed_check_moves_no_media_and_gains_nothing(hit: tuple[Bystander, int]) -> None:
    bystander, replayed = hit
    assert bystander.media == 0
    assert bystander.bytes <= 3 * replayed
