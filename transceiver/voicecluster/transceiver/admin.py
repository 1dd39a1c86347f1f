"""The admin process of a transceiver: health, and the metrics of all workers.

The parent tells it their states. Beside that it drains them where the operator asks for it, follows the ConfigMap of
the VIPs, and says what of a new configuration waits for a restart: what is to be done once for all workers.
"""

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import AsyncExitStack

from voicecluster.common.admin import AdminServer
from voicecluster.common.config.transceiver import TransceiverConfig
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.program import exit_on_config_error
from voicecluster.transceiver.directory import Worker
from voicecluster.transceiver.drain_port import DrainPort, DrainToken
from voicecluster.transceiver.files import Files
from voicecluster.transceiver.forward import Forwarder, Reply, Unreachable
from voicecluster.transceiver.http.app import METRICS_PATH
from voicecluster.transceiver.http.auth import ANONYMOUS
from voicecluster.transceiver.http.drain import DRAIN_PATH
from voicecluster.transceiver.metrics import PREFIX, merged
from voicecluster.transceiver.notes import Birth, Told, write_admin_serves, write_config_changed, write_cordon
from voicecluster.transceiver.settings import ConfigFile
from voicecluster.transceiver.vips import VipsKeeper

log = logging.getLogger(__name__)

SCRAPE_SECONDS = 2.0
ASK_SECONDS = 1.5
"""The operator waits for two seconds; it is to get an answer that says who gave none."""


class Admin:
    """What the admin port shows."""

    def __init__(self, config: TransceiverConfig, forwarder: Forwarder, *, report: int) -> None:
        """`report` is the descriptor of a pipe to the parent. Raises ConfigError for a bad drain token."""
        self._config = config
        self._forwarder = forwarder
        self._report = report
        self._told: Told | None = None
        token_file = config.drain_token_file
        self.drain = DrainPort(self, self._ask, DrainToken(token_file) if token_file is not None else None)

    @property
    def told(self) -> Told | None:
        """What the parent told last."""
        return self._told

    def tell(self, line: str) -> None:
        """Take what the parent tells."""
        before, self._told = self._told, Told.read(line)
        self.drain.told(before, self._told)

    def keep_cordon(self, deadline: float | None) -> None:
        """Have the parent keep the drain's deadline."""
        write_cordon(self._report, deadline)

    def new_config(self, _: TransceiverConfig, waiting: tuple[str, ...]) -> None:
        """A new configuration file is in force."""
        write_config_changed(self._report)
        if waiting:
            log.warning("these fields wait for a restart", extra={"fields": list(waiting)})
        else:
            log.info("configuration loaded")

    @property
    def _draining(self) -> bool:
        return self.drain.cordoned or (self._told is not None and self._told.ending)

    def live(self) -> dict[str, str | None]:
        """Alive is whoever answers: the parent looks after the workers."""
        return {"admin": None}

    def ready(self) -> dict[str, str | None]:
        """Ready when every worker takes calls."""
        checks: dict[str, str | None] = {"draining": "takes no more calls" if self._draining else None}
        if self._told is None:
            return checks | {"workers": "nothing known yet"}
        for index, worker in enumerate(self._told.workers):
            checks[f"worker {index}"] = None if worker.state == "ready" else worker.state
        return checks

    async def metrics(self) -> bytes:
        """All workers' metrics and the parent's own; a worker that gives no answer in time is left out."""
        pages = await asyncio.gather(*(self._page(index) for index in range(self._config.workers)))
        shown = merged({index: page for index, page in enumerate(pages) if page is not None})
        workers = self._told.workers if self._told is not None else ()
        restarts = [(index, worker.restarts) for index, worker in enumerate(workers)]
        ready = [(index, int(worker.state == "ready")) for index, worker in enumerate(workers)]
        shown += _family("worker_restarts_total", "counter", "Times the worker was started again", restarts)
        shown += _family("worker_ready", "gauge", "Whether the worker takes calls", ready)
        draining = f"{PREFIX}_draining"
        shown += f"# HELP {draining} Whether new calls are refused, by a drain or because it ends\n"
        shown += f"# TYPE {draining} gauge\n{draining} {int(self._draining)}\n"
        return shown.encode()

    def _worker(self, index: int) -> Worker:
        config = self._config
        port = config.internal_port + index
        return Worker(config.region, config.ordinal, index, config.internal_address, port)

    async def _ask(self, index: int, method: str, body: bytes) -> Reply:
        """Ask a worker about its drain. Raises Unreachable or TimeoutError."""
        async with asyncio.timeout(ASK_SECONDS):
            return await self._forwarder.ask(
                self._worker(index), method, DRAIN_PATH, key_name=ANONYMOUS, body=body
            )

    async def _page(self, index: int) -> str | None:
        try:
            async with asyncio.timeout(SCRAPE_SECONDS):
                reply = await self._forwarder.ask(
                    self._worker(index), "GET", METRICS_PATH, key_name=ANONYMOUS
                )
        except (Unreachable, TimeoutError):
            return None
        return reply.body.decode() if reply.status == 200 else None


def _family(name: str, kind: str, text: str, values: Sequence[tuple[int, int]]) -> str:
    lines = [f"# HELP {PREFIX}_{name} {text}", f"# TYPE {PREFIX}_{name} {kind}"]
    lines += [f'{PREFIX}_{name}{{worker="{index}"}} {value}' for index, value in values]
    return "\n".join(lines) + "\n"


def run_admin(source: ConfigFile, birth: Birth, *, told: int) -> None:
    """Be the admin process; see `serve_admin`. Ends by SystemExit 2 when a file or the port cannot be used."""
    with exit_on_config_error():
        asyncio.run(serve_admin(source, birth, told))


async def serve_admin(source: ConfigFile, birth: Birth, told: int) -> None:
    """Serve the admin port until the parent ends; `told` is the descriptor it tells the states on.

    Raises ConfigError when a file or the port cannot be used.
    """
    config = birth.config
    files = Files(config, source)
    async with AsyncExitStack() as stack:
        forwarder = await stack.enter_async_context(Forwarder(lambda: files.keyring.internal))
        admin = Admin(config, forwarder, report=birth.report)
        files.on_config = admin.new_config
        server = AdminServer(
            config.admin,
            live=admin.live,
            ready=admin.ready,
            metrics=admin.metrics,
            routes=admin.drain.routes(),
        )
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(told, "rb", buffering=0)
        )
        stack.callback(transport.close)
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        running = [tasks.create_task(files.watch(), name="watch files")]
        running.append(tasks.create_task(admin.drain.keep_up(), name="pass drains on"))
        if config.vips_watch is not None:
            keeper = VipsKeeper(config.vips_watch)
            running.append(
                tasks.create_task(keeper.run(KubeApi.in_cluster(source.environment)), name="keep VIPs")
            )
        for task in running:
            stack.callback(task.cancel)
        await server.start()
        stack.push_async_callback(server.close)
        write_admin_serves(birth.report)
        async for line in reader:
            admin.tell(line.decode())
