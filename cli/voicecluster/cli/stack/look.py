"""`voicecluster status`: what is true now, asked of the processes themselves."""

import asyncio
from pathlib import Path

from pydantic import BaseModel
from rich import box
from rich.table import Table
from voicecluster.cli.stack.health import is_ready
from voicecluster.cli.state import PortStatus, ProcessStatus, StackStatus
from voicecluster.common.config.model import split_address


class Member(BaseModel):
    """A process that a process of the stack has started: an engine, a control plane, a worker."""

    pid: int
    name: str
    """What the kernel calls it: `worker-0`, `admin`, the start of an executable's name."""
    command: str


class SeenProcess(ProcessStatus):
    """A process as it is now."""

    ready: bool
    children: list[Member]


class Seen(BaseModel):
    """What `status --json` prints."""

    name: str
    ready: bool
    pid: int
    url: str
    cluster_id: int
    regions: dict[str, list[str]]
    """VIPs by region."""
    processes: list[SeenProcess]


def look(status: StackStatus) -> Seen:
    """Ask every process of the stack whether it is ready, at most a second long."""
    answers = asyncio.run(_ask(status.processes))
    seen = [
        SeenProcess(
            **process.model_dump(), ready=answer, children=_children(process.pid) if process.pid else []
        )
        for process, answer in zip(status.processes, answers, strict=True)
    ]
    return Seen(
        name=status.name,
        ready=bool(seen) and all(process.ready for process in seen),
        pid=status.pid,
        url=status.url,
        cluster_id=status.cluster_id,
        regions={region.name: region.vips for region in status.regions},
        processes=seen,
    )


def table(seen: Seen) -> Table:
    """The same for people."""
    shown = Table(
        title=f"{seen.name}  {seen.url}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
    )
    for heading in ("ROLE", "REGION", "PROCESS"):
        shown.add_column(heading, no_wrap=True)
    shown.add_column("PID", justify="right", no_wrap=True)
    shown.add_column("STATE", no_wrap=True)
    shown.add_column("RESTARTS", justify="right")
    shown.add_column("PORTS", overflow="fold")
    shown.add_column("READY", no_wrap=True)
    for process in seen.processes:
        shown.add_row(
            process.role,
            process.region,
            process.name,
            str(process.pid or "-"),
            process.state,
            str(process.restarts),
            "\n".join(_sockets(process.ports)),
            "[green]yes[/]" if process.ready else "[red]no[/]",
        )
    return shown


def _sockets(ports: list[PortStatus]) -> list[str]:
    """One line per address: `127.0.1.10: 40000/udp 9000/tcp 8086/tcp`."""
    lines: dict[str, list[str]] = {}
    for port in ports:
        host, number = split_address(port.address)
        lines.setdefault(host, []).append(f"{number}/{port.protocol}")
    return [f"{host}: {' '.join(sockets)}" for host, sockets in lines.items()]


async def _ask(processes: list[ProcessStatus]) -> list[bool]:
    return await asyncio.gather(*(is_ready(*split_address(process.admin)) for process in processes))


def _children(pid: int) -> list[Member]:
    """The processes below `pid`, as /proc shows them."""
    found: list[Member] = []
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            pids = [int(text) for text in listing.read_text().split()]
        except OSError:
            continue  # the thread has ended
        for child in pids:
            found.append(Member(pid=child, name=_read(child, "comm"), command=_read(child, "cmdline")))
            found.extend(_children(child))
    return found


def _read(pid: int, file: str) -> str:
    try:
        text = Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return ""  # it has ended
    return text.replace(b"\0", b" ").decode("utf-8", "replace").strip()
