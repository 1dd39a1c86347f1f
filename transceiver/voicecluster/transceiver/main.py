"""`voicecluster-transceiver`: the program that carries calls."""

import asyncio
import os
import sys
from pathlib import Path

import click
import uvloop

from voicecluster.common.config.model import load
from voicecluster.common.config.transceiver import TransceiverConfig
from voicecluster.common.logs import setup_logs
from voicecluster.common.program import exit_on_config_error

_HELP = """Answer WebRTC calls and carry their media: one transceiver, a parent and its workers.

\b
FILE is YAML; `voicecluster up` writes one for each transceiver of a local stack. It names
  signaling    the public HTTP address: the page at /, the API under /v1/realtime/calls
  mediaAddress, mediaPort        worker w's UDP socket, for relays only
  internalAddress, internalPort  worker w's port for the other workers
  admin        /livez, /readyz and the /metrics of all workers
  keysFile, vipsFile, directoryFile  re-read when they change

\b
Signals: TERM takes no more calls and ends when the present ones have ended, at the latest after
limits.drainSeconds; INT, or a second TERM, ends at once. Exit code 2: FILE (or a file that it names, or
a port) cannot be used; one line on standard error says why.

\b
Example:
  voicecluster-transceiver --config /etc/voicecluster/transceiver.yaml
"""


@click.group(invoke_without_command=True, help=_HELP)
@click.option("--config", "config_file", metavar="FILE", required=True, type=click.Path(path_type=Path))
@click.pass_context
def main(context: click.Context, config_file: Path) -> None:
    """Entry point; without a subcommand it is the parent."""
    with exit_on_config_error():
        config = load(config_file, TransceiverConfig)
        context.obj = config
        if context.invoked_subcommand is not None:
            return
        setup_logs(config.log_level, fields={"transceiver": config.name, "region": config.region})
        sys.exit(asyncio.run(_parent(config_file, config)))


@main.command("worker", hidden=True)
@click.option("--index", type=click.IntRange(0, 255), required=True)
@click.option("--parent", "parent_pid", type=int, required=True)
@click.pass_obj
def worker(config: TransceiverConfig, index: int, parent_pid: int) -> None:
    """Be one worker; started by the parent only."""
    from voicecluster.transceiver.worker import die_with_parent

    die_with_parent(parent_pid)
    with exit_on_config_error():
        setup_logs(
            config.log_level, fields={"transceiver": config.name, "region": config.region, "worker": index}
        )
        uvloop.run(_worker(config, index))


async def _parent(config_file: Path, config: TransceiverConfig) -> int:
    from voicecluster.transceiver.parent import BAD_CONFIG, Parent, WorkerRefused
    from voicecluster.transceiver.worker import Stop

    stop = Stop()
    stop.listen(asyncio.get_running_loop())
    code = 0
    try:
        await Parent(config_file, config, stop=stop).run()
    except* WorkerRefused:
        code = BAD_CONFIG
    return code


async def _worker(config: TransceiverConfig, index: int) -> None:
    from voicecluster.transceiver.worker import Stop, serve

    def notify(state: str) -> None:
        os.write(sys.stdout.fileno(), f"{state}\n".encode())

    stop = Stop()
    stop.listen(asyncio.get_running_loop())
    await serve(config, index, stop=stop, notify=notify)


if __name__ == "__main__":
    main()
