"""The newest good state of a process's watched files: configuration, root keys, VIPs, the directory, API keys."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.transceiver import (
    DirectoryFile,
    RootKeysFile,
    TransceiverConfig,
    TransceiverSettings,
    VipsFile,
)
from voicecluster.common.watched import WatchedFile
from voicecluster.transceiver.directory import Directory
from voicecluster.transceiver.http.auth import ApiKeys
from voicecluster.transceiver.keys import Keyring
from voicecluster.transceiver.settings import ConfigFile, changed, check
from watchfiles import awatch

log = logging.getLogger(__name__)

T = TypeVar("T")

_RECHECK_MS = 1000


class Files:
    """Loaded once, strictly; from then on a bad file changes nothing and is logged."""

    def __init__(self, config: TransceiverConfig, source: ConfigFile) -> None:
        """`config` is what `source` said last. Raises ConfigError when any file cannot be used."""
        check(config)
        self.config = config
        """The newest: what may change without a restart is from the newest good file, the rest as at the start."""
        self._source = source.watched()
        self._waiting: tuple[str, ...] = ()
        self._keys = WatchedFile(config.keys_file, RootKeysFile)
        self._vips = WatchedFile(config.vips_file, VipsFile)
        self._directory = WatchedFile(config.directory_file, DirectoryFile)
        self.keyring = Keyring(self._keys.load(), config.cluster_id)
        self.directory = _checked(config.directory_file, lambda: Directory(self._directory.load()))
        self.vips = self._vips.load()
        self.api_keys = _api_keys_of(config)
        """The keys that callers must have one of; None where they need none."""
        self._auth_changed = asyncio.Event()
        self.on_keys: Callable[[Keyring], None] = lambda _: None
        """Called with each new keyring."""
        self.on_config: Callable[[TransceiverConfig, tuple[str, ...]], None] = lambda *_: None
        """Called with each new configuration, and with the fields of the file that wait for a restart."""

    async def watch(self) -> None:
        """Follow the files until cancelled, which is harmless."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._source.run(self._new_config), name="watch configuration")
            group.create_task(self._keys.run(self._new_keys), name="watch keys")
            group.create_task(self._vips.run(self._new_vips), name="watch vips")
            group.create_task(self._directory.run(self._new_directory), name="watch directory")
            group.create_task(self._watch_api_keys(), name="watch API keys")

    def refresh_config(self) -> None:
        """Take what the configuration file says at this moment, where its change has not been noticed yet."""
        if self._source.refresh() and self._source.value is not None:
            self._new_config(self._source.value)

    def _new_config(self, file: TransceiverSettings) -> None:
        config, waiting = changed(self.config, file)
        try:
            check(config)
            api_keys = _api_keys_of(config) if config.auth != self.config.auth else self.api_keys
        except ConfigError as error:
            log.warning("configuration refused, the one before it stays", extra={"error": str(error)})
            return
        if (config, waiting) == (self.config, self._waiting):
            return
        logging.getLogger().setLevel(config.log_level)
        self.config, self.api_keys, self._waiting = config, api_keys, waiting
        self._auth_changed.set()
        self.on_config(config, waiting)

    def _new_keys(self, file: RootKeysFile) -> None:
        self.keyring = Keyring(file, self.config.cluster_id)
        self.on_keys(self.keyring)
        log.info("keys loaded", extra={"key_ids": sorted(file.keys), "mint": file.mint})

    def _new_vips(self, file: VipsFile) -> None:
        self.vips = file

    def _new_directory(self, file: DirectoryFile) -> None:
        try:
            self.directory = Directory(file)
        except ValueError as error:
            log.warning("directory refused, the one before it stays", extra={"error": str(error)})

    async def _watch_api_keys(self) -> None:
        """Follow the directory of keys, whichever it is now."""
        while True:
            directory = _api_keys_dir(self.config)
            if directory is None:
                self._auth_changed.clear()
                await self._auth_changed.wait()
                continue
            try:
                async for _ in awatch(
                    directory,
                    watch_filter=None,
                    recursive=False,
                    rust_timeout=_RECHECK_MS,
                    yield_on_timeout=True,
                ):
                    if directory != _api_keys_dir(self.config):
                        break
                    self.api_keys = ApiKeys.read(directory)
            except (OSError, RuntimeError) as error:
                log.warning(
                    "API keys cannot be read, those before stay", extra={"error": type(error).__name__}
                )
                await asyncio.sleep(_RECHECK_MS / 1000)


def _checked(path: Path, make: Callable[[], T]) -> T:
    try:
        return make()
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None


def _api_keys_dir(config: TransceiverConfig) -> Path | None:
    return config.auth.api_keys_dir if config.auth.mode == "APIKey" else None


def _api_keys_of(config: TransceiverConfig) -> ApiKeys | None:
    directory = _api_keys_dir(config)
    if directory is None:
        return None
    try:
        return ApiKeys.read(directory)
    except OSError as error:
        raise ConfigError(
            f"{directory}: (directory): {error.strerror}; create it with one file per key"
        ) from None
