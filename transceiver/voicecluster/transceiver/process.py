"""What a forked child does with its own process: end with its parent, and be recognised in process lists."""

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_ARGUMENTS_START, _ARGUMENTS_END = 45, 46
"""proc(5)'s fields 48 and 49 of /proc/PID/stat, counted from the one after the name."""


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; exit now if `parent` has ended already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit(1)


def show_as(name: str, command: str) -> None:
    """Let process lists show `name` (15 characters of it) and `command`, as far as there is room for it.

    A fork has its parent's command line; this writes over the memory in which the kernel looks for it.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NAME, name.encode())
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    start, end = int(fields[_ARGUMENTS_START]), int(fields[_ARGUMENTS_END])
    if 0 < start < end:
        text = command.encode()[: end - start - 1].ljust(end - start, b"\0")
        ctypes.memmove(start, text, end - start)
