"""One call: transport, RTP and the agent's session put together, from the offer to its end.

A failure inside a call ends the call, never the worker. Everything runs on the worker's loop; the only task
is `run`.
"""

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from voicecluster.common.config.transceiver import TransceiverConfig
from voicecluster.transceiver.agents.registry import create
from voicecluster.transceiver.clock import MediaClock
from voicecluster.transceiver.describe import describe
from voicecluster.transceiver.dtls.endpoint import SrtpKeys
from voicecluster.transceiver.dtls.identity import DtlsIdentity
from voicecluster.transceiver.dtls.transport import CallTransport
from voicecluster.transceiver.http.errors import ApiError
from voicecluster.transceiver.http.offer import SessionParams
from voicecluster.transceiver.ice.mux import MediaSocket
from voicecluster.transceiver.ice.path import IceCredentials
from voicecluster.transceiver.metrics import Metrics
from voicecluster.transceiver.phases import Phases
from voicecluster.transceiver.realtime.session import RealtimeSession
from voicecluster.transceiver.rtp.session import RtpSession
from voicecluster.transceiver.sdp.answer import Candidate, build_answer, build_fragment
from voicecluster.transceiver.sdp.fragment import parse_fragment
from voicecluster.transceiver.sdp.lines import OfferError
from voicecluster.transceiver.sdp.offer import Offer

log = logging.getLogger(__name__)

SAMPLE_SECONDS = 5.0
WARNING_SECONDS = 60.0
CLOSE_SECONDS = 1.0
CNAME = "voicecluster"


@dataclass(frozen=True, slots=True)
class WorkerParts:
    """What all calls of a worker share."""

    name: str
    region: str
    ordinal: int
    worker: int
    socket: MediaSocket
    identity: DtlsIdentity
    clock: MediaClock
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Opening:
    """What makes one call differ from the others."""

    call_id: str
    key_name: str
    config: TransceiverConfig
    """As it was when the offer came: a newer one is for newer calls."""
    offer: Offer
    model: str | None
    session: SessionParams | None
    credentials: IceCredentials
    candidates: Sequence[Candidate]
    newer_candidates: Callable[[Sequence[Candidate]], Sequence[Candidate]]
    """Given what the client was told last, what to tell it at an ICE restart: the same, but for VIPs that went."""
    mint: Callable[[], IceCredentials]
    """New credentials for an ICE restart."""


class Call:
    """Created with the offer, answered at once, alive until `run` returns."""

    def __init__(self, parts: WorkerParts, opening: Opening, *, now: float) -> None:
        self.call_id = opening.call_id
        self.key_name = opening.key_name
        self.phases = Phases(now)
        self._parts = parts
        self._opening = opening
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[str] = self._loop.create_future()
        self._remote_ufrag = opening.offer.ufrag
        self._candidates = opening.candidates
        self._draining_until: float | None = None
        self._ssrc = secrets.randbits(32) or 1
        self._agent = create(opening.model, default=opening.config.default_agent)
        self._rtp = RtpSession(
            local_ssrc=self._ssrc,
            cname=CNAME,
            payload_type=opening.offer.audio.opus_pt,
            config=opening.config.media,
            send=self._send_media,
            now=now,
        )
        self._session = RealtimeSession(
            call_id=opening.call_id,
            model=self.model,
            session_params=opening.session,
            agent=self._agent,
            emit=self._emit,
            play=self._rtp.play,
        )
        # Last: what comes before may fail, and a transport is known to the socket from its start.
        self._transport = CallTransport(
            parts.socket,
            parts.identity,
            opening.credentials,
            opening.offer,
            ice_mode=opening.config.ice_mode,
            now=now,
            setup_seconds=opening.config.limits.setup_seconds,
            expiry_seconds=opening.config.limits.expiry_seconds,
        )
        self._transport.on_srtp = self._srtp
        self._transport.on_connected = self._connected
        self._transport.on_closed = self.end
        self._transport.on_channel_open = self._channel_open
        self._transport.on_message = self._message
        self._sampled = _Sample()
        self._sample_at = now + SAMPLE_SECONDS

    @property
    def model(self) -> str:
        """The model that the client asked for, else the agent's name."""
        return self._opening.model or self._agent.name

    @property
    def ending(self) -> bool:
        """Whether the call has been told to end."""
        return self._ended.done()

    @property
    def agent(self) -> str:
        """The name of the agent that answers."""
        return self._agent.name

    def answer(self) -> str:
        """The SDP answer to the offer."""
        credentials = self._opening.credentials
        sdp = build_answer(
            self._opening.offer,
            ufrag=credentials.ufrag,
            pwd=credentials.pwd,
            fingerprint=self._parts.identity.fingerprint,
            setup=self._transport.setup,
            candidates=self._candidates,
            ssrc=self._ssrc,
            cname=CNAME,
            session_id=secrets.randbits(61),
            ice_lite=self._ice_lite,
        )
        self.phases.reached("answered", self._loop.time())
        self._parts.metrics.opened.labels(self._agent.name).inc()
        log.info(
            "call answered",
            extra={"call_id": self.call_id, "agent": self._agent.name, **self.phases.milliseconds()},
        )
        return sdp

    async def run(self) -> None:
        """Carry the call to its end. Cancelling it ends the call as `end` does, without saying goodbye."""
        limits = self._opening.config.limits
        timers = [
            self._loop.call_later(limits.call_seconds - self._warning_seconds, self._warn),
            self._loop.call_later(limits.call_seconds, self.end, "too long"),
        ]
        transport = asyncio.create_task(self._run_transport(), name=f"transport {self.call_id}")
        reason = "cancelled"
        try:
            reason = await self._ended
            self._session.close(self._loop.time())
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._transport.close()
        except TimeoutError:
            log.warning("transport did not close in time", extra={"call_id": self.call_id})
        except Exception:  # the root of a call: whatever is left of it, the worker goes on
            log.exception("closing a call failed", extra={"call_id": self.call_id})
        finally:
            for timer in timers:
                timer.cancel()
            self._parts.clock.remove(self._tick)
            transport.cancel()
            await asyncio.wait([transport], timeout=CLOSE_SECONDS)
            self._finished(reason)

    def end(self, reason: str) -> None:
        """End the call. The first reason counts; later ones are ignored."""
        if not self._ended.done():
            self._ended.set_result(reason)

    def hang_up(self) -> None:
        """End the call because its client said so."""
        self.end("hangup")

    def announce_drain(self, until: float | None) -> None:
        """Tell the client that its server goes away, and the call with it at `until` (loop time) at the latest.

        A channel that opens later tells it then; None takes that back.
        """
        self._draining_until = until
        if until is not None:
            left = max(0.0, until - self._loop.time())
            self._notify("voicecluster.draining", seconds_left=round(left, 1))

    def restart_ice(self, fragment: str) -> str | None:
        """Apply a client's sdpfrag. Returns our fragment, or None when the credentials are those of now
        (trickle).

        Raises ApiError 400 where the fragment cannot be used. DTLS, RTP and the session go on.
        """
        try:
            remote = parse_fragment(fragment)
        except OfferError as error:
            raise offer_refused(error, param="fragment") from None
        if remote.ufrag == self._remote_ufrag:
            return None
        local = self._opening.mint()
        self._transport.restart_ice(local, remote.ufrag, remote.pwd, self._loop.time())
        self._remote_ufrag = remote.ufrag
        self._candidates = self._opening.newer_candidates(self._candidates) or self._candidates
        self._parts.metrics.restarts.inc()
        log.info("ICE restarted", extra={"call_id": self.call_id})
        return build_fragment(
            ufrag=local.ufrag,
            pwd=local.pwd,
            candidates=self._candidates,
            mid=self._opening.offer.audio.mid,
            ice_lite=self._ice_lite,
        )

    def debug(self) -> dict[str, object]:
        """What `GET …/debug` shows: path, phases and quality. Times are relative to the offer's arrival."""
        return describe(self._parts, self, self._transport.snapshot(), self._rtp.stats())

    def _connected(self, keys: SrtpKeys) -> None:
        now = self._loop.time()
        first_check = self._transport.phases.first_check_at
        if first_check is not None:
            self.phases.reached("first_check", first_check)
        self.phases.reached("dtls", now)
        self._rtp.start(keys.rx, keys.tx)
        self._parts.clock.add(self._tick)

    def _srtp(self, datagram: bytes, now: float) -> bool:
        authentic = self._rtp.receive(datagram, now)
        if authentic and not self.phases.has("first_audio"):
            self.phases.reached("first_audio", self._loop.time())
        return authentic

    def _send_media(self, datagram: bytes) -> None:
        self._transport.send_media(datagram)

    def _channel_open(self) -> None:
        self._guarded(self._session.opened, self._loop.time())
        if self._draining_until is not None:
            self.announce_drain(self._draining_until)

    def _message(self, text: str) -> None:
        self._guarded(self._session.client_event, text, self._loop.time())

    def _tick(self, now: float) -> None:
        try:
            self._session.tick(self._rtp.pull(now), now)
            self._rtp.rtcp(now)
            if now >= self._sample_at:
                self._sample_at = now + SAMPLE_SECONDS
                self._sample()
        except Exception:  # the root of a call's media: it ends this call, the others go on
            self._failed("media failed")

    def _sample(self) -> None:
        metrics, stats, before = self._parts.metrics, self._rtp.stats(), self._sampled
        snapshot = self._transport.snapshot()
        metrics.received.inc(max(0, stats.received - before.received))
        metrics.lost.inc(max(0, stats.lost - before.lost))
        metrics.concealed.inc(max(0, stats.concealed - before.concealed))
        metrics.sent.inc(max(0, stats.sent - before.sent))
        switches = snapshot.path_switches
        metrics.path_switches.inc(max(0, switches - before.switches))
        if snapshot.rtt_ms is not None:
            metrics.round_trip.observe(snapshot.rtt_ms / 1000)
        if stats.received:
            metrics.jitter.observe(stats.jitter_ms / 1000)
        self._sampled = _Sample(stats.received, stats.lost, stats.concealed, stats.sent, switches)

    @property
    def _ice_lite(self) -> bool:
        return self._opening.config.ice_mode == "Lite"

    @property
    def _warning_seconds(self) -> float:
        return min(WARNING_SECONDS, self._opening.config.limits.call_seconds / 4)

    def _warn(self) -> None:
        self._notify("voicecluster.expiring", seconds_left=self._warning_seconds)

    def _notify(self, kind: str, **facts: object) -> None:
        self._guarded(self._emit, {"type": kind, "event_id": f"event_{secrets.token_hex(8)}", **facts})

    def _emit(self, event: Mapping[str, object]) -> None:
        self._transport.send_event(json.dumps(event, separators=(",", ":")))

    async def _run_transport(self) -> None:
        try:
            await self._transport.run()
            self.end("closed")
        except Exception:  # the root of a call's transport: it ends this call, the others go on
            self._failed("transport failed")

    def _guarded(self, act: Callable[..., None], *args: object, **facts: object) -> None:
        try:
            act(*args, **facts)
        except Exception:  # the root of an event: what the session makes of it ends this call at most
            self._failed("session failed")

    def _failed(self, reason: str) -> None:
        log.exception("call failed", extra={"call_id": self.call_id, "reason": reason})
        self.end(reason)

    def _finished(self, reason: str) -> None:
        metrics, seconds = self._parts.metrics, self._loop.time() - self.phases.start
        self._sample()
        metrics.ended.labels(reason).inc()
        metrics.duration.observe(seconds)
        for phase, took in self.phases.seconds().items():
            metrics.setup.labels(phase).observe(took)
        snapshot, stats = self._transport.snapshot(), self._rtp.stats()
        log.info(
            "call ended",
            extra={
                "call_id": self.call_id,
                "reason": reason,
                "seconds": round(seconds, 3),
                **self.phases.milliseconds(),
                "rtt_ms": snapshot.rtt_ms,
                "jitter_ms": stats.jitter_ms,
                "received": stats.received,
                "lost": stats.lost,
                "concealed": stats.concealed,
                "path_switches": snapshot.path_switches,
                "ice_restarts": snapshot.ice_restarts,
            },
        )


@dataclass(frozen=True, slots=True)
class _Sample:
    """The counters of a call as they were last added to the worker's."""

    received: int = 0
    lost: int = 0
    concealed: int = 0
    sent: int = 0
    switches: int = 0


def offer_refused(error: OfferError, *, param: str) -> ApiError:
    """400 that says what is wrong with an SDP, and in which line."""
    where = f" (line: {error.line})" if error.line else ""
    return ApiError(400, error.code, f"{error.message}{where}", param=param)
