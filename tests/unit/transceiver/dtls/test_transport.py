"""Real calls over loopback: an aiortc client, a relay that speaks SPP, and the transport itself."""

import asyncio
import datetime
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import aioice.ice
import pytest
from aioice import stun
from aiortc.rtcdtlstransport import (
    SRTP_AEAD_AES_128_GCM,
    SRTP_AEAD_AES_256_GCM,
    SRTP_AES128_CM_SHA1_80,
    RTCCertificate,
    RTCDtlsTransport,
    SRTPProtectionProfile,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from OpenSSL import SSL
from voicecluster.transceiver.dtls.sctp import MAX_BUFFERED
from voicecluster.transceiver.ice.path import IceCredentials
from voicecluster.wire import spp_encode

Until = Callable[[Callable[[], bool]], Awaitable[None]]


class RsaCertificate(RTCCertificate):
    """An old-fashioned caller's certificate, with the suites that go with it."""

    def __init__(self) -> None:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "caller")])
        now = datetime.datetime.now(tz=datetime.UTC)
        builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(1))
        super().__init__(key=key, cert=builder.sign(key, hashes.SHA256()))  # type: ignore[arg-type]

    def _create_ssl_context(self, srtp_profiles: list[SRTPProtectionProfile]) -> SSL.Context:
        context = super()._create_ssl_context(srtp_profiles)
        context.set_cipher_list(b"ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256")
        return context


def dtls_of(call: Any) -> Any:
    """The caller's DTLS transport."""
    return call.caller.peer.getTransceivers()[0].receiver.transport


@pytest.mark.parametrize("ice_lite", [True, False])
async def test_a_call_connects_and_echoes_events(bench: Any, ice_lite: bool) -> None:
    call = await bench.connect(ice_lite=ice_lite)
    assert await call.caller.echoed("hello") == "hello"


async def test_a_long_event_goes_both_ways_whole(bench: Any) -> None:
    call = await bench.connect()
    text = "é" * 60_000
    assert await call.caller.echoed(text) == text


async def test_media_of_the_caller_is_authentic_and_ours_is_to_the_caller(bench: Any, until: Until) -> None:
    call = await bench.connect()
    await asyncio.wait_for(call.server.media.wait(), 10)
    await until(lambda: dtls_of(call).state == "connected")
    rtp = b"\x80\x60\x00\x01" + bytes(8) + b"payload"
    call.relay.drop_downstream = lambda data: data[0] == 0x80  # so that the test reads it, not aiortc
    call.server.transport.send_media(call.server.keys.tx.protect(rtp))
    await until(lambda: any(data[0] == 0x80 for data in call.relay.to_client))
    protected = next(data for data in call.relay.to_client if data[0] == 0x80)
    assert dtls_of(call)._rx_srtp.unprotect(protected) == rtp


@pytest.mark.parametrize(
    "profile", [SRTP_AEAD_AES_256_GCM, SRTP_AEAD_AES_128_GCM, SRTP_AES128_CM_SHA1_80], ids=str
)
async def test_media_is_authentic_with_every_srtp_profile(
    bench: Any, monkeypatch: pytest.MonkeyPatch, profile: SRTPProtectionProfile
) -> None:
    offered = RTCDtlsTransport.__init__

    def only(self: RTCDtlsTransport, *args: Any) -> None:
        offered(self, *args)
        self._srtp_profiles = [profile]

    monkeypatch.setattr(RTCDtlsTransport, "__init__", only)
    call = await bench.connect()
    await asyncio.wait_for(call.server.media.wait(), 10)
    assert call.server.transport.snapshot().srtp_profile == profile.openssl_profile.decode()


@pytest.mark.parametrize("setup", ["actpass", "active"])
async def test_a_caller_with_an_rsa_certificate_connects_in_both_roles(bench: Any, setup: str) -> None:
    call = await bench.connect(certificate=RsaCertificate(), setup=setup)
    assert await call.caller.echoed("rsa") == "rsa"


async def test_an_active_offerer_makes_us_passive(bench: Any) -> None:
    call = await bench.connect(setup="active")
    assert call.server.transport.setup == "passive"
    assert "a=setup:passive" in call.answer
    assert await call.caller.echoed("hello") == "hello"


async def test_a_caller_with_another_certificate_than_it_offered_is_refused(bench: Any) -> None:
    call = await bench.dial(rewrite=swap_fingerprint)
    await asyncio.wait_for(call.server.ended.wait(), 10)
    assert call.server.reason == "dtls failed"
    assert not call.server.connected.is_set()


def swap_fingerprint(sdp: str) -> str:
    """The same offer with the digests of some other certificate."""
    lines = sdp.split("\r\n")
    swapped = [line[:-5] + "00:00" if line.startswith("a=fingerprint") else line for line in lines]
    return "\r\n".join(swapped)


@pytest.mark.parametrize("setup", ["actpass", "active"])
@pytest.mark.parametrize(
    ("direction", "number"), [("upstream", 0), ("upstream", 1), ("downstream", 0), ("downstream", 1)]
)
async def test_a_lost_handshake_flight_is_sent_again(
    bench: Any, setup: str, direction: str, number: int
) -> None:
    seen: list[bytes] = []

    def lose_one(data: bytes) -> bool:
        if 20 <= data[0] <= 22:
            seen.append(data)
            return len(seen) == number + 1
        return False

    call = await bench.connect(
        setup=setup, prepare=lambda relay: setattr(relay, f"drop_{direction}", lose_one)
    )
    assert await call.caller.echoed("through") == "through"
    assert len(seen) > number


async def test_a_call_over_ipv6_connects(bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["::1"])
    call = await bench.connect(vip="::1")
    assert await call.caller.echoed("six") == "six"
    assert call.server.transport.snapshot().client == call.caller.address
    assert "c=IN IP6 ::1" in call.answer


async def test_the_snapshot_names_client_vip_relay_and_phases(bench: Any, until: Until) -> None:
    call = await bench.connect()
    await until(lambda: call.server.transport.snapshot().rtt_ms is not None)
    shown = call.server.transport.snapshot()
    assert (shown.client, shown.vip) == (call.caller.address, call.relay.vip)
    assert shown.relay == call.relay.back.getsockname()
    assert shown.dtls_state == "connected"
    assert 0.0 < shown.rtt_ms < 1000.0
    assert shown.phases.answered_at <= shown.phases.first_check_at <= shown.phases.dtls_at


async def test_when_the_caller_hangs_up_the_reason_is_peer_closed(bench: Any) -> None:
    call = await bench.connect()
    await call.caller.echoed("ready")
    await call.caller.peer.close()
    await asyncio.wait_for(call.server.ended.wait(), 10)
    await call.run
    assert call.server.reason == "peer closed"


async def test_close_tells_the_caller_and_may_come_twice(bench: Any, until: Until) -> None:
    call = await bench.connect()
    await until(lambda: dtls_of(call).state == "connected")
    await call.server.transport.close()
    await call.server.transport.close()
    await call.run
    await until(lambda: dtls_of(call).state == "closed")
    assert call.server.reason == "closed"


async def test_cancelling_run_closes_the_transport(bench: Any) -> None:
    call = await bench.connect()
    call.run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call.run
    assert call.server.transport.closed
    call.run = asyncio.create_task(call.server.transport.run())


async def test_closed_calls_leave_no_task_timer_ufrag_or_path_behind(bench: Any) -> None:
    call = await bench.connect()
    await call.caller.echoed("ready")
    await call.caller.peer.close()
    await asyncio.wait_for(call.server.ended.wait(), 10)
    await call.run
    await asyncio.sleep(0)
    assert (bench.socket.ufrag_count, bench.socket.path_count) == (0, 0)
    mine = [task for task in asyncio.all_tasks() if "transceiver" in repr(task) or "Sctp" in repr(task)]
    assert [task for task in mine if "test_closed" not in repr(task)] == []


async def test_a_caller_who_never_answers_dtls_is_given_up(bench: Any) -> None:
    call = await bench.dial()
    call.relay.drop_upstream = lambda data: data[0] >= 20
    call.server.transport._setup_deadline = asyncio.get_running_loop().time() + 0.2
    call.server.transport._on_timer()
    await asyncio.wait_for(call.server.ended.wait(), 10)
    assert call.server.reason == "dtls failed"


async def test_events_that_nobody_takes_end_the_call_at_a_mebibyte(bench: Any) -> None:
    call = await bench.connect()
    await call.caller.echoed("ready")
    call.relay.drop_upstream = lambda data: True
    for _ in range(MAX_BUFFERED // 60_000 + 3):
        call.server.transport.send_event("x" * 60_000)
    await asyncio.wait_for(call.server.ended.wait(), 10)
    assert call.server.reason == "backlog"


async def test_a_callback_that_fails_harms_nothing_else(bench: Any) -> None:
    call = await bench.connect()
    other = await bench.connect()

    def broken(_: object) -> None:
        raise RuntimeError("a fault in the call's own code")

    assert await call.caller.echoed("before") == "before"
    echo, call.server.transport.on_message = call.server.transport.on_message, broken
    call.caller.events.send("lost")
    assert await other.caller.echoed("other") == "other"
    call.server.transport.on_message = echo
    assert await call.caller.echoed("again") == "again"


# Moving


async def restart(call: Any, serial: int) -> None:
    """What a browser does on restartIce(): new credentials on both sides, then checks with them."""
    local = IceCredentials(f"Arestart{serial:03}", f"restart-password-{serial:05}")
    connection = dtls_of(call).transport._connection
    remote = IceCredentials(f"clnt{serial:04}", f"client-password-{serial:06}")
    now = asyncio.get_running_loop().time()
    call.server.transport.restart_ice(local, remote.ufrag, remote.pwd, now)
    connection._local_username, connection._local_password = remote
    connection.remote_username, connection.remote_password = local
    await check(call, nominate=True)


async def check(call: Any, *, nominate: bool = False) -> None:
    """One connectivity check of the caller's; raises if it is not answered."""
    connection = dtls_of(call).transport._connection
    pair = connection._nominated[1]
    request: stun.Message = connection.build_request(pair, nominate=nominate)
    key = connection.remote_password.encode()
    await pair.protocol.request(request, pair.remote_addr, integrity_key=key)


async def test_twenty_ice_restarts_keep_dtls_media_and_events(bench: Any, until: Until) -> None:
    call = await bench.connect()
    await call.caller.echoed("before")
    await until(lambda: 1 in dtls_of(call).transport._connection._nominated)
    keys = call.server.keys
    for serial in range(20):
        await restart(call, serial)
        assert await call.caller.echoed(f"after {serial}") == f"after {serial}"
    packets = call.server.packets
    await until(lambda: call.server.packets > packets + 5)
    assert call.server.keys is keys
    assert call.server.transport.snapshot().ice_restarts == 20
    assert bench.socket.ufrag_count == 1


async def test_a_caller_whose_address_changed_is_followed(bench: Any, until: Until) -> None:
    call = await bench.connect()
    await call.caller.echoed("before")
    await until(lambda: call.server.transport.snapshot().rtt_ms is not None)
    await until(lambda: 1 in dtls_of(call).transport._connection._nominated)
    old = call.relay
    moved = type(old)(bench.socket.address)
    pretend = ("127.0.103.9", 50_009)
    original = call.caller.address

    def up() -> None:
        data, _ = old.front.recvfrom(4096)
        moved.back.sendto(spp_encode(pretend, old.vip) + data, bench.socket.address)

    def down() -> None:
        data, _ = moved.back.recvfrom(4096)
        old.front.sendto(data[38:], original)

    loop = asyncio.get_running_loop()
    loop.add_reader(old.front, up)
    loop.add_reader(moved.back, down)
    await check(call)
    await until(lambda: call.server.transport.snapshot().client == pretend)
    assert await call.caller.echoed("after") == "after"
    assert call.server.transport.snapshot().path_history[-1].reason == "uplink"
    moved.close()


# What kills stock aiortc (research: one datagram from anybody ends its session)

TRUNCATED_PRIORITY = b"\x00\x01\x00\x08\x21\x12\xa4\x42" + bytes(12) + b"\x00\x24\x00\x02ab\x00\x00"
NO_PRIORITY = b"\x00\x01\x00\x08\x21\x12\xa4\x42" + bytes(12) + b"\x00\x06\x00\x04ABCD"


@pytest.mark.parametrize(
    ("datagram", "from_stranger", "from_own_address"),
    [
        (b"", "empty", "empty"),
        (b"\x80" + bytes(1600), "too_long", "too_long"),
        (b"\x80\x6f" + bytes(1460), "unknown_path", "unauthentic_media"),
        (b"\x80\x6f" + bytes(100), "unknown_path", "unauthentic_media"),
        (b"\x80", "unknown_path", "unauthentic_media"),
        (b"\x80\xc8" + bytes(40), "unknown_path", "unauthentic_media"),
        (b"\x16" + bytes(50), "unknown_path", "unauthentic_dtls"),
        (b"\x16\xfe\xfd\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff", "unknown_path", "unauthentic_dtls"),
        (b"\x15\xfe\xfd" + bytes(8) + b"\x00\x02\x02\x28", "unknown_path", "unauthentic_dtls"),
        (b"\x00", "stun_malformed", "stun_malformed"),
        (TRUNCATED_PRIORITY, "stun_no_username", "stun_no_username"),
        (NO_PRIORITY, "unknown_ufrag", "unknown_ufrag"),
        (b"\x01\x01\x00\x00\x21\x12\xa4\x42" + bytes(12), "unknown_path", "stun_unmatched"),
        (b"\x07" + bytes(30), "first_byte", "first_byte"),
        (b"\xff" * 200, "first_byte", "first_byte"),
    ],
    ids=lambda value: value[:6].hex() + f"+{len(value)}" if isinstance(value, bytes) else value,
)
async def test_hostile_datagrams_harm_no_call_and_are_counted(
    bench: Any, until: Until, datagram: bytes, from_stranger: str, from_own_address: str
) -> None:
    calls = [await bench.connect(), await bench.connect()]
    victim = calls[0]
    for call in calls:
        await call.caller.echoed("before")
    drops = bench.socket.counters.drops
    for client, reason in (
        (("127.0.103.66", 6666), from_stranger),
        (victim.caller.address, from_own_address),
    ):
        seen = drops[reason]
        victim.relay.inject(datagram, client)
        await until(lambda reason=reason, seen=seen: drops[reason] > seen)
    packets = [call.server.packets for call in calls]
    await until(lambda: all(c.server.packets > p + 5 for c, p in zip(calls, packets, strict=True)))
    for call in calls:
        assert await call.caller.echoed("after") == "after"
    assert drops["internal_error"] == 0


async def test_what_is_not_spp_is_counted(bench: Any, until: Until) -> None:
    call = await bench.connect()
    call.relay.back.sendto(b"\x80" + bytes(60), bench.socket.address)
    call.relay.back.sendto(b"", bench.socket.address)
    await until(lambda: bench.socket.counters.drops["not_spp"] == 2)
    assert await call.caller.echoed("after") == "after"


async def test_a_replayed_check_from_elsewhere_moves_no_media(bench: Any, until: Until) -> None:
    call = await bench.connect()
    await call.caller.echoed("before")
    captured = next(data for data in call.relay.from_client if data[:2] == b"\x00\x01")
    answered = bench.socket.counters.tx_packets
    call.relay.inject(captured, ("127.0.103.66", 6666))
    await until(lambda: bench.socket.counters.tx_packets > answered)
    packets = call.server.packets
    await until(lambda: call.server.packets > packets + 20)
    assert call.server.transport.snapshot().client == call.caller.address


async def test_another_callers_check_with_a_forged_source_cuts_nothing(bench: Any, until: Until) -> None:
    victim, attacker = await bench.connect(), await bench.connect()
    await victim.caller.echoed("before")
    own_check = next(data for data in attacker.relay.from_client if data[:2] == b"\x00\x01")
    paths = bench.socket.path_count
    victim.relay.inject(own_check, victim.caller.address)
    await until(lambda: bench.socket.path_count == paths + 1)
    packets = victim.server.packets
    await until(lambda: victim.server.packets > packets + 10)
    assert await victim.caller.echoed("after") == "after"
    assert attacker.server.transport.snapshot().client == attacker.caller.address


async def test_many_calls_come_and_go_without_leaving_objects(bench: Any) -> None:
    for _ in range(3):
        call = await bench.connect()
        await call.caller.echoed("x")
        await call.server.transport.close()
        await call.caller.peer.close()
        await call.run
        call.relay.close()
    bench.calls.clear()
    bench._peers.clear()
    del call
    await asyncio.sleep(0)
    gc.collect()
    left = [o for o in gc.get_objects() if type(o).__name__ in ("CallTransport", "_Association", "IceAgent")]
    assert left == []
