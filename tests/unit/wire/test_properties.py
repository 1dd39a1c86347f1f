"""Laws of the bindings: values survive the way to bytes and back, and any input gives a value or its one exception."""

import copy
import ipaddress
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from voicecluster.wire import (
    SPP_LEN,
    CallKey,
    Deframer,
    FramingError,
    HintError,
    HintKey,
    Route,
    SppError,
    StunError,
    binding_error,
    binding_indication,
    binding_request,
    binding_success,
    derive_key,
    frame,
    ice_pwd,
    key_id_of,
    parse_stun,
    spp_decode,
    spp_encode,
    stun_username,
)

ICE_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
KEY = bytes(range(32))

routes = st.builds(Route, st.integers(1, 65535), st.integers(0, 65535), st.integers(0, 255))
nonces = st.integers(0, 2**40 - 1)
transaction_ids = st.binary(min_size=12, max_size=12)
ports = st.integers(1, 65535)
ipv4 = st.tuples(st.ip_addresses(v=4).map(str), ports)
ipv6 = st.tuples(st.ip_addresses(v=6).map(str), ports)
addresses = ipv4 | ipv6


def canonical(address: tuple[str, int]) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """SPP has no IPv4-mapped addresses of its own: they are IPv4."""
    host = ipaddress.ip_address(address[0])
    mapped = host.ipv4_mapped if isinstance(host, ipaddress.IPv6Address) else None
    return mapped or host, address[1]


@given(routes, nonces)
def test_a_ufrag_is_23_ice_chars_and_opens_to_its_route(route: Route, nonce: int) -> None:
    ufrag = HintKey("A", KEY).mint(route, nonce)
    assert len(ufrag) == 23
    assert ICE_CHARS.issuperset(ufrag)
    opened = HintKey("A", KEY).open(ufrag)
    assert (opened.route, opened.nonce) == (route, nonce)


@given(routes, nonces)
def test_a_call_id_is_31_characters_and_opens_to_its_route(route: Route, nonce: int) -> None:
    call_id = CallKey("b", KEY).mint(route, nonce)
    assert len(call_id) == 31
    assert call_id.startswith("rtc_b")
    assert key_id_of(call_id) == "b"
    assert CallKey("b", KEY).open(call_id).route == route


@given(routes)
def test_a_route_is_a_value(route: Route) -> None:
    same = Route(route.cluster, route.ordinal, route.worker)
    assert same == route
    assert hash(same) == hash(route)
    assert pickle.loads(pickle.dumps(route)) == copy.deepcopy(route) == route
    assert route.region_index == route.ordinal >> 10


@given(st.text(max_size=40))
def test_any_text_opens_or_raises_hint_error(text: str) -> None:
    for opener in (HintKey("A", KEY).open, CallKey("A", KEY).open):
        with pytest.raises(HintError):
            opener(text)


@given(st.text(max_size=40))
def test_any_text_has_a_key_id_or_raises_hint_error(text: str) -> None:
    try:
        key_id = key_id_of(text)
    except HintError:
        return
    assert key_id in ICE_CHARS - {"+", "/"}


@given(st.text())
def test_a_password_is_32_ice_chars(ufrag: str) -> None:
    pwd = ice_pwd(KEY, ufrag)
    assert len(pwd) == 32
    assert ICE_CHARS.issuperset(pwd)


@given(addresses, addresses)
def test_an_spp_header_reads_back(client: tuple[str, int], proxy: tuple[str, int]) -> None:
    header = spp_encode(client, proxy)
    assert len(header) == SPP_LEN
    decoded = spp_decode(header + b"payload")
    assert (canonical(decoded.client), canonical(decoded.proxy)) == (canonical(client), canonical(proxy))


@given(st.binary(max_size=80))
def test_any_datagram_has_an_spp_header_or_raises_spp_error(datagram: bytes) -> None:
    try:
        header = spp_decode(datagram)
    except SppError:
        return
    assert spp_encode(header.client, header.proxy) == datagram[:SPP_LEN]


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=5), st.integers(1, 50))
def test_a_stream_in_pieces_gives_its_datagrams(datagrams: list[bytes], piece: int) -> None:
    stream = b"".join(frame(datagram) for datagram in datagrams)
    deframer = Deframer(40)
    pieces = (stream[at : at + piece] for at in range(0, len(stream), piece))
    assert [found for data in pieces for found in deframer.feed(data)] == datagrams
    assert deframer.pending == 0


@given(st.binary(max_size=200))
def test_any_bytes_are_a_stream_or_raise_framing_error(data: bytes) -> None:
    deframer = Deframer(40)
    try:
        found = deframer.feed(data)
    except FramingError:
        return
    assert sum(map(len, found)) + deframer.pending <= len(data)


@given(
    transaction_ids,
    st.text(max_size=100),
    st.text(max_size=60),
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.none() | st.integers(0, 2**64 - 1),
    st.none() | st.integers(0, 2**64 - 1),
)
def test_a_request_reads_back_and_is_authentic(
    transaction_id: bytes,
    username: str,
    password: str,
    priority: int,
    use_candidate: bool,
    controlling: int | None,
    controlled: int | None,
) -> None:
    data = binding_request(
        transaction_id,
        username=username,
        password=password,
        priority=priority,
        use_candidate=use_candidate,
        ice_controlling=controlling,
        ice_controlled=controlled,
    )
    message = parse_stun(data)
    assert (message.cls, message.transaction_id, message.username) == ("request", transaction_id, username)
    assert (message.priority, message.use_candidate) == (priority, use_candidate)
    assert (message.ice_controlling, message.ice_controlled) == (controlling, controlled)
    assert message.has_integrity
    assert message.has_fingerprint
    assert message.verify(password)
    assert not message.verify(password + "x")
    assert stun_username(data) == username


@given(transaction_ids, addresses)
def test_a_success_tells_the_mapped_address(transaction_id: bytes, mapped: tuple[str, int]) -> None:
    message = parse_stun(binding_success(transaction_id, mapped=mapped, password="p"))
    assert message.cls == "success"
    assert message.xor_mapped_address is not None
    assert canonical(message.xor_mapped_address) == canonical(mapped)
    assert message.verify("p")


@given(st.binary(max_size=200))
def test_any_bytes_are_stun_or_raise_stun_error(data: bytes) -> None:
    stun_username(data)
    try:
        message = parse_stun(data)
    except StunError:
        return
    assert not message.verify("nobody signed with this")


def test_an_unsigned_error_has_its_code_and_verifies_for_nobody() -> None:
    message = parse_stun(binding_error(bytes(12), code=400, reason="Bad Request", password=None))
    assert (message.cls, message.error_code, message.has_integrity) == ("error", 400, False)
    assert not message.verify("")


def test_a_signed_error_without_a_reason_is_no_longer_than_any_check() -> None:
    check = binding_request(
        bytes(12), username="x" * 23 + ":abcd", password="p", priority=1, ice_controlling=1
    )
    assert len(binding_error(bytes(12), code=400, reason="", password="p" * 32)) <= len(check)


def test_an_indication_is_unsigned_and_has_a_fingerprint() -> None:
    message = parse_stun(binding_indication(bytes(12)))
    assert (message.cls, message.has_integrity, message.has_fingerprint) == ("indication", False, True)


@pytest.mark.parametrize("parts", [(0, 0, 0), (65536, 0, 0), (1, -1, 0), (1, 65536, 0), (1, 0, 256)])
def test_a_route_out_of_range_is_a_value_error(parts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="must be in"):
        Route(*parts)


@pytest.mark.parametrize("key_id", ["", "AB", "+", "é", "_"])
def test_a_key_id_is_one_letter_or_digit(key_id: str) -> None:
    with pytest.raises(ValueError, match="key_id"):
        HintKey(key_id, KEY)


def test_keys_of_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        HintKey("A", KEY[:16])
    with pytest.raises(ValueError, match="32 bytes"):
        derive_key(b"short", "hint", 1)


def test_a_nonce_has_40_bits() -> None:
    with pytest.raises(ValueError, match="nonce"):
        HintKey("A", KEY).mint(Route(1, 0, 0), 2**40)


def test_a_key_shows_its_id_and_nothing_else() -> None:
    assert repr(HintKey("A", KEY)) == "HintKey(A)"
    assert repr(CallKey("A", KEY)) == "CallKey(A)"


@pytest.mark.parametrize("datagram", [b"", bytes(65_536)])
def test_what_no_length_can_say_is_not_framed(datagram: bytes) -> None:
    with pytest.raises(FramingError):
        frame(datagram)


def test_a_stream_out_of_step_stays_so() -> None:
    deframer = Deframer(8)
    for data in (b"\x00\x09", frame(b"fine")):
        with pytest.raises(FramingError) as raised:
            deframer.feed(data)
        assert raised.value.reason == "too_long"


def test_a_host_name_is_no_address() -> None:
    with pytest.raises(ValueError, match="IP address"):
        spp_encode(("localhost", 1), ("127.0.0.1", 2))
