"""A caller (an ordinary aiortc peer connection), a tiny SPP relay, and the server side of a call."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Literal

import aioice.ice
import pytest
from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.mediastreams import AudioStreamTrack
from aiortc.rtcdtlstransport import RTCCertificate
from aiortc.rtp import is_rtcp
from pylibsrtp import Error as SrtpError
from voicecluster.transceiver.dtls.endpoint import SrtpKeys
from voicecluster.transceiver.dtls.identity import DtlsIdentity
from voicecluster.transceiver.dtls.transport import CallTransport
from voicecluster.transceiver.ice.mux import MediaSocket
from voicecluster.transceiver.ice.path import Address, IceCredentials
from voicecluster.transceiver.sdp import Candidate, build_answer, parse_offer
from voicecluster.wire import SPP_LEN, spp_decode, spp_encode

LOOPBACK = "127.0.103.1"


class Relay:
    """One VIP: puts SPP before what callers send to it, and takes it off what comes back."""

    def __init__(self, target: Address, host: str = LOOPBACK) -> None:
        self.target = target
        self.loop = asyncio.get_running_loop()
        self.front = self._socket(host, self._up)
        self.back = self._socket(LOOPBACK, self._down)
        self.vip: Address = self.front.getsockname()[:2]
        self.to_client: list[bytes] = []
        self.from_client: list[bytes] = []
        self.drop_upstream: Callable[[bytes], bool] = lambda data: False
        self.drop_downstream: Callable[[bytes], bool] = lambda data: False

    def _socket(self, host: str, reader: Callable[[], None]) -> socket.socket:
        made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((host, 0))
        made.setblocking(False)
        self.loop.add_reader(made, reader)
        return made

    def _up(self) -> None:
        data, client = self.front.recvfrom(4096)
        self.from_client.append(data)
        if not self.drop_upstream(data):
            self.inject(data, client[:2])

    def inject(self, data: bytes, client: Address) -> None:
        """Forward `data` as if `client` had sent it."""
        self.back.sendto(spp_encode(client, self.vip) + data, self.target)

    def _down(self) -> None:
        data, _ = self.back.recvfrom(4096)
        self.to_client.append(data[SPP_LEN:])
        if self.drop_downstream(data[SPP_LEN:]):
            return
        self.front.sendto(data[SPP_LEN:], spp_decode(data[:SPP_LEN]).client)

    def close(self) -> None:
        for each in (self.front, self.back):
            self.loop.remove_reader(each)
            each.close()


@dataclass
class Server:
    """A call's server side: echoes events, collects what its transport tells."""

    transport: CallTransport
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    media: asyncio.Event = field(default_factory=asyncio.Event)
    channel: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    keys: SrtpKeys | None = None
    reason: str | None = None
    messages: list[str] = field(default_factory=list)
    packets: int = 0

    def __post_init__(self) -> None:
        self.transport.on_connected = self._connected
        self.transport.on_srtp = self._srtp
        self.transport.on_closed = self._closed
        self.transport.on_message = self._message
        self.transport.on_channel_open = self.channel.set

    def _connected(self, keys: SrtpKeys) -> None:
        self.keys = keys
        self.connected.set()

    def _srtp(self, datagram: bytes, now: float) -> bool:
        assert self.keys is not None
        try:
            (self.keys.rx.unprotect_rtcp if is_rtcp(datagram) else self.keys.rx.unprotect)(datagram)
        except SrtpError:
            return False
        self.packets += 1
        self.media.set()
        return True

    def _message(self, text: str) -> None:
        self.messages.append(text)
        self.transport.send_event(text)

    def _closed(self, reason: str) -> None:
        self.reason = reason
        self.ended.set()


@dataclass
class Caller:
    """The client's side."""

    peer: RTCPeerConnection
    events: RTCDataChannel
    received: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)

    async def echoed(self, text: str) -> str:
        """Send a text on the data channel and wait for what comes back."""
        if self.events.readyState != "open":
            opened = asyncio.Event()
            self.events.once("open", opened.set)
            await asyncio.wait_for(opened.wait(), 10)
        self.events.send(text)
        return await asyncio.wait_for(self.received.get(), 10)

    @property
    def address(self) -> Address:
        """Where it sends from."""
        connection = self.peer.getTransceivers()[0].receiver.transport.transport._connection
        address: Address = connection._protocols[0].transport.get_extra_info("sockname")[:2]
        return address


@dataclass
class Call:
    """Both sides and the relay between them."""

    server: Server
    caller: Caller
    relay: Relay
    answer: str
    run: "asyncio.Task[None]"


class Bench:
    """Makes calls over one media socket, and ends them all."""

    def __init__(self) -> None:
        self.socket = MediaSocket(asyncio.get_running_loop(), (LOOPBACK, 0))
        self.identity = DtlsIdentity()
        self.calls: list[Call] = []
        self._peers: list[RTCPeerConnection] = []
        self._made = 0

    async def dial(
        self,
        *,
        certificate: RTCCertificate | None = None,
        setup: Literal["actpass", "active"] = "actpass",
        ice_lite: bool = True,
        rewrite: Callable[[str], str] = lambda sdp: sdp,
        vip: str = LOOPBACK,
        prepare: Callable[[Relay], None] = lambda relay: None,
    ) -> Call:
        """Place a call; returns once the answer is applied. `prepare` sees the relay before any packet."""
        self._made += 1
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        self._peers.append(peer)
        if certificate is not None:
            peer._RTCPeerConnection__certificates = [certificate]
        peer.addTrack(AudioStreamTrack())
        caller = Caller(peer, peer.createDataChannel("oai-events"))
        caller.events.on("message", caller.received.put_nowait)
        await peer.setLocalDescription(await peer.createOffer())
        sdp = peer.localDescription.sdp.replace("a=setup:actpass", f"a=setup:{setup}")
        offer = parse_offer(rewrite(sdp))
        credentials = IceCredentials(f"Aufrag{self._made:04}", f"password{self._made:016}")
        now = asyncio.get_running_loop().time()
        transport = CallTransport(self.socket, self.identity, credentials, offer, now=now)
        server = Server(transport)
        relay = Relay(self.socket.address, vip)
        prepare(relay)
        answer = build_answer(
            offer,
            ufrag=credentials.ufrag,
            pwd=credentials.pwd,
            fingerprint=self.identity.fingerprint,
            setup=transport.setup,
            candidates=[Candidate(*relay.vip)],
            ssrc=1234,
            cname="test",
            session_id=1,
            ice_lite=ice_lite,
        )
        run = asyncio.create_task(transport.run())
        call = Call(server, caller, relay, answer, run)
        self.calls.append(call)
        await peer.setRemoteDescription(RTCSessionDescription(sdp=answer, type="answer"))
        return call

    async def connect(self, **options: object) -> Call:
        """Place a call and wait until DTLS is up on our side."""
        call = await self.dial(**options)  # type: ignore[arg-type]
        await asyncio.wait_for(call.server.connected.wait(), 10)
        return call

    async def close(self) -> None:
        """End all calls and the socket."""
        for peer in self._peers:
            await peer.close()
        for call in self.calls:
            await call.server.transport.close()
            await call.run
            call.relay.close()
        self.socket.close()


async def _until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - polls other people's state, which has no event
            await asyncio.sleep(0.005)


@pytest.fixture
async def bench(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    """An empty worker."""
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: [LOOPBACK])
    made = Bench()
    yield made
    await made.close()


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], Coroutine[None, None, None]]:
    """Waits until a condition holds; fails after 10 s."""
    return _until
