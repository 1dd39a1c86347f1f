"""The parent of a transceiver: forks its workers and the admin process, restarts the dead, ends them.

What must outlive any of its children it keeps: their states, the drain that the operator asked for, and the
newest configuration; a child that is started again begins with them.

It has imported everything a worker needs before it forks, so that a new worker takes calls within
milliseconds, and it runs neither threads nor an event loop, so that forking is safe. Its children end when it
does, however it ends.
"""

import gc
import logging
import os
import selectors
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from voicecluster.common.config.model import ConfigError, join_address
from voicecluster.common.config.transceiver import TransceiverConfig
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.ports import bind_udp, listen_tcp
from voicecluster.transceiver.drain_port import DrainToken
from voicecluster.transceiver.files import Files
from voicecluster.transceiver.notes import ADMIN_SERVES, CONFIG_CHANGED, Birth, Told, WorkerState, cordon_of
from voicecluster.transceiver.process import die_with_parent, show_as
from voicecluster.transceiver.settings import ConfigFile
from voicecluster.transceiver.vips import seed_vips
from voicecluster.transceiver.worker import tls_context

log = logging.getLogger(__name__)

FIRST_DELAY_SECONDS = 0.05
LONGEST_DELAY_SECONDS = 5.0
PROVEN_SECONDS = 10.0
"""A child that was up for so long is restarted at once again."""
DRAIN_MARGIN_SECONDS = 5.0
KILL_SECONDS = 2.5
BAD_CONFIG = 2

WorkerProgram = Callable[[int, Birth], None]
AdminProgram = Callable[[int, Birth], None]
"""What children do: a worker gets its number, the admin process a descriptor that it is told the states on.

They end by return or SystemExit.
"""


@dataclass(slots=True)
class _Child:
    """One child's place: who fills it now, and how it fared."""

    name: str
    index: int | None
    """The worker's number; None for the admin process."""
    pid: int | None = None
    state: str = "starting"
    restarts: int = 0
    proven: bool = False
    started: float = 0.0
    delay: float = 0.0
    start_at: float | None = 0.0
    """When to start it; None while it runs or must not run again."""

    @property
    def command(self) -> str:
        """As process lists show it."""
        return "admin" if self.index is None else f"worker --index {self.index}"


class Parent:
    """Runs one transceiver. `run` returns the exit code when all children have ended."""

    def __init__(
        self, config: TransceiverConfig, source: ConfigFile, *, worker: WorkerProgram, admin: AdminProgram
    ) -> None:
        """`config` is what `source` said last."""
        self._config = config
        self._source = source
        self._cordoned_until: float | None = None
        self._worker = worker
        self._admin_program = admin
        self._workers = [_Child(f"worker-{index}", index) for index in range(config.workers)]
        self._admin = _Child("admin", None)
        self._selector = selectors.DefaultSelector()
        self._signals, self._woken = socket.socketpair()
        self._states, self._report = os.pipe()
        self._unread = b""
        self._told: int | None = None
        self._stopping: signal.Signals | None = None
        self._next_stop_at: float | None = None
        self._code = 0

    def run(self) -> int:
        """Start all and keep them until a signal ends them. Raises ConfigError before anything is started."""
        self._check_files()
        self._check_ports()
        self._listen()
        gc.collect()
        gc.freeze()
        while self._stopping is None or any(child.pid is not None for child in self._workers):
            now = time.monotonic()
            for child in self._children:
                if child.start_at is not None and child.start_at <= now:
                    self._start(child, now)
            if self._next_stop_at is not None and self._next_stop_at <= now:
                self._stop(signal.SIGKILL if self._stopping is signal.SIGINT else signal.SIGINT)
            for key, _ in self._selector.select(self._patience()):
                key.data()
        if self._admin.pid is not None:
            os.kill(self._admin.pid, signal.SIGKILL)
        return self._code

    @property
    def _children(self) -> list[_Child]:
        return [*self._workers, self._admin]

    def _check_files(self) -> None:
        config = self._config
        seed_vips(config)
        Files(config, self._source)
        tls_context(config.tls)
        if config.drain_token_file is not None:
            DrainToken(config.drain_token_file)
        if config.vips_watch is not None:
            KubeApi.in_cluster(self._source.environment)

    def _check_ports(self) -> None:
        config = self._config
        listen_tcp(config.signaling, reuse_port=True, backlog=0).close()
        listen_tcp(config.admin, backlog=0).close()
        for index in range(config.workers):
            listen_tcp(join_address(config.internal_address, config.internal_port + index), backlog=0).close()
            bind_udp(join_address(config.media_address, config.media_port + index)).close()

    def _listen(self) -> None:
        for end in (self._signals, self._woken):
            end.setblocking(False)
        os.set_blocking(self._states, False)
        signal.set_wakeup_fd(self._woken.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)  # the wake-up descriptor tells which
        self._selector.register(self._signals, selectors.EVENT_READ, self._signalled)
        self._selector.register(self._states, selectors.EVENT_READ, self._reported)

    def _patience(self) -> float | None:
        """Seconds until the next thing is due."""
        due = [child.start_at for child in self._children if child.start_at is not None]
        due += [self._next_stop_at] if self._next_stop_at is not None else []
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _start(self, child: _Child, now: float) -> None:
        child.start_at, child.started, child.state = None, now, "starting"
        reading: int | None = None
        if child.index is None:
            if self._told is not None:
                os.close(self._told)
            reading, self._told = os.pipe()
            os.set_blocking(self._told, False)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            self._be(child, parent, reading)
        child.pid = pid
        if reading is not None:
            os.close(reading)
        self._tell()

    def _be(self, child: _Child, parent: int, reading: int | None) -> None:
        """Live and end as `child`, in the forked process. Never returns."""
        code: object = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            os.setsid()  # a terminal's Ctrl-C is for the parent to pass on
            die_with_parent(parent)
            show_as(child.name, f"voicecluster-transceiver {child.command}")
            self._selector.close()
            self._signals.close()
            self._woken.close()
            os.close(self._states)
            if self._told is not None:
                os.close(self._told)
            birth = Birth(self._config, self._report, self._cordoned_until)
            if reading is not None:
                self._admin_program(reading, birth)
            elif child.index is not None:
                self._worker(child.index, birth)
            code = 0
        except SystemExit as ending:
            code = ending.code
        except BaseException:  # the root of a process: say why, and end with code 1
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 1)

    def _signalled(self) -> None:
        for number in self._signals.recv(256):
            if number == signal.SIGCHLD:
                self._reap()
            elif number == signal.SIGINT or self._stopping is not None:
                self._stop(signal.SIGINT)
            else:
                self._stop(signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self._children:
                if child.pid == pid:
                    self._ended(child, os.waitstatus_to_exitcode(status), time.monotonic())

    def _ended(self, child: _Child, code: int, now: float) -> None:
        """Restart at once, then with growing delays until it proves itself."""
        child.pid, child.state = None, "ended"
        if self._stopping is None:
            if code == BAD_CONFIG and not child.proven:
                self._code = BAD_CONFIG  # the child has told why
                self._stop(signal.SIGINT)
            else:
                child.restarts += 1
                child.delay = 0.0 if now - child.started >= PROVEN_SECONDS else child.delay
                child.start_at = now + child.delay
                child.delay = min(LONGEST_DELAY_SECONDS, max(FIRST_DELAY_SECONDS, 2 * child.delay))
                log.error(
                    "process died", extra={"child": child.name, "code": code, "restarts": child.restarts}
                )
        self._tell()

    def _reported(self) -> None:
        *lines, self._unread = (self._unread + os.read(self._states, 65_536)).split(b"\n")
        for line in lines:
            self._note(line.decode())
        self._tell()

    def _note(self, line: str) -> None:
        what, _, state = line.partition(" ")
        if what == CONFIG_CHANGED:
            self._reread()
        elif what == ADMIN_SERVES:
            self._admin.state, self._admin.proven = "ready", True
        elif what.isdigit():
            child = self._workers[int(what)]
            child.state = state
            child.proven = child.proven or state == "ready"
        else:
            self._cordoned_until = cordon_of(line)

    def _reread(self) -> None:
        """Let children that are started from now on, and SIGTERM, have the newest configuration."""
        try:
            self._config = self._source.newest(self._config)
        except ConfigError:
            return  # the processes that follow the file have said what is wrong with it
        logging.getLogger().setLevel(self._config.log_level)

    def _tell(self) -> None:
        """Give the admin process the whole picture. What does not fit into its pipe is told the next time."""
        workers = tuple(WorkerState(child.state, child.restarts) for child in self._workers)
        line = Told(workers, self._stopping is not None, self._cordoned_until).line()
        if self._told is not None:
            try:
                os.write(self._told, line.encode())
            except OSError:
                log.debug("the admin process does not listen")

    def _stop(self, number: signal.Signals) -> None:
        """End the workers: TERM when their calls have ended, INT at once, KILL by force."""
        first = self._stopping is None
        self._stopping = number
        if first:
            self._reread()
            log.info("ending", extra={"drain_seconds": self._config.limits.drain_timeout_seconds})
        self._tell()  # first of all: who hears a worker say so finds it in the admin process, too
        for child in self._children:
            child.start_at = None
        for child in self._workers:
            if child.pid is not None:
                os.kill(child.pid, number)
        seconds = KILL_SECONDS
        if number is signal.SIGTERM:
            seconds = self._config.limits.drain_timeout_seconds + DRAIN_MARGIN_SECONDS
        self._next_stop_at = time.monotonic() + seconds
