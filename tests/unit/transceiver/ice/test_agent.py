"""The ICE agent, driven by hand: time is a number, packets are values."""

import random
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from voicecluster.transceiver.ice.agent import CONSENT_LOST_SECONDS, MAX_PATHS, IceAgent
from voicecluster.transceiver.ice.outcome import (
    Expired,
    GenerationEnded,
    PathAdded,
    PathRemoved,
    Refusal,
    Transmit,
)
from voicecluster.transceiver.ice.path import Address, IceCredentials, Path
from voicecluster.wire import binding_error, binding_request, binding_success, parse_stun, spp_encode

OURS = IceCredentials("Aserver1", "server-password-of-22+")
THEIRS = IceCredentials("clnt", "client-password-of-22+")
NEXT_OURS = IceCredentials("Aserver2", "server-password-two-22")
NEXT_THEIRS = IceCredentials("cln2", "client-password-two-22")
VIP_UDP = ("198.51.100.1", 3478)
VIP_V6 = ("2001:db8::1", 3478)
VIP_TCP = ("198.51.100.1", 443)
HOME = ("192.0.2.10", 50000)
ELSEWHERE = ("192.0.2.66", 4444)
RELAY = ("10.0.0.1", 40000)
OTHER_RELAY = ("10.0.0.2", 40000)
UDP_PRIORITY, V6_PRIORITY, TCP_PRIORITY = 1853751551, 1853817087, 1837007103


@dataclass
class Bench:
    """An agent, its clock, and a caller who answers the agent's checks where it is told to."""

    agent: IceAgent = field(default_factory=lambda: IceAgent(OURS, THEIRS, now=0.0, rng=random.Random(1)))
    now: float = 0.0
    serial: int = 0

    def check(
        self,
        client: Address = HOME,
        vip: Address = VIP_UDP,
        *,
        nominate: bool = False,
        priority: int = UDP_PRIORITY,
        ours: IceCredentials = OURS,
        theirs: IceCredentials = THEIRS,
        relay: Address = RELAY,
    ) -> Path | Refusal:
        """The caller sends one check."""
        return self.deliver(self.request(nominate, priority, ours, theirs), client, vip, relay)

    def request(
        self,
        nominate: bool = False,
        priority: int = UDP_PRIORITY,
        ours: IceCredentials = OURS,
        theirs: IceCredentials = THEIRS,
    ) -> bytes:
        self.serial += 1
        return binding_request(
            self.serial.to_bytes(12, "big"),
            username=f"{ours.ufrag}:{theirs.ufrag}",
            password=ours.pwd,
            priority=priority,
            use_candidate=nominate,
            ice_controlling=7,
        )

    def deliver(
        self, data: bytes, client: Address = HOME, vip: Address = VIP_UDP, relay: Address = RELAY
    ) -> Path | Refusal:
        return self.agent.handle_check(data, spp_encode(client, vip), relay, self.now)

    def sent(self) -> list[Transmit]:
        """What the agent wants sent now."""
        return list(self.agent.poll_transmit())

    def requests(self) -> list[Transmit]:
        """The agent's own checks among it."""
        return [each for each in self.sent() if parse_stun(each.payload).cls == "request"]

    def answer(self, theirs: IceCredentials = THEIRS, after: float = 0.02) -> None:
        """The caller answers every check of the agent's, `after` seconds later."""
        requests = self.requests()
        self.now += after
        for each in requests:
            message = parse_stun(each.payload)
            reply = binding_success(message.transaction_id, mapped=VIP_UDP, password=theirs.pwd)
            self.agent.handle_response(reply, each.path.header, RELAY, self.now)

    def connect(self) -> Path:
        """A call that is up: one validated path, DTLS done."""
        path = self.check(nominate=True)
        assert isinstance(path, Path)
        self.answer()
        self.agent.dtls_connected(path, self.now)
        list(self.agent.poll_event())
        return path

    def wait(self, seconds: float, *, answering: bool = False) -> None:
        """Let time pass, waking the agent whenever it asks for it."""
        end = self.now + seconds
        while True:
            due = self.agent.poll_timeout()
            if due is None or due > end:
                break
            self.now = max(self.now, due)
            self.agent.handle_timeout(self.now)
            if answering:
                self.answer(after=0.0)
        self.now = end


def test_a_check_is_answered_on_the_path_and_by_the_relay_it_came_by() -> None:
    bench = Bench()
    path = bench.check(relay=OTHER_RELAY)
    answer, _ = bench.sent()
    message = parse_stun(answer.payload)
    assert (answer.path, answer.relay) == (path, OTHER_RELAY)
    assert (message.cls, message.xor_mapped_address) == ("success", HOME)
    assert message.verify(OURS.pwd)


def test_a_check_over_ipv6_is_answered_with_the_ipv6_address() -> None:
    bench = Bench()
    bench.check(("2001:db8::77", 50000), VIP_V6)
    assert parse_stun(bench.sent()[0].payload).xor_mapped_address == ("2001:db8::77", 50000)


def test_our_own_check_is_signed_with_the_callers_password_and_says_controlled() -> None:
    bench = Bench()
    bench.check()
    (own,) = bench.requests()
    message = parse_stun(own.payload)
    assert message.username == f"{THEIRS.ufrag}:{OURS.ufrag}"
    assert message.verify(THEIRS.pwd)
    assert message.ice_controlled is not None
    assert not message.use_candidate


def test_a_role_conflict_is_ignored() -> None:
    bench = Bench()
    request = binding_request(
        bytes(12),
        username=f"{OURS.ufrag}:{THEIRS.ufrag}",
        password=OURS.pwd,
        priority=1,
        ice_controlled=2**64 - 1,
    )
    assert isinstance(bench.deliver(request), Path)
    assert parse_stun(bench.sent()[0].payload).cls == "success"


def test_a_check_with_a_wrong_password_gets_nothing_and_makes_no_path() -> None:
    bench = Bench()
    forged = IceCredentials(OURS.ufrag, "not-the-password-of-22")
    assert bench.check(ours=forged) is Refusal.INTEGRITY
    assert (bench.sent(), bench.agent.paths) == ([], {})


def test_a_check_from_another_callers_ufrag_is_refused() -> None:
    bench = Bench()
    assert bench.check(theirs=IceCredentials("evil", THEIRS.pwd)) is Refusal.USERNAME


def test_garbage_that_looks_like_stun_is_refused() -> None:
    bench = Bench()
    truncated_priority = b"\x00\x01\x00\x08\x21\x12\xa4\x42" + bytes(12) + b"\x00\x24\x00\x02ab\x00\x00"
    assert bench.deliver(truncated_priority) is Refusal.MALFORMED
    assert bench.deliver(bench.request()[:-5]) is Refusal.MALFORMED


def test_the_answer_to_our_check_validates_the_path_and_measures_the_round_trip() -> None:
    bench = Bench()
    path = bench.check()
    bench.answer(after=0.03)
    assert isinstance(path, Path)
    assert path.validated
    assert path.rtt is not None
    assert abs(path.rtt - 0.03) < 1e-9


def test_an_answer_that_came_back_by_another_path_validates_nothing() -> None:
    bench = Bench()
    path = bench.check()
    elsewhere = bench.check(ELSEWHERE)
    assert isinstance(path, Path)
    assert isinstance(elsewhere, Path)
    first, _ = bench.requests()
    reply = binding_success(parse_stun(first.payload).transaction_id, mapped=VIP_UDP, password=THEIRS.pwd)
    assert bench.agent.handle_response(reply, elsewhere.header, RELAY, 0.1) is Refusal.UNMATCHED
    assert not path.validated
    assert not elsewhere.validated


def test_an_answer_signed_with_another_password_validates_nothing() -> None:
    bench = Bench()
    path = bench.check()
    (own,) = bench.requests()
    reply = binding_success(parse_stun(own.payload).transaction_id, mapped=VIP_UDP, password=OURS.pwd)
    assert bench.agent.handle_response(reply, own.path.header, RELAY, 0.1) is Refusal.INTEGRITY
    assert isinstance(path, Path)
    assert not path.validated


def test_an_error_in_answer_to_our_check_validates_nothing() -> None:
    bench = Bench()
    path = bench.check()
    (own,) = bench.requests()
    reply = binding_error(
        parse_stun(own.payload).transaction_id, code=487, reason="Role Conflict", password=THEIRS.pwd
    )
    assert bench.agent.handle_response(reply, own.path.header, RELAY, 0.1) is Refusal.UNMATCHED
    assert isinstance(path, Path)
    assert not path.validated


def test_an_answer_counts_once() -> None:
    bench = Bench()
    bench.check()
    (own,) = bench.requests()
    reply = binding_success(parse_stun(own.payload).transaction_id, mapped=VIP_UDP, password=THEIRS.pwd)
    assert isinstance(bench.agent.handle_response(reply, own.path.header, RELAY, 0.1), Path)
    assert bench.agent.handle_response(reply, own.path.header, RELAY, 0.2) is Refusal.UNMATCHED


def test_media_waits_for_dtls_even_on_a_validated_path() -> None:
    bench = Bench()
    path = bench.check(nominate=True)
    bench.answer()
    assert isinstance(path, Path)
    assert path.validated
    assert bench.agent.media_path(bench.now) is None


def test_dtls_itself_validates_the_first_path() -> None:
    bench = Bench()
    path = bench.check()
    assert isinstance(path, Path)
    bench.agent.dtls_connected(path, 0.1)
    assert bench.agent.media_path(0.1) is path


def test_no_more_than_three_times_the_bytes_received_are_sent_to_an_unproven_path() -> None:
    bench = Bench()
    bench.connect()
    captured = bench.request()
    received = sent = 0
    for _ in range(5):
        bench.deliver(captured, ELSEWHERE)
        received += len(captured)
        bench.wait(4.0)
        sent += sum(len(each.payload) for each in bench.sent() if each.path.client == ELSEWHERE)
        assert 0 < sent <= 3 * received


# The attack of the review's A4: an on-path observer replays the caller's own check from a victim's address.


def _replay_while_the_caller_is_quiet(bench: Bench) -> Path:
    home = bench.connect()
    bench.now += 0.02
    bench.agent.authenticated(home, RELAY, bench.now)
    captured = bench.request(nominate=True)
    bench.deliver(captured)
    for _ in range(4):
        bench.wait(2.4)
        bench.deliver(captured, ELSEWHERE)
    return home


def test_without_path_validation_a_replayed_check_moves_the_media() -> None:
    bench = Bench(IceAgent(OURS, THEIRS, now=0.0, rng=random.Random(1), validate_paths=False))
    _replay_while_the_caller_is_quiet(bench)
    path = bench.agent.media_path(bench.now)
    assert path is not None
    assert path.client == ELSEWHERE


def test_with_path_validation_a_replayed_check_moves_nothing() -> None:
    bench = Bench()
    home = _replay_while_the_caller_is_quiet(bench)
    assert bench.agent.media_path(bench.now) is home


def test_before_dtls_a_validated_path_beats_one_that_a_replayed_check_opened_first() -> None:
    bench = Bench()
    captured = bench.request(nominate=True)
    bench.deliver(captured, ELSEWHERE)
    bench.requests()
    home = bench.deliver(captured, HOME)
    bench.answer()
    assert bench.agent.selected is home


def test_before_dtls_the_highest_priority_nominated_path_wins_whatever_comes_last() -> None:
    bench = Bench()
    udp = bench.check(nominate=True)
    v6 = bench.check(("2001:db8::77", 50000), VIP_V6, nominate=True, priority=V6_PRIORITY)
    bench.check(HOME, VIP_TCP, nominate=True, priority=TCP_PRIORITY)
    assert udp is not v6
    assert bench.agent.selected is v6


def test_before_dtls_a_nominated_path_beats_a_better_one_that_is_not() -> None:
    bench = Bench()
    bench.check(priority=V6_PRIORITY)
    nominated = bench.check(HOME, VIP_TCP, nominate=True, priority=TCP_PRIORITY)
    assert bench.agent.selected is nominated


def test_after_dtls_a_nomination_alone_does_not_move_a_living_path() -> None:
    bench = Bench()
    home = bench.connect()
    bench.check(HOME, VIP_TCP, nominate=True, priority=TCP_PRIORITY)
    bench.answer()
    bench.agent.authenticated(home, RELAY, bench.now)
    bench.check(HOME, VIP_TCP, nominate=True, priority=TCP_PRIORITY)
    assert bench.agent.selected is home


def test_the_downlink_follows_the_uplink_to_a_validated_path_after_200_ms() -> None:
    bench = Bench()
    home = bench.connect()
    rebound = bench.check((HOME[0], 50001))
    bench.answer()
    assert isinstance(rebound, Path)
    start = bench.now
    bench.agent.authenticated(home, RELAY, start)
    bench.now = start + 0.19
    bench.agent.authenticated(rebound, RELAY, bench.now)
    assert bench.agent.selected is home
    bench.now = start + 0.21
    bench.agent.authenticated(rebound, RELAY, bench.now)
    assert bench.agent.media_path(bench.now) is rebound


def test_packets_on_two_paths_at_once_do_not_make_the_downlink_flap() -> None:
    bench = Bench()
    home = bench.connect()
    other = bench.check((HOME[0], 50001))
    bench.answer()
    assert isinstance(other, Path)
    for _ in range(100):
        bench.now += 0.02
        bench.agent.authenticated(other, RELAY, bench.now)
        bench.agent.authenticated(home, RELAY, bench.now)
    assert bench.agent.selected is home
    assert bench.agent.switches == 0


def test_uplink_on_an_unproven_path_moves_nothing_until_the_path_is_validated() -> None:
    bench = Bench()
    home = bench.connect()
    rebound = bench.check((HOME[0], 50001))
    assert isinstance(rebound, Path)
    bench.now += 1.0
    bench.agent.authenticated(rebound, RELAY, bench.now)
    assert bench.agent.selected is home
    bench.answer()
    assert bench.agent.selected is rebound


def test_a_muted_caller_whose_nat_rebound_is_followed_by_its_checks() -> None:
    bench = Bench()
    bench.connect()
    bench.now += 1.5
    rebound = bench.check((HOME[0], 50001), nominate=True)
    bench.answer()
    bench.check((HOME[0], 50001), nominate=True)
    assert bench.agent.media_path(bench.now) is rebound


def test_only_an_authenticated_packet_changes_the_relay_of_a_path() -> None:
    bench = Bench()
    home = bench.connect()
    forged = IceCredentials(OURS.ufrag, "not-the-password-of-22")
    bench.check(ours=forged, relay=OTHER_RELAY)
    assert home.relay == RELAY
    bench.agent.authenticated(home, OTHER_RELAY, bench.now)
    assert home.relay == OTHER_RELAY


def test_consent_is_asked_for_every_4_to_6_seconds() -> None:
    bench = Bench()
    bench.connect()
    for _ in range(10):
        due = bench.agent.poll_timeout()
        assert due is not None
        assert 4.0 <= due - bench.now <= 6.0
        bench.now = due
        bench.agent.handle_timeout(bench.now)
        bench.answer(after=0.0)


def test_media_stops_when_consent_is_not_renewed_for_30_seconds() -> None:
    bench = Bench()
    home = bench.connect()
    for _ in range(14):
        bench.wait(2.0)
        bench.agent.authenticated(home, RELAY, bench.now)
    assert bench.agent.media_path(bench.now) is home
    bench.wait(CONSENT_LOST_SECONDS - 28.0)
    assert bench.agent.media_path(bench.now) is None


def test_a_call_that_hears_nothing_authentic_expires_after_30_seconds() -> None:
    bench = Bench()
    bench.connect()
    bench.wait(29.9)
    assert Expired() not in list(bench.agent.poll_event())
    bench.wait(0.2)
    assert Expired() in list(bench.agent.poll_event())
    assert bench.agent.poll_timeout() is None


def test_consent_alone_keeps_a_silent_call_alive() -> None:
    bench = Bench()
    bench.connect()
    bench.wait(300.0, answering=True)
    assert Expired() not in list(bench.agent.poll_event())


def test_replayed_checks_from_elsewhere_do_not_keep_a_dead_call_alive() -> None:
    bench = Bench()
    bench.connect()
    captured = bench.request()
    for _ in range(16):
        bench.wait(2.0)
        bench.deliver(captured, ELSEWHERE)
    assert Expired() in list(bench.agent.poll_event())


def test_a_ninth_path_replaces_the_idlest_but_never_the_one_in_use() -> None:
    bench = Bench()
    home = bench.connect()
    ports = range(50001, 50001 + MAX_PATHS - 1)
    for port in ports:
        bench.now += 0.1
        bench.check((HOME[0], port))
    list(bench.agent.poll_event())
    ninth = bench.check((HOME[0], 60000))
    removed, added = bench.agent.poll_event()
    assert isinstance(removed, PathRemoved)
    assert removed.path.client == (HOME[0], 50001)
    assert added == PathAdded(ninth) if isinstance(ninth, Path) else False
    assert home.header in bench.agent.paths
    assert len(bench.agent.paths) == MAX_PATHS


def test_a_path_that_fell_silent_is_forgotten() -> None:
    bench = Bench()
    home = bench.connect()
    bench.check(ELSEWHERE)
    for _ in range(20):
        bench.wait(2.0, answering=False)
        bench.agent.authenticated(home, RELAY, bench.now)
    assert list(bench.agent.paths.values()) == [home]


def test_more_than_20_checks_a_second_on_a_path_are_refused() -> None:
    bench = Bench()
    bench.connect()
    results = [bench.check() for _ in range(60)]
    assert results.count(Refusal.RATE) >= 40
    bench.now += 1.0
    assert isinstance(bench.check(), Path)


def test_checks_from_ever_new_addresses_are_limited_for_the_whole_call() -> None:
    bench = Bench()
    bench.connect()
    results = [bench.check((ELSEWHERE[0], 10000 + n)) for n in range(60)]
    assert results.count(Refusal.RATE) >= 40
    assert isinstance(bench.check(), Path)


def test_a_restart_leaves_media_where_it_is_and_answers_both_generations() -> None:
    bench = Bench()
    home = bench.connect()
    bench.agent.restart(NEXT_OURS, NEXT_THEIRS, bench.now)
    assert isinstance(bench.check(), Path)
    assert bench.agent.media_path(bench.now) is home
    assert bench.agent.local_ufrags == (NEXT_OURS.ufrag, OURS.ufrag)
    assert isinstance(bench.check(ours=NEXT_OURS, theirs=NEXT_THEIRS), Path)


def test_after_the_first_check_of_a_new_generation_the_old_one_is_refused() -> None:
    bench = Bench()
    bench.connect()
    bench.agent.restart(NEXT_OURS, NEXT_THEIRS, bench.now)
    bench.check(ours=NEXT_OURS, theirs=NEXT_THEIRS)
    assert GenerationEnded(OURS.ufrag) in list(bench.agent.poll_event())
    assert bench.check() is Refusal.OLD_GENERATION


def test_a_forged_check_of_the_new_generation_does_not_end_the_old_one() -> None:
    bench = Bench()
    bench.connect()
    bench.agent.restart(NEXT_OURS, NEXT_THEIRS, bench.now)
    forged = IceCredentials(NEXT_OURS.ufrag, "not-the-password-of-22")
    assert bench.check(ours=forged, theirs=NEXT_THEIRS) is Refusal.INTEGRITY
    assert isinstance(bench.check(), Path)


def test_after_a_restart_our_checks_carry_the_new_credentials() -> None:
    bench = Bench()
    bench.connect()
    bench.agent.restart(NEXT_OURS, NEXT_THEIRS, bench.now)
    bench.check((HOME[0], 50001), ours=NEXT_OURS, theirs=NEXT_THEIRS)
    (own,) = bench.requests()
    message = parse_stun(own.payload)
    assert message.username == f"{NEXT_THEIRS.ufrag}:{NEXT_OURS.ufrag}"
    assert message.verify(NEXT_THEIRS.pwd)


def test_twenty_restarts_in_a_row_keep_media_flowing_and_memory_bounded() -> None:
    bench = Bench()
    bench.connect()
    for n in range(20):
        ours = IceCredentials(f"Agen{n:04}", f"server-password-gen-{n:02}")
        theirs = IceCredentials(f"gen{n:04}", f"client-password-gen-{n:02}")
        bench.agent.restart(ours, theirs, bench.now)
        bench.now += 0.5
        path = bench.check((HOME[0], 51000 + n), ours=ours, theirs=theirs, nominate=True)
        bench.answer(theirs)
        assert isinstance(path, Path)
        bench.agent.authenticated(path, RELAY, bench.now)
        assert bench.agent.media_path(bench.now) is path
    assert bench.agent.restarts == 20
    assert len(bench.agent.paths) <= MAX_PATHS
    assert len(bench.agent.local_ufrags) == 1


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_at_all_make_the_agent_raise_or_open_a_path(data: bytes) -> None:
    bench = Bench()
    assert isinstance(bench.deliver(data), Refusal)
    assert isinstance(bench.deliver(b"\x00\x01\x00\x00\x21\x12\xa4\x42" + data), Refusal)
    header = spp_encode(HOME, VIP_UDP)
    assert isinstance(bench.agent.handle_response(data, header, RELAY, 0.0), Refusal)


@settings(deadline=None)
@given(st.integers(0, 8 * 120 - 1))
def test_a_check_with_any_bit_flipped_opens_no_path(bit: int) -> None:
    bench = Bench()
    check = bytearray(bench.request(nominate=True))
    bit %= 8 * (len(check) - 8)  # the last attribute, FINGERPRINT, is optional and not signed
    check[bit // 8] ^= 1 << (bit % 8)
    assert isinstance(bench.deliver(bytes(check)), Refusal)
    assert bench.agent.paths == {}


def test_the_password_never_shows_in_a_repr() -> None:
    assert OURS.pwd not in repr(OURS)
