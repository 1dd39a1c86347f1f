"""`voicecluster-relay`: the command."""

import asyncio
import logging
import os
import signal
from pathlib import Path

import click
import uvloop
from voicecluster.common.admin import AdminServer
from voicecluster.common.config.model import load
from voicecluster.common.config.relay import RelayConfig
from voicecluster.common.logs import setup_logs
from voicecluster.common.program import exit_on_config_error
from voicecluster.relay.control import ControlPlane
from voicecluster.relay.engine import EngineLink

_LOG = logging.getLogger(__name__)


@click.command(context_settings={"max_content_width": 110})
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="YAML file: name, region, listeners, backbone, routesFile, keysFile, admin, limits.",
)
@click.option(
    "--control",
    type=click.Path(path_type=Path),
    required=True,
    metavar="SOCKET",
    help="Unix socket of the engine, as `voicecluster-relay-engine run --control SOCKET` makes it.",
)
def main(config_file: Path, control: Path) -> None:
    """Tell a relay engine what to forward: routes and hint keys from watched files, health and metrics back.

    Usually started by the supervisor, together with the engine:

        voicecluster-relay-engine supervise --config FILE

    It waits for the engine, and may be restarted while the engine forwards. Ends on SIGTERM; exit code 2
    means that the configuration cannot be used, and one line on standard error says why.
    """
    with exit_on_config_error():
        config = load(config_file, RelayConfig)
        setup_logs(config.log_level, fields={"relay": config.name, "region": config.region})
        uvloop.run(serve(config, control))


async def serve(config: RelayConfig, control: Path) -> None:
    """Run the control plane until SIGTERM or SIGINT. Raises `ConfigError`, maybe in a group."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    plane = ControlPlane(config, EngineLink(control))
    admin = AdminServer(config.admin, live=plane.live, ready=plane.ready, metrics=plane.metrics)
    await admin.start()
    _LOG.info("started", extra={"admin": admin.address, "pid": os.getpid()})
    try:
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(plane.run(), name="control-plane")
            await stopping.wait()
            _LOG.info("stopping")
            running.cancel()
    finally:
        await admin.close()
