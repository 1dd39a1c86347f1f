"""Many calls from one event loop.

A gradual ramp, a measured time, percentiles, and who was the bottleneck.
"""

import asyncio
import contextlib
import ipaddress
import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from voicecluster.cli.client.audio import PERIOD_FRAMES, Recorder, speech
from voicecluster.cli.client.dial import Dialled, dial, hosts_towards
from voicecluster.cli.client.dtls import Identity
from voicecluster.cli.client.errors import CallError
from voicecluster.cli.client.pacer import Pacer, clock
from voicecluster.cli.client.session import CallSession, SessionState
from voicecluster.cli.client.signaling import Json, Signaling
from voicecluster.cli.client.usage import Usage, Verdict, between, judge, sample

AT_ONCE = 16
"""Calls that may be in set-up at the same time."""
LISTENED = 8
"""Calls whose sound is decoded afterwards."""
FRAME_MS = 20
SILENT_SECONDS = 3.0
"""A connected call that nothing came from for so long is counted as ended: pauses in speech are shorter."""
SETTLE_SECONDS = 1.0
"""From the last call's set-up to the start of the measured time."""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What `voicecluster load` was asked to do."""

    url: str
    key: str | None
    model: str
    region: str | None
    calls: int
    seconds: float
    per_second: float
    """Calls begun a second during the ramp."""
    insecure: bool = False
    ip_version: int | None = None


@dataclass(frozen=True, slots=True)
class _Counts:
    sent: int
    received: int
    lost: int
    remote_lost: tuple[int, ...]
    """What the server lost of each call, by its reports (every few seconds)."""


class Load:
    """One load run. `run` is called once; cancelling it hangs up what was dialled."""

    def __init__(self, plan: LoadPlan, *, progress: Callable[[int, int], None] | None = None) -> None:
        """`progress` is told (connected, failed) after every set-up."""
        self._plan = plan
        self._progress = progress
        self._calls: list[Dialled] = []
        self._failures: Counter[str] = Counter()
        self._recorders: list[Recorder] = []
        self._enough = asyncio.Event()

    def enough(self) -> None:
        """Measure no longer, whatever the plan says."""
        self._enough.set()

    async def run(self) -> Json:
        """Ramp up, measure, hang up, report."""
        plan = self._plan
        allow_sockets(plan.calls)
        hosts = (await hosts_towards(plan.url, ip_version=plan.ip_version))[:1]
        identity = Identity()
        pacer = Pacer()
        async with Signaling(plan.url, key=plan.key, insecure=plan.insecure) as signaling:
            try:
                await self._ramp(signaling, identity, hosts, pacer)
                if not self._calls:
                    common = self._failures.most_common(1)[0][0]
                    raise CallError("signaling", f"no call connected; most often: {common}")
                await asyncio.sleep(SETTLE_SECONDS)
                usage, measured, before, after = await self._measure(pacer)
                late = percentile(pacer.lateness, 0.99)
                alive = sum(_is_alive(call) for call in self._calls)
            finally:
                pacer.stop()
                await self._hang_up(signaling)
        heard = await asyncio.to_thread(lambda: [recorder.listen() for recorder in self._recorders])
        delays = [one.delay_ms for one in heard if one.delay_ms is not None]
        verdict = judge(usage, late_p99_seconds=late)
        return self._report(usage, verdict, measured, before, after, delays, alive=alive, late=late)

    async def _ramp(
        self, signaling: Signaling, identity: Identity, hosts: Sequence[str], pacer: Pacer
    ) -> None:
        room = asyncio.Semaphore(AT_ONCE)
        started = clock()
        async with asyncio.TaskGroup() as tasks:
            for index in range(self._plan.calls):
                await asyncio.sleep(max(0.0, started + index / self._plan.per_second - clock()))
                await room.acquire()
                work = self._dial(signaling, identity, hosts, pacer, index)
                task = tasks.create_task(work, name=f"dial {index}")
                task.add_done_callback(lambda _: room.release())

    async def _dial(
        self, signaling: Signaling, identity: Identity, hosts: Sequence[str], pacer: Pacer, index: int
    ) -> None:
        """Set one call up. Its failure is counted, not raised: the others go on."""
        try:
            first_frame = index * 37 % PERIOD_FRAMES
            session = CallSession(identity, speech().frames, hosts=hosts, first_frame=first_frame)
            call = await dial(signaling, session, model=self._plan.model, region=self._plan.region)
        except CallError as error:
            self._failures[f"{error.stage}: {error}"] += 1
        except OSError as error:
            self._failures[f"socket: {error.strerror}"] += 1
        else:
            self._calls.append(call)
            pacer.add(session)
        if self._progress is not None:
            self._progress(len(self._calls), self._failures.total())

    async def _measure(self, pacer: Pacer) -> tuple[Usage, float, _Counts, _Counts]:
        local = await _is_local(self._plan.url)
        for call in self._calls[:: max(1, len(self._calls) // LISTENED)][:LISTENED]:
            recorder = Recorder()
            call.session.record(recorder)
            self._recorders.append(recorder)
        for call in self._calls:
            if call.session.stream is not None:
                call.session.stream.watch_losses()
        pacer.lateness.clear()
        first, before = sample(local=local), self._count()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._plan.seconds):
                await self._enough.wait()
        last, after = sample(local=local), self._count()
        return between(first, last), last.at - first.at, before, after

    def _count(self) -> _Counts:
        stats = [call.stats for call in self._calls]
        return _Counts(
            sum(s.sent for s in stats),
            sum(s.received for s in stats),
            sum(s.lost for s in stats),
            tuple(s.remote_lost or 0 for s in stats),
        )

    async def _hang_up(self, signaling: Signaling) -> None:
        async def one(call: Dialled) -> None:
            async with room:
                try:
                    await signaling.hang_up(call.placed.url)
                except CallError:
                    return

        room = asyncio.Semaphore(AT_ONCE)
        for call in self._calls:
            call.session.close()
        async with asyncio.TaskGroup() as tasks:
            for call in self._calls:
                tasks.create_task(one(call), name=f"hang up {call.placed.call_id}")

    def _report(
        self,
        usage: Usage,
        verdict: Verdict,
        seconds: float,
        before: _Counts,
        after: _Counts,
        delays: list[float],
        *,
        alive: int,
        late: float,
    ) -> Json:
        received, lost = after.received - before.received, after.lost - before.lost
        calls = self._calls
        silent = sum(call.session.first_audio_at is None for call in calls)
        return {
            "ok": not self._failures and alive == len(calls) and silent == 0,
            "calls": self._plan.calls,
            "connected": len(calls),
            "failed": dict(self._failures),
            "ended_early": len(calls) - alive,
            "without_audio": silent,
            "seconds": round(seconds, 3),
            "offer_answer_ms": spread(call.timing.offer_answer_ms for call in calls),
            "answer_connected_ms": spread(call.timing.answer_connected_ms for call in calls),
            "first_audio_ms": spread(call.first_audio_ms for call in calls),
            "rtt_ms": spread(call.rtt_ms for call in calls),
            "audio_round_trip_ms": spread(delays),
            "jitter_ms": spread(call.stats.jitter_ms for call in calls),
            "packets_sent": after.sent - before.sent,
            "packets_received": received,
            "lost": lost,
            "loss": round(lost / (received + lost), 6) if received + lost else None,
            "gap_ms": spread(FRAME_MS * call.stats.longest_loss for call in calls),
            "lost_by_server": sum(after.remote_lost) - sum(before.remote_lost),
            "server_gap_ms": spread(
                float(FRAME_MS * (last - first))
                for first, last in zip(before.remote_lost, after.remote_lost, strict=True)
            ),
            "client_cores": round(usage.own, 3),
            "client_timers_late_p99_ms": round(1000 * late, 2),
            "server_cores": round(usage.server_total, 3) if usage.servers else None,
            "server_processes": {name: round(cores, 3) for name, cores in sorted(usage.servers.items())},
            "machine_busy": round(usage.machine, 3),
            "bottleneck": verdict.side,
            "bottleneck_why": verdict.why,
        }


def percentile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least `share` of them do not exceed; 0 of none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def spread(values: Iterable[float | None]) -> dict[str, float] | None:
    """p50, p95, p99 and the largest; None if there are no values."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    shares = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(percentile(known, share), 3) for name, share in shares.items()}


def allow_sockets(calls: int) -> None:
    """Raise this process's limit on open files as far as `calls` needs and the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = calls + 256
    if soft < wanted:
        allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))


def _is_alive(call: Dialled) -> bool:
    stream = call.session.stream
    if call.session.state is not SessionState.CONNECTED or stream is None:
        return False
    heard_at = stream.last_arrival
    return heard_at is None or clock() - heard_at < SILENT_SECONDS


async def _is_local(url: str) -> bool:
    """Whether the server's name is an address of this machine, so that its processes may be here."""
    host = urlsplit(url).hostname or ""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, 0, type=socket.SOCK_DGRAM)
    except OSError:
        return False
    return any(_own_address(str(entry[4][0])) for entry in found)


def _own_address(address: str) -> bool:
    if ipaddress.ip_address(address).is_loopback:
        return True
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
