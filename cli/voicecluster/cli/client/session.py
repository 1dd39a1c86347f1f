"""One call on the network: sockets, ICE, DTLS, SRTP and the audio stream, joined on the event loop.

No task of its own: datagrams come by `add_reader`, time by one timer a call, frames by whoever calls
`send_frame` (see `pacer`). Everything runs on one loop and nothing in here blocks.
"""

import asyncio
import enum
import ipaddress
import secrets
import socket
import time
from collections.abc import Sequence

from pylibsrtp import Error as SrtpError
from voicecluster.cli.client import sdp
from voicecluster.cli.client.audio import Recorder
from voicecluster.cli.client.dtls import DtlsEndpoint, DtlsState, Identity, Role, SrtpKeys
from voicecluster.cli.client.errors import CallError
from voicecluster.cli.client.ice import Address, Credentials, IceAgent, IceState, RemoteCandidate
from voicecluster.cli.client.pacer import clock
from voicecluster.cli.client.rtp import RTCP_SECONDS, AudioStream

RECEIVE_BYTES = 2048
DATAGRAMS_PER_WAKE_UP = 16
SOCKET_BUFFER_BYTES = 256 * 1024


class SessionState(enum.Enum):
    """CONNECTED: DTLS is up and audio may flow. CLOSED and FAILED are final."""

    NEW = "new"
    CONNECTING = "connecting"
    CONNECTED = "connected"
    CLOSED = "closed"
    FAILED = "failed"


class CallSession:
    """A call as a WebRTC client sees it: `offer`, `accept`, `connected`, `send_frame`, `close`."""

    def __init__(
        self,
        identity: Identity,
        frames: Sequence[bytes],
        *,
        hosts: Sequence[str],
        first_frame: int = 0,
    ) -> None:
        """Open a UDP socket for each of `hosts` (local IP addresses, at most one per IP version).

        Args:
            frames: Opus frames of 20 ms to send in turn, beginning with `first_frame`.

        Raises:
            OSError: a socket cannot be opened.
        """
        self.state = SessionState.NEW
        self.failure: CallError | None = None
        self.connected_at: float | None = None
        self.first_audio_at: float | None = None
        self.datagrams_dropped = 0
        """Datagrams that were no packet of this call: no STUN, DTLS or authentic SRTP."""
        self._loop = asyncio.get_running_loop()
        self._identity = identity
        self._recorder: Recorder | None = None
        self._frames = frames
        self._first_frame = first_frame
        self._cname = secrets.token_hex(8)
        self._ssrc = secrets.randbits(32)
        self._sockets = {6 if ":" in host else 4: _open(host) for host in hosts}
        self._hosts = tuple((host, self._sockets[6 if ":" in host else 4].getsockname()[1]) for host in hosts)
        self.ice = IceAgent(Credentials.generate(), families=frozenset(self._sockets))
        self.stream: AudioStream | None = None
        self._dtls: DtlsEndpoint | None = None
        self._keys: SrtpKeys | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._dtls_started = False
        self._next_report = 0.0
        self._settled: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        for sock in self._sockets.values():
            self._loop.add_reader(sock.fileno(), self._readable, sock)

    @property
    def local_addresses(self) -> tuple[Address, ...]:
        """The host candidates: where this client's sockets are."""
        return self._hosts

    def offer(self) -> str:
        """The SDP offer."""
        return sdp.build_offer(
            self.ice.local,
            self._hosts,
            fingerprint=self._identity.fingerprint,
            ssrc=self._ssrc,
            cname=self._cname,
        )

    def accept(self, answer: sdp.Answer) -> None:
        """Begin to connect as `answer` says."""
        self.state = SessionState.CONNECTING
        self.stream = AudioStream(
            self._frames,
            ssrc=self._ssrc,
            payload_type=answer.opus,
            cname=self._cname,
            first_frame=self._first_frame,
        )
        role: Role = "client" if answer.setup == "passive" else "server"
        self._dtls = DtlsEndpoint(self._identity, role=role, remote_fingerprint=answer.fingerprint)
        self.ice.start(answer.remote, answer.candidates, clock())
        self._flush()

    async def connected(self, *, timeout_seconds: float) -> None:
        """Wait until audio may flow. Raises CallError with the stage that failed. Cancelling is harmless."""
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.shield(self._settled)
        except TimeoutError:
            if self.ice.state is IceState.CONNECTED:
                raise CallError(
                    "dtls", f"the DTLS handshake did not end within {timeout_seconds:.0f} s"
                ) from None
            tried = ", ".join(f"{host} port {port}" for host, port in self.ice.remote_addresses)
            raise CallError(
                "ice", f"no answer to ICE checks from {tried} within {timeout_seconds:.0f} s"
            ) from None
        if self.failure is not None:
            raise self.failure

    async def ended(self) -> None:
        """Wait until the call is over, whoever ended it. Cancelling is harmless."""
        await asyncio.shield(self._ended)

    def restart_ice(self) -> str:
        """Begin an ICE restart; returns the fragment to PATCH. `restarted` takes the answer to it."""
        return sdp.build_fragment(self.ice.restart())

    def restarted(self, fragment: str) -> None:
        """Go on with the other side's new credentials; where it names no candidates, the old ones hold."""
        remote, candidates = sdp.parse_fragment(fragment)
        known = candidates or self._candidates_now()
        self.ice.start(remote, known, clock())
        self._flush()

    def record(self, recorder: Recorder) -> None:
        """Let `recorder` keep what comes from the next frame on."""
        self._recorder = recorder

    def send_frame(self, now: float) -> None:
        """Send the next 20 ms of audio, and a report when one is due. Does nothing unless connected."""
        keys, stream, destination = self._keys, self.stream, self.ice.selected
        if keys is None or stream is None or destination is None or self.state is not SessionState.CONNECTED:
            return
        if self._recorder is not None and not self._recorder.running:
            self._recorder.start(now, stream.position)
            stream.on_payload = self._recorder.received
        self._send(destination, keys.tx.protect(stream.next_packet()))
        if now >= self._next_report:
            self._next_report = now + RTCP_SECONDS
            self._send(destination, keys.tx.protect_rtcp(stream.report(now, time.time())))

    def close(self) -> None:
        """End the call: close_notify, then the sockets. Safe to repeat."""
        destination = self.ice.selected
        if self.state is SessionState.CONNECTED and self._dtls is not None and destination is not None:
            self._dtls.close()
            for datagram in self._dtls.transmits():
                self._send(destination, datagram)
        self._end(SessionState.CLOSED, None)

    def _candidates_now(self) -> tuple[RemoteCandidate, ...]:
        return tuple(RemoteCandidate(address, 1) for address in self.ice.remote_addresses)

    def _readable(self, sock: socket.socket) -> None:
        for _ in range(DATAGRAMS_PER_WAKE_UP):
            try:
                data, source = sock.recvfrom(RECEIVE_BYTES)
            except (BlockingIOError, ConnectionError):
                return
            self._receive(data, (source[0], source[1]))
            if self.state in (SessionState.CLOSED, SessionState.FAILED):
                return

    def _receive(self, data: bytes, source: Address) -> None:
        first = data[0] if data else 255
        if 128 <= first < 192:
            self._receive_media(data)
        elif 20 <= first < 64 and self._dtls is not None:
            self._dtls.receive(data)
            self._flush()
        elif first < 4:
            self.ice.receive(data, source, clock())
            self._flush()
        else:
            self.datagrams_dropped += 1

    def _receive_media(self, data: bytes) -> None:
        keys, stream = self._keys, self.stream
        if keys is None or stream is None or len(data) < 12:
            self.datagrams_dropped += 1
            return
        now = clock()
        try:
            if 192 <= data[1] < 224:
                stream.receive_report(keys.rx.unprotect_rtcp(data), now, time.time())
                return
            stream.receive(keys.rx.unprotect(data), now)
        except (SrtpError, ValueError):  # ValueError: longer than any SRTP packet may be
            self.datagrams_dropped += 1
            return
        if self.first_audio_at is None:
            self.first_audio_at = now

    def _tick(self) -> None:
        self._timer = None
        self.ice.handle_timeout(clock())
        if self._dtls is not None and self.ice.selected is not None:
            self._dtls.handle_timeout()
        self._flush()

    def _flush(self) -> None:
        """Send what the protocols want sent, notice what changed, set the timer."""
        if self.state in (SessionState.CLOSED, SessionState.FAILED):
            return
        while (transmit := self.ice.poll_transmit()) is not None:
            self._send(transmit.destination, transmit.data)
        if self.ice.state is IceState.FAILED:
            self._end(SessionState.FAILED, CallError("ice", self.ice.failure))
            return
        if self.ice.selected is not None:
            self._flush_dtls()
        self._schedule()

    def _flush_dtls(self) -> None:
        dtls, destination = self._dtls, self.ice.selected
        if dtls is None or destination is None:
            return
        if not self._dtls_started:
            self._dtls_started = True
            dtls.start()
        for datagram in dtls.transmits():
            self._send(destination, datagram)
        if dtls.state is DtlsState.CONNECTED and self._keys is None:
            self._keys = dtls.keys
            self.state = SessionState.CONNECTED
            self.connected_at = clock()
            self._settle()
        elif dtls.state is DtlsState.FAILED:
            self._end(SessionState.FAILED, CallError("dtls", dtls.failure))
        elif dtls.state is DtlsState.CLOSED and self.state is SessionState.CONNECTED:
            self._end(SessionState.CLOSED, CallError("media", "the other side closed the call"))

    def _schedule(self) -> None:
        due = self.ice.poll_timeout()
        if self._dtls is not None and self._dtls_started:
            wait = self._dtls.seconds_to_timeout()
            if wait is not None:
                at = clock() + wait
                due = at if due is None else min(due, at)
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if due is None else self._loop.call_later(max(0.0, due - clock()), self._tick)

    def _send(self, destination: Address, data: bytes) -> None:
        try:
            self._sockets[6 if ":" in destination[0] else 4].sendto(data, destination)
        except (BlockingIOError, OSError):
            return  # as lost on the way: ICE, DTLS and the loss count are made for that

    def _settle(self) -> None:
        if not self._settled.done():
            self._settled.set_result(None)

    def _end(self, state: SessionState, failure: CallError | None) -> None:
        if self.state in (SessionState.CLOSED, SessionState.FAILED):
            return
        self.state = state
        self.failure = self.failure or failure
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for sock in self._sockets.values():
            self._loop.remove_reader(sock.fileno())
            sock.close()
        self._settle()
        if not self._ended.done():
            self._ended.set_result(None)


def _open(host: str) -> socket.socket:
    """A non-blocking UDP socket on any port of the IP version of `host`.

    Bound to the wildcard address, so that routing picks the source, as it does for a browser.
    """
    ipv6 = ":" in host
    sock = socket.socket(socket.AF_INET6 if ipv6 else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sock.setblocking(False)
        if ipv6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            sock.setsockopt(socket.SOL_SOCKET, option, SOCKET_BUFFER_BYTES)
        sock.bind(("::" if ipv6 else "0.0.0.0", 0))
    except OSError:
        sock.close()
        raise
    return sock


def local_hosts(target: str) -> list[str]:
    """The local addresses towards `target` (an IP address).

    Of its IP version first, then of the other if routed.
    """
    if ipaddress.ip_address(target).is_loopback:
        other = "127.0.0.1" if ":" in target else "::1"
    else:
        other = "192.0.2.1" if ":" in target else "2001:db8::1"
    found = (_source_address(probe) for probe in (target, other))
    return [host for host in found if host is not None]


def _source_address(destination: str) -> str | None:
    """Which local address the kernel would send from; nothing is sent."""
    family = socket.AF_INET6 if ":" in destination else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((destination, 9))
            return str(probe.getsockname()[0])
    except OSError:
        return None
