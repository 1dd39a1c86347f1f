"""Lists on their way to the engine, and the cache beside it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from voicecluster.common.config.model import ConfigError, load
from voicecluster.common.config.relay import RoutesFile
from voicecluster.relay import routing
from voicecluster.relay.engine import EngineLink
from voicecluster.relay.routes import RouteKey
from voicecluster.relay.routing import Routing
from voicecluster.relay.sources import listed

Routes = Mapping[RouteKey, str]


def routes(*ordinals: int, host: str = "10.0.0.1") -> dict[RouteKey, str]:
    return {(7, ordinal, 0): f"{host}:4{ordinal:04}" for ordinal in ordinals}


class FakeSource:
    """Says what the test tells it to."""

    def __init__(self) -> None:
        self.error: str | None = None
        self.now: Routes | None = None
        self.tell: Callable[[Routes], None] | None = None

    def current(self) -> Routes | None:
        return self.now

    async def run(self, on_list: Callable[[Routes], None]) -> None:
        self.tell = on_list
        await asyncio.Event().wait()


class Sent(EngineLink):
    """An engine's link that keeps what it is to send."""

    def __init__(self) -> None:
        super().__init__(Path("/none"))
        self.routes: list[Routes] = []

    def want(self, snapshot: str, payload: Mapping[str, object]) -> None:  # type: ignore[override]
        assert snapshot == "routes"
        entries = payload["routes"]
        assert isinstance(entries, list)
        self.routes.append(
            {(entry["cluster"], entry["ordinal"], entry["worker"]): entry["address"] for entry in entries}
        )


@asynccontextmanager
async def running(
    cache: Path | None = None, engine_routes: int = 0
) -> AsyncIterator[tuple[Routing, FakeSource, Sent]]:
    source, sent = FakeSource(), Sent()
    keeper = Routing(sent, source, cache=cache)
    task = asyncio.create_task(keeper.run(engine_routes=engine_routes))
    while source.tell is None:  # noqa: ASYNC110 - two turns of the loop
        await asyncio.sleep(0)
    yield keeper, source, sent
    task.cancel()
    await asyncio.wait([task])


async def cached(path: Path, count: int) -> Routes:
    """The cache's routes once it has `count` of them."""
    async with asyncio.timeout(5):
        while True:
            with suppress(ConfigError):
                found = listed(load(path, RoutesFile))
                if len(found) == count:
                    return found
            await asyncio.sleep(0.01)


async def test_routes_in_force_are_cached(tmp_path: Path) -> None:
    cache = tmp_path / "routes.json"
    async with running(cache) as (_, source, sent):
        source.tell(routes(1, 2))
        assert await cached(cache, 2) == routes(1, 2) == sent.routes[-1]
        source.tell(routes(1, 2, 3))
        assert await cached(cache, 3) == routes(1, 2, 3)


async def test_cached_routes_are_in_force_before_a_first_list_and_it_replaces_them(tmp_path: Path) -> None:
    cache = tmp_path / "routes.json"
    async with running(cache) as (_, source, _):
        source.tell(routes(1, 2))
        await cached(cache, 2)
    async with running(cache) as (_, source, sent):
        assert sent.routes == [routes(1, 2)]
        source.tell(routes(1, 2, host="10.0.0.9"))
        assert sent.routes[-1] == routes(1, 2, host="10.0.0.9")


async def test_a_first_list_that_lacks_most_of_the_cached_routes_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "routes.json"
    async with running(cache) as (_, source, _):
        source.tell(routes(1, 2, 3))
        await cached(cache, 3)
    clock = [100.0]
    monkeypatch.setattr(routing.time, "monotonic", lambda: clock[0])
    async with running(cache) as (keeper, source, sent):
        source.tell(routes(1))
        assert (sent.routes[-1], keeper.held) == (routes(1, 2, 3), 2)
        clock[0] += 31
        keeper.confirm()  # nobody can say now
        assert sent.routes[-1] == routes(1, 2, 3)
        source.now = routes(1)
        keeper.confirm()
        assert (sent.routes[-1], keeper.held) == (routes(1), 0)


@pytest.mark.parametrize("content", ["", "routes: [{]", json.dumps({"routes": []})])
async def test_a_useless_cache_is_as_none(tmp_path: Path, content: str) -> None:
    cache = tmp_path / "routes.json"
    cache.write_text(content)
    async with running(cache) as (_, source, sent):
        assert sent.routes == []
        source.tell(routes(1))
        assert sent.routes == [routes(1)]


async def test_a_cache_that_cannot_be_written_is_reported_once_and_costs_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path / "absent" / "routes.json") as (_, source, sent):
        for ordinal in (1, 2):
            source.tell(routes(*range(ordinal)))
            await asyncio.sleep(0.1)  # the attempt is in a thread of its own
        assert len(sent.routes) == 2
    assert sum("routes not cached" in record.message for record in caplog.records) == 1
