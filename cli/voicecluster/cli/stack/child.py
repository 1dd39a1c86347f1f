"""One process of the stack: started, watched, started again when it dies, ended when told.

It leads a process group of its own, so a Ctrl-C of the terminal reaches `up` alone, and whatever it leaves
behind can be found. It dies with `up` (PR_SET_PDEATHSIG), however `up` ends; so do the children of relays and
transceivers with them.
"""

import asyncio
import ctypes
import os
import signal
from asyncio.subprocess import Process as Running
from collections.abc import Callable
from pathlib import Path

from voicecluster.cli.stack.backoff import Backoff
from voicecluster.cli.stack.health import is_ready
from voicecluster.cli.state import PortStatus, ProcessState, ProcessStatus, StackError, private_directory
from voicecluster.operator.plan.process import Process

PR_SET_PDEATHSIG = 1
BAD_CONFIGURATION = 2
"""The exit code of a program that cannot use its configuration: starting it again would not help."""
NOT_STARTED = 126
ATTEMPTS_TO_START = 5
POLL_SECONDS, WATCH_SECONDS = 0.05, 1.0

_libc = ctypes.CDLL(None, use_errno=True)


class Child:
    """The one process at a time that runs a `Process` of the plan."""

    def __init__(self, process: Process, executable: Path, log: Path, changed: Callable[[], None]) -> None:
        self._process = process
        self._command = (str(executable), *process.command[1:])
        self._log = log
        self._changed = changed
        self._running: Running | None = None
        self._ending = asyncio.Event()
        self._was_ready = False
        self._restarts = 0
        self.state: ProcessState = "starting"

    @property
    def name(self) -> str:
        """The process's name in the plan."""
        return self._process.name

    def status(self) -> ProcessStatus:
        """How it is doing."""
        return ProcessStatus(
            name=self.name,
            role=self._process.role,
            region=self._process.region,
            state=self.state,
            pid=self._running.pid if self._running is not None else None,
            restarts=self._restarts,
            admin=self._process.admin.address,
            ports=[
                PortStatus(name=port.name, protocol=port.protocol, address=port.address)
                for port in self._process.ports
            ],
        )

    async def run(self) -> None:
        """Keep it running until `end` is called. Raises StackError if it cannot be started at all."""
        backoff = Backoff()
        loop = asyncio.get_running_loop()
        while not self._ending.is_set():
            self._set("starting")
            started = loop.time()
            code = await self._run_once()
            if self._ending.is_set():
                break
            self._refuse_hopeless(code)
            self._restarts += 1
            pause = backoff.next(uptime_seconds=loop.time() - started)
            if pause:
                self._set("waiting")
                await self._sleep(pause)
        self._set("stopped")

    def end(self) -> None:
        """Ask it to end at once and do not start it again. On SIGTERM a transceiver would drain first."""
        self._ending.set()
        self._signal(signal.SIGINT if self._process.role == "transceiver" else signal.SIGTERM)

    def kill(self) -> None:
        """End it and its children without asking."""
        self._ending.set()
        if self._running is not None:
            _kill_group(self._running.pid)

    async def _run_once(self) -> int:
        try:
            running = await self._start()
        except OSError as error:  # the executable is being replaced, or memory is short
            self._log.write_text(
                f"error: {self._command[0]}: {error.strerror}; run 'make setup'\n", encoding="utf-8"
            )
            return NOT_STARTED
        self._running = running
        if self._ending.is_set():  # asked to end while it was being started
            self.end()
        self._changed()
        watch = asyncio.create_task(self._watch(), name=f"{self.name}/ready")
        try:
            return await running.wait()
        finally:
            watch.cancel()
            self._running = None
            _kill_group(running.pid)  # children that outlived it would hold its ports

    async def _start(self) -> Running:
        private_directory(self._log.parent)
        log = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            return await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with(os.getpid()),
                env={**os.environ, **self._process.environment},
            )
        finally:
            os.close(log)

    async def _watch(self) -> None:
        admin = self._process.admin
        while True:
            if await is_ready(admin.host, admin.port):
                self._was_ready = True
                self._set("ready")
            elif self.state == "ready":
                self._set("unready")
            await asyncio.sleep(WATCH_SECONDS if self.state == "ready" else POLL_SECONDS)

    def _refuse_hopeless(self, code: int) -> None:
        if self._was_ready or (code != BAD_CONFIGURATION and self._restarts + 1 < ATTEMPTS_TO_START):
            return
        raise StackError(
            f"{self.name} cannot start (exit code {code}): {self._last_words()}; see {self._log}"
        )

    def _last_words(self) -> str:
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1][:500] if lines else "it wrote nothing"

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._ending.wait(), seconds)
        except TimeoutError:
            pass

    def _set(self, state: ProcessState) -> None:
        if state != self.state:
            self.state = state
            self._changed()

    def _signal(self, number: signal.Signals) -> None:
        if self._running is not None:
            try:
                self._running.send_signal(number)
            except ProcessLookupError:
                pass


def _die_with(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the line above
            os._exit(1)

    return prepare


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
