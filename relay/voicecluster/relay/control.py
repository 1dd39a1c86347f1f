"""The control plane: what files and the API server say goes to the engine, what the engine counts to health and
metrics.

Everything that packets need is in the engine. This process may be killed at any time: the engine keeps its
snapshots and forwards on, and the next control plane continues from the same sources.
"""

import asyncio
import logging
import time
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, generate_latest
from pydantic import ValidationError
from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.relay import RelayConfig, RelayKeysFile
from voicecluster.common.config.transceiver import VipsFile
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.ports import Protocol, holder, taken
from voicecluster.common.watched import WatchedFile
from voicecluster.relay.engine import EngineError, EngineLink, Snapshot
from voicecluster.relay.metrics import RelayCollector
from voicecluster.relay.reload import ConfigFile, taken_over
from voicecluster.relay.routing import Routing
from voicecluster.relay.sources import EndpointSlices, source_of
from voicecluster.relay.stats import EngineStats
from voicecluster.relay.vips import advertised

_LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.5
SILENT_SECONDS = 3.0
"""An engine that has not answered for so long is not alive."""
CONFIGURE_SECONDS = 2.0
"""How long a first `configure` may be refused: a relay before this one may still be letting go of ports."""


class ControlPlane:
    """One relay's control plane. `run` owns all its tasks."""

    def __init__(
        self,
        config: RelayConfig,
        engine: EngineLink,
        *,
        api: KubeApi | None = None,
        config_file: ConfigFile | None = None,
    ) -> None:
        """Sends nothing before `run`.

        Args:
            config: What to begin with.
            engine: The engine to drive.
            api: The API server, where the configuration needs one.
            config_file: Where another configuration may come from.
        """
        self.config = config
        """What is in force."""
        self._engine = engine
        self._config_file = config_file
        self._keys_file = WatchedFile(
            config.keys_file, RelayKeysFile, empty=lambda file: not any(file.clusters.values())
        )
        self._vips_file: WatchedFile[VipsFile] | None = None
        if config.vips_file is not None and any(listener.advertise is None for listener in config.listeners):
            self._vips_file = WatchedFile(config.vips_file, VipsFile)
        cache = config.routes_from.cache_file if config.routes_from is not None else None
        self._routing = Routing(engine, source_of(config, api), cache=cache)
        self._advertised: list[str] = []
        self._restart_for: tuple[str, ...] = ()
        self._collector = RelayCollector()
        self._registry = CollectorRegistry()
        self._registry.register(self._collector)
        self._stats: tuple[int, EngineStats] | None = None
        self._answered_at = time.monotonic()
        self._alive = True

    @property
    def packets(self) -> int:
        """How many datagrams have come from callers and were forwarded; never goes back."""
        return self._collector.uplink_packets

    async def run(self) -> None:
        """Bring the engine to what the sources say and keep it there, until cancelled.

        Raises:
            ConfigError: The engine cannot serve this configuration (in an exception group).
        """
        if self._vips_file is not None:
            self._vips_file.refresh()
        self._configure()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._engine.run(), name="engine-link")
            stats = await self._first_stats()
            tasks.create_task(self._routing.run(engine_routes=stats.routes), name="routes")
            tasks.create_task(self._keys_file.run(self._send_keys), name="keys-file")
            if self._vips_file is not None:
                tasks.create_task(self._vips_file.run(lambda _: self._configure()), name="vips-file")
            if self._config_file is not None:
                tasks.create_task(self._config_file.run(self._reconfigure), name="config-file")
            while True:
                await asyncio.sleep(POLL_SECONDS)
                await self.poll()
                self._routing.confirm()
                # A restarted engine can find its ports still held for a moment: what it refused is asked again.
                if "configure" in self._engine.refused:
                    self._configure()

    async def poll(self) -> None:
        """Ask the engine for figures and whether its threads turn over. Never raises; silence shows in
        `live`.
        """
        try:
            await self._ask()
        except EngineError as error:
            _LOG.debug("engine not polled", extra={"error": str(error)})

    def live(self) -> Mapping[str, str | None]:
        """Return what speaks against this relay being alive: engine threads that do not turn over."""
        silent = time.monotonic() - self._answered_at
        if silent > SILENT_SECONDS:
            return {"engine": f"no answer for {silent:.0f} s"}
        return {"engine": None if self._alive else "a worker thread does not turn over"}

    def ready(self) -> Mapping[str, str | None]:
        """Return what speaks against sending callers here: not alive, or not all snapshots in the engine.

        A VIP that is not known yet does not: its listener advertises its own address meanwhile.
        """
        reasons = dict(self.live())
        if not self._engine.has("configure"):
            reasons["configuration"] = self._engine.refused.get("configure", "not in the engine yet")
        sources: tuple[tuple[Snapshot, str | None], ...] = (
            ("routes", self._routing.source.error),
            ("keys", self._keys_file.error),
        )
        for name, error in sources:
            if not self._engine.has(name) and not self._inherited(name):
                reasons[name] = self._engine.refused.get(name) or error or "not in the engine yet"
        return reasons

    async def metrics(self) -> bytes:
        """Return the metrics as text, with the engine's figures of now, or its last ones where it is silent."""
        if time.monotonic() - self._answered_at < 2 * POLL_SECONDS:
            await self.poll()
        source = self._routing.source
        files = {"keys": self._keys_file.error}
        if isinstance(source, EndpointSlices):
            self._collector.ignored_endpoints = source.ignored
            self._collector.is_following = source.error is None
        else:
            files["routes"] = source.error
        if self._vips_file is not None:
            files["vips"] = self._vips_file.error
        if self._config_file is not None:
            files["config"] = self._config_file.error
        self._collector.bad_files = {name: error is not None for name, error in files.items()}
        self._collector.held_routes = self._routing.held
        return generate_latest(self._registry)

    def _inherited(self, name: Snapshot) -> bool:
        """Whether the engine has routes or keys from a control plane before this one."""
        if self._stats is None or self._stats[0] != self._engine.connections:
            return False
        return (self._stats[1].routes if name == "routes" else self._stats[1].keys) > 0

    async def _first_stats(self) -> EngineStats:
        """What the engine has, once it has its configuration. Raises ConfigError when it refuses for good."""
        deadline: float | None = None
        while True:
            refusal = self._engine.refused.get("configure")
            if refusal is not None:
                deadline = deadline or time.monotonic() + CONFIGURE_SECONDS
                if time.monotonic() > deadline:
                    raise _refusal(self.config, refusal)
                self._configure()
            if self._engine.has("configure"):
                try:
                    return await self._ask()
                except EngineError as error:
                    _LOG.debug("engine not polled", extra={"error": str(error)})
            await asyncio.sleep(0.05)

    async def _ask(self) -> EngineStats:
        connection = self._engine.connections
        reply = await self._engine.request("stats")
        try:
            stats = EngineStats.model_validate(reply)
        except ValidationError:
            raise EngineError("its figures cannot be read") from None
        self._stats = connection, stats
        self._collector.update(stats, time.monotonic())
        self._alive = (await self._engine.request("ping")).get("alive") is True
        self._answered_at = time.monotonic()
        return stats

    def _configure(self) -> None:
        """Send the configuration with the VIPs of now."""
        vips = self._vips_file.value if self._vips_file is not None else None
        before, self._advertised = self._advertised, advertised(self.config, vips, self._advertised)
        if before not in ([], self._advertised):
            _LOG.info("other VIPs advertised", extra={"vips": self._advertised})
        self._engine.want("configure", _configuration(self.config, self._advertised))

    def _reconfigure(self, wanted: RelayConfig) -> None:
        self.config, restart_for = taken_over(self.config, wanted)
        logging.getLogger().setLevel(self.config.log_level)
        self._configure()
        _LOG.info("configuration in force")
        if restart_for not in ((), self._restart_for):
            _LOG.warning("changes wait for a restart of this relay", extra={"fields": restart_for})
        self._restart_for = restart_for

    def _send_keys(self, file: RelayKeysFile) -> None:
        self._engine.want("keys", {"clusters": file.clusters})
        _LOG.info("keys in force", extra={"keys": sum(len(keys) for keys in file.clusters.values())})


def _configuration(config: RelayConfig, vips: list[str]) -> dict[str, object]:
    return {
        "workers": config.workers,
        "pin": config.pin_workers,
        "backbone": config.backbone,
        "listeners": [
            {"name": listener.name, "bind": listener.bind, "advertise": vip}
            for listener, vip in zip(config.listeners, vips, strict=True)
        ],
        "limits": config.limits.model_dump(by_alias=True),
    }


def _refusal(config: RelayConfig, refusal: str) -> ConfigError:
    """The engine's reason, with who holds the port where it is a port and /proc tells."""
    protocol: Protocol = "udp"
    for address in (config.backbone, *(listener.bind for listener in config.listeners)):
        if f"{address}/{protocol}" in refusal and holder(protocol, address) is not None:
            return taken(protocol, address)
    return ConfigError(f"relay {config.name}: {refusal}")
