"""A follower and a server over real HTTP: what it hears, and how it goes on when the server does not."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.kube.follow import Pace, follow
from voicecluster.common.kube.watched import Object

from tests.unit.common.kube.server import PATH, FakeApiServer

FAST = Pace(watch=30, retry_first=0.01, retry_most=0.05)


class Follower:
    """Keeps all that it is told; `until` waits for it."""

    def __init__(self, api: KubeApi, pace: Pace = FAST) -> None:
        self.sets: list[Mapping[str, Object]] = []
        self.errors: list[str | None] = []
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(
            follow(
                api,
                PATH,
                label_selector="app=relay",
                on_change=self._change,
                on_error=self._fail,
                pace=pace,
            )
        )

    @property
    def names(self) -> set[str] | None:
        return set(self.sets[-1]) if self.sets else None

    async def until(self, *names: str) -> None:
        async with asyncio.timeout(5):
            while self.names != set(names):
                self._changed.clear()
                await self._changed.wait()

    async def until_error(self, text: str | None) -> None:
        async with asyncio.timeout(5):
            while not self.errors or (self.errors[-1] is None) != (text is None):
                self._changed.clear()
                await self._changed.wait()
        assert text is None or text in str(self.errors[-1])

    def _change(self, objects: Mapping[str, Object]) -> None:
        self.sets.append(objects)
        self._changed.set()

    def _fail(self, error: str | None) -> None:
        self.errors.append(error)
        self._changed.set()

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        assert self.task.cancelled()


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    server = FakeApiServer()
    await server.start()
    await server.put("a")
    yield server
    await server.stop()


@pytest.fixture
async def follower(server: FakeApiServer) -> AsyncIterator[Follower]:
    follower = Follower(KubeApi(server.url))
    await follower.until("a")
    yield follower
    await follower.close()


async def test_changes_come_as_the_whole_set(server: FakeApiServer, follower: Follower) -> None:
    await server.put("b")
    await follower.until("a", "b")
    await server.remove("a")
    await follower.until("b")


async def test_an_empty_collection_is_told_too(server: FakeApiServer) -> None:
    server.things.clear()
    follower = Follower(KubeApi(server.url))
    await follower.until()
    await follower.close()


async def test_selectors_go_with_every_request(server: FakeApiServer, follower: Follower) -> None:
    await server.until_requests(2)
    assert all(request["labelSelector"] == "app=relay" for request in server.requests)


async def test_a_list_comes_in_pages(server: FakeApiServer) -> None:
    server.page_size = 2
    for name in "bcde":
        await server.put(name)
    follower = Follower(KubeApi(server.url))
    await follower.until(*"abcde")
    assert len(follower.sets) == 1
    await follower.close()


async def test_a_dropped_watch_goes_on_where_it_was(server: FakeApiServer, follower: Follower) -> None:
    await server.put("b")
    await follower.until("a", "b")
    await server.drop_watches()
    await server.put("c")
    await follower.until("a", "b", "c")
    assert sum("watch" not in request for request in server.requests) == 1
    assert follower.errors == []


async def test_a_watch_goes_on_from_the_latest_bookmark(server: FakeApiServer, follower: Follower) -> None:
    await server.until_requests(2)
    await server.bookmark()
    await server.put("b")
    await follower.until("a", "b")
    await server.drop_watches()
    await server.until_requests(3)
    assert server.requests[-1]["resourceVersion"] == server.things["b"]["metadata"]["resourceVersion"]


async def test_a_version_that_is_gone_is_listed_anew(server: FakeApiServer, follower: Follower) -> None:
    await server.until_requests(2)
    await server.stop()
    await server.remove("a")
    await server.put("b")
    server.forget()
    await server.start()
    await follower.until("b")


async def test_an_absent_server_changes_nothing_and_is_found_again(
    server: FakeApiServer, follower: Follower
) -> None:
    await server.stop()
    await follower.until_error("no answer")
    assert follower.names == {"a"}
    await server.start()
    await follower.until_error(None)
    await server.put("b")
    await follower.until("a", "b")


async def test_a_server_that_was_never_there_is_found(server: FakeApiServer) -> None:
    await server.stop()
    follower = Follower(KubeApi(server.url))
    await follower.until_error("no answer")
    await server.start()
    await follower.until("a")
    await follower.close()


async def test_a_deaf_server_is_noticed(server: FakeApiServer) -> None:
    server.deaf = True
    follower = Follower(KubeApi(server.url), Pace(watch=0.1, deaf=0.1, retry_first=0.01, retry_most=0.05))
    await server.until_requests(3)  # a list, a watch that says nothing, the next watch
    await server.put("b")
    server.deaf = False
    await follower.until("a", "b")
    await follower.close()


async def test_a_refusal_says_what_to_grant(server: FakeApiServer) -> None:
    server.status = 403
    follower = Follower(KubeApi(server.url))
    await follower.until_error("the API server says 403: not you; grant list and watch with a Role")
    server.status = 200
    await follower.until("a")
    await follower.until_error(None)
    await follower.close()


async def test_a_busy_server_gets_the_time_it_asks_for(server: FakeApiServer) -> None:
    server.status, server.retry_after = 429, "1"
    follower = Follower(KubeApi(server.url), Pace(retry_first=0.01, retry_most=1))
    await server.until_requests(1)
    began = asyncio.get_running_loop().time()
    server.status = 200
    await follower.until("a")
    assert asyncio.get_running_loop().time() - began > 0.9
    await follower.close()


async def test_a_server_that_ends_watches_at_once_is_not_hammered(server: FakeApiServer) -> None:
    server.ends_watches = True
    follower = Follower(KubeApi(server.url), Pace(retry_first=0.2, retry_most=10))
    await follower.until_error("ends watches at once")
    assert len(server.requests) == 2
    await follower.close()


async def test_a_replaced_token_is_used_from_the_next_request_on(
    server: FakeApiServer, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    follower = Follower(KubeApi(server.url, token_file=token))
    await server.until_requests(2)
    token.write_text("second\n")
    await server.drop_watches()
    await server.until_requests(3)
    assert server.tokens == ["Bearer first", "Bearer first", "Bearer second"]
    await follower.close()


async def test_a_missing_token_is_waited_for(server: FakeApiServer, tmp_path: Path) -> None:
    follower = Follower(KubeApi(server.url, token_file=tmp_path / "token"))
    await follower.until_error("No such file")
    (tmp_path / "token").write_text("late")
    await follower.until("a")
    await follower.close()
