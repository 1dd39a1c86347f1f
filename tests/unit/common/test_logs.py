"""Log lines are JSON with fixed fields first."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from voicecluster.common.logs import setup_logs


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stream = io.StringIO()
    setup_logs("info", fields={"relay": "eu-0"}, stream=stream)
    yield stream
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(False)


def test_a_line_has_time_level_logger_message_and_extras(log: io.StringIO) -> None:
    logging.getLogger("a.b").info("flow ended", extra={"flows": 3})
    line = json.loads(log.getvalue())
    assert line.pop("ts").endswith("+00:00")
    assert line == {"level": "INFO", "logger": "a.b", "message": "flow ended", "relay": "eu-0", "flows": 3}


def test_an_exception_stays_on_its_line(log: io.StringIO) -> None:
    try:
        raise ValueError("no\nnewline")
    except ValueError:
        logging.getLogger("a").exception("failed")
    (line,) = log.getvalue().splitlines()
    assert "ValueError" in json.loads(line)["exception"]


def test_less_than_the_level_is_not_written(log: io.StringIO) -> None:
    logging.getLogger("a").debug("detail")
    assert log.getvalue() == ""
