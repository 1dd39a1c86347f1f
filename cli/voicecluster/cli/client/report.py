"""Tables for people: what a call or a load run was like."""

from rich.console import Console
from rich.table import Table
from voicecluster.cli.client.signaling import Json

_ROWS = (
    ("call_id", "call", ""),
    ("selected", "media address", ""),
    ("offer_answer_ms", "offer → answer", "ms"),
    ("answer_connected_ms", "answer → connected", "ms"),
    ("first_audio_ms", "offer → first audio", "ms"),
    ("rtt_ms", "round trip, ICE checks", "ms"),
    ("audio_round_trip_ms", "round trip, sound", "ms"),
    ("audio_correlation", "likeness of the sound", ""),
    ("packets_sent", "packets sent", ""),
    ("packets_received", "packets received", ""),
    ("lost", "packets lost", ""),
    ("jitter_ms", "jitter", "ms"),
)
_DEBUG_ROWS = ("region", "transceiver", "worker", "relay", "vip", "agent")


def print_call(console: Console, report: Json) -> None:
    """The table of `voicecluster call`."""
    verdict = "[bold green]audio came back" if report["ok"] else "[bold red]no audio came back"
    table = Table(title=verdict, show_header=False, title_justify="left")
    table.add_column(style="dim")
    table.add_column(justify="right")
    for key, label, unit in _ROWS:
        value = report.get(key)
        table.add_row(label, "-" if value is None else f"{value} {unit}".strip())
    debug = report.get("debug")
    if isinstance(debug, dict):
        for key in _DEBUG_ROWS:
            if debug.get(key) is not None:
                table.add_row(key, str(debug[key]))
    if report.get("ended_early"):
        table.add_row("ended early", f"[red]{report['ended_early']}")
    console.print(table)


_SPREADS = (
    ("offer_answer_ms", "offer → answer"),
    ("answer_connected_ms", "answer → connected"),
    ("first_audio_ms", "offer → first audio"),
    ("rtt_ms", "round trip, ICE checks"),
    ("audio_round_trip_ms", "round trip, sound"),
    ("jitter_ms", "jitter"),
    ("gap_ms", "longest gap, to the caller"),
    ("server_gap_ms", "all gaps, to the server"),
)


def print_load(console: Console, report: Json) -> None:
    """The tables of `voicecluster load`."""
    table = Table(title=f"{report['connected']} of {report['calls']} calls connected", title_justify="left")
    table.add_column("milliseconds", style="dim")
    for name in ("p50", "p95", "p99", "max"):
        table.add_column(name, justify="right")
    for key, label in _SPREADS:
        values = report.get(key)
        if isinstance(values, dict):
            table.add_row(label, *(f"{values[name]:.2f}" for name in ("p50", "p95", "p99", "max")))
    console.print(table)
    loss = report["loss"]
    share = f"{100 * loss:.3f} %" if isinstance(loss, float) else "nothing came back"
    counts = f"{report['packets_sent']} sent, {report['packets_received']} received"
    console.print(f"packets: {counts}, loss {share}")
    console.print(f"ended early: {report['ended_early']}, without audio: {report['without_audio']}")
    failed = report["failed"]
    if isinstance(failed, dict):
        for reason, count in failed.items():
            console.print(f"[red]{count} failed[/]: {reason}", markup=True)
    server = report["server_cores"]
    cores = f", its servers {server} cores" if server is not None else ""
    console.print(f"this client used {report['client_cores']} cores{cores}")
    console.print(f"bottleneck: [bold]{report['bottleneck']}[/] ({report['bottleneck_why']})")
