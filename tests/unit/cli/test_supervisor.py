"""What the supervisor promises about processes, shown with small real ones."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from voicecluster.cli.stack.supervisor import ASK_SECONDS, KILL_SECONDS, Supervisor
from voicecluster.cli.state import ProcessStatus, StackError
from voicecluster.operator.plan.process import Port, Process

READY = """#!{python}
import http.server, signal, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
for number in ({ignored}):
    signal.signal(number, signal.SIG_IGN)
{extra}
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""

FAILING = """#!{python}
import sys
print("starting", file=sys.stderr)
print("error: FILE: field: problem; remedy", file=sys.stderr)
sys.exit({code})
"""


def ready_program(path: Path, *, ignoring: tuple[str, ...] = (), extra: str = "") -> Path:
    """A program that is ready at once on the port given as its first argument."""
    ignored = "".join(f"signal.{name}," for name in ignoring)
    return _executable(path, READY.format(python=sys.executable, ignored=ignored, extra=extra))


def failing_program(path: Path, *, code: int) -> Path:
    """A program that complains and ends."""
    return _executable(path, FAILING.format(python=sys.executable, code=code))


def _executable(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        assert isinstance(port, int)
        return port


def process(name: str, role: Literal["relay", "transceiver"] = "relay") -> Process:
    port = free_port()
    return Process(
        name=name,
        role=role,
        region="eu",
        command=("program", str(port)),
        volumes=(),
        ports=(Port("admin", "tcp", "127.0.0.1", port),),
    )


@dataclass
class Watched:
    """A supervisor in a task, and the newest status of each of its processes."""

    task: asyncio.Task[None]
    news: asyncio.Condition
    seen: dict[str, ProcessStatus] = field(default_factory=dict)

    async def until(
        self, name: str, wanted: Callable[[ProcessStatus], bool], seconds: float = 5
    ) -> ProcessStatus:
        """The status of `name` as soon as it is as wanted; ends the test if the supervisor ends before."""

        async def wait() -> ProcessStatus:
            async with self.news:
                await self.news.wait_for(lambda: name in self.seen and wanted(self.seen[name]))
                return self.seen[name]

        async with asyncio.timeout(seconds):
            waiting = asyncio.create_task(wait())
            await asyncio.wait({waiting, self.task}, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                waiting.cancel()
                await self.task
            return await waiting


@contextlib.asynccontextmanager
async def supervised(tmp_path: Path, *processes: tuple[Process, Path]) -> AsyncIterator[Watched]:
    news = asyncio.Condition()
    pending: set[asyncio.Task[None]] = set()

    def changed(statuses: list[ProcessStatus]) -> None:
        async def tell() -> None:
            async with news:
                watched.seen = {status.name: status for status in statuses}
                news.notify_all()

        task = asyncio.create_task(tell())
        pending.add(task)
        task.add_done_callback(pending.discard)

    supervisor = Supervisor(processes, lambda name: tmp_path / f"{name}.log", changed)
    watched = Watched(asyncio.create_task(supervisor.run()), news)
    try:
        yield watched
    finally:
        if not watched.task.done():
            os.kill(os.getpid(), signal.SIGTERM)
        with contextlib.suppress(StackError):
            await watched.task


def exists(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def is_ready(status: ProcessStatus) -> bool:
    return status.state == "ready"


async def test_a_process_is_ready_when_its_admin_port_says_so(tmp_path: Path) -> None:
    async with supervised(tmp_path, (process("one"), ready_program(tmp_path / "program"))) as watched:
        status = await watched.until("one", is_ready)
    assert (status.restarts, status.pid is not None) == (0, True)


async def test_a_killed_process_is_ready_again_within_two_seconds(tmp_path: Path) -> None:
    async with supervised(tmp_path, (process("one"), ready_program(tmp_path / "program"))) as watched:
        first = await watched.until("one", is_ready)
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        second = await watched.until("one", lambda now: is_ready(now) and now.pid != first.pid, seconds=2)
    assert second.restarts == 1


async def test_a_stop_signal_ends_every_process(tmp_path: Path) -> None:
    program = ready_program(tmp_path / "program")
    async with supervised(tmp_path, (process("one"), program), (process("two"), program)) as watched:
        pids = [(await watched.until(name, is_ready)).pid for name in ("one", "two")]
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(watched.task, ASK_SECONDS)
    assert not any(exists(pid) for pid in pids if pid is not None)


async def test_a_process_that_ignores_the_signal_is_killed_within_three_seconds(tmp_path: Path) -> None:
    program = ready_program(tmp_path / "program", ignoring=("SIGTERM", "SIGINT"))
    async with supervised(tmp_path, (process("one"), program)) as watched:
        status = await watched.until("one", is_ready)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(watched.task, ASK_SECONDS + KILL_SECONDS + 0.5)
    assert status.pid is not None
    assert not exists(status.pid)


async def test_a_second_stop_signal_ends_patience(tmp_path: Path) -> None:
    program = ready_program(tmp_path / "program", ignoring=("SIGTERM",))
    async with supervised(tmp_path, (process("one"), program)) as watched:
        await watched.until("one", is_ready)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0)  # handlers run when the loop turns
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(watched.task, 1)


async def test_a_transceiver_is_not_asked_to_drain(tmp_path: Path) -> None:
    program = ready_program(tmp_path / "program", ignoring=("SIGTERM",))  # as one does while it drains
    async with supervised(tmp_path, (process("one", "transceiver"), program)) as watched:
        await watched.until("one", is_ready)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(watched.task, 1)


async def test_what_a_dead_process_left_in_its_group_is_ended_before_it_is_started_again(
    tmp_path: Path,
) -> None:
    leaving = "import subprocess\n"
    leaving += f"left = open({str(tmp_path / 'left')!r}, 'w')\n"
    leaving += "print(subprocess.Popen(['sleep', '60']).pid, file=left, flush=True)\n"
    program = ready_program(tmp_path / "program", extra=leaving)
    async with supervised(tmp_path, (process("one"), program)) as watched:
        first = await watched.until("one", is_ready)
        left = int((tmp_path / "left").read_text())
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        await watched.until("one", lambda now: is_ready(now) and now.pid != first.pid)
        assert not exists(left)


async def test_a_bad_configuration_ends_the_start_with_the_programs_last_words(tmp_path: Path) -> None:
    program = failing_program(tmp_path / "program", code=2)
    with pytest.raises(
        StackError, match=r"one cannot start \(exit code 2\): error: FILE: field: problem; remedy"
    ):
        async with supervised(tmp_path, (process("one"), program)) as watched:
            await watched.until("one", is_ready)


async def test_a_process_that_dies_five_times_before_it_is_ready_ends_the_start(tmp_path: Path) -> None:
    program = failing_program(tmp_path / "program", code=1)
    with pytest.raises(StackError, match=r"exit code 1"):
        async with supervised(tmp_path, (process("one"), program)) as watched:
            await watched.until("one", is_ready)
    assert (tmp_path / "one.log").read_text().count("starting") == 5


async def test_an_executable_that_is_gone_is_tried_again_until_it_is_back(tmp_path: Path) -> None:
    program = ready_program(tmp_path / "program")
    async with supervised(tmp_path, (process("one"), program)) as watched:
        first = await watched.until("one", is_ready)
        program.rename(tmp_path / "away")
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        await watched.until("one", lambda now: now.state == "waiting")
        (tmp_path / "away").rename(program)
        await watched.until("one", lambda now: is_ready(now) and now.pid != first.pid)


def test_a_process_of_the_stack_dies_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    program = ready_program(tmp_path / "program")
    one = process("one")
    supervisor = os.fork()
    if supervisor == 0:
        with contextlib.suppress(BaseException):
            _supervise(one, program, tmp_path)
        os._exit(1)
    try:
        _poll(lambda: (tmp_path / "ready").exists())
        pid = int((tmp_path / "ready").read_text())
        assert exists(pid)
    finally:
        os.kill(supervisor, signal.SIGKILL)
        os.waitpid(supervisor, 0)
    _poll(lambda: not exists(pid))


def _supervise(one: Process, program: Path, tmp_path: Path) -> None:
    def changed(statuses: list[ProcessStatus]) -> None:
        if is_ready(statuses[0]):
            (tmp_path / "ready.new").write_text(str(statuses[0].pid))
            (tmp_path / "ready.new").rename(tmp_path / "ready")

    asyncio.run(Supervisor([(one, program)], lambda name: tmp_path / f"{name}.log", changed).run())


def _poll(condition: Callable[[], bool], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)
