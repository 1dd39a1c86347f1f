"""`voicecluster down`: ask the `up` that runs a stack to end it, and wait until it has."""

import os
import signal
import time

from voicecluster.cli.state import StackDirectory, StackError, StackStatus

PATIENCE_SECONDS = 6.0


def end(directory: StackDirectory, running: StackStatus) -> None:
    """End the stack. Its `up` is killed if it does not end in time; the kernel ends its children then.

    Raises StackError if even that does not help.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(running.pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if directory.holder() != running.pid:
                return
            time.sleep(0.05)
    raise StackError(f"process {running.pid} does not end; look at it with 'ps {running.pid}'")
