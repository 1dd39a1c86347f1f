"""`voicecluster call` and `voicecluster load`."""

import asyncio
import json
import os
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import click
from rich.console import Console

T = TypeVar("T")
KEY_VARIABLE = "VOICECLUSTER_API_KEY"
key_file_option = click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help=f"File with the API key; else ${KEY_VARIABLE}.",
)


@click.command(short_help="Make one real WebRTC call and say how it went.")
@click.argument("url")
@click.option(
    "--seconds", type=click.FloatRange(min=0.1), default=4.0, show_default=True, help="How long to talk."
)
@click.option("--region", help="Ask for a transceiver of this region; the server chooses otherwise.")
@click.option(
    "--model", default="echo", show_default=True, help="The agent to call. 'echo' says back every frame."
)
@key_file_option
@click.option(
    "--insecure", is_flag=True, help="Accept a self-signed TLS certificate, as `up --tls` makes one."
)
@click.option(
    "--rsa", is_flag=True, help="Use an RSA certificate for DTLS, as some SDKs do, instead of ECDSA."
)
@click.option("--ip", "ip_version", type=click.Choice(["4", "6"]), help="Call over this IP version only.")
@click.option(
    "--restarts", type=click.IntRange(0, 1000), default=0, help="Restart ICE so many times during the call."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
def call(
    url: str,
    seconds: float,
    region: str | None,
    model: str,
    key_file: Path | None,
    insecure: bool,
    rsa: bool,
    ip_version: str | None,
    restarts: int,
    as_json: bool,
) -> None:
    """Make one real WebRTC call to URL: signaling, ICE, DTLS, audio both ways.

    URL is the signaling address, such as http://127.0.0.1:8080. The client is an ordinary one: it offers its
    own candidates, checks those of the answer and knows nothing of relays. It speaks a few seconds of
    speech-like sound and looks for it in what comes back.

    Exit status: 0 if audio came back, 1 if not or if the call did not connect, 2 for a wrong command line.

    \b
    Examples:
      voicecluster call http://127.0.0.1:8080
      voicecluster call http://127.0.0.1:8080 --region us-east --seconds 10 --json
      VOICECLUSTER_API_KEY=… voicecluster call https://voice.example.com --model parrot
    """
    with _client_installed():
        from voicecluster.cli.client.dial import CallPlan, place_call
        from voicecluster.cli.client.errors import CallError
        from voicecluster.cli.client.report import print_call

    plan = CallPlan(
        url=url,
        key=read_key(key_file),
        model=model,
        region=region,
        seconds=seconds,
        insecure=insecure,
        rsa=rsa,
        ip_version=int(ip_version) if ip_version else None,
        restarts=restarts,
    )
    notes = Console(stderr=True, highlight=False)
    try:
        report = run(
            place_call(
                plan, progress=(lambda _: None) if as_json else (lambda text: notes.print(f"[dim]{text}"))
            )
        )
    except CallError as error:
        if as_json:
            print(json.dumps({"ok": False, "stage": error.stage, "error": str(error)}))
        else:
            notes.print(f"[bold red]no call[/]: {error}")
        sys.exit(1)
    if as_json:
        print(json.dumps(report))
    else:
        print_call(Console(highlight=False), report)
    sys.exit(0 if report["ok"] else 1)


@click.command(short_help="Make many calls at once and measure them.")
@click.argument("url")
@click.option("--calls", type=click.IntRange(1, 20_000), default=20, show_default=True)
@click.option(
    "--seconds", type=click.FloatRange(min=0.5), default=10.0, show_default=True, help="Measured time."
)
@click.option("--per-second", type=click.FloatRange(min=0.1), default=20.0, show_default=True, help="Ramp.")
@click.option("--region", help="Ask for transceivers of this region; the server chooses otherwise.")
@click.option("--model", default="echo", show_default=True, help="The agent to call.")
@key_file_option
@click.option("--insecure", is_flag=True, help="Accept a self-signed TLS certificate.")
@click.option("--ip", "ip_version", type=click.Choice(["4", "6"]), help="Call over this IP version.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def load(
    url: str,
    calls: int,
    seconds: float,
    per_second: float,
    region: str | None,
    model: str,
    key_file: Path | None,
    insecure: bool,
    ip_version: str | None,
    as_json: bool,
) -> None:
    """Make many WebRTC calls to URL from one process and say how they were.

    Every call is an ordinary client with a UDP socket of its own that sends 50 packets a second. Calls are
    begun gradually; when all are up, --seconds are measured. Percentiles are over calls. The last line says
    which side was at its end: this client, a server process on this machine, the machine, or none.

    Exit status: 0 if every call connected, lasted and got audio back, else 1; 2 for a wrong command line.

    \b
    Examples:
      voicecluster load http://127.0.0.1:8080 --calls 50 --seconds 10
      voicecluster load http://127.0.0.1:8080 --calls 200 --per-second 40 --json
    """
    with _client_installed():
        from voicecluster.cli.client.errors import CallError
        from voicecluster.cli.client.load import Load, LoadPlan
        from voicecluster.cli.client.report import print_load

    plan = LoadPlan(
        url=url,
        key=read_key(key_file),
        model=model,
        region=region,
        calls=calls,
        seconds=seconds,
        per_second=per_second,
        insecure=insecure,
        ip_version=int(ip_version) if ip_version else None,
    )
    notes = Console(stderr=True, highlight=False)
    try:
        if as_json:
            report = run(Load(plan).run())
        else:
            with notes.status(f"dialling {calls} calls") as status:
                told = Load(
                    plan, progress=lambda up, lost: status.update(f"{up} of {calls} up, {lost} failed")
                )
                report = run(told.run())
    except CallError as error:
        if as_json:
            print(json.dumps({"ok": False, "stage": error.stage, "error": str(error)}))
        else:
            notes.print(f"[bold red]no load[/]: {error}")
        sys.exit(1)
    if as_json:
        print(json.dumps(report))
    else:
        print_load(Console(highlight=False), report)
    sys.exit(0 if report["ok"] else 1)


@contextmanager
def _client_installed() -> Iterator[None]:
    """Turn a missing library of the client into one line with the remedy."""
    try:
        yield
    except ImportError as error:
        remedy = "install what a client needs with: pip install 'voicecluster[client]'"
        raise click.ClickException(f"{error}; {remedy}") from None


def read_key(key_file: Path | None) -> str | None:
    """The API key of `--key-file`, else of the environment, else None.

    An unreadable file is a usage error.
    """
    if key_file is None:
        return os.environ.get(KEY_VARIABLE) or None
    try:
        return key_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{key_file} cannot be read ({error})", param_hint="--key-file") from None


def run(work: Coroutine[object, object, T]) -> T:
    """Run on uvloop where it is installed: it makes a client cheaper, nothing else."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)
