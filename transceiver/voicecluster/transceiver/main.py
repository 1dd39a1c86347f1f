"""`voicecluster-transceiver`: the program that carries calls."""

import os
import sys
from pathlib import Path

import click
from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.pod import load_transceiver
from voicecluster.common.config.transceiver import TransceiverConfig
from voicecluster.common.logs import setup_logs
from voicecluster.common.program import exit_on_config_error

_HELP = """Answer WebRTC calls and carry their media: one transceiver, a parent and its workers.

\b
FILE is YAML; `voicecluster up` writes one for each transceiver of a local stack, the operator one for all
of a region. It names
  signaling    the public HTTP address: the page at /, the API under /v1/realtime/calls
  mediaAddress, mediaPort        worker w's UDP socket, for relays only
  internalAddress, internalPort  worker w's port for the other workers
  admin        /livez, /readyz, the /metrics of all workers, /drain for who has the token
  keysFile, vipsFile, directoryFile  re-read when they change

\b
In a pod (POD_IPS is set) name, ordinal and all addresses are the pod's: they come from POD_NAME, POD_IPS and
NODE_NAME of the downward API, and FILE must not say them.

\b
FILE is re-read when it changes: auth, corsOrigins, defaultAgent, iceMode, limits, media and logLevel hold for
new calls and requests; what else changed waits for a restart, and a warning says so.

\b
Signals: TERM takes no more calls and ends when the present ones have ended, at the latest after
limits.drainTimeoutSeconds; INT, or a second TERM, ends at once. Exit code 2: FILE (or a file that it names, or
a port) cannot be used; one line on standard error says why.

\b
Example:
  voicecluster-transceiver --config /etc/voicecluster/transceiver.yaml
"""


@click.command(help=_HELP)
@click.option("--config", "config_file", metavar="FILE", required=True, type=click.Path(path_type=Path))
def main(config_file: Path) -> None:
    """Entry point: the parent of all."""
    with exit_on_config_error():
        config = load_transceiver(config_file, os.environ)
        _setup_logs(config)
        # Imported here, as it takes a second: help and a bad file are answered without it.
        from voicecluster.transceiver.admin import run_admin
        from voicecluster.transceiver.parent import Parent
        from voicecluster.transceiver.settings import ConfigFile
        from voicecluster.transceiver.worker import run_worker

        source = ConfigFile(config_file, os.environ)
        parent = Parent(
            config,
            source,
            worker=lambda index, birth: run_worker(source, index, birth),
            admin=lambda told, birth: run_admin(source, birth, told=told),
        )
        code = parent.run()
    sys.exit(code)


def _setup_logs(config: TransceiverConfig) -> None:
    try:
        setup_logs(config.log_level, fields={"transceiver": config.name, "region": config.region})
    except ValueError as error:
        raise ConfigError(f"{config.name}: logLevel: {error}") from None


if __name__ == "__main__":
    main()
