"""`make bench-relay`: what our engine does with a second of CPU beside a plain C forwarder.

Both get the same 1,000 paced flows of 75 packets/s with sizes of an Opus trace, towards the transceiver,
from the same generator into the same kind of sink, in turns within one run. Each has one thread, two sockets
and a core; the generator has the other core. CPU is each process's own, as the kernel accounts it; loss is
what the sink missed.
"""

import argparse
import json
import resource
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from control import CLUSTER, Address, Engine, callers, confirm_flows, free_port
from processes import child, compile_c, cores, cpu_seconds, engine_binary, neighbours, take_precedence
from rows import Row, publish
from voicecluster import wire

HERE = Path(__file__).resolve().parent
HOST = "127.0.107.1"
SINK_HOST = "127.0.107.2"
PACKETS_PER_FLOW = 75
"""A second; half of what the engine's default limit allows."""
LOSS_ALLOWED = 0.0001
MOST_US = 100_000
SINK_BUFFER = 8 << 20
SO_RCVBUFFORCE = 33
"""Linux: beyond net.core.rmem_max, with CAP_NET_ADMIN."""
LONGEST_SECONDS = 55.0
"""No new round of windows begins after so long."""
FIRST_FD = 200
"""Where the callers' descriptors begin; above all others that this program opens."""


@dataclass(slots=True)
class Side:
    """One of the two that are compared, and what it has done so far."""

    name: str
    pid: int
    flows: list[socket.socket]
    sink: socket.socket
    sent: int = 0
    received: int = 0
    cpu: float = 0.0
    p99_us: list[int] | None = None

    @property
    def per_core_second(self) -> float:
        """Packets delivered for each second of CPU."""
        return self.received / self.cpu if self.cpu else 0.0

    @property
    def loss(self) -> float:
        """Share of the packets sent that the sink missed."""
        return 1 - self.received / self.sent if self.sent else 0.0

    @property
    def p99(self) -> float:
        """The median over the windows of the 99th percentile of the way from generator to sink, in
        microseconds."""
        ordered = sorted(self.p99_us or [0])
        return float(ordered[len(ordered) // 2])


def main() -> None:
    """Measure, print, write."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--quick", action="store_true", help="a few seconds, to see that it runs")
    options.add_argument("--flows", type=int, default=1000)
    quick, flows = options.parse_args().quick, options.parse_args().flows
    seconds, windows = (1.0, 1) if quick else (5.0, 4)
    flows = min(flows, 100) if quick else flows
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(4 * flows, 4096), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    )
    notes = neighbours()
    take_precedence()
    load_core, measured_core = cores()
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        generator = compile_c(HERE / "forwarder" / "generator.c", work)
        forwarder = compile_c(HERE / "forwarder" / "forwarder.c", work)
        control = work / "control"
        vip, plain = (HOST, free_port(HOST)), (HOST, free_port(HOST))
        engine_sink, forwarder_sink = _sink(), _sink()
        plain_arguments = [str(forwarder), *map(str, (*plain, *forwarder_sink.getsockname()))]
        engine_arguments = [str(engine_binary()), "run", "--control", str(control)]
        with (
            child(plain_arguments, core=measured_core, stdout=subprocess.PIPE) as forwarder_process,
            child(engine_arguments, core=measured_core) as engine_process,
        ):
            assert forwarder_process.stdout is not None
            if forwarder_process.stdout.readline() != "ready\n":
                sys.exit("the forwarder did not start")
            ours = _start_engine(control, vip, engine_sink, engine_process.pid, flows)
            theirs = Side(
                "C forwarder",
                forwarder_process.pid,
                callers(flows, plain, first_fd=FIRST_FD + flows),
                forwarder_sink,
            )
            enough = time.monotonic() + LONGEST_SECONDS
            for _ in range(windows):
                if time.monotonic() > enough:
                    break
                for side in (theirs, ours):
                    _window(side, generator, seconds=seconds, core=load_core)
            dropped = _drops(control)
    title = "relay: packets for each second of its own CPU"
    if dropped:
        notes.append(f"The engine dropped, by reason: {dropped}")
    publish("relay", title, _rows(ours, theirs, flows), notes=notes, quick=quick)


def _start_engine(control: Path, vip: Address, sink: socket.socket, pid: int, flows: int) -> Side:
    root = secrets.token_bytes(32)
    engine = Engine(control)
    engine.configure(
        vip=vip,
        backbone=(HOST, free_port(HOST)),
        sink=sink.getsockname(),
        key=wire.derive_key(root, "hint", CLUSTER),
    )
    sockets = callers(flows, vip, first_fd=FIRST_FD)
    confirm_flows(sockets, sink, root)
    counts = engine.ask("stats")["flows"]
    if not isinstance(counts, dict) or counts.get("confirmed") != flows:
        sys.exit(f"the engine confirmed not all of {flows} flows: {counts}")
    engine.close()
    return Side("engine", pid, sockets, sink)


def _drops(control: Path) -> dict[str, int]:
    engine = Engine(control)
    workers = engine.ask("stats")["workers"]
    engine.close()
    assert isinstance(workers, list)
    return {reason: count for reason, count in workers[0]["drops"].items() if count}


def _window(side: Side, generator: Path, *, seconds: float, core: int) -> None:
    """Let the generator run once through `side` and add up."""
    first = side.flows[0].fileno()
    count = len(side.flows)
    arguments = [side.sink.fileno(), first, count, count * PACKETS_PER_FLOW, seconds, HERE / "opus-sizes.txt"]
    before = cpu_seconds(side.pid)
    finished = subprocess.run(
        ["taskset", "-c", str(core), str(generator), *map(str, arguments)],
        stdout=subprocess.PIPE,
        check=True,
        pass_fds=[side.sink.fileno(), *range(first, first + count)],
    )
    side.cpu += cpu_seconds(side.pid) - before
    result = json.loads(finished.stdout)
    side.sent += result["sent"]
    side.received += result["received"]
    side.p99_us = [*(side.p99_us or []), result["p99_us"]]


def _sink() -> socket.socket:
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        sink.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, SINK_BUFFER)
    except PermissionError:
        sink.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SINK_BUFFER)
    sink.bind((SINK_HOST, 0))
    sink.settimeout(2)
    return sink


def _rows(ours: Side, theirs: Side, flows: int) -> list[Row]:
    ratio = ours.per_core_second / theirs.per_core_second if theirs.per_core_second else None
    # The generator counts up to 100 ms; a side beyond that has no p99 to compare.
    slower = ours.p99 / theirs.p99 if theirs.p99 and max(ours.p99, theirs.p99) < MOST_US else None
    at = f"{flows} flows, {flows * PACKETS_PER_FLOW:,} packets/s"
    return [
        Row(
            f"packets per second of CPU, {at}",
            round(ours.per_core_second),
            "packets/s",
            theirs.name,
            ratio and round(ratio, 3),
            "0.85 x",
            "1.2 x",
            ratio is not None and ratio >= 0.85,
        ),
        Row("the same, C forwarder", round(theirs.per_core_second), "packets/s"),
        Row(
            "packets lost, engine",
            round(100 * ours.loss, 4),
            "%",
            floor="0.01 %",
            met=ours.loss <= LOSS_ALLOWED,
        ),
        Row("packets lost, C forwarder", round(100 * theirs.loss, 4), "%"),
        Row(
            "generator to sink p99 at this load, engine",
            ours.p99,
            "µs",
            theirs.name,
            slower and round(slower, 2),
            "1.5 x",
            "1.1 x",
            None if slower is None else slower <= 1.5,
        ),
        Row("the same, C forwarder", theirs.p99, "µs"),
    ]


if __name__ == "__main__":
    main()
