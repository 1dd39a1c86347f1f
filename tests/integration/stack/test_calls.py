"""Calls through a whole stack: to the region that was asked for, from any worker, and past kills."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import aiohttp
import pytest
from aiortc import RTCPeerConnection, RTCSessionDescription

from tests.integration.stack.stacks import (
    ONE_REGION,
    START_SECONDS,
    VICTIMS,
    Stack,
    end,
    json_of,
    start,
    within,
)

ANY_WORKER_REQUESTS = 24
"""Fresh connections are spread over all workers; that so many miss a region is a matter of one in millions."""


@pytest.fixture
def ready(example: Stack) -> Stack:
    """The example's stack with nothing missing."""

    def complete() -> bool:
        seen = example.look()
        return seen is not None and seen.ready

    within(START_SECONDS, complete)
    return example


@dataclass
class Placed:
    """A call that was answered."""

    call_id: str
    answer: str

    @property
    def ufrag(self) -> str:
        found = re.search(r"^a=ice-ufrag:(\S+)", self.answer, re.MULTILINE)
        assert found is not None
        return found[1]

    @property
    def candidates(self) -> set[str]:
        found = re.findall(r"^a=candidate:\S+ 1 udp \d+ (\S+) (\d+) ", self.answer, re.MULTILINE)
        return {f"{ip}:{port}" for ip, port in found}


@contextlib.asynccontextmanager
async def fresh() -> AsyncIterator[aiohttp.ClientSession]:
    """A session that opens a connection for every request, so that any worker may get it."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        yield session


async def place(session: aiohttp.ClientSession, url: str, region: str) -> tuple[Placed, RTCPeerConnection]:
    peer = RTCPeerConnection()
    peer.addTransceiver("audio")
    peer.createDataChannel("oai-events")
    await peer.setLocalDescription(await peer.createOffer())
    headers = {"Content-Type": "application/sdp", "X-Voice-Region": region}
    offer = peer.localDescription.sdp
    async with session.post(f"{url}/v1/realtime/calls?model=echo", data=offer, headers=headers) as reply:
        answer = await reply.text()
        assert reply.status == 201, answer
        placed = Placed(reply.headers["Location"].rpartition("/")[2], answer)
    await peer.setRemoteDescription(RTCSessionDescription(sdp=answer, type="answer"))
    return placed, peer


async def test_calls_of_two_regions_are_owned_by_their_regions_and_served_by_any_worker(ready: Stack) -> None:
    url = "http://127.0.106.1:8080"
    vips = {"eu-west": "127.0.106.1:3478", "us-east": "127.0.106.2:3478"}
    async with fresh() as session:
        placed = {region: await place(session, url, region) for region in vips}
        try:
            for region, (call, _) in placed.items():
                assert call.candidates == {vips[region]}
                for hint in (call.ufrag, call.call_id):
                    told = json_of(await asyncio.to_thread(ready.run, "decode", hint, "--json"))
                    assert told["region"] == region
                await _any_worker_knows(session, f"{url}/v1/realtime/calls/{call.call_id}", region)
            for call, _ in placed.values():
                async with session.post(f"{url}/v1/realtime/calls/{call.call_id}/hangup") as reply:
                    assert reply.status == 200
                async with session.get(f"{url}/v1/realtime/calls/{call.call_id}/debug") as reply:
                    assert reply.status == 404
        finally:
            for _, peer in placed.values():
                await peer.close()


async def _any_worker_knows(session: aiohttp.ClientSession, call: str, region: str) -> None:
    for _ in range(ANY_WORKER_REQUESTS):
        async with session.get(f"{call}/debug") as reply:
            assert reply.status == 200
            assert (await reply.json())["region"] == region


@pytest.fixture(scope="module")
def dual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One relay that serves a VIP of each family."""
    home = tmp_path_factory.mktemp("dual")
    file = home / "dual.yaml"
    text = ONE_REGION.replace("[127.0.106.9]", "[127.0.106.7, '::1']").replace(
        "clusterId: 9", "clusterId: 9\n  signaling: {auth: {mode: None}}"
    )
    file.write_text(text, encoding="utf-8")
    stack = start(home, file, "--signaling", "127.0.106.7:8080", "--internal", "127.0.109.0/24")
    yield stack
    end(stack)


@pytest.mark.parametrize(
    ("options", "vip"),
    [
        pytest.param(["--ip", "4"], "127.0.106.7:3478", id="IPv4"),
        pytest.param(["--ip", "6"], "[::1]:3478", id="IPv6"),
        pytest.param(["--rsa"], None, id="RSA certificate"),
    ],
)
def test_a_call_of_either_family_and_with_either_certificate_is_heard_through_one_relay(
    dual: Stack, options: list[str], vip: str | None
) -> None:
    report = json_of(dual.run("call", "http://127.0.106.7:8080", "--json", "--seconds", "3", *options))
    assert report["ok"] is True, report
    assert vip is None or report["selected"] == vip


@pytest.mark.parametrize(("victim", "lost"), [("relay control plane", 0), ("relay engine", 250)])
async def test_a_call_outlives_what_is_killed_in_its_relay(ready: Stack, victim: str, lost: int) -> None:
    """Killing the control plane is inaudible. After an engine the next check of the caller brings the flow back;
    until then, at most 2.5 s and the engine's return, packets are lost in both directions."""
    command = (sys.executable, "-m", "voicecluster.cli.main", "call", "http://127.0.106.1:8080", "--json")
    options = ("--region", "us-east", "--seconds", "10")
    call = await asyncio.create_subprocess_exec(
        *command, *options, env=ready.environment, stdout=asyncio.subprocess.PIPE
    )
    try:
        await _flow_confirmed(ready)
        seen = await asyncio.to_thread(ready.look)
        assert seen is not None
        killed = VICTIMS[victim](seen)
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
    except BaseException:
        call.kill()
        raise
    printed, _ = await call.communicate()
    report = json.loads(printed)
    assert (call.returncode, report["ok"], report["ended_early"]) == (0, True, None), report
    assert report["packets_sent"] - report["packets_received"] <= lost + 10, report


async def _flow_confirmed(stack: Stack) -> None:
    """Return when the relay of us-east carries a call."""
    status = stack.directory.running()
    assert status is not None
    admin = next(one.admin for one in status.processes if one.name == "us-east-relay")
    async with asyncio.timeout(15), fresh() as session:
        while True:
            async with session.get(f"http://{admin}/metrics") as reply:
                if re.search(r'relay_flows\{state="confirmed"\} [1-9]', await reply.text()):
                    return
            await asyncio.sleep(0.05)
