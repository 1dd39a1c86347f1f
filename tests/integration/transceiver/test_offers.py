"""Each thing that can be wrong with an offer gets 400 and is told which line it is about."""

import aiohttp
import pytest

from tests.integration.transceiver.stack import Stack

OFFER = """v=0
o=- 1 1 IN IP4 127.0.0.1
s=-
t=0 0
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=mid:0
a=sendrecv
a=rtcp-mux
a=ice-ufrag:abcd
a=ice-pwd:0123456789012345678901
a=fingerprint:sha-256 {fingerprint}
a=setup:actpass
a=rtpmap:111 opus/48000/2
""".format(fingerprint=":".join(["AB"] * 32)).replace("\n", "\r\n")


def without(start: str) -> str:
    return "".join(line for line in OFFER.splitlines(keepends=True) if not line.startswith(start))


async def answer_to(stack: Stack, sdp: str) -> tuple[int, dict[str, str]]:
    headers = {"Authorization": "Bearer test-key", "Content-Type": "application/sdp"}
    async with aiohttp.ClientSession() as http:
        url = f"{stack.signaling}/v1/realtime/calls?region=us-east"
        async with http.post(url, data=sdp, headers=headers) as reply:
            return reply.status, (await reply.json())["error"] if reply.status >= 400 else {}


async def test_the_offer_itself_is_good_without_bundle_and_data_channel(stack: Stack) -> None:
    assert await answer_to(stack, OFFER) == (201, {})


@pytest.mark.parametrize(
    ("sdp", "line"),
    [
        pytest.param("hello there", "hello there", id="not SDP"),
        pytest.param('{"type": "offer"}', "", id="JSON"),
        pytest.param(without("m=").split("a=mid")[0], "m=audio", id="no media section"),
        pytest.param(OFFER.replace("m=audio", "m=video"), "m=audio", id="no audio section"),
        pytest.param(OFFER.replace("opus/48000/2", "PCMU/8000"), "m=audio", id="no common codec"),
        pytest.param(without("a=fingerprint"), "a=fingerprint", id="no fingerprint"),
        pytest.param(without("a=ice-ufrag"), "a=ice-ufrag", id="no ufrag"),
        pytest.param(without("a=rtcp-mux"), "a=rtcp-mux", id="no rtcp-mux"),
        pytest.param(OFFER.replace("t=0 0", "t=0 0\r\na=ice-lite"), "a=ice-lite", id="ice-lite"),
    ],
)
async def test_a_bad_offer_gets_400_that_names_the_line(stack: Stack, sdp: str, line: str) -> None:
    status, error = await answer_to(stack, sdp)
    assert status == 400
    assert line in error["message"]
    assert error["param"] == "sdp"
    assert error["type"] == "invalid_request_error"
