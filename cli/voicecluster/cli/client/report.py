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
