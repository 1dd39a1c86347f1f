"""Whole calls: offer, ICE, DTLS, audio and events through processes, as a stock client sees them."""

import socket

import numpy

from tests.integration.transceiver.client import Client, ClientOpener
from tests.integration.transceiver.stack import Stack


async def test_the_echo_agent_is_heard(client: Client) -> None:
    await client.dial(model="echo")
    await client.hear()


async def test_the_only_remote_candidate_is_the_vip(stack: Stack, client: Client) -> None:
    await client.dial()
    host, port = stack.forwarder.vip
    candidates = [line for line in client.answer.splitlines() if line.startswith("a=candidate:")]
    assert [line.split()[4:6] for line in candidates] == [[host, str(port)]]


async def test_the_data_channel_brings_the_session_and_its_updates(client: Client) -> None:
    await client.dial(model="parrot")
    await client.event("session.created")
    client.channel.send('{"type": "session.update", "session": {"type": "realtime", "instructions": "Hi."}}')
    await client.event("session.updated")
    client.channel.send('{"type": "nonsense"}')
    await client.event("error")


async def test_the_parrot_says_back_what_it_heard(
    stack: Stack, client_of: ClientOpener, spoken: numpy.ndarray
) -> None:
    async with client_of(stack.signaling, spoken) as client:
        await client.dial(model="parrot")
        for kind in (
            "session.created",
            "input_audio_buffer.speech_started",
            "input_audio_buffer.speech_stopped",
            "input_audio_buffer.committed",
            "response.created",
            "output_audio_buffer.started",
        ):
            await client.event(kind)
        await client.hear(loudness=300)
        await client.event("response.done")


async def test_hostile_datagrams_harm_no_call(stack: Stack, client: Client) -> None:
    await client.dial()
    hostile = [b"", b"\x00", b"\x80" * 1400, bytes([200]) * 40, b"\x16\xfe\xff" + bytes(20), bytes(1472)]
    media = stack.media[(0, 0)], stack.media[(0, 1)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacking:
        attacking.bind((stack.forwarder.vip[0], 0))
        for _ in range(50):
            for datagram in hostile:
                for target in (*media, stack.forwarder.vip):
                    attacking.sendto(datagram, target)
    while not client.heard.empty():
        client.heard.get_nowait()
    await client.hear()
    _, debug = await client.ask("GET", "/debug")
    assert isinstance(debug, dict)
    assert debug["rtp"]["lost"] == 0


async def test_debug_tells_path_phases_and_quality(stack: Stack, client: Client) -> None:
    await client.dial(region="us-east")
    await client.hear()
    status, debug = await client.ask("GET", "/debug")
    assert status == 200
    assert isinstance(debug, dict)
    assert (debug["region"], debug["transceiver"], debug["ordinal"]) == ("us-east", "us-east-0", 1024)
    assert debug["vip"] == "{}:{}".format(*stack.forwarder.vip)
    assert debug["relay"] == "{}:{}".format(*stack.forwarder.backbone)
    assert debug["client"]
    assert debug["agent"] == "echo"
    assert all(took is not None and took >= 0 for took in debug["phases"].values()), debug["phases"]
    assert debug["rtp"]["received"] > 0
    assert len(debug["path_history"]) >= 1


async def test_another_key_sees_no_call(client: Client) -> None:
    await client.dial()
    for method, tail in (("POST", "/hangup"), ("GET", "/debug"), ("DELETE", "")):
        status, _ = await client.ask(method, tail, key="other-key")
        assert status == 404
    await client.hear()


async def test_hangup_reaches_the_owner_through_any_worker_of_any_region(
    client: Client, other_client: Client
) -> None:
    await client.dial(region="eu-west")
    await other_client.dial(region="us-east")
    # Each request has a connection of its own, so that workers of both regions are met.
    for each in (client, other_client):
        for _ in range(12):
            assert (await each.ask("GET", "/debug"))[0] == 200
        assert (await each.ask("POST", "/hangup"))[0] == 200
        assert (await each.ask("GET", "/debug"))[0] == 404


async def test_calls_of_two_regions_land_on_their_transceivers(
    stack: Stack, client: Client, other_client: Client
) -> None:
    await client.dial(region="eu-west")
    await other_client.dial(region="us-east")
    for each, ordinal in ((client, 0), (other_client, 1024)):
        ufrag = next(line for line in each.answer.splitlines() if line.startswith("a=ice-ufrag:"))
        assert stack.hint.open(ufrag.partition(":")[2]).route.ordinal == ordinal


async def test_a_fragment_with_new_credentials_restarts_ice_and_one_without_does_not(
    client: Client,
) -> None:
    await client.dial()
    headers = {"Content-Type": "application/trickle-ice-sdpfrag"}
    ours = [
        line
        for line in client.peer.localDescription.sdp.splitlines()
        if line.startswith(("a=ice-ufrag:", "a=ice-pwd:"))
    ][:2]
    trickle = "\r\n".join([*ours, "a=end-of-candidates", ""])
    assert await client.ask("PATCH", data=trickle, headers=headers) == (204, "")
    restart = "a=ice-ufrag:fresh\r\na=ice-pwd:0123456789012345678901\r\n"
    status, fragment = await client.ask("PATCH", data=restart, headers=headers)
    assert status == 200
    assert "a=ice-ufrag:" in str(fragment)
    old = next(line for line in client.answer.splitlines() if line.startswith("a=ice-ufrag:"))
    assert old not in str(fragment)
    status, body = await client.ask("PATCH", data="not a fragment", headers=headers)
    assert status == 400
    assert isinstance(body, dict)


async def test_the_clients_close_ends_the_call(client: Client, other_client: Client) -> None:
    await client.dial()
    await client.peer.close()
    status = 200
    while status == 200:
        status, _ = await client.ask("GET", "/debug")
    assert status == 404
