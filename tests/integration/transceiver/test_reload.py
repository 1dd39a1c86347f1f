"""A new configuration file takes effect on real processes without a restart, a bad one not at all."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from tests.integration.transceiver.client import Client, ClientOpener
from tests.integration.transceiver.stack import AUTHORIZED, Stack, StackWriter, write_stack

REGION = "us-east"
"""One worker."""
CALLS = "/v1/realtime/calls"
SOON_SECONDS = 10.0


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One transceiver of one worker."""
    running = write_stack(tmp_path_factory.mktemp("reload"))
    running.forwarder.start()
    try:
        running.start(REGION)
        running.wait_ready(REGION)
        yield running
    finally:
        running.stop(REGION)
        running.forwarder.close()


@pytest.fixture(autouse=True)
def restored(stack: Stack) -> Iterator[None]:
    """Each test changes the same file; what it sees in the end is all that file says."""
    content = stack.configs[REGION].read_text()
    yield
    stack.configs[REGION].write_text(content)


def count(stack: Stack, wanted: Callable[[dict[str, object]], bool]) -> int:
    """How many such lines its log has."""
    return sum(map(wanted, stack.log(REGION)))


def is_refusal(line: dict[str, object]) -> bool:
    return "refused" in str(line["message"])


def is_loading(line: dict[str, object]) -> bool:
    return line["message"] == "configuration loaded"


def is_waiting(line: dict[str, object]) -> bool:
    return line["message"] == "these fields wait for a restart"


@pytest.fixture
async def caller(stack: Stack, client_of: ClientOpener) -> AsyncIterator[Client]:
    """A client with an offer, which it places again and again."""
    async with client_of(stack.signaling) as client:
        await client.offer()
        yield client


async def place(client: Client, **headers: str) -> tuple[int, str, "aiohttp.typedefs.CIMultiDictProxy[str]"]:
    """Offer a call and hang it up; status, answer and headers."""
    sent = {**AUTHORIZED, "Content-Type": "application/sdp", **headers}
    url = f"{client.signaling}{CALLS}?region={REGION}"
    async with client.http.post(url, data=client.peer.localDescription.sdp, headers=sent) as reply:
        answer = await reply.text()
    if reply.status == 201:
        async with client.http.delete(f"{client.signaling}{reply.headers['Location']}", headers=sent):
            pass
    return reply.status, answer, reply.headers


async def soon(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait until it holds."""
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            if await condition():
                return
            await asyncio.sleep(0.02)


async def is_lite(client: Client) -> bool:
    status, answer, _ = await place(client)
    return status == 201 and "a=ice-lite" in answer


async def is_full(client: Client) -> bool:
    status, answer, _ = await place(client)
    return status == 201 and "a=ice-lite" not in answer


async def test_new_answers_follow_the_ice_mode(stack: Stack, caller: Client) -> None:
    stack.reconfigure(REGION, iceMode="Lite")
    await soon(lambda: is_lite(caller))
    stack.reconfigure(REGION, iceMode="Full")
    await soon(lambda: is_full(caller))


async def test_new_limits_hold_for_new_calls_and_offers(stack: Stack, client: Client, caller: Client) -> None:
    await client.dial(region=REGION)
    stack.reconfigure(REGION, limits={"callsPerWorker": 1})

    async def has_no_room() -> bool:
        return (await place(caller))[0] == 503

    await soon(has_no_room)
    await client.hear()
    stack.reconfigure(REGION, limits={"sdpBytes": 1024})

    async def is_too_large() -> bool:
        return (await place(caller))[0] == 413

    assert len(caller.peer.localDescription.sdp) > 1024
    await soon(is_too_large)


async def test_new_calls_are_answered_by_the_new_default_agent(stack: Stack, client: Client) -> None:
    before = count(stack, lambda line: line.get("agent") == "echo")
    stack.reconfigure(REGION, defaultAgent="echo")
    await client.offer()

    async def is_echo() -> bool:
        await place(client)
        return count(stack, lambda line: line.get("agent") == "echo") > before

    await soon(is_echo)


async def test_new_origins_may_call(stack: Stack, caller: Client) -> None:
    stack.reconfigure(REGION, corsOrigins=["https://ours.example"])

    async def is_ours_only() -> bool:
        _, _, stranger = await place(caller, Origin="https://theirs.example")
        _, _, ours = await place(caller, Origin="https://ours.example")
        allowed = "Access-Control-Allow-Origin"
        return allowed not in stranger and ours[allowed] == "https://ours.example"

    await soon(is_ours_only)


async def test_another_directory_of_keys_replaces_the_keys_and_is_followed(
    stack: Stack, caller: Client, tmp_path: Path
) -> None:
    directory = tmp_path / "new-keys"
    await asyncio.to_thread(directory.mkdir)
    await asyncio.to_thread((directory / "new").write_text, "new-key")
    stack.reconfigure(REGION, auth={"apiKeysDir": str(directory)})

    async def is_known(key: str) -> bool:
        return (await place(caller, Authorization=f"Bearer {key}"))[0] == 201

    async def is_replaced() -> bool:
        return await is_known("new-key") and not await is_known("test-key")

    await soon(is_replaced)
    await asyncio.to_thread((directory / "later").write_text, "later-key")

    async def is_later_known() -> bool:
        return await is_known("later-key")

    await soon(is_later_known)


async def test_callers_may_need_no_key_any_more_and_need_one_again(
    stack: Stack, caller: Client, tmp_path: Path
) -> None:
    async def needs_a_key() -> bool:
        return (await place(caller, Authorization=""))[0] == 401

    async def needs_none() -> bool:
        return (await place(caller, Authorization=""))[0] == 201

    await soon(needs_a_key)
    stack.reconfigure(REGION, auth={"mode": "None"})
    await soon(needs_none)
    stack.reconfigure(REGION, auth={"mode": "APIKey", "apiKeysDir": str(stack.directory / "api-keys")})
    await soon(needs_a_key)


async def test_the_log_falls_silent_at_a_higher_level(stack: Stack, caller: Client) -> None:
    stack.reconfigure(REGION, logLevel="error")

    async def is_silent() -> bool:
        before = len(stack.log(REGION))
        await place(caller)
        return len(stack.log(REGION)) == before

    async def speaks() -> bool:
        return not await is_silent()

    await soon(is_silent)
    stack.reconfigure(REGION, logLevel="info")
    await soon(speaks)


@pytest.mark.parametrize(
    "changes",
    [{"iceMode": "Half"}, {"regoin": "x"}, {"defaultAgent": "cuckoo"}, {"auth": {"apiKeysDir": "/nowhere"}}],
)
async def test_a_bad_file_changes_nothing_and_is_told(
    stack: Stack, caller: Client, changes: dict[str, object]
) -> None:
    stack.reconfigure(REGION, iceMode="Lite")
    await soon(lambda: is_lite(caller))
    before, good = count(stack, is_refusal), json.loads(stack.configs[REGION].read_text())
    stack.reconfigure(REGION, **{"iceMode": "Full", **changes})
    await stack.logged(REGION, is_refusal, before + 2)  # the worker and the admin process
    assert await is_lite(caller)
    stack.configs[REGION].write_text(json.dumps(good | {"iceMode": "Full"}))
    await soon(lambda: is_full(caller))


async def test_workers_and_ports_wait_for_a_restart_and_one_line_says_so(
    stack: Stack, caller: Client
) -> None:
    stack.reconfigure(REGION, iceMode="Lite")
    await soon(lambda: is_lite(caller))
    pids, before = stack.worker_pids(REGION), count(stack, is_waiting)
    stack.reconfigure(REGION, workers=3, internalPort=1, iceMode="Full")
    await soon(lambda: is_full(caller))
    line = (await stack.logged(REGION, is_waiting, before + 1))[-1]
    assert (line["level"], line["fields"]) == ("WARNING", ["workers", "internalPort"])
    assert stack.worker_pids(REGION) == pids
    assert count(stack, is_waiting) == before + 1


async def test_a_worker_that_starts_while_the_file_is_bad_has_the_last_good_one(
    stack: Stack, caller: Client
) -> None:
    stack.reconfigure(REGION, iceMode="Lite")
    await soon(lambda: is_lite(caller))
    loaded, refused = count(stack, is_loading), count(stack, is_refusal)
    stack.reconfigure(REGION, iceMode="Full")
    await stack.logged(REGION, is_loading, loaded + 1)
    await soon(lambda: is_full(caller))
    stack.reconfigure(REGION, regoin="x")
    await stack.logged(REGION, is_refusal, refused + 2)
    (pid,) = stack.worker_pids(REGION)
    os.kill(pid, signal.SIGKILL)

    async def is_full_again() -> bool:
        try:
            return await is_full(caller)
        except aiohttp.ClientError:  # nobody listens for a moment
            return False

    await soon(is_full_again)
    assert stack.worker_pids(REGION) != [pid]


async def test_a_signal_waits_for_calls_as_long_as_the_newest_file_says(
    new_stack: StackWriter, client_of: ClientOpener
) -> None:
    stack = new_stack()
    stack.start(REGION)
    stack.wait_ready(REGION)
    async with client_of(stack.signaling) as client:
        await client.dial(region=REGION)
        await client.event("session.created")
        stack.reconfigure(REGION, limits={"drainTimeoutSeconds": 1})
        stack.processes[REGION].send_signal(signal.SIGTERM)
        warning = await client.event("voicecluster.draining")
        assert warning["seconds_left"] == 1
        await asyncio.to_thread(stack.processes[REGION].wait, 5)
    assert stack.processes.pop(REGION).returncode == 0
