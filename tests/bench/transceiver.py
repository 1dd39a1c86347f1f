"""`make bench-transceiver`: calls per core and set-up times of ours beside stock aiortc.

Three servers echo every frame with the codec both ways: our transceiver behind our relay engine, stock
aiortc, and stock aiortc with its audio level switched off. The same client calls each, in turns within one
run. The server has one core, the client (and our relay) the other. CPU per call is the server process's own
over a measured time at N calls; calls per core is its inverse, a figure for comparison: no server should be
run at 100 %.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from deployment import deployment, tcp_port
from processes import child, cores, cpu_seconds, neighbours, take_precedence
from rows import Row, publish
from voicecluster.cli.client.audio import PERIOD_FRAMES, speech
from voicecluster.cli.client.dial import Dialled, dial, hosts_towards
from voicecluster.cli.client.dtls import Identity
from voicecluster.cli.client.errors import CallError
from voicecluster.cli.client.load import percentile
from voicecluster.cli.client.pacer import Pacer, clock
from voicecluster.cli.client.rtp import FRAME_SECONDS
from voicecluster.cli.client.session import CallSession
from voicecluster.cli.client.signaling import Signaling

LONGEST_SECONDS = 45.0
"""No second pass begins after so long."""
HERE = Path(__file__).resolve().parent
Kind = Literal["ours", "stock aiortc", "stock aiortc without audio level"]
CALLS: dict[Kind, int] = {"ours": 20, "stock aiortc": 5, "stock aiortc without audio level": 10}
"""Calls at which each is measured: enough to be busy, far from its end."""


@dataclass(frozen=True, slots=True)
class Server:
    """Something to call, and the processes whose CPU is asked for."""

    url: str
    pid: int
    relay_pid: int | None


@dataclass(slots=True)
class Measured:
    """What was found out about one server so far."""

    call_seconds: float = 0.0
    cpu: float = 0.0
    relay_cpu: float = 0.0
    failed: int = 0
    received: int = 0
    lost: int = 0
    offer_answer_ms: list[float] = field(default_factory=list)
    answer_connected_ms: list[float] = field(default_factory=list)

    @property
    def calls_per_core(self) -> float:
        """Calls that a core carries, by the audio that came back.

        A server that falls behind gains nothing by it.
        """
        return self.received * FRAME_SECONDS / self.cpu if self.cpu else 0.0


def main() -> None:
    """Measure, print, write."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    quick = options.parse_args().quick
    order: list[Kind] = ["ours", "stock aiortc", "stock aiortc without audio level"]
    passes = [order[:2]] if quick else [order, order[::-1]]
    notes = neighbours()
    take_precedence()
    load_core, measured_core = cores()
    os.sched_setaffinity(0, {load_core})
    found: dict[Kind, Measured] = {kind: Measured() for kind in order}
    enough = clock() + LONGEST_SECONDS
    for kinds in passes:
        if clock() > enough:
            break
        for kind in kinds:
            with (
                tempfile.TemporaryDirectory() as directory,
                server(kind, Path(directory), measured_core, load_core) as one,
            ):
                calls = 2 if quick else CALLS[kind]
                asyncio.run(
                    measure(
                        one, found[kind], calls=calls, setups=2 if quick else 20, seconds=0.5 if quick else 5
                    )
                )
    title = "transceiver: echo with the codec both ways"
    publish("transceiver", title, rows(found, quick=quick), notes=notes, quick=quick)


@contextmanager
def server(kind: Kind, work: Path, measured_core: int, load_core: int) -> Iterator[Server]:
    """Run one of the three for the time of the block."""
    if kind == "ours":
        with deployment(work, measured_core=measured_core, other_core=load_core, calls=1000) as ours:
            yield Server(ours.url, ours.transceiver_pid, ours.engine_pid)
        return
    port = tcp_port("127.0.0.1")
    extra = ["--no-level"] if kind == "stock aiortc without audio level" else []
    arguments = [sys.executable, str(HERE / "stock.py"), str(port), *extra]
    with child(arguments, core=measured_core, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            sys.exit(f"{kind} did not start")
        yield Server(f"http://127.0.0.1:{port}", process.pid, None)


async def measure(target: Server, into: Measured, *, calls: int, setups: int, seconds: float) -> None:
    """Set-up times of single calls, then CPU at `calls` calls."""
    identity, pacer = Identity(), Pacer()
    hosts = (await hosts_towards(target.url, ip_version=4))[:1]
    async with Signaling(target.url, key=None) as signaling:

        async def connect(index: int) -> Dialled:
            session = CallSession(
                identity, speech().frames, hosts=hosts, first_frame=index * 37 % PERIOD_FRAMES
            )
            return await dial(signaling, session, model="echo", region=None)

        for index in range(setups + 1):
            try:
                call = await connect(index)
            except CallError:
                into.failed += 1
                continue
            if index:  # the first one pays for imports and caches
                into.offer_answer_ms.append(call.timing.offer_answer_ms)
                into.answer_connected_ms.append(call.timing.answer_connected_ms)
            await hang_up(signaling, call)
        up = []
        for index in range(calls):
            try:
                up.append(await connect(index))
            except CallError:  # at its end, or starved by others; what is up is measured
                into.failed += 1
                break
            pacer.add(up[-1].session)
        await asyncio.sleep(min(1.0, seconds))
        before = [(call.stats.received, call.stats.lost) for call in up]
        started, cpu, relay_cpu = clock(), cpu_seconds(target.pid), _cpu(target.relay_pid)
        await asyncio.sleep(seconds)
        into.call_seconds += len(up) * (clock() - started)
        into.cpu += cpu_seconds(target.pid) - cpu
        into.relay_cpu += _cpu(target.relay_pid) - relay_cpu
        for call, (received, lost) in zip(up, before, strict=True):
            into.received += call.stats.received - received
            into.lost += call.stats.lost - lost
        pacer.stop()
        for call in up:
            await hang_up(signaling, call)


async def hang_up(signaling: Signaling, call: Dialled) -> None:
    """End a call on both sides."""
    call.session.close()
    await signaling.hang_up(call.placed.url)


def _cpu(pid: int | None) -> float:
    return 0.0 if pid is None else cpu_seconds(pid)


def rows(found: dict[Kind, Measured], *, quick: bool) -> list[Row]:
    """The table: ours first, each yardstick after it."""
    ours = found["ours"]
    made = []
    for kind, floor, aim in (("stock aiortc", 6.0, 12.0), ("stock aiortc without audio level", 2.5, 4.0)):
        theirs = found[kind]
        if not theirs.cpu:
            continue
        ratio = ours.calls_per_core / theirs.calls_per_core
        made.append(
            Row(
                "calls per core",
                round(ours.calls_per_core, 1),
                "calls",
                kind,
                round(ratio, 2),
                f"{floor:g} x",
                f"{aim:g} x",
                None if quick else ratio >= floor,
            )
        )
        made.append(Row(f"calls per core, {kind}", round(theirs.calls_per_core, 1), "calls"))
    made.append(_share("packets lost, ours", ours))
    made.append(Row("calls that did not connect, ours", ours.failed, "calls"))
    relay = 1e3 * ours.relay_cpu / ours.call_seconds if ours.call_seconds else None
    made.append(Row("CPU of the relay engine per call", relay and round(relay, 3), "ms/s"))
    for what, floor, aim, read in (
        ("offer → answer p50", 1.2, 0.7, lambda one: one.offer_answer_ms),
        ("answer → DTLS connected p50", 4.0, 2.0, lambda one: one.answer_connected_ms),
    ):
        mine, stock = percentile(read(ours), 0.5), percentile(read(found["stock aiortc"]), 0.5)
        ratio = round(mine / stock, 3) if stock else None
        met = None if quick else mine <= floor
        made.append(
            Row(what, round(mine, 2), "ms", "stock aiortc", ratio, f"{floor:g} ms", f"{aim:g} ms", met)
        )
        made.append(Row(f"{what}, stock aiortc", round(stock, 2), "ms"))
    return made


def _share(what: str, one: Measured) -> Row:
    total = one.received + one.lost
    return Row(what, round(100 * one.lost / total, 4) if total else None, "%")


if __name__ == "__main__":
    main()
