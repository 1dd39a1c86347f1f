"""The admin process of a transceiver: health, and the metrics of all workers.

The parent tells it their states.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence

from voicecluster.common.admin import AdminServer
from voicecluster.common.config.transceiver import TransceiverConfig
from voicecluster.common.program import exit_on_config_error
from voicecluster.transceiver.directory import Worker
from voicecluster.transceiver.files import Files
from voicecluster.transceiver.forward import Forwarder, Unreachable
from voicecluster.transceiver.http.app import METRICS_PATH
from voicecluster.transceiver.http.auth import ANONYMOUS
from voicecluster.transceiver.metrics import PREFIX, merged
from voicecluster.transceiver.parent import states_of

SCRAPE_SECONDS = 2.0


class Admin:
    """What the admin port shows."""

    def __init__(self, config: TransceiverConfig, forwarder: Forwarder) -> None:
        self._config = config
        self._forwarder = forwarder
        self._draining = False
        self._workers: Sequence[Mapping[str, object]] = ()

    def told(self, line: str) -> None:
        """Take what the parent tells."""
        self._draining, self._workers = states_of(line)

    def live(self) -> dict[str, str | None]:
        """Alive is whoever answers: the parent looks after the workers."""
        return {"admin": None}

    def ready(self) -> dict[str, str | None]:
        """Ready when every worker takes calls."""
        checks: dict[str, str | None] = {"draining": "takes no more calls" if self._draining else None}
        if not self._workers:
            checks["workers"] = "nothing known yet"
        for index, worker in enumerate(self._workers):
            state = str(worker["state"])
            checks[f"worker {index}"] = None if state == "ready" else state
        return checks

    async def metrics(self) -> bytes:
        """All workers' metrics and the parent's own; a worker that gives no answer in time is left out."""
        pages = await asyncio.gather(*(self._page(index) for index in range(self._config.workers)))
        shown = merged({index: page for index, page in enumerate(pages) if page is not None})
        restarts = [(index, int(str(worker["restarts"]))) for index, worker in enumerate(self._workers)]
        ready = [(index, int(worker["state"] == "ready")) for index, worker in enumerate(self._workers)]
        shown += _family("worker_restarts_total", "counter", "Times the worker was started again", restarts)
        shown += _family("worker_ready", "gauge", "Whether the worker takes calls", ready)
        return shown.encode()

    async def _page(self, index: int) -> str | None:
        config = self._config
        port = config.internal_port + index
        worker = Worker(config.region, config.ordinal, index, config.internal_address, port)
        try:
            async with asyncio.timeout(SCRAPE_SECONDS):
                reply = await self._forwarder.ask(worker, "GET", METRICS_PATH, key_name=ANONYMOUS)
        except (Unreachable, TimeoutError):
            return None
        return reply.body.decode() if reply.status == 200 else None


def _family(name: str, kind: str, text: str, values: Sequence[tuple[int, int]]) -> str:
    lines = [f"# HELP {PREFIX}_{name} {text}", f"# TYPE {PREFIX}_{name} {kind}"]
    lines += [f'{PREFIX}_{name}{{worker="{index}"}} {value}' for index, value in values]
    return "\n".join(lines) + "\n"


def run_admin(config: TransceiverConfig, *, told: int) -> None:
    """Be the admin process; see `serve_admin`. Ends by SystemExit 2 when the port cannot be used."""
    with exit_on_config_error():
        asyncio.run(serve_admin(config, told))


async def serve_admin(config: TransceiverConfig, told: int) -> None:
    """Serve the admin port until the parent ends; `told` is the descriptor it tells the states on.

    Raises ConfigError when a file or the port cannot be used.
    """
    files = Files(config)
    async with Forwarder(lambda: files.keyring.internal) as forwarder:
        admin = Admin(config, forwarder)
        server = AdminServer(config.admin, live=admin.live, ready=admin.ready, metrics=admin.metrics)
        await server.start()
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(told, "rb", buffering=0)
        )
        watching = asyncio.create_task(files.watch(), name="watch files")
        try:
            async for line in reader:
                admin.told(line.decode())
        finally:
            watching.cancel()
            transport.close()
            await server.close()
