"""The relay's own configuration file, which may change under it: what takes effect then, and what cannot."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from voicecluster.common.config.model import ConfigError, Model
from voicecluster.common.config.pod import Pod, load_relay
from voicecluster.common.config.relay import RelayConfig, RelayPodSettings
from voicecluster.common.watched import WatchedFile

_LOG = logging.getLogger(__name__)

_HOT = ("limits", "log_level", "leaving")


class ConfigFile:
    """The file of `--config`. What is wrong with it at the start ends the relay; later on, it is reported."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        """Reads nothing yet."""
        self._path, self._environ = path, environ
        model = RelayConfig if Pod.of(environ) is None else RelayPodSettings
        self._file: WatchedFile[Model] = WatchedFile(path, model)

    @property
    def error(self) -> str | None:
        """One line about what is wrong with the file now, None while it is good."""
        return self._file.error

    def load(self) -> RelayConfig:
        """The configuration to start with. Raises ConfigError."""
        self._file.load()
        return load_relay(self._path, self._environ)

    async def run(self, on_change: Callable[[RelayConfig], None]) -> None:
        """Call `on_change` with every other configuration, until cancelled."""
        await self._file.run(lambda _: self._changed(on_change))

    def _changed(self, on_change: Callable[[RelayConfig], None]) -> None:
        try:
            config = load_relay(self._path, self._environ)
        except ConfigError as error:
            _LOG.warning("configuration refused, the one before is kept", extra={"error": str(error)})
        else:
            on_change(config)


def taken_over(running: RelayConfig, wanted: RelayConfig) -> tuple[RelayConfig, tuple[str, ...]]:
    """Return `running` with what can change while it runs, and the fields of `wanted` that need a restart."""
    update: dict[str, object] = {name: getattr(wanted, name) for name in _HOT}
    sockets = [[(each.name, each.bind) for each in config.listeners] for config in (running, wanted)]
    if sockets[0] == sockets[1]:
        update["listeners"] = wanted.listeners
    config = running.model_copy(update=update)
    fields = (name for name in RelayConfig.model_fields if getattr(config, name) != getattr(wanted, name))
    return config, tuple(fields)
