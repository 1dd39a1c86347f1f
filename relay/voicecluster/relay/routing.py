"""The engine's routes: what the source lists, past the guards of `RouteTable`, kept over restarts.

The routes in force are written to a cache file whenever they change. A relay that starts while the API server is
absent begins with them; the first list then counts as the next one.
"""

import asyncio
import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path

from voicecluster.common.atomic import write_atomic
from voicecluster.common.config.model import ConfigError, load
from voicecluster.common.config.relay import RoutesFile
from voicecluster.relay.engine import EngineLink
from voicecluster.relay.routes import RouteKey, RouteTable
from voicecluster.relay.sources import RouteSource, listed

_LOG = logging.getLogger(__name__)


class Routing:
    """Keeps the engine's routes right. `run` owns all of it."""

    def __init__(self, engine: EngineLink, source: RouteSource, *, cache: Path | None = None) -> None:
        """Sends nothing before `run`. `cache`: where the routes in force are kept over restarts."""
        self._engine, self.source, self._cache = engine, source, cache
        self._table: RouteTable | None = None
        self._changed = asyncio.Event()

    @property
    def held(self) -> int:
        """Routes in force only because a suspicious list lacks them."""
        return self._table.held if self._table is not None else 0

    @property
    def doubts_first(self) -> bool:
        """Whether a first list waits to be confirmed, while the engine keeps what it had before."""
        return self._table is not None and self._table.doubts_first

    async def run(self, *, engine_routes: int) -> None:
        """Until cancelled. `engine_routes`: how many the running engine has already."""
        self._table = RouteTable(engine_routes=engine_routes)
        if self._cache is not None and (cached := _cached(self._cache)):
            self._offer(cached)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.source.run(self._offer), name="route-source")
            if self._cache is not None:
                tasks.create_task(self._keep(self._cache), name="route-cache")

    def confirm(self) -> None:
        """Offer the list that holds now a second time, where one waits for that. To be called often."""
        if self._table is None or not self._table.due(time.monotonic()):
            return
        if (current := self.source.current()) is not None:
            self._offer(current)

    def _offer(self, routes: Mapping[RouteKey, str]) -> None:
        table = self._table
        assert table is not None
        held = table.held
        if table.offer(routes, time.monotonic()):
            self._send(table.routes or {}, table.held)
        if table.held > held or table.routes is None:
            _LOG.warning(
                "a list would remove over half of the routes; removals wait for a second one",
                extra={"listed": len(routes), "held": table.held},
            )

    def _send(self, routes: Mapping[RouteKey, str], held: int) -> None:
        self._engine.want("routes", {"routes": _entries(routes)})
        self._changed.set()
        _LOG.info("routes in force", extra={"routes": len(routes), "held": held})

    async def _keep(self, cache: Path) -> None:
        """Write the routes in force to `cache`, in a thread: a slow disk must not hold up the routes."""
        failed = False
        while True:
            await self._changed.wait()
            self._changed.clear()
            assert self._table is not None
            text = json.dumps({"routes": _entries(self._table.routes or {})})
            try:
                await asyncio.to_thread(write_atomic, cache, text)
                failed = False
            except OSError as error:
                if not failed:
                    extra = {"file": str(cache), "error": error.strerror}
                    _LOG.warning(
                        "routes not cached: a restart without the API server finds none", extra=extra
                    )
                failed = True


def _cached(cache: Path) -> Mapping[RouteKey, str] | None:
    if not cache.exists():
        return None
    try:
        return listed(load(cache, RoutesFile))
    except ConfigError as error:
        _LOG.warning("cached routes not used", extra={"error": str(error)})
        return None


def _entries(routes: Mapping[RouteKey, str]) -> list[dict[str, int | str]]:
    return [
        {"cluster": cluster, "ordinal": ordinal, "worker": worker, "address": address}
        for (cluster, ordinal, worker), address in routes.items()
    ]
