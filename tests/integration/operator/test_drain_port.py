"""The operator's client of the drain port against a real transceiver: both sides of the border at once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
from voicecluster.operator.drain.admin import AdminPorts
from voicecluster.operator.drain.decide import Told
from voicecluster.operator.workloads import Pod

from tests.integration.transceiver.client import open_client
from tests.integration.transceiver.forwarder import HOST
from tests.integration.transceiver.stack import Stack, write_stack

REGION, TOKEN = "eu-west", "drain-token"
POD = Pod(
    name="demo-eu-west-transceiver-0",
    uid="uid",
    node="n1",
    address=HOST,
    running=True,
    ready=True,
    terminating=False,
    revision="new",
)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One transceiver that can be drained."""
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


@pytest.fixture
async def ports(stack: Stack) -> AsyncIterator[AdminPorts]:
    url = urlsplit(stack.admin[REGION])
    assert url.hostname == HOST
    found = AdminPorts(url.port or 0)
    yield found
    await found.close()


async def ask(ports: AdminPorts, token: str = TOKEN) -> Told | None:
    return (await ports.ask([POD], token))[POD.name]


async def reached(ports: AdminPorts, wanted: Told) -> None:
    """Wait until the transceiver says so; a busy one may say nothing at times."""
    async with asyncio.timeout(20):
        while True:
            if await ask(ports) == wanted:
                return
            await asyncio.sleep(0.05)


async def test_a_transceiver_is_drained_and_taken_back(stack: Stack, ports: AdminPorts) -> None:
    await reached(ports, Told(draining=False, calls=0))
    deadline = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    async with open_client(stack.signaling) as client:
        await client.dial()
        await reached(ports, Told(draining=False, calls=1))
        await ports.drain(POD, TOKEN, deadline)
        await reached(ports, Told(draining=True, calls=1, deadline=deadline))
    await reached(ports, Told(draining=True, calls=0, deadline=deadline))
    await ports.cancel(POD, TOKEN)
    await reached(ports, Told(draining=False, calls=0))


async def test_a_wrong_token_tells_nothing(ports: AdminPorts) -> None:
    assert await ask(ports, "wrong") is None
    assert await ports.drain(POD, "wrong", datetime.now(UTC)) is None
    told = await ask(ports)
    assert told is None or not told.draining


async def test_a_pod_that_is_not_there_tells_nothing_within_two_seconds() -> None:
    ports = AdminPorts(1)
    try:
        async with asyncio.timeout(3):
            assert await ask(ports) is None
    finally:
        await ports.close()
