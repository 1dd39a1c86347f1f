"""Logs as JSON lines on standard error: `ts`, `level`, `logger`, `message`, then whatever the call gave as
`extra`.

Messages are constants; what varies goes into `extra`, so that lines can be counted and searched. Keys, tokens
and speech never go into either.
"""

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TextIO

from voicecluster.common.config.model import LOG_LEVELS

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One record, one line of JSON. Values that JSON has no word for are written as their `str`."""

    def __init__(self, fields: Mapping[str, object] | None = None) -> None:
        """`fields` go into every line, for example the process's name and worker."""
        super().__init__()
        self._fields = dict(fields or {})

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._fields,
        }
        line.update((key, value) for key, value in vars(record).items() if key not in _STANDARD)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def setup_logs(
    level: str = "INFO", *, fields: Mapping[str, object] | None = None, stream: TextIO | None = None
) -> None:
    """Send this process's logs to `stream` (standard error) as JSON lines. Called once, before anything logs.

    Args:
        level: DEBUG, INFO, WARNING or ERROR, in any case.
        fields: Constant fields of every line.

    Raises:
        ValueError: Unknown level.
    """
    if level.upper() not in LOG_LEVELS:
        raise ValueError(f"'{level}' is not a log level; write one of {', '.join(LOG_LEVELS)}")
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(fields))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    # One line per request or file event would be noise at INFO.
    for noisy in ("aiohttp.access", "watchfiles"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
