"""Which VoiceCluster is reconciled when: the schedule by arithmetic, the queue that runs it with real tasks."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from voicecluster.operator.kube.port import Conflict, Unavailable
from voicecluster.operator.metrics import Metrics
from voicecluster.operator.queue import Key, Pace, Schedule, WorkQueue

ONE, TWO = Key("voice", "one"), Key("voice", "two")
PACE = Pace(settle_seconds=0.1, rest_seconds=2.0, retry_seconds=1.0, longest_retry_seconds=300.0, jitter=0.2)


def schedule(chance: float = 0.5) -> Schedule:
    return Schedule(PACE, chance=lambda: chance)


def test_a_key_is_written_namespace_first() -> None:
    assert str(ONE) == "voice/one"


def test_an_event_is_acted_upon_when_it_has_settled() -> None:
    plan = schedule()
    plan.add(ONE, 10.0)
    assert plan.take(10.05) is None
    assert plan.wakes_at() == pytest.approx(10.1)
    assert plan.take(10.1) == (ONE, pytest.approx(0.1))


def test_many_events_are_one_reconcile() -> None:
    plan = schedule()
    for at in (10.0, 10.02, 10.09):
        plan.add(ONE, at)
    assert plan.take(10.2) is not None
    assert plan.take(10.2) is None


def test_events_while_it_runs_make_it_run_once_more() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    plan.take(1.0)
    plan.add(ONE, 1.1)
    plan.add(ONE, 1.2)
    assert plan.take(5.0) is None, "it runs already"
    plan.succeeded(ONE, 1.3, took=0.3, again=None)
    assert plan.take(1.6) == (ONE, pytest.approx(0.5))
    plan.succeeded(ONE, 1.7, took=0.1, again=None)
    assert plan.wakes_at() is None


def test_different_keys_run_at_once() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    plan.add(TWO, 0.0)
    assert {found[0] for found in (plan.take(1.0), plan.take(1.0)) if found} == {ONE, TWO}


def test_the_key_that_is_due_longest_comes_first() -> None:
    plan = schedule()
    plan.add(TWO, 0.0)
    plan.add(ONE, 0.5)
    assert plan.take(1.0) == (TWO, 1.0)


def test_a_long_reconcile_rests_as_long() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    plan.take(0.1)
    plan.succeeded(ONE, 1.1, took=1.0, again=None)
    plan.add(ONE, 1.1)
    assert plan.wakes_at() == pytest.approx(2.1)


def test_the_rest_has_an_end() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    plan.take(0.1)
    plan.succeeded(ONE, 60.0, took=60.0, again=None)
    plan.add(ONE, 60.0)
    assert plan.wakes_at() == pytest.approx(62.0)


def test_it_comes_again_when_it_asked_to() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    plan.take(0.1)
    plan.succeeded(ONE, 0.2, took=0.1, again=5.0)
    assert plan.take(5.1) is None
    assert plan.take(5.2) == (ONE, pytest.approx(0.0))


@pytest.mark.parametrize(("chance", "pauses"), [(0.5, [1, 2, 4, 8]), (0.0, [0.8, 1.6]), (1.0, [1.2, 2.4])])
def test_pauses_double_and_vary(chance: float, pauses: list[float]) -> None:
    plan, now = schedule(chance), 0.0
    plan.add(ONE, now)
    for pause in pauses:
        now = plan.wakes_at() or 0.0
        plan.take(now)
        assert plan.failed(ONE, now) == pytest.approx(pause)


def test_the_longest_pause_is_five_minutes() -> None:
    plan, now = schedule(), 0.0
    plan.add(ONE, now)
    for _ in range(50):
        now = plan.wakes_at() or 0.0
        plan.take(now)
        pause = plan.failed(ONE, now)
    assert pause == 300.0


def test_success_forgets_failures() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    plan.take(1.0)
    plan.failed(ONE, 1.0)
    plan.take(2.0)
    plan.succeeded(ONE, 2.0, took=0.0, again=1.0)
    plan.take(3.0)
    assert plan.failed(ONE, 3.0) == 1.0


def test_an_event_shortens_the_pause_after_failures_to_a_second() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    for now in (1.0, 100.0, 200.0, 300.0):
        plan.take(now)
        plan.failed(ONE, now)
    plan.add(ONE, 300.2)
    assert plan.wakes_at() == pytest.approx(301.0)


def test_no_event_shortens_what_the_server_asked_for() -> None:
    plan = schedule()
    plan.add(ONE, 0.0)
    plan.take(1.0)
    assert plan.failed(ONE, 1.0, retry_seconds=30.0) == 30.0
    plan.add(ONE, 1.5)
    assert plan.wakes_at() == 31.0


def test_what_nobody_wants_is_forgotten() -> None:
    plan = schedule()
    for number in range(1000):
        plan.add(Key("voice", str(number)), 0.0)
    while taken := plan.take(1.0):
        plan.succeeded(taken[0], 1.0, took=0.0, again=None)
    plan.take(10.0)
    assert not plan._keys


@given(st.lists(st.tuples(st.sampled_from([ONE, TWO]), st.floats(0, 1)), max_size=60))
def test_every_event_is_followed_by_a_reconcile_that_began_after_it(events: list[tuple[Key, float]]) -> None:
    plan, now = schedule(), 0.0
    last_event: dict[Key, float] = {}
    last_start: dict[Key, float] = {}
    running: dict[Key, float] = {}

    def work(until: float) -> None:
        for key, end in list(running.items()):
            if end <= until:
                del running[key]
                plan.succeeded(key, end, took=0.3, again=None)
        while taken := plan.take(until):
            assert taken[0] not in running
            last_start[taken[0]], running[taken[0]] = until, until + 0.3

    for key, gap in events:
        now += gap
        work(now)
        plan.add(key, now)
        last_event[key] = now
    for _ in range(20):
        now += 0.5
        work(now)
    assert all(last_start[key] >= at for key, at in last_event.items())


@asynccontextmanager
async def running(
    reconcile: Callable[[Key], object], metrics: Metrics, workers: int = 2
) -> AsyncIterator[WorkQueue]:
    async def called(key: Key) -> float | None:
        found = reconcile(key)
        if asyncio.iscoroutine(found):
            found = await found
        assert found is None or isinstance(found, float)
        return found

    quick = Schedule(Pace(settle_seconds=0.0, retry_seconds=0.001, longest_retry_seconds=0.001))
    queue = WorkQueue(called, metrics, workers=workers, schedule=quick)
    task = asyncio.create_task(queue.run())
    yield queue
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_failed_reconcile_is_tried_again_and_counted() -> None:
    metrics, done, tries = Metrics(), asyncio.Event(), list[Key]()

    def reconcile(key: Key) -> None:
        tries.append(key)
        if len(tries) == 1:
            raise Unavailable("apply Service voice/one: 503")
        done.set()

    async with running(reconcile, metrics) as queue:
        queue.add(ONE)
        await done.wait()
    assert tries == [ONE, ONE]
    assert metrics.registry.get_sample_value(
        "voicecluster_operator_reconcile_errors_total", {"reason": "Unavailable"}
    )


@pytest.mark.parametrize(
    ("error", "reason"), [(Conflict("it changed"), "Conflict"), (RuntimeError("a bug"), "Unexpected")]
)
async def test_errors_are_counted_by_kind(error: Exception, reason: str) -> None:
    metrics, failed = Metrics(), asyncio.Event()

    def reconcile(_: Key) -> None:
        failed.set()
        raise error

    async with running(reconcile, metrics) as queue:
        queue.add(ONE)
        await failed.wait()
    assert metrics.registry.get_sample_value(
        "voicecluster_operator_reconcile_errors_total", {"reason": reason}
    )


async def test_one_broken_resource_does_not_stop_the_others() -> None:
    done = asyncio.Event()

    def reconcile(key: Key) -> None:
        if key == ONE:
            raise RuntimeError("broken")
        done.set()

    async with running(reconcile, Metrics()) as queue:
        queue.add(ONE)
        await asyncio.sleep(0)
        queue.add(TWO)
        await done.wait()


async def test_a_slow_resource_does_not_hold_up_the_others() -> None:
    done = asyncio.Event()

    async def reconcile(key: Key) -> None:
        if key == ONE:
            await asyncio.Event().wait()
        done.set()

    async with running(reconcile, Metrics()) as queue:
        queue.add(ONE)
        queue.add(TWO)
        await done.wait()


async def test_no_more_run_at_once_than_there_are_workers() -> None:
    at_once, most, done, let = 0, 0, asyncio.Event(), asyncio.Event()

    async def reconcile(key: Key) -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await let.wait()
        at_once -= 1
        if key.name == "9":
            done.set()

    async with running(reconcile, Metrics(), workers=3) as queue:
        for number in range(10):
            queue.add(Key("voice", str(number)))
        asyncio.get_running_loop().call_later(0.05, let.set)
        await done.wait()
    assert most == 3


async def test_the_text_of_an_unexpected_error_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    failed = asyncio.Event()

    def reconcile(_: Key) -> None:
        failed.set()
        raise ValueError("key c2VjcmV0 is wrong")

    with caplog.at_level(logging.INFO):
        async with running(reconcile, Metrics()) as queue:
            queue.add(ONE)
            await failed.wait()
    assert any(record.message == "reconcile failed unexpectedly" for record in caplog.records)
    assert not any("c2VjcmV0" in str(vars(record)) for record in caplog.records)


async def test_cancelling_the_queue_cancels_what_runs() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def reconcile(_: Key) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with running(reconcile, Metrics()) as queue:
        queue.add(ONE)
        await started.wait()
    assert cancelled.is_set()
