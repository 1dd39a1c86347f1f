"""The rows of a benchmark: what they hold, how they are shown, where they are written."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

OUTPUT = Path(__file__).resolve().parents[2] / "build" / "bench"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio` is `value` beside that of `against`, measured in the same run."""

    what: str
    value: float | None
    unit: str
    against: str | None = None
    ratio: float | None = None
    floor: str | None = None
    aim: str | None = None
    met: bool | None = None
    """Whether the floor is reached; None where there is none."""


def publish(
    name: str, title: str, rows: Sequence[Row], *, notes: Sequence[str] = (), quick: bool = False
) -> None:
    """Print the table and write the rows; a quick pass writes beside the real figures, not over them."""
    table = Table(title=title, title_justify="left")
    for column in ("what", "value", "unit", "against", "ratio", "floor", "aim", "met"):
        table.add_column(column, justify="right" if column in ("value", "ratio") else "left")
    for row in rows:
        met = {True: "[green]yes", False: "[red]no", None: ""}[row.met]
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        cells = (row.unit, row.against or "", ratio, row.floor or "", row.aim or "", met)
        table.add_row(row.what, "-" if row.value is None else _figure(row.value), *cells)
    console = Console(width=150, highlight=False)
    console.print(table)
    for note in notes:
        console.print(note)
    OUTPUT.mkdir(parents=True, exist_ok=True)
    path = OUTPUT / (f"{name}-quick.json" if quick else f"{name}.json")
    path.write_text(
        json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    console.print(f"[dim]{path}")


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
