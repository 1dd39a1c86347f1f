"""A transceiver is drained through its admin port: calls go on, new ones are refused, and it can be taken back."""

import asyncio
import contextlib
import json
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
import pytest

from tests.integration.transceiver.client import Client, ClientOpener
from tests.integration.transceiver.stack import AUTHORIZED, Stack, StackWriter, write_stack

REGION = "eu-west"
TOKEN = "drain-token"

Drain = dict[str, object]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One transceiver of two workers that can be drained."""
    directory = tmp_path_factory.mktemp("drain")
    (directory / "token").write_text(f"{TOKEN}\n")
    running = write_stack(directory, drainTokenFile=str(directory / "token"))
    running.forwarder.start()
    try:
        running.start(REGION)
        running.wait_ready(REGION)
        yield running
    finally:
        for region in list(running.processes):
            running.stop(region)
        running.forwarder.close()


@pytest.fixture(autouse=True)
async def served(stack: Stack) -> AsyncIterator[None]:
    """Whatever a test leaves behind, the next one finds a transceiver that takes calls."""
    yield
    if stack.processes:
        await ask(stack, "DELETE")
        await asyncio.to_thread(stack.wait_ready, REGION)


def drain(stack: Stack, method: str, body: object = None, token: str = TOKEN) -> tuple[int, Drain]:
    """One request for `/drain`; the status and the answer, empty where it is no JSON."""
    request = urllib.request.Request(f"{stack.admin[REGION]}/drain", method=method)
    request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as refusal:
        return refusal.code, {}


async def ask(stack: Stack, method: str, *, seconds: float | None = None, token: str = TOKEN) -> Drain:
    """`drain`, repeated while the answer is "ask again" or nobody listens yet."""
    deadline = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
    body = None if deadline is None else {"deadline": deadline.isoformat()}
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                status, answer = await asyncio.to_thread(drain, stack, method, body, token)
                if status == 200:
                    return answer
                assert status == 503, status


async def not_ready_because(stack: Stack, wanted: Callable[[dict[str, str]], bool]) -> None:
    """Wait until `/readyz` is 503 and its reasons are as wanted."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                try:
                    await asyncio.to_thread(urllib.request.urlopen, f"{stack.admin[REGION]}/readyz", None, 2)
                except urllib.error.HTTPError as refusal:
                    if wanted(json.loads(refusal.read())["reasons"]):
                        return


async def place(client: Client) -> int:
    """Offer one more call; the status."""
    headers = {**AUTHORIZED, "Content-Type": "application/sdp"}
    url = f"{client.signaling}/v1/realtime/calls"
    async with client.http.post(url, data=client.peer.localDescription.sdp, headers=headers) as reply:
        return reply.status


async def test_new_calls_are_refused_and_those_there_are_go_on(stack: Stack, client: Client) -> None:
    await client.dial()
    shown = await ask(stack, "PUT", seconds=600)
    assert (shown["state"], shown["calls"]) == ("draining", 1)
    for _ in range(6):  # several connections, so that both workers are asked
        assert await place(client) == 503
    await not_ready_because(stack, lambda reasons: list(reasons) == ["draining"])
    while not client.heard.empty():
        client.heard.get_nowait()
    await client.hear()
    restart = "a=ice-ufrag:fresh\r\na=ice-pwd:0123456789012345678901\r\n"
    headers = {"Content-Type": "application/trickle-ice-sdpfrag"}
    assert (await client.ask("PATCH", data=restart, headers=headers))[0] == 200
    assert (await client.ask("GET", "/debug"))[0] == 200
    assert (await client.ask("POST", "/hangup"))[0] == 200
    async with asyncio.timeout(10):
        while (await ask(stack, "GET"))["calls"] != 0:
            pass


async def test_a_cancelled_drain_takes_calls_again_and_tells_nobody(stack: Stack, client: Client) -> None:
    await client.dial()
    await client.event("session.created")
    await ask(stack, "PUT", seconds=600)
    shown = await ask(stack, "DELETE")
    assert (shown["state"], shown["deadline"], shown["calls"]) == ("serving", None, 1)
    await asyncio.to_thread(stack.wait_ready, REGION)
    assert await place(client) == 201
    await client.hear()
    assert client.events.empty() or "voicecluster.draining" not in {
        client.events.get_nowait()["type"] for _ in range(client.events.qsize())
    }


async def test_clients_are_warned_and_at_the_deadline_their_calls_end(stack: Stack, client: Client) -> None:
    await client.dial()
    await client.event("session.created")
    begun = time.monotonic()
    await ask(stack, "PUT", seconds=3)
    warning = await client.event("voicecluster.draining")
    assert 0 < float(str(warning["seconds_left"])) <= 3
    call_id = client.location.rpartition("/")[2]
    (end,) = await stack.logged(
        REGION, lambda line: line["message"] == "call ended" and line["call_id"] == call_id
    )
    assert end["reason"] == "drained"
    assert 2.5 < time.monotonic() - begun < 10
    assert (await ask(stack, "GET"))["state"] == "draining", "it goes on taking no calls"


async def test_a_restarted_worker_takes_no_calls_either(stack: Stack, client: Client) -> None:
    await client.offer()
    await ask(stack, "PUT", seconds=600)
    started = await stack.logged(REGION, "worker ready", 2)
    for pid in stack.worker_pids(REGION):
        os.kill(pid, signal.SIGKILL)
    await stack.logged(REGION, "worker ready", len(started) + 2)
    await not_ready_because(stack, lambda reasons: list(reasons) == ["draining"])
    for _ in range(6):
        assert await place(client) == 503
    assert (await ask(stack, "GET"))["calls"] == 0


async def test_a_restarted_admin_process_knows_of_the_drain_and_the_calls(
    stack: Stack, client: Client
) -> None:
    await client.dial()
    deadline = (await ask(stack, "PUT", seconds=600))["deadline"]
    children = psutil.Process(stack.processes[REGION].pid).children()
    (admin,) = [child for child in children if child.name() == "admin"]
    admin.kill()
    psutil.wait_procs([admin], timeout=5)
    shown = await ask(stack, "GET")
    assert (shown["state"], shown["deadline"], shown["calls"]) == ("draining", deadline, 1)
    assert float(str(shown["oldestCallSeconds"])) > 0
    await client.hear()


async def test_offers_to_a_drained_transceiver_are_passed_on_to_a_sibling(
    new_stack: StackWriter, client_of: ClientOpener, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    stack = new_stack(drainTokenFile=str(tmp_path / "token"))
    # The other region's transceiver becomes this region's second.
    stack.reconfigure("us-east", region=REGION, ordinal=1)
    directory = json.loads((tmp_path / "directory.json").read_text())
    first, second = directory["regions"]
    first["transceivers"] += [{**second["transceivers"][0], "ordinal": 1}]
    (tmp_path / "directory.json").write_text(json.dumps({"regions": [first]}))
    for region in stack.configs:
        stack.start(region)
    for region in stack.configs:
        stack.wait_ready(region)
    await ask(stack, "PUT", seconds=600)
    async with client_of(stack.signaling) as client:
        await client.offer()
        for _ in range(10):  # all workers of both share the public port: one or another gets it
            assert await place(client) == 201
    assert (await ask(stack, "GET"))["calls"] == 0
    messages = [line["message"] for line in stack.log("us-east")]
    assert messages.count("call answered") == 10


async def test_metrics_say_that_new_calls_are_refused(stack: Stack) -> None:
    def value() -> str:
        with urllib.request.urlopen(f"{stack.admin[REGION]}/metrics", timeout=5) as reply:
            lines = reply.read().decode().splitlines()
        return next(line for line in lines if line.startswith("voicecluster_transceiver_draining"))

    assert await asyncio.to_thread(value) == "voicecluster_transceiver_draining 0"
    await ask(stack, "PUT", seconds=600)
    assert await asyncio.to_thread(value) == "voicecluster_transceiver_draining 1"


def test_nobody_drains_without_the_token(stack: Stack) -> None:
    body = {"deadline": "2030-01-01T00:00:00Z"}
    for method in ("GET", "PUT", "DELETE"):
        assert drain(stack, method, body, token="wrong")[0] == 401
    assert drain(stack, "GET")[1]["state"] == "serving"


def test_a_bad_deadline_changes_nothing(stack: Stack) -> None:
    assert drain(stack, "PUT", {"deadline": "soon"})[0] == 400
    assert drain(stack, "GET")[1]["state"] == "serving"


async def test_a_transceiver_that_is_told_to_end_while_it_drains_ends_after_its_last_call(
    new_stack: StackWriter, client_of: ClientOpener, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    stack = new_stack(drainTokenFile=str(tmp_path / "token"))
    stack.start(REGION)
    stack.wait_ready(REGION)
    async with client_of(stack.signaling) as client:
        await client.dial()
        await client.event("session.created")
        await ask(stack, "PUT", seconds=600)
        stack.processes[REGION].send_signal(signal.SIGTERM)
        await client.event("voicecluster.draining")
        assert (await ask(stack, "DELETE"))["state"] == "draining", "it ends all the same"
        await client.hear()
        assert await place(client) == 503, "the port is served as long as the call lasts"
        assert stack.processes[REGION].poll() is None
        await client.peer.close()
        await asyncio.to_thread(stack.processes[REGION].wait, 5)
    assert stack.processes.pop(REGION).returncode == 0


def test_without_a_token_file_there_is_no_drain_port(new_stack: StackWriter) -> None:
    stack = new_stack()
    stack.start(REGION)
    stack.wait_ready(REGION)
    assert drain(stack, "GET")[0] == 404
