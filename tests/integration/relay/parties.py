"""The two sides that a relay sits between: callers with a socket each, transceivers that answer checks."""

import asyncio
import collections
import itertools
import secrets
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

from voicecluster.wire import (
    SPP_LEN,
    HintError,
    HintKey,
    Route,
    StunError,
    binding_request,
    binding_success,
    derive_key,
    ice_pwd,
    parse_stun,
    spp_decode,
    spp_encode,
    stun_username,
)

CLUSTER = 7
_SECRET = bytes(range(32))
HINT = derive_key(_SECRET, "hint", CLUSTER)
HINT_KEY = HintKey("A", HINT)
PWD_KEY = derive_key(_SECRET, "pwd", CLUSTER)

CALLER_UFRAG, CALLER_PWD = "caller", "the-password-of-every-caller"

Peer = tuple[str, int]
_nonces = itertools.count(1)


def mint(route: Route) -> str:
    """A new ufrag of a call that `route` owns."""
    return HINT_KEY.mint(route, next(_nonces))


def check_for(ufrag: str, transaction: bytes | None = None, *, nominate: bool = False) -> bytes:
    """A valid connectivity check for the call of `ufrag`."""
    return binding_request(
        transaction or secrets.token_bytes(12),
        username=f"{ufrag}:{CALLER_UFRAG}",
        password=ice_pwd(PWD_KEY, ufrag),
        priority=1853824767,
        use_candidate=nominate,
        ice_controlling=1,
    )


def sealed(route: Route, content: bytes, first: int = 0x80) -> bytes:
    """A media packet (or DTLS, by its first byte) that only the owner of its call can make sense of."""
    return bytes([first]) + route.ordinal.to_bytes(2) + content


def udp_socket(bind: Peer) -> socket.socket:
    family = socket.AF_INET6 if ":" in bind[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    made.setblocking(False)
    made.bind(bind)
    return made


@dataclass(frozen=True, slots=True)
class Arrived:
    """A datagram as a transceiver got it."""

    client: Peer
    vip: Peer
    payload: bytes


class Reading:
    """Hands every datagram of a socket to `got` until closed."""

    def __init__(self, bound: socket.socket) -> None:
        self.socket = bound
        asyncio.get_running_loop().add_reader(bound, self._drain)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.socket)
        self.socket.close()

    def _drain(self) -> None:
        for _ in range(256):
            try:
                datagram, source = self.socket.recvfrom(65536)
            except (BlockingIOError, ConnectionError):
                return
            self.got(datagram, source[:2])

    def got(self, datagram: bytes, source: Peer) -> None:
        raise NotImplementedError


class Transceiver(Reading):
    """One worker: answers checks for calls of its own route, and sends back the media of its own calls."""

    def __init__(self, bound: socket.socket, ordinal: int, worker: int = 0) -> None:
        super().__init__(bound)
        self.route = Route(CLUSTER, ordinal, worker)
        self.checks: collections.Counter[Peer] = collections.Counter()
        self.media: list[Arrived] = []
        self.relays: set[Peer] = set()

    @property
    def address(self) -> str:
        host, port = self.socket.getsockname()[:2]
        return f"{host}:{port}"

    def send(self, client: Peer, vip: Peer, payload: bytes) -> None:
        """Send to a client as the owner of its call would."""
        (relay,) = self.relays
        self.socket.sendto(spp_encode(client, vip) + payload, relay)

    def payloads(self, client: Peer | None = None) -> list[bytes]:
        """What came that was no STUN, of one client or of all."""
        return [arrived.payload for arrived in self.media if client in (None, arrived.client)]

    def got(self, datagram: bytes, source: Peer) -> None:
        header = spp_decode(datagram)
        payload = datagram[SPP_LEN:]
        self.relays.add(source)
        if payload[0] > 3:
            self.media.append(Arrived(header.client, header.proxy, payload))
            if payload[1:3] == self.route.ordinal.to_bytes(2):
                self.socket.sendto(datagram, source)
            return
        ufrag = (stun_username(payload) or "").partition(":")[0]
        try:
            ours = HINT_KEY.open(ufrag).route == self.route
            message = parse_stun(payload)
        except (HintError, StunError):
            return
        password = ice_pwd(PWD_KEY, ufrag)
        if ours and message.cls == "request" and message.verify(password):
            self.checks[header.client] += 1
            reply = binding_success(message.transaction_id, mapped=header.client, password=password)
            self.socket.sendto(datagram[:SPP_LEN] + reply, source)


@dataclass(slots=True)
class Stream:
    """Numbered packets of one caller: which were sent, and which came back from the call's owner."""

    sent: set[bytes] = field(default_factory=set)
    back: set[bytes] = field(default_factory=set)

    @property
    def lost(self) -> int:
        return len(self.sent - self.back)


class Caller(Reading):
    """A client: one socket, one call at a time; answers checks as browsers do."""

    def __init__(self, bound: socket.socket, vip: Peer, route: Route) -> None:
        super().__init__(bound)
        self.vip = vip
        self.route = route
        self.ufrag = mint(route)
        self.received: list[bytes] = []
        self.stream = Stream()
        self._awaited: dict[bytes, asyncio.Future[Peer | None]] = {}

    @property
    def address(self) -> Peer:
        host, port = self.socket.getsockname()[:2]
        return host, port

    def send(self, payload: bytes) -> None:
        self.socket.sendto(payload, self.vip)

    def media(self, content: bytes, first: int = 0x80) -> bytes:
        """Send a media packet and return it."""
        packet = sealed(self.route, content, first)
        self.send(packet)
        return packet

    async def check(self, within_seconds: float = 5.0) -> Peer:
        """Send checks, 0.1 s apart, until one is answered; return the address the owner saw."""
        async with asyncio.timeout(within_seconds):
            while True:
                transaction = secrets.token_bytes(12)
                answer: asyncio.Future[Peer | None] = asyncio.get_running_loop().create_future()
                self._awaited[transaction] = answer
                self.send(check_for(self.ufrag, transaction))
                done, _ = await asyncio.wait([answer], timeout=0.1)
                if done and (seen := answer.result()) is not None:
                    return seen

    async def check_until(self, condition: Callable[[], object], within_seconds: float = 5.0) -> None:
        """Send checks, 0.1 s apart, until `condition` holds."""
        async with asyncio.timeout(within_seconds):
            while True:
                if condition():
                    return
                self.send(check_for(self.ufrag))
                await asyncio.sleep(0.1)

    async def talk(self, seconds: float, packets_per_second: float = 50.0) -> Stream:
        """Send numbered media packets for a while on absolute deadlines, checking every second as browsers
        do.

        Returns what was sent and what came back by then; `settled` waits for the rest.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(round(seconds * packets_per_second)):
            self.stream.sent.add(self.media(secrets.token_bytes(60)))
            if number % packets_per_second == 0:
                self.send(check_for(self.ufrag))
            await asyncio.sleep(began + (number + 1) / packets_per_second - loop.time())
        return self.stream

    async def settled(self, within_seconds: float = 2.0) -> int:
        """Wait until everything sent came back; return how many packets did not in time."""
        await eventually(lambda: self.stream.lost == 0, within_seconds, check=False)
        return self.stream.lost

    def got(self, datagram: bytes, source: Peer) -> None:
        assert source == self.vip, f"an answer from {source} instead of the VIP"
        if datagram[0] > 3:
            self.received.append(datagram)
            if datagram in self.stream.sent:
                self.stream.back.add(datagram)
            return
        message = parse_stun(datagram)
        if message.cls == "request":
            if message.verify(CALLER_PWD):
                self.send(binding_success(message.transaction_id, mapped=source, password=CALLER_PWD))
            return
        waiting = self._awaited.pop(message.transaction_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message.xor_mapped_address)


async def eventually(
    condition: Callable[[], object], within_seconds: float = 5.0, *, check: bool = True
) -> None:
    """Look at `condition` until it holds; fail if it does not in time."""
    deadline = asyncio.get_running_loop().time() + within_seconds
    while True:
        if condition():
            return
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.01)
    if check:
        raise AssertionError("did not come true in time")
