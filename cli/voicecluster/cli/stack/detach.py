"""`voicecluster up --detach`: the same `up`, in a session of its own."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence

from voicecluster.cli.state import StackDirectory, private_directory

START_SECONDS = 60.0


def start(directory: StackDirectory, arguments: Sequence[str]) -> int:
    """Start `voicecluster up ARGUMENTS` in the background and wait until it is ready or has given up.

    What it says goes to logs/up.log, and here once it is ready. Returns the exit code for this command.
    """
    private_directory(directory.logs)
    output = directory.logs / "up.log"
    handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    try:
        running = subprocess.Popen(
            [sys.executable, "-m", "voicecluster.cli.main", "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=handle,
            stderr=handle,
            start_new_session=True,
        )
    finally:
        os.close(handle)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        code = running.poll()
        if code is not None:
            sys.stderr.write(output.read_text(encoding="utf-8"))
            return code or 1
        status = directory.running()
        if status is not None and status.pid == running.pid and status.ready:
            sys.stdout.write(output.read_text(encoding="utf-8"))
            return 0
        time.sleep(0.05)
    print(f"error: not ready after {START_SECONDS:.0f} s; see 'voicecluster status'", file=sys.stderr)
    return 1
