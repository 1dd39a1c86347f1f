"""The executables that a plan's processes run."""

import os
import shutil
import sys
from pathlib import Path

from voicecluster.cli.state import StackError


def find(name: str) -> Path:
    """The executable of this distribution called `name`: beside our interpreter, else on PATH.

    Raises:
        StackError: There is none.
    """
    beside = Path(sys.executable).parent / name
    if os.access(beside, os.X_OK):
        return beside
    on_path = shutil.which(name)
    if on_path is None:
        raise StackError(f"{name} is not installed beside {sys.executable}; run 'make setup'")
    return Path(on_path)
