"""Every log line of a reconcile names its VoiceCluster and an id, so that the lines of one can be read together."""

import logging
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ABOUT: ContextVar[tuple[str, str] | None] = ContextVar("reconciling", default=None)


@contextmanager
def reconciling(namespace: str, name: str) -> Iterator[None]:
    """Log lines inside, also those of tasks begun there, get `voicecluster` and `reconcile`."""
    token = _ABOUT.set((f"{namespace}/{name}", secrets.token_hex(4)))
    try:
        yield
    finally:
        _ABOUT.reset(token)


def name_reconciles() -> None:
    """Make all log records of this process do so. Called once, at the start."""
    made = logging.getLogRecordFactory()

    def make(*arguments: object, **more: object) -> logging.LogRecord:
        record = made(*arguments, **more)
        if about := _ABOUT.get():
            record.voicecluster, record.reconcile = about
        return record

    logging.setLogRecordFactory(make)
