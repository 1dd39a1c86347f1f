"""The configuration file while the program runs: what of a new one takes effect, and what needs a restart.

A pod's configuration is a mounted ConfigMap, and no pod is rolled for a change of it. What a new call or request
can simply be given is taken from the newest good file; what sockets, processes and keys were made of at the start
stays, and a change of it is pointed out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic.alias_generators import to_camel
from voicecluster.common.config.model import ConfigError, load
from voicecluster.common.config.pod import Pod, load_transceiver
from voicecluster.common.config.transceiver import TransceiverConfig, TransceiverSettings
from voicecluster.common.watched import WatchedFile
from voicecluster.transceiver.agents.registry import names

RELOADED = ("auth", "cors_origins", "default_agent", "ice_mode", "limits", "log_level", "media")
"""The fields that new calls and requests take from the newest file."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """Where the configuration comes from: the file, and in a pod the environment too."""

    path: Path
    environment: Mapping[str, str]

    def load(self) -> TransceiverConfig:
        """Read all of it, to start with. Raises ConfigError."""
        config = load_transceiver(self.path, self.environment)
        check(config)
        return config

    def watched(self) -> WatchedFile[TransceiverSettings]:
        """The file, to be followed; nothing is read yet."""
        return WatchedFile(self.path, self._model)

    def newest(self, running: TransceiverConfig) -> TransceiverConfig:
        """`running` with what the file says now. Raises ConfigError where that cannot be used."""
        config, _ = changed(running, load(self.path, self._model))
        check(config)
        return config

    @property
    def _model(self) -> type[TransceiverSettings]:
        return TransceiverConfig if Pod.of(self.environment) is None else TransceiverSettings


def changed(
    running: TransceiverConfig, file: TransceiverSettings
) -> tuple[TransceiverConfig, tuple[str, ...]]:
    """`running` with what it takes from `file`, and the fields (as files spell them) that wait for a restart."""
    differing = [name for name in type(file).model_fields if getattr(file, name) != getattr(running, name)]
    taken = {name: getattr(file, name) for name in differing if name in RELOADED}
    waiting = tuple(to_camel(name) for name in differing if name not in RELOADED)
    return running.model_copy(update=taken), waiting


def check(config: TransceiverConfig) -> None:
    """Raise ConfigError for what the models cannot tell: an unknown agent, keys needed and not given."""
    known = names()
    if config.default_agent not in known:
        raise ConfigError(
            f"{config.name}: defaultAgent: no agent '{config.default_agent}'; write one of {', '.join(known)}"
        )
    if config.auth.mode == "APIKey" and config.auth.api_keys_dir is None:
        raise ConfigError(
            f"{config.name}: auth.apiKeysDir: missing; name a directory of keys, or set mode: None"
        )
    if config.vips_watch is not None and config.vips_watch.file != config.vips_file:
        raise ConfigError(f"{config.name}: vipsWatch.file: not the vipsFile; write the same path in both")
