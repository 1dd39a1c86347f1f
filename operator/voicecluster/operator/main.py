"""`voicecluster-operator`: the command."""

import os

import click
from voicecluster.common.config.model import LOG_LEVELS
from voicecluster.common.logs import setup_logs
from voicecluster.common.program import exit_on_config_error
from voicecluster.operator.logs import name_reconciles
from voicecluster.operator.settings import settings

_HELP = """Turn VoiceClusters into relays, VIPs, transceivers and Redis, and keep them right.

\b
Two of these run side by side; the one that holds the Lease `voicecluster-operator` works, the other waits. It
watches VoiceClusters and what belongs to them, and writes only what differs: a quiet cluster sees no request but
the renewal of the Lease. Calls never depend on it: it may be stopped, upgraded or lost at any time.

\b
The API server is that of the pod's service account, or of KUBECONFIG. Each option is also an environment variable,
VOICECLUSTER_OPERATOR_RELAY_IMAGE and so on. From the pod: POD_NAMESPACE (where the Lease is), POD_NAME.
/livez fails when a watch has gone deaf, /readyz also before everything has been listed; /metrics has
voicecluster_operator_*.

\b
Signals: TERM or INT ends it within ten seconds, and gives the Lease back. Exit code 1: the Lease or the API was
lost, start it again. Exit code 2: it cannot start; one line on standard error says why.

\b
Example, against the cluster of ~/.kube/config:
  POD_NAMESPACE=default voicecluster-operator --namespace voice --relay-image registry.example/relay:0.1.0 \\
      --transceiver-image registry.example/transceiver:0.1.0
"""


@click.command(
    help=_HELP, context_settings={"auto_envvar_prefix": "VOICECLUSTER_OPERATOR", "max_content_width": 116}
)
@click.option(
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Serve VoiceClusters of this namespace; repeat for more. Without it: of all.",
)
@click.option(
    "--nodes/--no-nodes",
    default=False,
    help="Read nodes, for relays in HostNetwork mode; needs a ClusterRole.",
)
@click.option("--relay-image", required=True, metavar="IMAGE", help="For VoiceClusters that name none.")
@click.option("--transceiver-image", required=True, metavar="IMAGE", help="For VoiceClusters that name none.")
@click.option(
    "--redis-image",
    default="docker.io/library/redis:7.4-bookworm",
    show_default=True,
    metavar="IMAGE",
    help="For VoiceClusters that name none.",
)
@click.option(
    "--admin",
    default="0.0.0.0:8086",
    show_default=True,
    metavar="IP:PORT",
    help="Where /livez, /readyz and /metrics are; [::]:8086 on IPv6.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    help="VoiceClusters reconciled at once.",
)
@click.option(
    "--log-level", type=click.Choice(LOG_LEVELS, case_sensitive=False), default="INFO", show_default=True
)
@click.version_option(package_name="voicecluster")
def main(
    namespaces: tuple[str, ...],
    nodes: bool,
    relay_image: str,
    transceiver_image: str,
    redis_image: str,
    admin: str,
    workers: int,
    log_level: str,
) -> None:
    """Entry point."""
    with exit_on_config_error():
        chosen = settings(
            namespaces=namespaces,
            nodes=nodes,
            images=(relay_image, transceiver_image, redis_image),
            admin=admin,
            workers=workers,
            environ=os.environ,
        )
        setup_logs(log_level)
        name_reconciles()
        # Imported here, as it takes a second: help and bad options are answered without it.
        import uvloop
        from voicecluster.operator.run import serve

        code = uvloop.run(serve(chosen))
    raise SystemExit(code)


if __name__ == "__main__":
    main()
