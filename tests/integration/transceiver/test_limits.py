"""The bounds of a call in time: each ends the call, tells why in the log, and leaves nothing."""

import asyncio

import pytest

from tests.integration.transceiver.client import Client, ClientOpener
from tests.integration.transceiver.stack import Stack, StackWriter

LIMITS = {"setupSeconds": 1, "expirySeconds": 2, "callSeconds": 6}


@pytest.fixture
def hasty(new_stack: StackWriter) -> Stack:
    """One region whose limits are short."""
    stack = new_stack(limits=LIMITS)
    stack.start("us-east")
    stack.wait_ready("us-east")
    return stack


async def reason_of_end(stack: Stack, location: str) -> object:
    """Why the call ended, as soon as the log says so."""
    call_id = location.rpartition("/")[2]
    async with asyncio.timeout(20):
        while True:
            for line in stack.log("us-east"):
                if line.get("call_id") == call_id and line["message"] == "call ended":
                    return line["reason"]
            await asyncio.sleep(0.05)


async def place(client: Client) -> str:
    """Make a call of which nothing but the offer is ever heard."""
    headers = {"Authorization": "Bearer test-key", "Content-Type": "application/sdp"}
    url = f"{client.signaling}/v1/realtime/calls?region=us-east"
    async with client.http.post(url, data=await client.offer(), headers=headers) as reply:
        assert reply.status == 201
        return reply.headers["Location"]


async def test_calls_end_when_their_time_is_over(hasty: Stack, client_of: ClientOpener) -> None:
    async with client_of(hasty.signaling) as unheard, client_of(hasty.signaling) as long:
        location = await place(unheard)
        await long.dial(region="us-east")
        warning = await long.event("voicecluster.expiring")
        assert warning["seconds_left"] == LIMITS["callSeconds"] / 4
        assert await reason_of_end(hasty, location) == "dtls failed"
        assert await reason_of_end(hasty, long.location) == "too long"
        assert (await long.ask("GET", "/debug"))[0] == 404


async def test_a_call_whose_client_falls_silent_expires(hasty: Stack, client_of: ClientOpener) -> None:
    async with client_of(hasty.signaling) as client:
        await client.dial(region="us-east")
        hasty.forwarder.close()
        assert await reason_of_end(hasty, client.location) == "expired"
