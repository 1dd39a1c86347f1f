"""`voicecluster-relay`: the command."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine, Mapping
from pathlib import Path

import click
import uvloop
from voicecluster.common.admin import AdminServer
from voicecluster.common.config.relay import RelayConfig
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.logs import setup_logs
from voicecluster.common.program import exit_on_config_error
from voicecluster.relay.control import ControlPlane
from voicecluster.relay.departure import Departure, say_leaving
from voicecluster.relay.engine import EngineLink
from voicecluster.relay.reload import ConfigFile

_LOG = logging.getLogger(__name__)


@click.command(context_settings={"max_content_width": 110})
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="YAML file: region, routesFile or routesFrom, keysFile, listeners, limits. Re-read when it changes.",
)
@click.option(
    "--control",
    type=click.Path(path_type=Path),
    required=True,
    metavar="SOCKET",
    help="Unix socket of the engine, as `voicecluster-relay-engine run --control SOCKET` makes it.",
)
@click.option(
    "--leaving",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="The relay was told to stop so long ago, and leaves. The supervisor says so to a control plane that it "
    "starts again meanwhile.",
)
def main(config_file: Path, control: Path, leaving: float | None) -> None:
    """Tell a relay engine what to forward: routes, hint keys and VIPs; health and metrics back.

    Usually started by the supervisor, together with the engine:

        voicecluster-relay-engine supervise --config FILE

    It waits for the engine, and may be restarted while the engine forwards. SIGTERM ends it: at once, or where
    the configuration has `leaving`, when the relay's callers have gone to another one. Exit code 2 means that the
    configuration cannot be used, and one line on standard error says why.
    """
    with exit_on_config_error():
        file = ConfigFile(config_file, os.environ)
        config = file.load()
        setup_logs(config.log_level, fields={"relay": config.name, "region": config.region})
        uvloop.run(serve(config, file, control, os.environ, left=leaving))


async def serve(
    config: RelayConfig,
    config_file: ConfigFile,
    control: Path,
    environ: Mapping[str, str],
    *,
    left: float | None,
) -> None:
    """Run the control plane until SIGTERM or SIGINT, and then for as long as leaving takes.

    Args:
        config: What to begin with.
        config_file: Where it came from.
        control: The engine's socket.
        environ: Says where the API server is.
        left: How many seconds ago the relay was told to stop, None while it was not.

    Raises:
        ConfigError: The configuration cannot be used (maybe in a group).
    """
    signals = _Signals(told=left is not None)
    needs_api = config.routes_from is not None or config.leaving is not None
    api = KubeApi.in_cluster(environ) if needs_api else None
    plane = ControlPlane(config, EngineLink(control), api=api, config_file=config_file)
    departure: Departure | None = None

    def ready() -> Mapping[str, str | None]:
        leaving = {"leaving": departure.ready()} if departure is not None else {}
        return {**plane.ready(), **leaving}

    admin = AdminServer(config.admin, live=plane.live, ready=ready, metrics=plane.metrics)
    await admin.start()
    _LOG.info("started", extra={"admin": admin.address, "pid": os.getpid()})
    try:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(plane.run(), name="control-plane")
            await signals.told.wait()
            is_live = not any(plane.live().values())  # a dead engine has no caller to wait for
            if (leaving := plane.config.leaving) is not None and api is not None and is_live:
                say_leaving(control, leaving)
                departure = Departure(
                    config, leaving, api, packets=lambda: plane.packets, elapsed_seconds=left or 0.0
                )
                await _first(departure.run(), signals.told_again.wait())
            _LOG.info("stopping")
            running.cancel()
    finally:
        await admin.close()


class _Signals:
    """SIGTERM tells to stop, SIGINT and a second SIGTERM to stop at once."""

    def __init__(self, *, told: bool) -> None:
        self.told, self.told_again = asyncio.Event(), asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._terminate)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        if told:
            self.told.set()

    def _terminate(self) -> None:
        if self.told.is_set():
            self.told_again.set()
        self.told.set()

    def _interrupt(self) -> None:
        self.told.set()
        self.told_again.set()


async def _first(*coroutines: Coroutine[object, object, object]) -> None:
    """Wait for one of them, and end the others. Raises what it raised."""
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
