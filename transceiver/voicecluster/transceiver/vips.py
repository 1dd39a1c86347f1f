"""The VIPs file of a pod: begun from the mounted ConfigMap, then kept by following that ConfigMap itself.

A mounted ConfigMap is up to a minute late, a changed VIP is wanted within seconds. Whatever happens to the API
server, the file stays as it is; nothing that is empty or not valid ever replaces it.
"""

import logging
from collections.abc import Mapping
from pathlib import Path

from voicecluster.common.atomic import write_atomic
from voicecluster.common.config.model import ConfigError, parse_text, read_text
from voicecluster.common.config.transceiver import ObjectFile, TransceiverConfig, VipsFile
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.kube.follow import Pace, follow
from voicecluster.common.kube.watched import Object

log = logging.getLogger(__name__)


def seed_vips(config: TransceiverConfig) -> None:
    """Begin the VIPs file where it is kept by us and not there yet. Raises ConfigError: neither is usable."""
    watch = config.vips_watch
    if watch is None or watch.file.exists():
        return
    text = read_text(watch.seed)
    parse_text(text, VipsFile, source=str(watch.seed))
    try:
        write_atomic(watch.file, text)
    except OSError as error:
        raise ConfigError(
            f"{watch.file}: vipsWatch.file: {error.strerror}; mount a writable directory there"
        ) from None


class VipsKeeper:
    """Writes the entry of one ConfigMap to a file. The only RBAC verbs that it needs are list and watch."""

    def __init__(self, watch: ObjectFile) -> None:
        self._watch = watch
        self._entry = watch.seed.name
        self._refused: str | None = None

    async def run(self, api: KubeApi, pace: Pace | None = None) -> None:
        """Follow the ConfigMap until cancelled, which is harmless."""
        await follow(
            api,
            f"/api/v1/namespaces/{self._watch.namespace}/configmaps",
            field_selector=f"metadata.name={self._watch.config_map}",
            on_change=self.take,
            pace=pace,
        )

    def take(self, objects: Mapping[str, Object]) -> None:
        """Write what the ConfigMap says, if it is fit to be used and new."""
        text = self._text_of(objects.get(self._watch.config_map))
        if text is None or text == _content(self._watch.file):
            return
        try:
            write_atomic(self._watch.file, text)
        except OSError as error:
            self._refuse(f"{self._watch.file} cannot be written: {error.strerror}")
            return
        self._refused = None
        log.info("VIPs written", extra={"config_map": self._watch.config_map})

    def _text_of(self, config_map: Object | None) -> str | None:
        source = f"ConfigMap {self._watch.namespace}/{self._watch.config_map}"
        data = config_map.get("data") if config_map is not None else None
        text = data.get(self._entry) if isinstance(data, Mapping) else None
        if not isinstance(text, str):
            self._refuse(f"{source}: no entry {self._entry}")
            return None
        try:
            file = parse_text(text, VipsFile, source=source)
        except ConfigError as error:
            self._refuse(str(error))
            return None
        if not any(file.regions.values()):
            self._refuse(f"{source}: {self._entry}: names no VIP at all")
            return None
        return text

    def _refuse(self, error: str) -> None:
        if error != self._refused:
            self._refused = error
            log.warning("VIPs refused, those before stay", extra={"error": error})


def _content(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
