"""The transport of one call: ICE, DTLS and the data channel, joined on the worker's socket.

Everything is driven synchronously from the socket and from one timer; there is no task per packet and none
per call but the one that awaits `run`. Callbacks are called from within the event loop, must not block, and
what they raise is counted and contained. An order that callers may rely on: `on_connected` once, before any
`on_channel_open` and `on_message`; `on_closed` once, after everything else.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Literal

from voicecluster.transceiver.dtls.endpoint import DtlsEndpoint, SrtpKeys
from voicecluster.transceiver.dtls.identity import DtlsIdentity
from voicecluster.transceiver.dtls.sctp import EventChannel
from voicecluster.transceiver.dtls.snapshot import Phases, TransportSnapshot
from voicecluster.transceiver.ice.agent import IceAgent
from voicecluster.transceiver.ice.mux import MediaSocket
from voicecluster.transceiver.ice.outcome import (
    Expired,
    GenerationEnded,
    PathAdded,
    PathRemoved,
    PathSelected,
    Refusal,
)
from voicecluster.transceiver.ice.path import Address, IceCredentials, Path
from voicecluster.transceiver.sdp.offer import Offer

logger = logging.getLogger(__name__)

CloseReason = Literal["expired", "peer closed", "dtls failed", "backlog", "closed"]


def _ignore(*_: object) -> None:
    """The default of every callback."""


class CallTransport:
    """ICE + DTLS + SCTP of one call on the worker's socket.

    Args:
        setup_seconds: DTLS must be up by then, or the call ends as "dtls failed".
        expiry_seconds: without authenticated packets for so long it ends as "expired".
        ice_mode: what the answer said; the agent does the same in both (it answers, and checks paths of its
            own).

    Raises `ValueError` where the ufrag is in use on this socket.
    """

    def __init__(
        self,
        socket: MediaSocket,
        identity: DtlsIdentity,
        credentials: IceCredentials,
        offer: Offer,
        *,
        ice_mode: Literal["Lite", "Full"] = "Lite",
        now: float,
        setup_seconds: float = 20.0,
        expiry_seconds: float = 30.0,
    ) -> None:
        self.on_srtp: Callable[[bytes, float], bool] = lambda _datagram, _now: False
        self.on_connected: Callable[[SrtpKeys], None] = _ignore
        self.on_closed: Callable[[str], None] = _ignore
        self.on_message: Callable[[str], None] = _ignore
        self.on_channel_open: Callable[[], None] = _ignore
        self.ice_mode = ice_mode
        self.phases = Phases(answered_at=now)
        self._socket = socket
        self._loop = socket.loop
        self._offer = offer
        self._setup_deadline = now + setup_seconds
        self._agent = IceAgent(
            credentials, IceCredentials(offer.ufrag, offer.pwd), now=now, expiry_seconds=expiry_seconds
        )
        role: Literal["client", "server"] = "server" if offer.setup == "active" else "client"
        self._dtls = DtlsEndpoint(identity, role=role, fingerprints=offer.fingerprints)
        self._events: EventChannel | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[CloseReason] = self._loop.create_future()
        socket.register(credentials.ufrag, self)
        self._arm(now)

    @property
    def setup(self) -> Literal["active", "passive"]:
        """Our `a=setup` in the answer: active (we send the first DTLS flight) unless the offer is."""
        return "passive" if self._dtls.role == "server" else "active"

    @property
    def closed(self) -> bool:
        """Whether the call's transport has ended."""
        return self._done.done()

    async def run(self) -> None:
        """Return when the transport has ended. Cancelling it closes the transport."""
        try:
            await asyncio.shield(self._done)
        finally:
            self._finish("closed")

    async def close(self) -> None:
        """End it from our side. May be called twice, and at any time."""
        self._finish("closed")

    def send_media(self, datagram: bytes) -> None:
        """Send protected SRTP or SRTCP on the current path; dropped where no path is validated."""
        path = self._agent.media_path(self._loop.time())
        if path is not None and not self.closed:
            self._socket.send(path.header, path.relay, datagram)

    def send_event(self, text: str) -> None:
        """Send a text on the data channel; dropped where it is not open.

        Over 1 MiB of backlog ends the call.
        """
        if self._events is not None and not self.closed:
            self._events.send(text)

    def restart_ice(self, local: IceCredentials, remote_ufrag: str, remote_pwd: str, now: float) -> None:
        """Begin a new ICE generation; DTLS, SRTP and the media path stay.

        Raises `ValueError`: ufrag in use.
        """
        self._socket.register(local.ufrag, self)
        self._agent.restart(local, IceCredentials(remote_ufrag, remote_pwd), now)
        self._drain(now)

    def snapshot(self) -> TransportSnapshot:
        """What the debug page shows."""
        drops = dict(self._events.drops) if self._events is not None else {}
        profile = self._dtls.keys.profile if self._dtls.keys is not None else None
        return TransportSnapshot.of(self._agent, self._dtls.state, profile, self.phases, drops)

    def on_check(self, data: bytes, header: bytes, relay: Address, now: float) -> str | None:
        """See `mux.Call`."""
        result = self._agent.handle_check(data, header, relay, now)
        if isinstance(result, Refusal):
            return result.value
        if self.phases.first_check_at is None:
            self.phases.first_check_at = now
        self._drain(now)
        return None

    def on_response(self, data: bytes, path: Path, relay: Address, now: float) -> bool:
        """See `mux.Call`."""
        result = self._agent.handle_response(data, path.header, relay, now)
        self._drain(now)
        return not isinstance(result, Refusal)

    def on_packet(self, data: bytes, path: Path, relay: Address, now: float) -> bool | None:
        """See `mux.Call`."""
        if data[0] >= 128:
            if self._dtls.keys is None:
                return None
            try:
                authentic = self.on_srtp(data, now)
            except Exception:  # a fault in the media path must not end the call, nor hurt another
                self._socket.counters.drops["media_error"] += 1
                return False
            if authentic:
                self._agent.authenticated(path, relay, now)
                if self._agent.has_output:
                    self._drain(now)
            return authentic
        return self._on_dtls(data, path, relay, now)

    def _on_dtls(self, data: bytes, path: Path, relay: Address, now: float) -> bool | None:
        before = self._dtls.state
        if before == "new":
            if self._dtls.role == "client":
                return None  # we speak first
            self._dtls.start()
        messages = self._dtls.receive(data)
        for datagram in self._dtls.poll_transmit():
            self._socket.send(path.header, relay, datagram)
        if messages is None:
            if self._dtls.state == "failed":
                self._finish("dtls failed")
            return None if before != "connected" else False
        if before != "connected" and self._dtls.keys is not None:
            self._agent.dtls_connected(path, now)
            self._connected(self._dtls.keys, now)
        self._agent.authenticated(path, relay, now)
        for message in messages:
            if self._events is not None:
                self._events.receive(message)
        self._drain(now)
        if self._dtls.state == "closed":
            self._finish("peer closed")
        return True

    def _connected(self, keys: SrtpKeys, now: float) -> None:
        self.phases.dtls_at = now
        if not self._call(self.on_connected, keys):
            self._finish("closed")  # a call whose media path did not start would be silent for ever
        application = self._offer.application
        if application is not None and not self.closed:
            self._events = EventChannel(
                send=self._send_dtls,
                role=self._dtls.role,
                port=application.sctp_port,
                max_message_size=application.max_message_size,
                on_open=self._opened,
                on_message=self._received,
                on_overflow=lambda: self._finish("backlog"),
            )

    def _opened(self) -> None:
        self._call(self.on_channel_open)

    def _received(self, text: str) -> None:
        self._call(self.on_message, text)

    def _call(self, callback: Callable[..., None], *args: object) -> bool:
        """Call the owner back. Returns whether that went well."""
        try:
            callback(*args)
        except Exception:  # the call's own code: counted here, so that a packet's other effects still happen
            self._socket.counters.drops["callback_error"] += 1
            logger.exception("a call's callback failed")
            return False
        return True

    def _send_dtls(self, data: bytes) -> None:
        if not self.closed:
            self._dtls.send(data)
            self._flush_dtls()

    def _flush_dtls(self) -> None:
        path = self._agent.selected
        for datagram in self._dtls.poll_transmit():
            if path is not None:
                self._socket.send(path.header, path.relay, datagram)

    def _drain(self, now: float) -> None:
        for event in self._agent.poll_event():
            match event:
                case PathAdded(path):
                    self._socket.claim(path, self)
                case PathRemoved(path):
                    self._socket.disclaim(path, self)
                case PathSelected(previous=None) if self._dtls.role == "client":
                    self._dtls.start()
                case PathSelected():
                    self._dtls.repeat_flight()
                case GenerationEnded(ufrag):
                    self._socket.unregister(ufrag, self)
                case Expired():
                    self._finish("expired")
                    return
        for transmit in self._agent.poll_transmit():
            self._socket.send(transmit.path.header, transmit.relay, transmit.payload)
        self._flush_dtls()
        self._arm(now)

    def _arm(self, now: float) -> None:
        """Keep one timer, at or before the next thing due; a timer that comes early only re-arms."""
        if self.closed:
            return
        dues = [self._agent.poll_timeout()]
        if self._dtls.state in ("new", "connecting"):
            dues.append(self._setup_deadline)
            seconds = self._dtls.timeout()
            if seconds is not None:
                dues.append(now + seconds)
        due = max(now, min(due for due in dues if due is not None))
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._loop.time()
        if self._dtls.state in ("new", "connecting") and now >= self._setup_deadline:
            self._finish("dtls failed")
            return
        self._dtls.handle_timeout()
        if self._dtls.state == "failed":
            self._finish("dtls failed")
            return
        self._agent.handle_timeout(now)
        self._drain(now)

    def _finish(self, reason: CloseReason) -> None:
        """The one way to the end: tell the peer, forget everything on the socket, tell the owner."""
        if self._done.done():
            return
        if self._events is not None:
            self._events.close()
        self._dtls.close()
        self._flush_dtls()
        self._done.set_result(reason)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for ufrag in self._agent.local_ufrags:
            self._socket.unregister(ufrag, self)
        for path in self._agent.paths.values():
            self._socket.disclaim(path, self)
        self._call(self.on_closed, reason)
        self.on_srtp = lambda _datagram, _now: False
        self.on_connected = self.on_message = self.on_channel_open = self.on_closed = _ignore
