"""Each benchmark still runs and writes its rows. Nothing is said about speed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
OUTPUT = HERE.parents[1] / "build" / "bench"
FIELDS = {"what", "value", "unit", "against", "ratio", "floor", "aim", "met"}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["relay", "transceiver"])
def test_a_quick_pass_runs_and_writes_rows(name: str) -> None:
    written = OUTPUT / f"{name}-quick.json"
    written.unlink(missing_ok=True)
    finished = subprocess.run(
        [sys.executable, str(HERE / f"{name}.py"), "--quick"], capture_output=True, text=True, timeout=110
    )
    assert finished.returncode == 0, finished.stderr
    rows = json.loads(written.read_text(encoding="utf-8"))
    assert rows
    assert all(set(row) == FIELDS for row in rows)
    assert all(row["value"] is not None for row in rows)
