"""The control plane: what the files say goes to the engine, what the engine counts to health and metrics.

Everything that packets need is in the engine. This process may be killed at any time: the engine keeps its
snapshots and forwards on, and the next control plane continues from the same files.
"""

import asyncio
import logging
import time
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, generate_latest
from pydantic import ValidationError
from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.relay import RelayConfig, RelayKeysFile, RoutesFile
from voicecluster.common.ports import Protocol, holder, taken
from voicecluster.common.watched import WatchedFile
from voicecluster.relay.engine import EngineError, EngineLink, Snapshot
from voicecluster.relay.metrics import RelayCollector
from voicecluster.relay.routes import RouteTable
from voicecluster.relay.stats import EngineStats

_LOG = logging.getLogger(__name__)

POLL_SECONDS = 0.5
SILENT_SECONDS = 3.0
"""An engine that has not answered for so long is not alive."""
CONFIGURE_SECONDS = 2.0
"""How long a first `configure` may be refused: a relay before this one may still be letting go of ports."""


class ControlPlane:
    """One relay's control plane. `run` owns all its tasks."""

    def __init__(self, config: RelayConfig, engine: EngineLink) -> None:
        """Sends nothing before `run`."""
        self._config = config
        self._engine = engine
        assert config.routes_file is not None
        self._routes_file = WatchedFile(config.routes_file, RoutesFile)
        self._keys_file = WatchedFile(
            config.keys_file, RelayKeysFile, empty=lambda file: not any(file.clusters.values())
        )
        self._table: RouteTable | None = None
        self._collector = RelayCollector()
        self._registry = CollectorRegistry()
        self._registry.register(self._collector)
        self._answered_at = time.monotonic()
        self._alive = True

    async def run(self) -> None:
        """Bring the engine to what the files say and keep it there, until cancelled.

        Raises:
            ConfigError: The engine cannot serve this configuration (in an exception group).
        """
        self._engine.want("configure", _configuration(self._config))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._engine.run(), name="engine-link")
            stats = await self._first_stats()
            self._table = RouteTable(engine_routes=stats.routes)
            tasks.create_task(self._routes_file.run(self._offer_routes), name="routes-file")
            tasks.create_task(self._keys_file.run(self._send_keys), name="keys-file")
            while True:
                await asyncio.sleep(POLL_SECONDS)
                await self.poll()
                self._confirm_routes(self._table)
                self._configure_again()

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
        """Return what speaks against sending callers here: not alive, or not all snapshots in the engine."""
        reasons = dict(self.live())
        if not self._engine.has("configure"):
            reasons["configuration"] = self._engine.refused.get("configure", "not in the engine yet")
        files: tuple[tuple[Snapshot, str | None], ...] = (
            ("routes", self._routes_file.error),
            ("keys", self._keys_file.error),
        )
        inherited = self._table is not None and self._table.doubts_first
        for name, error in files:
            if not self._engine.has(name) and not (name == "routes" and inherited):
                reasons[name] = self._engine.refused.get(name) or error or "not in the engine yet"
        return reasons

    async def metrics(self) -> bytes:
        """Return the metrics as text, with the engine's figures of now, or its last ones where it is silent."""
        if time.monotonic() - self._answered_at < 2 * POLL_SECONDS:
            await self.poll()
        self._collector.bad_files = {
            "routes": self._routes_file.error is not None,
            "keys": self._keys_file.error is not None,
        }
        return generate_latest(self._registry)

    async def _first_stats(self) -> EngineStats:
        """What the engine has, once it has its configuration. Raises ConfigError when it refuses for good."""
        deadline: float | None = None
        while True:
            refusal = self._engine.refused.get("configure")
            if refusal is not None:
                deadline = deadline or time.monotonic() + CONFIGURE_SECONDS
                if time.monotonic() > deadline:
                    raise _refusal(self._config, refusal)
                self._engine.want("configure", _configuration(self._config))
            if self._engine.has("configure"):
                try:
                    return await self._ask()
                except EngineError as error:
                    _LOG.debug("engine not polled", extra={"error": str(error)})
            await asyncio.sleep(0.05)

    async def _ask(self) -> EngineStats:
        reply = await self._engine.request("stats")
        try:
            stats = EngineStats.model_validate(reply)
        except ValidationError:
            raise EngineError("its figures cannot be read") from None
        self._collector.update(stats, time.monotonic())
        self._alive = (await self._engine.request("ping")).get("alive") is True
        self._answered_at = time.monotonic()
        return stats

    def _offer_routes(self, file: RoutesFile) -> None:
        if self._table is None:
            return
        listed = {(route.cluster, route.ordinal, route.worker): route.address for route in file.routes}
        held = self._table.held
        if self._table.offer(listed, time.monotonic()):
            self._send_routes(self._table)
        if self._table.held > held or self._table.routes is None:
            _LOG.warning(
                "a list would remove over half of the routes; removals wait for a second one",
                extra={"listed": len(listed), "held": self._table.held},
            )
        self._collector.held_routes = self._table.held

    def _confirm_routes(self, table: RouteTable) -> None:
        """Offer the list that holds now a second time. A file that is bad now says nothing."""
        if not table.due(time.monotonic()):
            return
        self._routes_file.refresh()
        if self._routes_file.error is None and self._routes_file.value is not None:
            self._offer_routes(self._routes_file.value)

    def _send_routes(self, table: RouteTable) -> None:
        routes = [
            {"cluster": cluster, "ordinal": ordinal, "worker": worker, "address": address}
            for (cluster, ordinal, worker), address in (table.routes or {}).items()
        ]
        self._engine.want("routes", {"routes": routes})
        _LOG.info("routes in force", extra={"routes": len(routes), "held": table.held})

    def _send_keys(self, file: RelayKeysFile) -> None:
        self._engine.want("keys", {"clusters": file.clusters})
        _LOG.info("keys in force", extra={"keys": sum(len(keys) for keys in file.clusters.values())})

    def _configure_again(self) -> None:
        """A restarted engine can find its ports still held for a moment: what it refused is asked again."""
        if "configure" in self._engine.refused:
            self._engine.want("configure", _configuration(self._config))


def _configuration(config: RelayConfig) -> dict[str, object]:
    return {
        "workers": config.workers,
        "pin": config.pin_workers,
        "backbone": config.backbone,
        "listeners": [listener.model_dump(by_alias=True) for listener in config.listeners],
        "limits": config.limits.model_dump(by_alias=True),
    }


def _refusal(config: RelayConfig, refusal: str) -> ConfigError:
    """The engine's reason, with who holds the port where it is a port and /proc tells."""
    protocol: Protocol = "udp"
    for address in (config.backbone, *(listener.bind for listener in config.listeners)):
        if f"{address}/{protocol}" in refusal and holder(protocol, address) is not None:
            return taken(protocol, address)
    return ConfigError(f"relay {config.name}: {refusal}")
