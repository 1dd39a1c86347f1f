"""The media clock, on a loop whose time is set by hand."""

import asyncio
from collections.abc import Callable

from voicecluster.transceiver.clock import FRAME_SECONDS, MOST_MISSED_SLOTS, SLOTS, MediaClock


class Timer:
    """What `call_at` returns."""

    def __init__(self, when: float, act: Callable[[], None]) -> None:
        self.when, self.act = when, act
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Loop:
    """Only time and timers; `advance` runs those that are due, `late` seconds after their time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, act: Callable[[], None]) -> Timer:
        self.timers.append(Timer(when, act))
        return self.timers[-1]

    def advance(self, seconds: float, *, late: float = 0.0) -> None:
        end = self.now + seconds
        while due := [timer for timer in self.timers if not timer.cancelled and timer.when + late <= end]:
            timer = min(due, key=lambda each: each.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when + late)
            timer.act()
        self.now = end

    @property
    def armed(self) -> int:
        return sum(not timer.cancelled for timer in self.timers)


def clock_on(loop: Loop) -> MediaClock:
    as_loop: asyncio.AbstractEventLoop = loop  # type: ignore[assignment]
    return MediaClock(as_loop)


def test_a_call_is_ticked_once_per_frame_however_late_the_timer_is() -> None:
    loop, ticks = Loop(), list[float]()
    clock_on(loop).add(ticks.append)
    loop.advance(1.0, late=0.004)
    assert len(ticks) in (49, 50)


def test_calls_are_spread_over_the_slots_of_a_frame() -> None:
    loop = Loop()
    clock = clock_on(loop)
    ticks: list[list[float]] = [[] for _ in range(SLOTS)]
    for each in ticks:
        clock.add(each.append)
    loop.advance(FRAME_SECONDS + 0.001)
    assert sorted(round(each[0] - 100.0, 3) for each in ticks) == [0.005, 0.010, 0.015, 0.020]


def test_a_short_stall_is_made_up_and_a_long_one_is_not() -> None:
    loop, ticks = Loop(), list[float]()
    clock = clock_on(loop)
    clock.add(ticks.append)
    loop.now += 0.1
    loop.advance(0.001)
    assert len(ticks) == 5
    loop.now += 10.0
    loop.advance(0.001)
    assert len(ticks) <= 5 + MOST_MISSED_SLOTS // SLOTS + 1
    assert clock.missed_ticks > 0


def test_without_calls_no_timer_runs() -> None:
    loop = Loop()
    clock = clock_on(loop)
    tick: Callable[[float], None] = lambda _: None  # noqa: E731  a lambda has an identity of its own
    clock.add(tick)
    assert loop.armed == 1
    clock.remove(tick)
    assert loop.armed == 0
    clock.remove(tick)


def test_a_tick_may_remove_itself() -> None:
    loop, ticks = Loop(), list[float]()
    clock = clock_on(loop)

    def once(now: float) -> None:
        ticks.append(now)
        clock.remove(once)

    clock.add(once)
    loop.advance(1.0)
    assert len(ticks) == 1
    assert loop.armed == 0
