"""Place one call, keep it for a while, tell how it was."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from voicecluster.cli.client import sdp
from voicecluster.cli.client.audio import Recorder, speech
from voicecluster.cli.client.dtls import Identity
from voicecluster.cli.client.errors import CallError
from voicecluster.cli.client.pacer import Pacer, clock
from voicecluster.cli.client.rtp import StreamStats
from voicecluster.cli.client.session import CallSession, SessionState, local_hosts
from voicecluster.cli.client.signaling import Json, Placed, Signaling
from voicecluster.common.config.model import join_address

CONNECT_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Timing:
    """Set-up as the caller saw it, in milliseconds."""

    offer_answer_ms: float
    """From sending the offer until the answer was here."""
    answer_connected_ms: float
    """From the answer until DTLS was up."""


@dataclass(slots=True)
class Dialled:
    """A connected call."""

    session: CallSession
    placed: Placed
    timing: Timing
    offered_at: float

    @property
    def first_audio_ms(self) -> float | None:
        """From sending the offer to the first authenticated audio packet; None before it came."""
        heard = self.session.first_audio_at
        return None if heard is None else 1000 * (heard - self.offered_at)

    @property
    def stats(self) -> StreamStats:
        """Counts so far."""
        stream = self.session.stream
        assert stream is not None, "a connected session has a stream"
        return stream.stats()

    @property
    def rtt_ms(self) -> float | None:
        """The median round trip of ICE checks: the network and the other side's socket loop."""
        rtts = sorted(self.session.ice.rtts)
        return 1000 * rtts[len(rtts) // 2] if rtts else None


async def dial(
    signaling: Signaling,
    session: CallSession,
    *,
    model: str,
    region: str | None,
    connect_seconds: float = CONNECT_SECONDS,
) -> Dialled:
    """Connect `session`.

    Raises CallError; the session is closed then and the server's call, if any, hung up.
    """
    placed: Placed | None = None
    try:
        offered_at = clock()
        placed = await signaling.place(session.offer(), model=model, region=region)
        answered_at = clock()
        session.accept(sdp.parse_answer(placed.sdp))
        await session.connected(timeout_seconds=connect_seconds)
    except BaseException:
        session.close()
        if placed is not None:
            await _quietly(signaling.hang_up(placed.url))
        raise
    connected_at = session.connected_at
    assert connected_at is not None, "connected() returned"
    timing = Timing(1000 * (answered_at - offered_at), 1000 * (connected_at - answered_at))
    return Dialled(session, placed, timing, offered_at)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """What `voicecluster call` was asked to do."""

    url: str
    key: str | None
    model: str
    region: str | None
    seconds: float
    insecure: bool = False
    rsa: bool = False
    ip_version: int | None = None
    """4 or 6: have a socket of that version only; both otherwise."""
    restarts: int = 0
    """ICE restarts to do, spread evenly over the call."""


async def place_call(plan: CallPlan, *, progress: Callable[[str], None] = lambda _: None) -> Json:
    """Make the planned call and report it as the JSON document of `voicecluster call --json`.

    Raises:
        CallError: the call did not connect.
    """
    recorder = Recorder()
    hosts = await hosts_towards(plan.url, ip_version=plan.ip_version)
    session = CallSession(Identity("rsa" if plan.rsa else "ecdsa"), speech().frames, hosts=hosts)
    session.record(recorder)
    pacer = Pacer()
    async with Signaling(plan.url, key=plan.key, insecure=plan.insecure) as signaling:
        progress(f"offering {', '.join(join_address(*host) for host in session.local_addresses)}")
        dialled = await dial(signaling, session, model=plan.model, region=plan.region)
        progress(f"connected as {dialled.placed.call_id}, talking for {plan.seconds:g} s")
        pacer.add(session)
        try:
            await _talk(signaling, dialled, plan)
            debug = await signaling.debug(dialled.placed.url)
        finally:
            pacer.stop()
            session.close()
            await _quietly(signaling.hang_up(dialled.placed.url))
    heard = await asyncio.to_thread(recorder.listen)
    stats = dialled.stats
    addresses = session.ice.remote_addresses
    report: Json = {
        "ok": heard.audible and (plan.model != "echo" or heard.recognised),
        "call_id": dialled.placed.call_id,
        "model": plan.model,
        "region": (debug or {}).get("region", plan.region),
        "local_candidates": [join_address(*host) for host in session.local_addresses],
        "remote_candidates": [join_address(*address) for address in addresses],
        "selected": None if session.ice.selected is None else join_address(*session.ice.selected),
        "offer_answer_ms": round(dialled.timing.offer_answer_ms, 2),
        "answer_connected_ms": round(dialled.timing.answer_connected_ms, 2),
        "first_audio_ms": _rounded(dialled.first_audio_ms),
        "rtt_ms": _rounded(dialled.rtt_ms),
        "audio_round_trip_ms": _rounded(heard.delay_ms),
        "audio_correlation": round(heard.correlation, 3),
        "audio_rms": round(heard.rms, 4),
        "packets_sent": stats.sent,
        "packets_received": stats.received,
        "lost": stats.lost,
        "jitter_ms": round(stats.jitter_ms, 2),
        "ice_restarts": plan.restarts,
        "ended_early": None if session.failure is None else str(session.failure),
        "debug": debug,
    }
    return report


async def _talk(signaling: Signaling, dialled: Dialled, plan: CallPlan) -> None:
    """Let the call run its time, with its ICE restarts; returns early if it ends."""
    session = dialled.session
    for _ in range(plan.restarts):
        await _rest(session, plan.seconds / (plan.restarts + 1))
        if session.state is not SessionState.CONNECTED:
            return
        session.restarted(await signaling.restart(dialled.placed.url, session.restart_ice()))
    await _rest(session, plan.seconds / (plan.restarts + 1))


async def _rest(session: CallSession, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await session.ended()
    except TimeoutError:
        return


async def hosts_towards(url: str, *, ip_version: int | None) -> Sequence[str]:
    """The local addresses that a client of `url` offers as candidates, those of the server's IP version
    first.

    Raises CallError if `url` names no host or this machine has no address of `ip_version`.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CallError(
            "signaling", f"'{url}' is not an http or https URL; write it like http://127.0.0.1:8080"
        )
    try:
        ipaddress.ip_address(parts.hostname)
        target = parts.hostname
    except ValueError:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, 9, type=socket.SOCK_DGRAM)
        except OSError as error:
            raise CallError("signaling", f"'{parts.hostname}' has no address ({error.strerror})") from None
        target = str(found[0][4][0])
    hosts = [host for host in local_hosts(target) if ip_version in (None, 6 if ":" in host else 4)]
    if not hosts:
        raise CallError("ice", f"this machine has no IPv{ip_version or 4} address to call from")
    return hosts


async def _quietly(action: Awaitable[object]) -> None:
    """Await something whose failure no longer matters."""
    try:
        await action
    except CallError:
        return


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
