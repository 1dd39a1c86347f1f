"""When a worker's drain warns and ends: a table of times, and the calls that hear of it."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from voicecluster.transceiver.drain import WARNING_SECONDS, Cordon, Drain, DrainReport, Step

DEADLINE = 1_900_000_000.0
WARN_AT = DEADLINE - WARNING_SECONDS


def steps(drain: Drain, now: float) -> list[Step]:
    """All that is due now."""
    due = []
    while (step := drain.due(now)) is not Step.NOTHING:
        due.append(step)
    return due


def begun(deadline: float = DEADLINE) -> Drain:
    drain = Drain()
    drain.begin(deadline)
    return drain


def test_nothing_is_due_until_half_a_minute_before_the_deadline() -> None:
    drain = begun()
    assert steps(drain, WARN_AT - 0.1) == []
    assert drain.wait(WARN_AT - 100) == 100


def test_clients_are_warned_once_half_a_minute_before_the_deadline() -> None:
    drain = begun()
    assert steps(drain, WARN_AT) == [Step.WARN]
    assert steps(drain, WARN_AT + 1) == []
    assert drain.wait(WARN_AT) == WARNING_SECONDS


def test_calls_end_once_at_the_deadline() -> None:
    drain = begun()
    steps(drain, WARN_AT)
    assert steps(drain, DEADLINE) == [Step.END]
    assert steps(drain, DEADLINE + 1) == []
    assert drain.wait(DEADLINE) is None


def test_a_deadline_that_is_near_warns_at_once() -> None:
    drain = begun()
    assert drain.wait(DEADLINE - 5) == 0
    assert steps(drain, DEADLINE - 5) == [Step.WARN]


def test_a_deadline_that_is_past_warns_and_ends_at_once() -> None:
    assert steps(begun(), DEADLINE + 60) == [Step.WARN, Step.END]


def test_the_same_drain_again_changes_nothing() -> None:
    drain = begun()
    steps(drain, WARN_AT)
    drain.begin(DEADLINE)
    assert steps(drain, WARN_AT + 1) == []


def test_a_later_deadline_warns_anew() -> None:
    drain = begun()
    steps(drain, WARN_AT)
    drain.begin(DEADLINE + 600)
    assert steps(drain, DEADLINE) == []
    assert steps(drain, WARN_AT + 600) == [Step.WARN]


def test_after_a_cancel_nothing_is_ever_due() -> None:
    drain = begun()
    drain.cancel()
    assert drain.deadline is None
    assert steps(drain, DEADLINE + 60) == []
    assert drain.wait(DEADLINE) is None


@dataclass
class FakeCall:
    """Notes until when it was told to last."""

    told: list[float | None] = field(default_factory=list)

    def announce_drain(self, until: float | None) -> None:
        self.told.append(until)


@dataclass
class FakeCalls:
    """One call, until all are ended."""

    cordoned: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    reason: str = ""
    call: FakeCall = field(default_factory=FakeCall)

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[FakeCall]:
        return iter([self.call])

    def end_all(self, reason: str) -> None:
        self.reason = reason
        self.ended.set()

    def oldest_seconds(self) -> float | None:
        return 12.5


@pytest.fixture
def calls() -> FakeCalls:
    return FakeCalls()


@pytest.fixture
async def cordon(calls: FakeCalls) -> Cordon:
    """Its clock stands still a quarter of a second before the deadline."""
    return Cordon(calls, loop=asyncio.get_running_loop(), clock=lambda: DEADLINE - 0.25)


async def test_a_cordon_takes_no_calls_and_warns_those_there_are(calls: FakeCalls, cordon: Cordon) -> None:
    cordon.begin(DEADLINE)
    assert calls.cordoned
    assert calls.call.told == [pytest.approx(asyncio.get_running_loop().time() + 0.25, abs=0.1)]
    assert cordon.report() == DrainReport(1, 12.5)
    cordon.close()


async def test_a_cordon_ends_the_calls_at_its_deadline(calls: FakeCalls) -> None:
    now = DEADLINE - 0.05
    loop = asyncio.get_running_loop()
    start = loop.time()
    cordon = Cordon(calls, loop=loop, clock=lambda: now + loop.time() - start)
    cordon.begin(DEADLINE)
    async with asyncio.timeout(5):
        await calls.ended.wait()
    assert loop.time() - start >= 0.05
    assert calls.reason == "drained"
    assert calls.cordoned, "it takes no calls after its deadline either"


async def test_a_cancelled_cordon_takes_calls_and_lets_those_there_are_be(
    calls: FakeCalls, cordon: Cordon
) -> None:
    cordon.begin(DEADLINE)
    cordon.cancel()
    assert not calls.cordoned
    assert calls.call.told[-1] is None
    assert cordon.deadline is None
    assert not calls.ended.is_set()
