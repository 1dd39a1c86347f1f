"""How a relay leaves, second by second."""

import pytest
from voicecluster.relay.leaving import LeavingRelay, Stage


class Departing:
    """A leaving relay with callers who send every second, while they are here."""

    def __init__(self, grace_seconds: float = 120) -> None:
        self.relay = LeavingRelay(told_at=0, now=0, grace_seconds=grace_seconds, packets=5)
        self.now = 0
        self.packets = 5

    def run(self, seconds: int, *, successor: bool, talking: bool) -> Stage:
        for _ in range(seconds):
            self.now += 1
            self.packets += talking
            self.relay.update(now=self.now, successor=successor, packets=self.packets)
        return self.relay.stage


@pytest.fixture
def departing() -> Departing:
    return Departing()


def test_it_stays_ready_while_there_is_no_successor(departing: Departing) -> None:
    assert departing.run(100, successor=False, talking=True) is Stage.STAYING
    assert departing.relay.is_ready


def test_it_stops_being_ready_when_a_successor_is(departing: Departing) -> None:
    departing.run(20, successor=False, talking=True)
    assert departing.run(1, successor=True, talking=True) is Stage.MOVING
    assert not departing.relay.is_ready


def test_it_forwards_for_ten_seconds_after_that_even_if_nobody_talks(departing: Departing) -> None:
    departing.run(1, successor=True, talking=True)
    assert departing.run(9, successor=True, talking=False) is Stage.MOVING
    assert departing.run(1, successor=True, talking=False) is Stage.GONE


def test_it_forwards_as_long_as_packets_come(departing: Departing) -> None:
    assert departing.run(60, successor=True, talking=True) is Stage.MOVING
    assert departing.run(9, successor=True, talking=False) is Stage.MOVING
    assert departing.run(1, successor=True, talking=False) is Stage.GONE


@pytest.mark.parametrize("successor", [True, False])
def test_it_is_gone_before_it_would_be_killed(departing: Departing, successor: bool) -> None:
    assert departing.run(113, successor=successor, talking=True) is not Stage.GONE
    assert departing.run(1, successor=successor, talking=True) is Stage.GONE


def test_half_of_a_short_grace_period_is_used() -> None:
    assert Departing(4).run(2, successor=False, talking=True) is Stage.GONE


def test_a_relay_without_callers_leaves_after_ten_seconds(departing: Departing) -> None:
    assert departing.run(9, successor=False, talking=False) is Stage.STAYING
    assert departing.run(1, successor=False, talking=False) is Stage.GONE


def test_a_successor_that_vanishes_makes_it_ready_again(departing: Departing) -> None:
    departing.run(5, successor=True, talking=True)
    assert departing.run(1, successor=False, talking=True) is Stage.STAYING
    assert departing.run(1, successor=True, talking=True) is Stage.MOVING


def test_going_on_for_a_killed_process_it_keeps_the_time_of_the_signal() -> None:
    relay = LeavingRelay(told_at=-110, now=0, grace_seconds=120, packets=0)
    assert relay.update(now=3, successor=False, packets=1) is Stage.STAYING
    assert relay.update(now=4, successor=False, packets=2) is Stage.GONE


def test_gone_is_the_end(departing: Departing) -> None:
    departing.run(20, successor=False, talking=False)
    assert departing.run(5, successor=True, talking=True) is Stage.GONE
