"""The link brings an engine to the wanted state and back there after any trouble."""

import asyncio
from collections.abc import AsyncIterator
from typing import Protocol

import pytest
from voicecluster.relay.engine import EngineGone, EngineLink, EngineRefused


class Engine(Protocol):
    """What the tests use of the fake engine in conftest."""

    requests: list[str]
    held: dict[str, dict[str, object]]
    refuse: dict[str, str]
    mute: bool
    garbage: bool

    async def start(self) -> None: ...
    async def die(self) -> None: ...
    async def until(self, condition: object) -> None: ...


@pytest.fixture
async def link(fake_engine) -> AsyncIterator[EngineLink]:
    link = EngineLink(fake_engine.socket, request_seconds=0.3)
    running = asyncio.create_task(link.run())
    link.want("keys", {"clusters": {}})
    link.want("configure", {"workers": 1})
    await fake_engine.until(lambda: "keys" in fake_engine.held)
    yield link
    running.cancel()
    await asyncio.wait([running])
    assert not link.connected


async def settled(link: EngineLink) -> None:
    async with asyncio.timeout(5):
        while True:
            if link.has("configure"):
                return
            await asyncio.sleep(0.01)


async def test_the_configuration_goes_first(fake_engine: Engine, link: EngineLink) -> None:
    assert fake_engine.requests[:2] == ["configure", "keys"]


async def test_a_newer_snapshot_is_sent_at_once(fake_engine: Engine, link: EngineLink) -> None:
    link.want("routes", {"routes": []})
    await fake_engine.until(lambda: fake_engine.held.get("routes") == {"routes": []})


async def test_a_newer_snapshot_on_its_way_takes_nothing_back(fake_engine: Engine, link: EngineLink) -> None:
    await settled(link)
    link.want("configure", {"workers": 2})
    assert link.has("configure")
    fake_engine.refuse["configure"] = "restart needed"
    link.want("configure", {"workers": 3})
    await fake_engine.until(lambda: fake_engine.requests.count("configure") > 1)
    assert link.has("configure")


async def test_a_restarted_engine_gets_everything_again(fake_engine: Engine, link: EngineLink) -> None:
    await fake_engine.die()
    link.want("routes", {"routes": []})
    await fake_engine.start()
    await fake_engine.until(lambda: len(fake_engine.held) == 3)
    assert fake_engine.requests[-3:] == ["configure", "routes", "keys"]


async def test_without_an_engine_requests_fail_at_once(fake_engine: Engine, link: EngineLink) -> None:
    await fake_engine.die()
    with pytest.raises(EngineGone):
        await link.request("stats")
    assert not link.has("configure")


async def test_a_silent_engine_is_given_up_and_tried_again(fake_engine: Engine, link: EngineLink) -> None:
    fake_engine.mute = True
    with pytest.raises(EngineGone):
        await link.request("stats")
    fake_engine.mute = False
    await settled(link)
    assert (await link.request("ping"))["alive"] is True


async def test_nonsense_is_given_up_and_tried_again(fake_engine: Engine, link: EngineLink) -> None:
    fake_engine.garbage = True
    with pytest.raises(EngineGone):
        await link.request("stats")
    fake_engine.garbage = False
    await settled(link)


async def test_a_refusal_is_kept_with_its_reason(fake_engine: Engine, link: EngineLink) -> None:
    fake_engine.refuse["routes"] = "too many"
    link.want("routes", {"routes": []})
    await fake_engine.until(lambda: "routes" in fake_engine.requests)
    with pytest.raises(EngineRefused, match="too many"):
        await link.request("routes", {"routes": []})
    assert link.refused == {"routes": "too many"}
    assert not link.has("routes")


async def test_requests_at_once_each_get_their_own_reply(fake_engine: Engine, link: EngineLink) -> None:
    await settled(link)
    replies = await asyncio.gather(*(link.request(op) for op in ("stats", "ping", "stats")))
    assert ["alive" in reply for reply in replies] == [False, True, False]
