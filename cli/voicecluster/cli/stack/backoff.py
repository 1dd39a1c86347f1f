"""How long to wait before a process that died is started again."""

from itertools import chain, repeat

PAUSES = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
LONGEST_SECONDS = 5.0
STEADY_SECONDS = 10.0
"""After running for so long, a process is started at once again."""


class Backoff:
    """At once the first time, then doubling from 0.1 s to 5 s until the process has stayed up for 10 s."""

    def __init__(self) -> None:
        self._pauses = chain(PAUSES, repeat(LONGEST_SECONDS))

    def next(self, *, uptime_seconds: float) -> float:
        """The pause in seconds, now that the process has died after `uptime_seconds`."""
        if uptime_seconds >= STEADY_SECONDS:
            self._pauses = chain(PAUSES, repeat(LONGEST_SECONDS))
        return next(self._pauses)
