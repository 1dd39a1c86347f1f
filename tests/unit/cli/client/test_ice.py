"""The client's ICE agent, driven by hand: time is an argument, the other side is a few lines."""

import itertools
from dataclasses import dataclass

import pytest
from voicecluster import wire
from voicecluster.cli.client.ice import (
    CONSENT_EXPIRY_SECONDS,
    CONSENT_SECONDS,
    NOMINATION_WAIT_SECONDS,
    Address,
    Credentials,
    IceAgent,
    IceState,
    RemoteCandidate,
    Transmit,
)

LOCAL = Credentials("client", "p" * 24)
REMOTE = Credentials("server", "q" * 24)
VIP: Address = ("192.0.2.1", 3478)
OTHER: Address = ("192.0.2.2", 3478)
VIP6: Address = ("2001:db8::1", 3478)


@dataclass
class Check:
    """A request that the agent sent."""

    to: Address
    message: wire.StunMessage

    def success(self, *, mapped: Address = ("198.51.100.7", 5000), password: str = REMOTE.pwd) -> bytes:
        return wire.binding_success(self.message.transaction_id, mapped=mapped, password=password)

    def refusal(self, code: int = 400, *, password: str | None = REMOTE.pwd) -> bytes:
        return wire.binding_error(self.message.transaction_id, code=code, reason="Unknown", password=password)


def sent(agent: IceAgent) -> list[Transmit]:
    return list(iter(agent.poll_transmit, None))


def checks(agent: IceAgent) -> list[Check]:
    found = [Check(transmit.destination, wire.parse_stun(transmit.data)) for transmit in sent(agent)]
    assert all(check.message.cls == "request" for check in found)
    return found


def started(*candidates: RemoteCandidate, families: frozenset[int] = frozenset({4})) -> IceAgent:
    agent = IceAgent(LOCAL, families=families)
    agent.start(REMOTE, candidates or (RemoteCandidate(VIP, 100),), 0.0)
    return agent


def connected(now: float = 0.0) -> IceAgent:
    agent = started()
    (check,) = checks(agent)
    agent.receive(check.success(), VIP, now)
    (nomination,) = checks(agent)
    agent.receive(nomination.success(), VIP, now)
    assert agent.selected == VIP
    return agent


def test_the_first_check_names_both_sides_is_signed_and_does_not_nominate() -> None:
    (check,) = checks(started())
    assert check.to == VIP
    assert check.message.username == "server:client"
    assert check.message.verify(REMOTE.pwd)
    assert not check.message.use_candidate
    assert check.message.ice_controlling is not None


def test_a_valid_pair_is_nominated_and_selected_by_the_answer_to_that() -> None:
    agent = started()
    (check,) = checks(agent)
    agent.receive(check.success(), VIP, 0.001)
    assert agent.state is IceState.CHECKING
    (nomination,) = checks(agent)
    assert nomination.message.use_candidate
    agent.receive(nomination.success(), VIP, 0.002)
    assert (agent.state, agent.selected) == (IceState.CONNECTED, VIP)


def test_an_unanswered_check_is_sent_again_with_growing_pauses() -> None:
    agent = started()
    times = [0.0]
    while len(times) < 6:
        due = agent.poll_timeout()
        assert due is not None
        agent.handle_timeout(due)
        times.append(due)
    pauses = [round(b - a, 3) for a, b in itertools.pairwise(times)]
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.6]


def test_silence_from_every_candidate_is_failure_with_their_names() -> None:
    agent = started()
    while (due := agent.poll_timeout()) is not None:
        agent.handle_timeout(due)
    assert agent.state is IceState.FAILED
    assert "192.0.2.1 port 3478" in agent.failure


def test_a_better_candidate_gets_a_moment_before_a_worse_one_is_nominated() -> None:
    agent = started(RemoteCandidate(VIP, 100), RemoteCandidate(OTHER, 50))
    worse = next(check for check in checks(agent) if check.to == OTHER)
    agent.receive(worse.success(), OTHER, 0.01)
    assert checks(agent) == []
    agent.handle_timeout(0.01 + NOMINATION_WAIT_SECONDS)
    assert [check.to for check in checks(agent) if check.message.use_candidate] == [OTHER]


def test_candidates_of_an_ip_version_without_a_socket_are_not_paired() -> None:
    agent = started(RemoteCandidate(VIP6, 200), RemoteCandidate(VIP, 100))
    assert agent.remote_addresses == [VIP]


def test_an_answer_without_usable_candidates_fails_at_once() -> None:
    agent = started(RemoteCandidate(VIP6, 200))
    assert agent.state is IceState.FAILED


def test_consent_is_checked_every_two_and_a_half_seconds() -> None:
    agent = connected()
    for round_ in range(1, 4):
        due = agent.poll_timeout()
        assert due == pytest.approx(round_ * CONSENT_SECONDS)
        agent.handle_timeout(due)
        (check,) = checks(agent)
        agent.receive(check.success(), VIP, due)


def test_thirty_seconds_without_an_answer_end_the_call() -> None:
    agent = connected()
    due = agent.poll_timeout()
    while due is not None and agent.state is IceState.CONNECTED:
        agent.handle_timeout(due)
        due, last = agent.poll_timeout(), due
    assert agent.state is IceState.FAILED
    assert last == pytest.approx(CONSENT_EXPIRY_SECONDS)


def two_pairs() -> IceAgent:
    """An agent that selected VIP and has OTHER as a second pair."""
    agent = started(RemoteCandidate(VIP, 100), RemoteCandidate(OTHER, 50))
    first, _ = checks(agent)
    agent.receive(first.success(), VIP, 0.0)
    (nomination,) = checks(agent)
    agent.receive(nomination.success(), VIP, 0.0)
    return agent


def test_while_the_selected_pair_answers_the_others_are_left_alone() -> None:
    agent = two_pairs()
    for now in (2.5, 5.0, 7.5):
        agent.handle_timeout(now)
        (check,) = checks(agent)
        agent.receive(check.success(), check.to, now)
        assert check.to == VIP


def test_when_the_selected_pair_falls_silent_the_first_other_one_that_answers_takes_over() -> None:
    agent = two_pairs()
    for now in (2.5, 3.4):
        agent.handle_timeout(now)
        assert [check.to for check in checks(agent)] == [VIP]
    agent.handle_timeout(4.3)
    vip, other = checks(agent)
    assert (vip.to, other.to, other.message.use_candidate) == (VIP, OTHER, True)
    agent.receive(other.success(), OTHER, 4.4)
    assert (agent.selected, agent.state) == (OTHER, IceState.CONNECTED)


def test_a_late_answer_of_the_selected_pair_keeps_it() -> None:
    agent = two_pairs()
    for now in (2.5, 3.4, 4.3):
        agent.handle_timeout(now)
    *_, vip, other = checks(agent)
    agent.receive(vip.success(), VIP, 4.4)
    agent.receive(other.success(), OTHER, 4.5)
    assert agent.selected == VIP


def test_a_signed_400_to_a_consent_check_fails_at_once() -> None:
    agent = connected()
    agent.handle_timeout(CONSENT_SECONDS)
    (check,) = checks(agent)
    agent.receive(check.refusal(), VIP, CONSENT_SECONDS)
    assert agent.state is IceState.FAILED
    assert "400" in agent.failure


@pytest.mark.parametrize("password", [None, "w" * 24], ids=["unsigned", "signed by somebody else"])
def test_a_400_that_the_other_side_did_not_sign_changes_nothing(password: str | None) -> None:
    agent = connected()
    agent.handle_timeout(CONSENT_SECONDS)
    (check,) = checks(agent)
    agent.receive(check.refusal(password=password), VIP, CONSENT_SECONDS)
    assert (agent.state, agent.ignored) == (IceState.CONNECTED, 1)


def test_a_success_from_another_address_than_was_asked_is_ignored() -> None:
    agent = started()
    (check,) = checks(agent)
    agent.receive(check.success(), OTHER, 0.01)
    assert (agent.selected, agent.ignored) == (None, 1)


def test_the_other_sides_check_is_answered_with_where_it_came_from() -> None:
    agent = connected()
    request = wire.binding_request(
        b"t" * 12, username="client:server", password=LOCAL.pwd, priority=1, ice_controlled=5
    )
    agent.receive(request, VIP, 1.0)
    (transmit,) = sent(agent)
    answer = wire.parse_stun(transmit.data)
    assert transmit.destination == VIP
    assert (answer.cls, answer.transaction_id, answer.xor_mapped_address) == ("success", b"t" * 12, VIP)
    assert answer.verify(LOCAL.pwd)


def test_a_check_with_a_wrong_password_is_not_answered() -> None:
    agent = connected()
    request = wire.binding_request(b"t" * 12, username="client:server", password="wrong", priority=1)
    agent.receive(request, VIP, 1.0)
    assert (sent(agent), agent.ignored) == ([], 1)


def test_a_check_from_an_unknown_address_makes_a_pair_before_one_is_selected() -> None:
    agent = started()
    checks(agent)
    request = wire.binding_request(b"t" * 12, username="client:server", password=LOCAL.pwd, priority=7)
    agent.receive(request, OTHER, 0.01)
    assert set(agent.remote_addresses) == {VIP, OTHER}
    assert OTHER in [transmit.destination for transmit in sent(agent)]


def test_a_restart_keeps_the_selected_pair_until_the_new_one_is_nominated() -> None:
    agent = connected()
    fresh = agent.restart()
    again = Credentials("server2", "r" * 24)
    agent.start(again, [RemoteCandidate(OTHER, 100)], 10.0)
    (check,) = checks(agent)
    assert check.message.username == f"server2:{fresh.ufrag}"
    assert agent.selected == VIP
    agent.receive(check.success(password=again.pwd), OTHER, 10.001)
    (nomination,) = checks(agent)
    agent.receive(nomination.success(password=again.pwd), OTHER, 10.002)
    assert (agent.selected, agent.state) == (OTHER, IceState.CONNECTED)


def test_checks_that_still_use_the_old_credentials_are_answered_during_a_restart() -> None:
    agent = connected()
    agent.restart()
    request = wire.binding_request(b"t" * 12, username="client:server", password=LOCAL.pwd, priority=1)
    agent.receive(request, VIP, 1.0)
    assert wire.parse_stun(sent(agent)[0].data).verify(LOCAL.pwd)


@pytest.mark.parametrize("datagram", [b"", b"\0", b"\0" * 20, b"\x00\x01\xff\xff" + b"\0" * 16])
def test_garbage_is_counted_and_nothing_else(datagram: bytes) -> None:
    agent = connected()
    agent.receive(datagram, VIP, 1.0)
    assert (agent.ignored, sent(agent), agent.state) == (1, [], IceState.CONNECTED)


def test_a_password_is_not_in_the_text_of_credentials() -> None:
    assert LOCAL.pwd not in repr(LOCAL)
