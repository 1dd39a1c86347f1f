"""The parent of a transceiver's workers: starts them, restarts the dead, ends them, answers the admin port."""

import asyncio
import logging
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from voicecluster.common.admin import AdminServer
from voicecluster.common.config.model import join_address
from voicecluster.common.config.transceiver import TransceiverConfig
from voicecluster.common.ports import bind_udp, listen_tcp
from voicecluster.transceiver.directory import Worker
from voicecluster.transceiver.files import Files
from voicecluster.transceiver.forward import Forwarder, Unreachable
from voicecluster.transceiver.http.app import METRICS_PATH
from voicecluster.transceiver.http.auth import ANONYMOUS
from voicecluster.transceiver.metrics import PREFIX, merged
from voicecluster.transceiver.worker import Stop, tls_context

log = logging.getLogger(__name__)

FIRST_DELAY_SECONDS = 0.05
LONGEST_DELAY_SECONDS = 5.0
PROVEN_SECONDS = 10.0
"""A worker that was up for so long is restarted at once again."""
KILL_SECONDS = 3.0
DRAIN_MARGIN_SECONDS = 5.0
SCRAPE_SECONDS = 2.0
BAD_CONFIG = 2


class WorkerRefused(Exception):
    """A worker ended because of its configuration, which it has told on standard error."""


@dataclass(slots=True)
class _Slot:
    """One worker's place: who fills it now, and how often that changed."""

    index: int
    process: asyncio.subprocess.Process | None = None
    ready: bool = False
    draining: bool = False
    restarts: int = 0
    proven: bool = False


class Parent:
    """Runs one transceiver. `run` returns when all workers have ended."""

    def __init__(self, config_file: Path, config: TransceiverConfig, *, stop: Stop) -> None:
        self._config_file = config_file
        self._config = config
        self._stop = stop
        self._slots = [_Slot(index) for index in range(config.workers)]
        self._forwarder: Forwarder

    async def run(self) -> None:
        """Start all and keep them until `stop`. Raises ConfigError before anything is started."""
        files = Files(self._config)
        tls_context(self._config.signaling.tls)
        self._check_ports()
        async with Forwarder(lambda: files.keyring.internal) as forwarder:
            self._forwarder = forwarder
            admin = AdminServer(self._config.admin, live=self._live, ready=self._ready, metrics=self._metrics)
            await admin.start()
            try:
                async with asyncio.TaskGroup() as group:
                    watching = group.create_task(files.watch(), name="watch files")
                    ending = group.create_task(self._end(), name="end workers")
                    keepers = [
                        group.create_task(self._keep(slot), name=f"worker {slot.index}")
                        for slot in self._slots
                    ]
                    await asyncio.wait(keepers)
                    watching.cancel()
                    ending.cancel()
            finally:
                await admin.close()

    def _check_ports(self) -> None:
        config = self._config
        listen_tcp(config.signaling.bind, reuse_port=True, backlog=0).close()
        for index in range(config.workers):
            listen_tcp(join_address(config.internal_address, config.internal_port + index), backlog=0).close()
            bind_udp(join_address(config.media_address, config.media_port + index)).close()

    async def _keep(self, slot: _Slot) -> None:
        """Keep one worker running: restart at once, then with growing delays until one proves itself."""
        loop = asyncio.get_running_loop()
        delay = 0.0
        while not self._stop.drain.is_set():
            started = loop.time()
            code = await self._live_once(slot)
            if self._stop.drain.is_set():
                return
            if code == BAD_CONFIG and not slot.proven:
                raise WorkerRefused
            slot.restarts += 1
            delay = 0.0 if loop.time() - started >= PROVEN_SECONDS else delay
            log.error("worker died", extra={"worker": slot.index, "code": code, "restart_seconds": delay})
            if delay:
                await _within(delay, self._stop.drain)
            delay = min(LONGEST_DELAY_SECONDS, max(FIRST_DELAY_SECONDS, 2 * delay))

    async def _live_once(self, slot: _Slot) -> int:
        """Start the worker and follow it to its end. Returns its exit code."""
        command = (sys.executable, "-m", "voicecluster.transceiver.main", "--config", str(self._config_file))
        options = ("worker", "--index", str(slot.index), "--parent", str(os.getpid()))
        process = await asyncio.create_subprocess_exec(
            *command,
            *options,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        slot.process = process
        try:
            if self._stop.drain.is_set():
                process.terminate()
            assert process.stdout is not None  # it is a pipe
            async for line in process.stdout:
                slot.ready = line.strip() == b"ready"
                slot.draining = line.strip() == b"draining"
                slot.proven = slot.proven or slot.ready
            return await process.wait()
        finally:
            slot.process, slot.ready, slot.draining = None, False, False
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _end(self) -> None:
        """End the workers in order: when their calls have ended, at once, by force."""
        await self._stop.drain.wait()
        log.info("ending", extra={"drain_seconds": self._config.limits.drain_seconds})
        self._signal(signal.SIGTERM)
        await _within(self._config.limits.drain_seconds + DRAIN_MARGIN_SECONDS, self._stop.now)
        self._signal(signal.SIGINT)
        await asyncio.sleep(KILL_SECONDS)
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        for slot in self._slots:
            if slot.process is not None and slot.process.returncode is None:
                slot.process.send_signal(number)

    def _live(self) -> dict[str, str | None]:
        return {"parent": None}

    def _ready(self) -> dict[str, str | None]:
        checks: dict[str, str | None] = {"draining": "draining" if self._stop.drain.is_set() else None}
        for slot in self._slots:
            checks[f"worker {slot.index}"] = (
                None if slot.ready else "draining" if slot.draining else "not running yet"
            )
        return checks

    async def _metrics(self) -> bytes:
        """All workers' metrics and the parent's own; a worker that gives no answer in time is left out."""
        pages = await asyncio.gather(*(self._page(slot) for slot in self._slots))
        own = [f"# HELP {PREFIX}_worker_restarts_total Workers that died and were started again"]
        own += [f"# TYPE {PREFIX}_worker_restarts_total counter"]
        own += [
            f'{PREFIX}_worker_restarts_total{{worker="{slot.index}"}} {slot.restarts}' for slot in self._slots
        ]
        own += [
            f"# HELP {PREFIX}_worker_ready Whether the worker takes calls",
            f"# TYPE {PREFIX}_worker_ready gauge",
        ]
        own += [f'{PREFIX}_worker_ready{{worker="{slot.index}"}} {int(slot.ready)}' for slot in self._slots]
        shown = merged(
            {slot.index: page for slot, page in zip(self._slots, pages, strict=True) if page is not None}
        )
        return (shown + "\n".join(own) + "\n").encode()

    async def _page(self, slot: _Slot) -> str | None:
        config = self._config
        worker = Worker(
            config.region,
            config.ordinal,
            slot.index,
            config.internal_address,
            config.internal_port + slot.index,
        )
        try:
            async with asyncio.timeout(SCRAPE_SECONDS):
                reply = await self._forwarder.ask(worker, "GET", METRICS_PATH, key_name=ANONYMOUS)
        except (Unreachable, TimeoutError):
            return None
        return reply.body.decode() if reply.status == 200 else None


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for `event`, at most `seconds`. Returns whether it came."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False
