"""`voicecluster`: the command line."""

import contextlib
import importlib
import ipaddress
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn, TypeVar

import click
from voicecluster.common.config.model import ConfigError, join_address, load, split_address
from voicecluster.common.program import exit_on_config_error

Decorated = TypeVar("Decorated", bound=Callable[..., object])


class Commands(click.Group):
    """A group some of whose commands are imported only when asked for: `call` needs all of WebRTC."""

    ELSEWHERE: Mapping[str, str] = {
        "call": "voicecluster.cli.client.commands",
        "load": "voicecluster.cli.client.commands",
    }
    ORDER = ("up", "status", "logs", "down", "call", "load", "decode")

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one meets them."""
        return list(self.ORDER)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command's module if it is not here."""
        if name not in self.ELSEWHERE:
            return super().get_command(ctx, name)
        found = getattr(importlib.import_module(self.ELSEWHERE[name]), name)
        assert isinstance(found, click.Command)
        return found


class _Address(click.ParamType[str]):
    name = "address"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            self.fail(
                f"'{value}' is not an IP address; write one such as 192.0.2.5, without a port", param, ctx
            )
        if address.is_unspecified or address.is_multicast:
            self.fail(f"'{value}' cannot be called; write the address that callers reach", param, ctx)
        return str(address)


class _Socket(click.ParamType[tuple[str, int]]):
    name = "ip:port"

    def convert(
        self, value: str | tuple[str, int], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        try:
            return split_address(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _Network(click.ParamType[ipaddress.IPv4Network]):
    name = "network"

    def convert(
        self, value: str | ipaddress.IPv4Network, param: click.Parameter | None, ctx: click.Context | None
    ) -> ipaddress.IPv4Network:
        if isinstance(value, ipaddress.IPv4Network):
            return value
        try:
            network = ipaddress.IPv4Network(value)
        except ValueError:
            network = ipaddress.IPv4Network("0.0.0.0/0")
        if not network.is_loopback or network.prefixlen > 24:
            self.fail(
                f"'{value}' is not a loopback network of 256 addresses; write one such as 127.0.9.0/24",
                param,
                ctx,
            )
        return network


def _name_option(function: Decorated) -> Decorated:
    return click.option("--name", metavar="N", help="Which stack; not needed when only one runs.")(function)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="voicecluster")
def cli() -> None:
    """Voice agents over WebRTC, through one UDP port per region.

    \b
    Start with a stack on this machine, call it, look at it, end it:
      voicecluster up examples/local.yaml
      voicecluster call http://127.0.0.1:8080
      voicecluster status
      voicecluster logs -f
      voicecluster down
    """


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--detach", is_flag=True, help="Return when it is ready; end it with 'voicecluster down'.")
@click.option("--name", metavar="N", help="Name of the stack and its state. [default: metadata.name of FILE]")
@click.option(
    "--address",
    type=_Address(),
    help="Serve on this address of the machine instead of FILE's VIPs: a port per region, signaling on 8080.",
)
@click.option(
    "--tls",
    is_flag=True,
    help="Serve HTTPS with a self-signed certificate: browsers off this machine need it.",
)
@click.option(
    "--signaling",
    type=_Socket(),
    help="Where the page and the API are. [default: ADDRESS or 127.0.0.1, 8080]",
)
@click.option(
    "--internal",
    type=_Network(),
    help="Addresses of the processes among themselves. [default: 127.0.1.0/24, or the next one free]",
)
def up(
    file: Path,
    detach: bool,
    name: str | None,
    address: str | None,
    tls: bool,
    signaling: tuple[str, int] | None,
    internal: ipaddress.IPv4Network | None,
) -> None:
    """Run the VoiceCluster of FILE on this machine.

    Starts a relay per region and every transceiver as local processes, restarts what dies, and ends all of it
    on Ctrl-C. Nothing is installed and no privileges are needed. Keys are generated once and kept with the
    stack's state, below $XDG_STATE_HOME/voicecluster (or ~/.local/state/voicecluster).

    \b
    Examples:
      voicecluster up examples/local.yaml
      voicecluster up examples/local.yaml --detach
      voicecluster up examples/local.yaml --address 192.0.2.5 --tls
    """
    from rich.console import Console
    from voicecluster.cli.stack import detach as detached
    from voicecluster.cli.stack import up as stack
    from voicecluster.cli.stack.prepare import Choices, prepare
    from voicecluster.cli.stack.welcome import welcome
    from voicecluster.cli.state import check_name, directory_of
    from voicecluster.operator.api.v1alpha1 import VoiceCluster

    with exit_on_config_error():
        cluster = load(file, VoiceCluster)
        name = check_name(name or cluster.metadata.name)
        directory = directory_of(name)
        if detach:
            options = {"name": name, "address": address, "internal": internal}
            options["signaling"] = join_address(*signaling) if signaling is not None else None
            given = [f"--{option}={value}" for option, value in options.items() if value is not None]
            sys.exit(detached.start(directory, [str(file), *given, *(["--tls"] if tls else [])]))
        with directory.lock():
            choices = Choices(address=address, signaling=signaling, internal=internal, tls=tls)
            prepared = prepare(cluster, directory, choices)

            def ready(seconds: float) -> None:
                for line in welcome(name, directory, prepared, seconds):
                    click.echo(line)
                sys.stdout.flush()

            stack.run(name, directory, prepared, Console(stderr=True), ready)
            click.echo(f"Stack '{name}' has ended.")


@cli.command()
@_name_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def status(name: str | None, as_json: bool) -> None:
    """Show every process of a running stack. Exits 0 only when all of them are ready."""
    from rich.console import Console
    from voicecluster.cli.stack.look import look, table
    from voicecluster.cli.state import find_running

    with exit_on_config_error():
        seen = look(find_running(name)[1])
        if as_json:
            click.echo(seen.model_dump_json(indent=2))
        else:
            console = Console()
            console.width = max(console.width, 130)  # narrower terminals wrap; a pipe gets whole rows
            console.print(table(seen))
        sys.exit(0 if seen.ready else 1)


@cli.command(short_help="Show what the processes of a stack say.")
@click.argument("process", required=False)
@_name_option
@click.option("-f", "--follow", is_flag=True, help="Go on as lines are written.")
@click.option(
    "-n", "--lines", default=20, show_default=True, help="How many of the last lines of each process."
)
def logs(process: str | None, name: str | None, follow: bool, lines: int) -> None:
    """Show the logs of a stack: of all processes, or of PROCESS as 'voicecluster status' names it.

    Without a running stack, those of the last one.
    """
    from voicecluster.cli.stack.logs import show
    from voicecluster.cli.state import StackError, find_latest

    with exit_on_config_error():
        directory = find_latest(name)
        names = sorted(path.stem for path in directory.logs.glob("*.log"))
        if process is not None and process not in names:
            raise StackError(f"no process '{process}'; there are {', '.join(names)}")
        chosen = [process] if process is not None else names
        width = max(map(len, chosen), default=0)
        with contextlib.suppress(KeyboardInterrupt):  # the way to end --follow
            for source, line in show([directory.log_file(one) for one in chosen], last=lines, follow=follow):
                click.echo(line if process is not None else f"{source:<{width}}  {line}")


@cli.command()
@_name_option
def down(name: str | None) -> None:
    """End a running stack. Its keys stay for the next start."""
    from voicecluster.cli.stack.down import end
    from voicecluster.cli.state import find_running

    with exit_on_config_error():
        directory, running = find_running(name)
        end(directory, running)
        click.echo(f"Stack '{running.name}' has ended.")


@cli.command(short_help="Say who owns a call, from its ufrag or call id.")
@click.argument("hint", metavar="UFRAG|CALL_ID")
@click.option(
    "--keys",
    type=click.Path(path_type=Path),
    help="Root keys or hint keys file. [default: the keys of the running stack]",
)
@_name_option
@click.option("--json", "as_json", is_flag=True, help="For programs.")
def decode(hint: str, keys: Path | None, name: str | None, as_json: bool) -> None:
    """Say which transceiver and worker own a call, from its ICE ufrag or its call id.

    \b
    Examples:
      voicecluster decode A1b2C3…                    with the keys of the running stack
      voicecluster decode rtc_a… --keys root-keys.yaml
    """
    from voicecluster.cli import decode as decoding
    from voicecluster.cli.state import all_running, find_running

    with exit_on_config_error():
        if keys is not None:
            running = [status for _, status in all_running() if name in (None, status.name)]
            stack = running[0] if len(running) == 1 else None
            found = decoding.decode(hint, decoding.openers_of_file(keys, hint), stack)
        else:
            directory, stack = find_running(name)
            found = decoding.decode(hint, decoding.openers_of_stack(directory, stack, hint), stack)
        if as_json:
            click.echo(json.dumps(found.model_dump()))
        else:
            click.echo(decoding.sentence(found))


def main() -> NoReturn:
    """The console script."""
    try:
        cli.main(prog_name="voicecluster", standalone_mode=True)
    except ConfigError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2)
    sys.exit(0)


if __name__ == "__main__":
    main()
