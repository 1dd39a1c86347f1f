"""The log files of a stack: bounded by whoever writes them, followed by whoever reads them."""

import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

LARGEST_BYTES = 4 * 1024 * 1024
"""A log beyond this becomes the previous log (`.1`), of which there is one."""


def bound(path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
    """Keep a log that a process appends to from growing on: copy it aside and empty it.

    The writer has opened it with O_APPEND, so it goes on at the new end; a line written in between is lost.
    """
    try:
        if path.stat().st_size <= largest_bytes:
            return
        shutil.copyfile(path, path.with_suffix(path.suffix + ".1"))
        os.truncate(path, 0)
    except FileNotFoundError:
        return


@dataclass(slots=True)
class _Followed:
    name: str
    file: BinaryIO
    rest: bytes = b""

    def lines(self) -> Iterator[str]:
        if self.file.tell() > os.fstat(self.file.fileno()).st_size:
            self.file.seek(0)  # it was emptied
            self.rest = b""
        *complete, self.rest = (self.rest + self.file.read()).split(b"\n")
        for line in complete:
            yield line.decode("utf-8", "replace")


def show(paths: list[Path], *, last: int, follow: bool) -> Iterator[tuple[str, str]]:
    """The last lines of each log as (process, line); with `follow`, on and on as they are written."""
    logs = [_Followed(path.stem, path.open("rb")) for path in paths]
    try:
        for log in logs:
            for line in list(log.lines())[-last:]:
                yield log.name, line
        while follow:
            sys.stdout.flush()
            time.sleep(0.2)
            for log in logs:
                for line in log.lines():
                    yield log.name, line
    finally:
        for log in logs:
            log.file.close()
