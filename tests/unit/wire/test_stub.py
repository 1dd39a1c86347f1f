"""The type stub says of the built module what is true."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_stub_matches_the_built_module() -> None:
    check = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "voicecluster.wire._wire",
        "--mypy-config-file",
        "pyproject.toml",
    ]
    result = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
