"""A configuration file that is re-read when it changes.

A `WatchedFile` has three promises:

- `value` is the last good content. A file that vanishes, is cut short, is not valid or is empty never
  replaces it.
- Each bad content is reported once, as a warning and in `error`, until a good one clears it.
- Every way a file is replaced is noticed within about a second: written in place, renamed over, or by
  Kubernetes swapping the `..data` link beside it. Events of the directory make that prompt, a look once a
  second makes it certain.
"""

import asyncio
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from voicecluster.common.config.model import ConfigError, Model, parse_text, read_text
from watchfiles import awatch

_LOG = logging.getLogger(__name__)
_RECHECK_MS = 1000
_DEBOUNCE_MS = 100
_STEP_MS = 20

M = TypeVar("M", bound=Model)


class WatchedFile(Generic[M]):
    """One file of type `M`. Owned by one task; nothing here is safe to call from other threads."""

    def __init__(self, path: Path, model: type[M], *, empty: Callable[[M], bool] | None = None) -> None:
        """Nothing is read yet.

        Args:
            path: The file; it may not exist yet.
            model: What it must parse to.
            empty: Tells content that is valid but says "nothing known yet": it is refused once there is
                something better.
        """
        self.path = path
        self.value: M | None = None
        """The last good content."""
        self.error: str | None = None
        """One line about what is wrong with the file now, None while it is good."""
        self._model = model
        self._empty = empty
        self._seen: bytes | None = None
        self._loading = False

    def load(self) -> M:
        """Read the file now and return it. Raises `ConfigError`: for start-up, where a bad file ends all."""
        self._loading = True
        try:
            self.refresh()
        finally:
            self._loading = False
        if self.error is not None or self.value is None:
            raise ConfigError(self.error or f"{self.path}: (file): empty")
        return self.value

    def refresh(self) -> bool:
        """Read the file if it changed; return whether `value` is new. Never raises."""
        try:
            text = read_text(self.path)
        except ConfigError as error:
            self._refuse(str(error), seen=None)
            return False
        digest = hashlib.sha256(text.encode()).digest()
        if digest == self._seen:
            return False
        try:
            value = parse_text(text, self._model, source=str(self.path))
        except ConfigError as error:
            self._refuse(str(error), seen=digest)
            return False
        if self.value is not None and self._empty is not None and self._empty(value):
            self._refuse(f"{self.path}: (document): empty; the content before it is kept", seen=digest)
            return False
        self._seen, self.error = digest, None
        if value == self.value:
            return False
        self.value = value
        return True

    async def run(self, on_change: Callable[[M], None]) -> None:
        """Call `on_change` with every new content, the first one included unless `load` returned it.

        Runs until cancelled, which is harmless at any time. `on_change` is called on the loop and must not
        raise.
        """
        self._changed(on_change)
        # Starting to watch takes a moment: other files are read first.
        await asyncio.sleep(0)
        while True:
            try:
                async for _ in awatch(
                    self.path.parent,
                    watch_filter=None,
                    recursive=False,
                    debounce=_DEBOUNCE_MS,
                    step=_STEP_MS,
                    rust_timeout=_RECHECK_MS,
                    yield_on_timeout=True,
                ):
                    self._changed(on_change)
            except (OSError, RuntimeError):
                # The directory is missing, or no inotify watch is left: the look once a second still holds.
                await asyncio.sleep(_RECHECK_MS / 1000)
                self._changed(on_change)

    def _changed(self, on_change: Callable[[M], None]) -> None:
        if self.refresh() and self.value is not None:
            on_change(self.value)

    def _refuse(self, error: str, *, seen: bytes | None) -> None:
        if seen is not None:
            self._seen = seen
        if error == self.error:
            return
        self.error = error
        if self._loading:
            return  # `load` raises it: telling it twice would be noise
        _LOG.warning("file refused, last good content kept", extra={"file": str(self.path), "error": error})
