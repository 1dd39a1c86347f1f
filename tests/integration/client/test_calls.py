"""The client against stock aiortc: a peer that shares no code with it."""

import asyncio
import importlib.util
import socket
import sys
from pathlib import Path

import pytest
from aiortc import RTCPeerConnection
from voicecluster.cli.client.audio import speech
from voicecluster.cli.client.dial import CallPlan, dial, place_call
from voicecluster.cli.client.dtls import Identity
from voicecluster.cli.client.errors import CallError
from voicecluster.cli.client.load import Load, LoadPlan
from voicecluster.cli.client.pacer import Pacer
from voicecluster.cli.client.session import CallSession, SessionState
from voicecluster.cli.client.signaling import Signaling

_spec = importlib.util.spec_from_file_location("stock", Path(__file__).with_name("stock.py"))
assert _spec is not None
assert _spec.loader is not None
stock = importlib.util.module_from_spec(_spec)
sys.modules["stock"] = stock
_spec.loader.exec_module(stock)


def plan(url: str, *, key: str | None = None, seconds: float = 2.0) -> CallPlan:
    return CallPlan(url=url, key=key, model="echo", region=None, seconds=seconds)


async def up(connection: RTCPeerConnection) -> None:
    """Wait until the server's side is connected too."""
    connected = asyncio.Event()

    @connection.on("connectionstatechange")
    def _() -> None:
        if connection.connectionState == "connected":
            connected.set()

    if connection.connectionState != "connected":
        await connected.wait()


async def first_audio(session: CallSession) -> None:
    """Wait for the first packet of audio that comes from now on."""
    heard = asyncio.Event()
    assert session.stream is not None
    session.stream.on_payload = lambda arrival, timestamp, payload: heard.set()
    await heard.wait()


async def test_a_call_hears_its_own_sound_again_and_hangs_up() -> None:
    async with stock.stock_server() as (url, calls):
        report = await place_call(plan(url))
        assert report["ok"], report
        assert report["lost"] == 0
        assert report["ended_early"] is None
        assert report["remote_candidates"] == [report["selected"]]
        assert calls == {}


async def test_sound_delayed_by_the_other_sides_jitter_buffer_is_measured() -> None:
    async with stock.stock_server() as (url, _):
        report = await place_call(plan(url, seconds=3.0))
    delay = report["audio_round_trip_ms"]
    assert isinstance(delay, float)
    assert 70 <= delay <= 400  # aiortc holds 80 ms; a busy machine adds


async def test_a_refused_key_ends_the_call_at_signaling_with_the_servers_words() -> None:
    async with stock.stock_server(key="right") as (url, _):
        with pytest.raises(CallError, match="401: wrong API key") as failure:
            await place_call(plan(url, key="wrong"))
    assert failure.value.stage == "signaling"
    assert "right" not in str(failure.value)


async def test_a_key_that_fits_is_sent_as_bearer_token() -> None:
    async with stock.stock_server(key="right") as (url, _):
        report = await place_call(plan(url, key="right", seconds=1.0))
    assert isinstance(report["packets_received"], int)
    assert report["packets_received"] > 0


async def test_a_call_that_the_other_side_closes_ends() -> None:
    async with stock.stock_server() as (url, calls), Signaling(url, key=None) as signaling:
        session = CallSession(Identity(), speech().frames, hosts=["127.0.0.1"])
        await dial(signaling, session, model="echo", region=None)
        (connection,) = calls.values()
        await up(connection)
        await connection.close()
        await session.ended()
        assert session.state is SessionState.CLOSED


async def test_hostile_datagrams_at_the_clients_socket_harm_no_call() -> None:
    async with stock.stock_server() as (url, _), Signaling(url, key=None) as signaling:
        session = CallSession(Identity(), speech().frames, hosts=["127.0.0.1"])
        await dial(signaling, session, model="echo", region=None)
        hostile = [b"", b"\0", b"\x80", b"\x80" * 2000, b"\x16" * 40, b"\xff" * 100, b"\0\1\0\0" + bytes(16)]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
            for datagram in hostile:
                attacker.sendto(datagram, session.local_addresses[0])
        pacer = Pacer()
        pacer.add(session)
        async with asyncio.timeout(10):
            await first_audio(session)
        pacer.stop()
        assert session.state is SessionState.CONNECTED
        assert session.datagrams_dropped == 4
        session.close()


async def test_load_counts_every_call_and_names_a_side() -> None:
    async with stock.stock_server() as (url, calls):
        wanted = LoadPlan(url=url, key=None, model="echo", region=None, calls=3, seconds=1.0, per_second=50)
        report = await Load(wanted).run()
        assert calls == {}
    assert (report["ok"], report["connected"], report["failed"]) == (True, 3, {})
    assert report["bottleneck"] in ("client", "server", "machine", "none")
    assert isinstance(report["packets_received"], int)
    assert report["packets_received"] > 0


async def test_load_against_nothing_says_why() -> None:
    wanted = LoadPlan(
        url="http://127.0.0.1:9", key=None, model="echo", region=None, calls=2, seconds=1.0, per_second=50
    )
    with pytest.raises(CallError, match=r"127\.0\.0\.1:9"):
        await Load(wanted).run()
