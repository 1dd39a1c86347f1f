"""VIPs from the API server: a changed ConfigMap is in the next answers, and its absence changes nothing."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from tests.integration.transceiver.client import Client, ClientOpener
from tests.integration.transceiver.stack import AUTHORIZED, Stack, write_stack
from tests.unit.common.kube.server import FakeApiServer

REGION = "us-east"
CONFIG_MAP = "voice-vips"
PATH = "/api/v1/namespaces/voice/configmaps"
SEEDED = "192.0.2.1"


def vips(*addresses: str, nodes: bool = False) -> str:
    """The ConfigMap's entry."""
    found = [
        f"{{address: '{address}', port: 3478{f', node: node-{n}' if nodes else ''}}}"
        for n, address in enumerate(addresses)
    ]
    return f"regions: {{{REGION}: [{', '.join(found)}]}}\n"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api() -> AsyncIterator[FakeApiServer]:
    server = FakeApiServer(PATH)
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory, api: FakeApiServer) -> AsyncIterator[Stack]:
    """A transceiver that keeps its VIPs by watch."""
    running = write(tmp_path_factory.mktemp("vips"), api)
    await asyncio.to_thread(running.start, REGION)
    await asyncio.to_thread(running.wait_ready, REGION)
    yield running
    await asyncio.to_thread(end, running)


def write(directory: Path, api: FakeApiServer) -> Stack:
    """A stack that is not started; what is mounted for it says SEEDED."""
    seed, ours = directory / "mounted" / "vips.yaml", str(directory / "ours.yaml")
    seed.parent.mkdir()
    seed.write_text(vips(SEEDED))
    watch = {"file": ours, "seed": str(seed), "namespace": "voice", "configMap": CONFIG_MAP}
    stack = write_stack(directory, vipsFile=ours, vipsWatch=watch)
    stack.environment["KUBE_API_URL"] = api.url
    stack.forwarder.start()
    return stack


def end(stack: Stack) -> None:
    """Stop whatever runs of it."""
    for region in list(stack.processes):
        stack.stop(region)
    stack.forwarder.close()


@pytest_asyncio.fixture(loop_scope="module")
async def caller(stack: Stack, client_of: ClientOpener) -> AsyncIterator[Client]:
    """A client with an offer, which it places again and again."""
    async with client_of(stack.signaling) as client:
        await client.offer()
        yield client


def named(sdp: str) -> list[str]:
    """The addresses of its candidates."""
    return [line.split()[4] for line in sdp.splitlines() if line.startswith("a=candidate:")]


async def place(client: Client) -> list[str]:
    """Offer a call; the addresses that its answer names."""
    headers = {**AUTHORIZED, "Content-Type": "application/sdp"}
    url = f"{client.signaling}/v1/realtime/calls?region={REGION}"
    async with client.http.post(url, data=client.peer.localDescription.sdp, headers=headers) as reply:
        assert reply.status == 201
        client.location = reply.headers["Location"]
        return named(await reply.text())


async def until_named(client: Client, wanted: Callable[[list[str]], bool], seconds: float = 5) -> float:
    """Place calls until an answer is as wanted; how long that took."""
    begun = time.monotonic()
    async with asyncio.timeout(seconds):
        while True:
            if wanted(await place(client)):
                return time.monotonic() - begun
            await asyncio.sleep(0.02)


async def test_a_changed_config_map_is_in_new_answers_within_seconds(
    api: FakeApiServer, caller: Client
) -> None:
    for address in ("192.0.2.2", "192.0.2.3"):
        await api.put(CONFIG_MAP, data={"vips.yaml": vips(address)})
        assert await until_named(caller, lambda found, address=address: found == [address]) < 5
    assert all(request["fieldSelector"] == f"metadata.name={CONFIG_MAP}" for request in api.requests)


async def test_an_ice_restart_names_the_vips_of_now(api: FakeApiServer, caller: Client) -> None:
    await api.put(CONFIG_MAP, data={"vips.yaml": vips("192.0.2.9")})
    await until_named(caller, lambda found: found == ["192.0.2.9"])
    location = caller.location
    await api.put(CONFIG_MAP, data={"vips.yaml": vips("192.0.2.2")})
    await until_named(caller, lambda found: found == ["192.0.2.2"])
    caller.location = location
    restart = "a=ice-ufrag:fresh\r\na=ice-pwd:0123456789012345678901\r\n"
    headers = {"Content-Type": "application/trickle-ice-sdpfrag"}
    status, fragment = await caller.ask("PATCH", data=restart, headers=headers)
    assert (status, named(str(fragment))) == (200, ["192.0.2.2"])


async def test_answers_name_two_of_the_nodes(api: FakeApiServer, caller: Client) -> None:
    addresses = [f"192.0.2.{n}" for n in range(10, 15)]
    await api.put(CONFIG_MAP, data={"vips.yaml": vips(*addresses, nodes=True)})
    await until_named(caller, lambda found: len(found) == 2)
    answers = [await place(caller) for _ in range(20)]
    assert all(len(set(found)) == 2 for found in answers)
    assert {address for found in answers for address in found} == set(addresses)


async def test_nothing_empty_invalid_or_deleted_replaces_the_vips(
    stack: Stack, api: FakeApiServer, caller: Client
) -> None:
    await api.put(CONFIG_MAP, data={"vips.yaml": vips("192.0.2.4")})
    await until_named(caller, lambda found: found == ["192.0.2.4"])
    await api.put(CONFIG_MAP, data={"vips.yaml": "regions: {}"})
    await stack.logged(REGION, "VIPs refused, those before stay")
    await api.put(CONFIG_MAP, data={"vips.yaml": "regions: ["})
    await api.remove(CONFIG_MAP)
    assert await place(caller) == ["192.0.2.4"]
    await api.put(CONFIG_MAP, data={"vips.yaml": vips("192.0.2.2")})
    await until_named(caller, lambda found: found == ["192.0.2.2"])


async def test_an_absent_api_server_changes_nothing_and_is_followed_when_it_is_back(
    api: FakeApiServer, stack: Stack, caller: Client
) -> None:
    await api.put(CONFIG_MAP, data={"vips.yaml": vips("192.0.2.2")})
    await until_named(caller, lambda found: found == ["192.0.2.2"])
    await api.stop()
    await stack.logged(REGION, "the API server cannot be followed; the last state is kept")
    assert await place(caller) == ["192.0.2.2"]
    await asyncio.to_thread(stack.wait_ready, REGION)
    await api.start()
    await api.put(CONFIG_MAP, data={"vips.yaml": vips("192.0.2.3")})
    await until_named(caller, lambda found: found == ["192.0.2.3"], seconds=20)


async def test_a_transceiver_starts_without_an_api_server_and_then_with_what_it_kept(
    client_of: ClientOpener, tmp_path: Path
) -> None:
    api = FakeApiServer(PATH)
    await api.start()
    await api.stop()
    stack = await asyncio.to_thread(write, tmp_path, api)
    try:
        async with client_of(stack.signaling) as caller:
            await caller.offer()
            await asyncio.to_thread(stack.start, REGION)
            await asyncio.to_thread(stack.wait_ready, REGION)
            assert await place(caller) == [SEEDED]
            await api.start()
            await api.put(CONFIG_MAP, data={"vips.yaml": vips("192.0.2.2")})
            await until_named(caller, lambda found: found == ["192.0.2.2"], seconds=20)
            await api.stop()
            await asyncio.to_thread(stack.stop, REGION)
            await asyncio.to_thread(stack.start, REGION)
            await asyncio.to_thread(stack.wait_ready, REGION)
            assert await place(caller) == ["192.0.2.2"], "what it kept, not what is mounted"
    finally:
        await asyncio.to_thread(end, stack)
