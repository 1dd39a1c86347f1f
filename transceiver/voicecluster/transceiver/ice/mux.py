"""The one UDP socket of a worker: every packet of every call, each behind an SPP header.

A datagram is told apart in four cheap steps, and only the last one costs cryptography: SPP magic and size;
first byte (RFC 7983); the 38 header bytes, which are the path's identity; for STUN requests the ufrag. What
belongs nowhere is dropped and counted by reason, never logged. One (client, VIP) may be claimed by several
calls at once (a NAT port reused, or a forged source), so a header maps to a short list and each call in it
may say "not mine".
"""

import asyncio
import errno
import socket
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from voicecluster.transceiver.ice.path import Address, Path
from voicecluster.transceiver.ice.unknown import UnknownCalls
from voicecluster.wire import SPP_LEN, spp_decode, stun_username

DRAIN = 64
"""Datagrams read per wake-up, so that timers and signaling get their turn."""
MAX_PAYLOAD = 1_472
MAX_CLAIMS = 4
_BUFFER_BYTES = 4 << 20
_SPP_MAGIC = b"\x56\xec"
_STUN_COOKIE = b"\x21\x12\xa4\x42"


class Call(Protocol):
    """What the socket asks of a call. None of these may block; what they raise is counted and contained."""

    def on_check(self, data: bytes, header: bytes, relay: Address, now: float) -> str | None:
        """A binding request for one of its ufrags. Returns the reason if it was refused."""

    def on_response(self, data: bytes, path: Path, relay: Address, now: float) -> bool:
        """A STUN response on one of its paths. Returns whether it was its own."""

    def on_packet(self, data: bytes, path: Path, relay: Address, now: float) -> bool | None:
        """DTLS, SRTP or SRTCP on one of its paths.

        Returns whether it was authentic; `None`: too early to tell.
        """


@dataclass(slots=True)
class SocketCounters:
    """Since start; read by the metrics."""

    rx_packets: int = 0
    rx_bytes: int = 0
    tx_packets: int = 0
    tx_bytes: int = 0
    drops: Counter[str] = field(default_factory=Counter)
    send_errors: Counter[str] = field(default_factory=Counter)


class MediaSocket:
    """Owns the socket; calls register their ufrags and claim their paths on it.

    Must be made inside the running loop. `unknown` may be replaced at any time (keys rotate).
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, bind: Address, *, unknown: UnknownCalls | None = None
    ) -> None:
        self.unknown = unknown
        self.counters = SocketCounters()
        self._loop = loop
        self._calls: dict[str, Call] = {}
        self._paths: dict[bytes, list[tuple[Call, Path]]] = {}
        family = socket.AF_INET6 if ":" in bind[0] else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
                self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
            self._socket.bind(bind)
        except OSError:
            self._socket.close()
            raise
        loop.add_reader(self._socket.fileno(), self._drain)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that reads the socket."""
        return self._loop

    @property
    def address(self) -> Address:
        """Where it is bound."""
        name: tuple[str, int] = self._socket.getsockname()[:2]
        return name

    @property
    def path_count(self) -> int:
        """Paths claimed by calls now."""
        return sum(len(claims) for claims in self._paths.values())

    @property
    def ufrag_count(self) -> int:
        """Ufrags registered now."""
        return len(self._calls)

    def register(self, ufrag: str, call: Call) -> None:
        """Checks for `ufrag` go to `call`. Raises `ValueError` where another call has it."""
        if self._calls.setdefault(ufrag, call) is not call:
            raise ValueError("ufrag in use")

    def unregister(self, ufrag: str, call: Call) -> None:
        """Forget `ufrag`, if it is still this call's."""
        if self._calls.get(ufrag) is call:
            del self._calls[ufrag]

    def claim(self, path: Path, call: Call) -> None:
        """Packets with the path's header are offered to `call`.

        The quietest of too many claims makes room.
        """
        claims = self._paths.setdefault(path.header, [])
        claims.append((call, path))
        if len(claims) > MAX_CLAIMS:
            claims.remove(min(claims[:-1], key=lambda claim: claim[1].heard_at))
            self.counters.drops["claim_evicted"] += 1

    def disclaim(self, path: Path, call: Call) -> None:
        """The opposite of `claim`."""
        claims = [
            claim
            for claim in self._paths.get(path.header, [])
            if claim[1] is not path or claim[0] is not call
        ]
        if claims:
            self._paths[path.header] = claims
        else:
            self._paths.pop(path.header, None)

    def send(self, header: bytes, relay: Address, payload: bytes) -> None:
        """Send to a caller through a relay.

        Never blocks: what the kernel does not take is lost, and counted.
        """
        try:
            self._socket.sendto(header + payload, relay)
        except OSError as error:
            self.counters.send_errors[errno.errorcode.get(error.errno or 0, "unknown")] += 1
        else:
            self.counters.tx_packets += 1
            self.counters.tx_bytes += len(payload)

    def close(self) -> None:
        """Stop reading and close. May be called twice."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _drain(self) -> None:
        now = self._loop.time()
        for _ in range(DRAIN):
            try:
                datagram, relay = self._socket.recvfrom(2048)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.counters.drops["socket_error"] += 1
                return
            try:
                self.receive(datagram, relay[:2], now)
            except Exception:  # the root of a datagram: whatever one packet does, the other calls go on
                self.counters.drops["internal_error"] += 1

    def receive(self, datagram: bytes, relay: Address, now: float) -> None:
        """One datagram from a relay. Public for tests; `_drain` calls it for each one read."""
        counters = self.counters
        counters.rx_packets += 1
        counters.rx_bytes += len(datagram)
        reason = self._dispatch(datagram, relay, now)
        if reason is not None:
            counters.drops[reason] += 1

    def _dispatch(self, datagram: bytes, relay: Address, now: float) -> str | None:
        if datagram[:2] != _SPP_MAGIC or len(datagram) < SPP_LEN:
            return "not_spp"
        header, data = datagram[:SPP_LEN], datagram[SPP_LEN:]
        if not data:
            return "empty"
        if len(data) > MAX_PAYLOAD:
            return "too_long"
        first = data[0]
        if 128 <= first <= 191 or 20 <= first <= 63:
            claims = self._paths.get(header)
            if claims is None:
                return "unknown_path"
            return self._packet(claims, data, relay, now)
        if first <= 3:
            return self._stun(data, header, relay, now)
        return "first_byte"

    def _packet(self, claims: list[tuple[Call, Path]], data: bytes, relay: Address, now: float) -> str | None:
        reason: str | None = "unauthentic_media" if data[0] >= 128 else "unauthentic_dtls"
        for call, path in claims:
            verdict = call.on_packet(data, path, relay, now)
            if verdict:
                return None
            if verdict is None:
                reason = None
        return reason

    def _stun(self, data: bytes, header: bytes, relay: Address, now: float) -> str | None:
        if len(data) < 20 or data[4:8] != _STUN_COOKIE:
            return "stun_malformed"
        if data[0] == 1:
            claims = self._paths.get(header)
            if claims is None:
                return "unknown_path"
            owned = any(call.on_response(data, path, relay, now) for call, path in claims)
            return None if owned else "stun_unmatched"
        if data[:2] == b"\x00\x11":
            return None  # a keepalive indication carries nothing and wants nothing
        username = stun_username(data)
        if username is None:
            return "stun_no_username"
        ufrag = username.partition(":")[0]
        call = self._calls.get(ufrag)
        if call is not None:
            return call.on_check(data, header, relay, now)
        return self._unknown_call(ufrag, data, header, relay, now)

    def _unknown_call(self, ufrag: str, data: bytes, header: bytes, relay: Address, now: float) -> str:
        if self.unknown is None:
            return "unknown_ufrag"
        answer = self.unknown.answer(ufrag, data, now)
        if isinstance(answer, str):
            return answer
        spp_decode(header)  # raises, and so drops, where the header names no port that could be answered
        self.send(header, relay, answer)
        return "unknown_call"
