"""How every program of ours ends when it cannot start: one line on standard error, exit code 2."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from voicecluster.common.config.model import ConfigError


@contextmanager
def exit_on_config_error() -> Iterator[None]:
    """Turn a `ConfigError` (a bad file, a taken port) inside the block into its one line and exit code 2."""
    try:
        yield
    except* ConfigError as group:
        print(f"error: {_first(group)}", file=sys.stderr)
        raise SystemExit(2) from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
