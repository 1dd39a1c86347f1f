"""What relays and transceivers follow, against a real API server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.kube.follow import Pace, follow
from voicecluster.common.kube.watched import Object

from tests.integration.operator.apiserver import ApiServer


class Following:
    """Keeps what a follower of the ConfigMaps with label `app=us` is told."""

    def __init__(self, api: KubeApi, namespace: str, pace: Pace) -> None:
        self.names: set[str] | None = None
        self.error: str | None = None
        self._changed = asyncio.Event()
        self.task = asyncio.create_task(
            follow(
                api,
                f"/api/v1/namespaces/{namespace}/configmaps",
                label_selector="app=us",
                on_change=self._take,
                on_error=self._fail,
                pace=pace,
            )
        )

    def _take(self, objects: Mapping[str, Object]) -> None:
        self.names = set(objects)
        self._changed.set()

    def _fail(self, error: str | None) -> None:
        self.error = error
        self._changed.set()

    async def until(self, condition: Callable[["Following"], bool], within_seconds: float = 1.0) -> None:
        async with asyncio.timeout(within_seconds):
            while not condition(self):
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
async def followers() -> AsyncIterator[list[Following]]:
    made: list[Following] = []
    yield made
    for each in made:
        each.task.cancel()
    await asyncio.wait([each.task for each in made])


@pytest.fixture
def api(apiserver: ApiServer, tmp_path: Path) -> KubeApi:
    token = tmp_path / "token"
    token.write_text("admin-token\n")
    return KubeApi(apiserver.url, token, apiserver.ca_file)


async def change(apiserver: ApiServer, namespace: str, method: str, name: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"metadata": {"name": name, "labels": {"app": "us" if name != "foreign" else "them"}}}
    if method == "DELETE":
        await asyncio.to_thread(apiserver.request, "DELETE", f"{path}/{name}")
    else:
        await asyncio.to_thread(apiserver.request, "POST", path, body)


async def test_changes_are_told_within_a_second_over_many_watches_and_one_list(
    apiserver: ApiServer, namespace: str, api: KubeApi, followers: list[Following]
) -> None:
    mark = apiserver.mark()
    await change(apiserver, namespace, "POST", "first")
    followers.append(following := Following(api, namespace, Pace(watch=1)))
    await following.until(lambda it: it.names == {"first"}, 10)
    await change(apiserver, namespace, "POST", "foreign")
    await change(apiserver, namespace, "POST", "second")
    await following.until(lambda it: it.names == {"first", "second"})
    await asyncio.sleep(2.5)  # the server ends a watch or two
    await change(apiserver, namespace, "DELETE", "first")
    await following.until(lambda it: it.names == {"second"})
    verbs = [call.verb for call in apiserver.calls(mark) if call.namespace == namespace]
    assert (verbs.count("list"), verbs.count("watch") >= 2) == (1, True)
    assert following.error is None


async def test_a_refused_follower_says_so_and_goes_on_with_a_good_token(
    apiserver: ApiServer, namespace: str, api: KubeApi, followers: list[Following]
) -> None:
    assert api.token_file is not None
    api.token_file.write_text("stale")
    followers.append(following := Following(api, namespace, Pace(retry_most=0.5)))
    await following.until(lambda it: it.error is not None, 10)
    assert following.error == "the API server says 401: Unauthorized"
    api.token_file.write_text("admin-token")
    await following.until(lambda it: it.names == set() and it.error is None, 10)
