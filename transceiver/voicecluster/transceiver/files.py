"""The newest good state of a worker's watched files: root keys, VIPs, the directory, API keys."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.transceiver import DirectoryFile, RootKeysFile, TransceiverConfig, VipsFile
from voicecluster.common.watched import WatchedFile
from voicecluster.transceiver.agents.registry import names
from voicecluster.transceiver.directory import Directory
from voicecluster.transceiver.http.auth import ApiKeys
from voicecluster.transceiver.keys import Keyring
from watchfiles import awatch

log = logging.getLogger(__name__)

T = TypeVar("T")

_RECHECK_MS = 1000


class Files:
    """Loaded once, strictly; from then on a bad file changes nothing and is logged."""

    def __init__(self, config: TransceiverConfig) -> None:
        """Raises ConfigError when any file cannot be used."""
        _check_agent(config)
        self._config = config
        self._keys = WatchedFile(config.keys_file, RootKeysFile)
        self._vips = WatchedFile(config.vips_file, VipsFile)
        self._directory = WatchedFile(config.directory_file, DirectoryFile)
        self._api_keys_dir = _api_keys_dir(config)
        self.keyring = Keyring(self._keys.load(), config.cluster_id)
        self.directory = _checked(config.directory_file, lambda: Directory(self._directory.load()))
        self.vips = self._vips.load()
        self.on_keys: Callable[[Keyring], None] = lambda _: None
        """Called with each new keyring."""
        self.api_keys: ApiKeys | None = None
        if self._api_keys_dir is not None:
            self.api_keys = _read_api_keys(self._api_keys_dir)

    async def watch(self) -> None:
        """Follow the files until cancelled, which is harmless."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keys.run(self._new_keys), name="watch keys")
            group.create_task(self._vips.run(self._new_vips), name="watch vips")
            group.create_task(self._directory.run(self._new_directory), name="watch directory")
            if self._api_keys_dir is not None:
                group.create_task(self._watch_api_keys(self._api_keys_dir), name="watch API keys")

    def _new_keys(self, file: RootKeysFile) -> None:
        self.keyring = Keyring(file, self._config.cluster_id)
        self.on_keys(self.keyring)
        log.info("keys loaded", extra={"key_ids": sorted(file.keys), "mint": file.mint})

    def _new_vips(self, file: VipsFile) -> None:
        self.vips = file

    def _new_directory(self, file: DirectoryFile) -> None:
        try:
            self.directory = Directory(file)
        except ValueError as error:
            log.warning("directory refused, the one before it stays", extra={"error": str(error)})

    async def _watch_api_keys(self, directory: Path) -> None:
        while True:
            try:
                async for _ in awatch(
                    directory,
                    watch_filter=None,
                    recursive=False,
                    rust_timeout=_RECHECK_MS,
                    yield_on_timeout=True,
                ):
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


def _check_agent(config: TransceiverConfig) -> None:
    known = names()
    if config.default_agent not in known:
        raise ConfigError(
            f"{config.name}: defaultAgent: no agent '{config.default_agent}'; write one of {', '.join(known)}"
        )


def _api_keys_dir(config: TransceiverConfig) -> Path | None:
    auth = config.auth
    if auth.mode == "None":
        return None
    if auth.api_keys_dir is None:
        raise ConfigError(
            f"{config.name}: auth.apiKeysDir: missing; name a directory of keys, or set mode: None"
        )
    return auth.api_keys_dir


def _read_api_keys(directory: Path) -> ApiKeys:
    try:
        return ApiKeys.read(directory)
    except OSError as error:
        raise ConfigError(
            f"{directory}: (directory): {error.strerror}; create it with one file per key"
        ) from None
