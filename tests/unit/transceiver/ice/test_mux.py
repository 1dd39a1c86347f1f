"""The worker's socket: who gets which datagram, and why the others are dropped."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest
from voicecluster.transceiver.ice.mux import DRAIN, MAX_CLAIMS, MediaSocket
from voicecluster.transceiver.ice.path import Address, Path, TokenBucket
from voicecluster.transceiver.ice.unknown import CallKeys, UnknownCalls
from voicecluster.wire import (
    HintKey,
    Route,
    binding_indication,
    binding_request,
    ice_pwd,
    parse_stun,
    spp_encode,
)

LOOPBACK = "127.0.103.2"
CLIENT = ("192.0.2.10", 50000)
VIP = ("198.51.100.1", 3478)
RELAY = ("127.0.103.2", 9)
HEADER = spp_encode(CLIENT, VIP)
ROUTE = Route(cluster=7, ordinal=1024, worker=1)
KEYS = CallKeys(HintKey("A", bytes(range(32))), bytes(32))


class FakeCall:
    """Takes note of what it gets, and says what it was told to say."""

    def __init__(self, authentic: bool | None = True) -> None:
        self.authentic = authentic
        self.checks: list[bytes] = []
        self.responses: list[bytes] = []
        self.packets: list[bytes] = []
        self.heard = asyncio.Event()

    def on_check(self, data: bytes, header: bytes, relay: Address, now: float) -> str | None:
        self.checks.append(data)
        return None

    def on_response(self, data: bytes, path: Path, relay: Address, now: float) -> bool:
        self.responses.append(data)
        return bool(self.authentic)

    def on_packet(self, data: bytes, path: Path, relay: Address, now: float) -> bool | None:
        if data == b"\x80boom":
            raise RuntimeError("a fault in a call")
        self.packets.append(data)
        self.heard.set()
        return self.authentic


def path(heard_at: float = 0.0) -> Path:
    """A path of CLIENT to VIP."""
    return Path(HEADER, CLIENT, VIP, RELAY, 0, TokenBucket(20, 20, 0.0), heard_at)


def request(ufrag: str, pwd: str) -> bytes:
    """A check for `ufrag`."""
    return binding_request(bytes(12), username=f"{ufrag}:clnt", password=pwd, priority=1, ice_controlling=1)


@pytest.fixture
async def media() -> AsyncIterator[MediaSocket]:
    """An empty worker's socket."""
    made = MediaSocket(asyncio.get_running_loop(), (LOOPBACK, 0))
    yield made
    made.close()


async def test_a_check_goes_to_the_call_that_its_ufrag_names(media: MediaSocket) -> None:
    call, other = FakeCall(), FakeCall()
    media.register("Aone", call)
    media.register("Atwo", other)
    check = request("Aone", "p" * 22)
    media.receive(HEADER + check, RELAY, 0.0)
    assert (call.checks, other.checks) == ([check], [])


async def test_a_ufrag_belongs_to_one_call(media: MediaSocket) -> None:
    call, other = FakeCall(), FakeCall()
    media.register("Aone", call)
    media.register("Aone", call)
    with pytest.raises(ValueError, match="in use"):
        media.register("Aone", other)
    media.unregister("Aone", other)
    assert media.ufrag_count == 1
    media.unregister("Aone", call)
    assert media.ufrag_count == 0


async def test_media_and_dtls_go_to_the_call_that_claimed_the_path(media: MediaSocket) -> None:
    call = FakeCall()
    media.claim(path(), call)
    for data in (b"\x80media", b"\xbflast", b"\x14dtls", b"\x3fdtls"):
        media.receive(HEADER + data, RELAY, 0.0)
    assert len(call.packets) == 4
    assert not media.counters.drops


async def test_the_same_client_by_another_vip_is_another_path(media: MediaSocket) -> None:
    media.claim(path(), FakeCall())
    media.receive(spp_encode(CLIENT, ("198.51.100.2", 3478)) + b"\x80media", RELAY, 0.0)
    assert media.counters.drops == {"unknown_path": 1}


async def test_where_two_calls_claim_a_path_the_one_that_can_read_the_packet_has_it(
    media: MediaSocket,
) -> None:
    wrong, right = FakeCall(authentic=False), FakeCall()
    media.claim(path(), wrong)
    media.claim(path(), right)
    media.receive(HEADER + b"\x80media", RELAY, 0.0)
    assert right.packets == [b"\x80media"]
    assert not media.counters.drops


async def test_claims_on_one_path_are_bounded_and_the_quietest_makes_room(media: MediaSocket) -> None:
    calls = [FakeCall() for _ in range(MAX_CLAIMS + 1)]
    for number, call in enumerate(calls):
        media.claim(path(heard_at=10.0 - number), call)
    assert media.path_count == MAX_CLAIMS
    assert media.counters.drops == {"claim_evicted": 1}


async def test_a_path_given_up_is_a_strangers(media: MediaSocket) -> None:
    call, claimed = FakeCall(), path()
    media.claim(claimed, call)
    media.disclaim(claimed, call)
    media.receive(HEADER + b"\x80media", RELAY, 0.0)
    assert media.counters.drops == {"unknown_path": 1}
    assert media.path_count == 0


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [
        (b"", "not_spp"),
        (b"\x56\xec", "not_spp"),
        (b"\x80" * 60, "not_spp"),
        (HEADER, "empty"),
        (HEADER + b"\x80" + bytes(1472), "too_long"),
        (HEADER + b"\x80" + bytes(1471), "unknown_path"),
        (HEADER + b"\x04", "first_byte"),
        (HEADER + b"\x13", "first_byte"),
        (HEADER + b"\x40", "first_byte"),
        (HEADER + b"\x7f", "first_byte"),
        (HEADER + b"\xc0", "first_byte"),
        (HEADER + b"\x00\x01\x00\x00" + bytes(16), "stun_malformed"),
        (HEADER + b"\x00\x01", "stun_malformed"),
        (HEADER + b"\x00\x01\x00\x00\x21\x12\xa4\x42" + bytes(12), "stun_no_username"),
        (HEADER + b"\x01\x01\x00\x00\x21\x12\xa4\x42" + bytes(12), "unknown_path"),
        (HEADER + request("Anobody", "p" * 22), "unknown_ufrag"),
    ],
)
async def test_what_belongs_nowhere_is_dropped_by_reason(
    media: MediaSocket, datagram: bytes, reason: str
) -> None:
    media.receive(datagram, RELAY, 0.0)
    assert media.counters.drops == {reason: 1}


async def test_a_response_that_no_call_waits_for_is_counted(media: MediaSocket) -> None:
    media.claim(path(), FakeCall(authentic=False))
    media.receive(HEADER + b"\x01\x01\x00\x00\x21\x12\xa4\x42" + bytes(12), RELAY, 0.0)
    assert media.counters.drops == {"stun_unmatched": 1}


async def test_a_keepalive_indication_is_taken_in_silence(media: MediaSocket) -> None:
    media.receive(HEADER + binding_indication(bytes(12)), RELAY, 0.0)
    assert not media.counters.drops


async def test_a_fault_in_one_call_is_counted_and_the_next_datagram_read(media: MediaSocket) -> None:
    call = FakeCall()
    media.claim(path(), call)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for data in (b"\x80boom", b"\x80next"):
            sender.sendto(HEADER + data, media.address)
    await asyncio.wait_for(call.heard.wait(), 5)
    assert call.packets == [b"\x80next"]
    assert media.counters.drops == {"internal_error": 1}


async def test_a_flood_leaves_the_loop_its_turn_after_each_batch(media: MediaSocket) -> None:
    media.claim(path(), FakeCall())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for _ in range(3 * DRAIN):
            sender.sendto(HEADER + b"\x80flood", media.address)
    media._drain()
    assert media.counters.rx_packets == DRAIN


async def test_what_the_kernel_refuses_to_send_is_counted_not_raised(media: MediaSocket) -> None:
    media.send(HEADER, ("127.0.103.2", 0), b"\x80media")
    assert sum(media.counters.send_errors.values()) == 1


async def test_a_port_that_is_taken_raises_and_leaves_no_socket(media: MediaSocket) -> None:
    with pytest.raises(OSError, match="in use"):
        MediaSocket(asyncio.get_running_loop(), media.address)


async def test_close_may_come_twice(media: MediaSocket) -> None:
    media.close()
    media.close()


# A worker that restarted knows none of its former calls.


def unknown() -> UnknownCalls:
    """As the worker's keys make it."""
    return UnknownCalls(ROUTE, {"A": KEYS}, now=0.0)


def former(route: Route = ROUTE) -> tuple[str, str]:
    """Ufrag and password of a call before the restart."""
    ufrag = KEYS.hint.mint(route, 12345)
    return ufrag, ice_pwd(KEYS.pwd_key, ufrag)


def test_a_check_for_a_call_from_before_the_restart_gets_a_signed_400() -> None:
    ufrag, pwd = former()
    check = request(ufrag, pwd)
    answer = unknown().answer(ufrag, check, 0.0)
    assert isinstance(answer, bytes)
    message = parse_stun(answer)
    assert (message.cls, message.error_code, message.transaction_id) == ("error", 400, bytes(12))
    assert message.verify(pwd)
    assert len(answer) <= len(check)


@pytest.mark.parametrize(
    ("ufrag", "pwd", "reason"),
    [
        ("Anobody", "p" * 22, "unknown_ufrag"),
        ("B" + former()[0][1:], former()[1], "unknown_ufrag"),
        ("A" + "b" * 22, "p" * 22, "unknown_ufrag"),
        (*former(Route(cluster=7, ordinal=1024, worker=2)), "misrouted"),
        (*former(Route(cluster=8, ordinal=1024, worker=1)), "misrouted"),
        (former()[0], "not-the-password-of-22", "stun_integrity"),
    ],
)
def test_any_other_check_for_an_unknown_call_gets_silence(ufrag: str, pwd: str, reason: str) -> None:
    assert unknown().answer(ufrag, request(ufrag, pwd), 0.0) == reason


def test_answers_to_unknown_calls_are_limited() -> None:
    ufrag, pwd = former()
    answers = unknown()
    given = [answers.answer(ufrag, request(ufrag, pwd), 0.0) for _ in range(300)]
    assert given.count("unknown_call_rate") == 100
    assert isinstance(answers.answer(ufrag, request(ufrag, pwd), 1.0), bytes)


async def test_the_400_goes_back_to_where_the_check_came_from(media: MediaSocket) -> None:
    ufrag, pwd = former()
    media.unknown = unknown()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as relay:
        relay.bind((LOOPBACK, 0))
        relay.setblocking(False)
        media.receive(HEADER + request(ufrag, pwd), relay.getsockname(), 0.0)
        datagram = await asyncio.get_running_loop().sock_recv(relay, 2048)
    assert datagram[:38] == HEADER
    assert parse_stun(datagram[38:]).error_code == 400
    assert media.counters.drops == {"unknown_call": 1}


def test_keys_never_show_in_a_repr() -> None:
    assert repr(KEYS) == "CallKeys()"
