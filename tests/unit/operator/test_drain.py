"""Who drains when, and how many replicas there are meanwhile: one step at a time, with the time as an argument."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from voicecluster.operator.drain.decide import (
    Begin,
    Cancel,
    Drain,
    DrainPlan,
    DrainReason,
    Remove,
    Told,
    Wish,
    decide,
    questions,
)
from voicecluster.operator.workloads import Pod, Workload

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
SERVING = Told(draining=False, calls=5)
DRAINING = Told(draining=True, calls=5, deadline=NOW + HOUR)
EMPTY = Told(draining=True, calls=0, deadline=NOW + HOUR)


def pod(n: int, **more: object) -> Pod:
    found = Pod(
        name=f"t-{n}",
        uid=f"uid-{n}",
        node="n1",
        address="10.0.0.1",
        running=True,
        ready=True,
        terminating=False,
        revision="new",
    )
    return replace(found, **more)  # type: ignore[arg-type]


def wish(replicas: int, pods: Sequence[Pod], *, has: int | None = None, drains: Sequence[Drain] = ()) -> Wish:
    workload = Workload(
        "StatefulSet",
        "t",
        exists=True,
        settled=True,
        desired=len(pods) if has is None else has,
        revision="new",
    )
    return Wish(replicas, 1024, workload, pods, drains, HOUR)


def pods(count: int) -> list[Pod]:
    return [pod(1024 + n) for n in range(count)]


def scale_down(n: int, *, left: timedelta = HOUR) -> Drain:
    return Drain(f"t-{n}", DrainReason.SCALE_DOWN.value, NOW + left)


def told(*answers: tuple[int, Told | None]) -> dict[str, Told | None]:
    return {f"t-{n}": answer for n, answer in answers}


def test_nothing_happens_where_all_is_as_asked_for() -> None:
    assert decide(wish(2, pods(2)), {}, NOW) == DrainPlan(2)


def test_more_replicas_come_at_once() -> None:
    assert decide(wish(5, pods(2)), {}, NOW).replicas == 5


def test_without_a_stateful_set_the_wish_is_what_is_made() -> None:
    asked = replace(wish(3, []), workload=Workload("StatefulSet", "t"))
    assert decide(asked, {}, NOW) == DrainPlan(3)


def test_a_scale_down_drains_the_highest_ordinal_first_and_keeps_the_replicas() -> None:
    asked = wish(1, pods(3))
    assert [each.name for each in questions(asked)] == ["t-1026"]
    plan = decide(asked, told((1026, SERVING)), NOW)
    drain = Drain("t-1026", "ScaleDown", NOW + HOUR)
    assert plan.replicas == 3
    assert plan.actions == (Begin(pod(1026), drain),)
    assert plan.drains == (drain,)
    assert plan.wait_seconds == 2.0


def test_a_drain_that_is_under_way_is_waited_for() -> None:
    plan = decide(wish(1, pods(2), drains=[scale_down(1025)]), told((1025, DRAINING)), NOW)
    assert plan.replicas == 2
    assert plan.actions == ()
    assert plan.drains[0].calls == 5


def test_a_pod_that_is_too_busy_to_answer_has_the_calls_it_said_last() -> None:
    before = replace(scale_down(1025), calls=5)
    assert decide(wish(1, pods(2), drains=[before]), told((1025, None)), NOW).drains == (before,)


def test_replicas_are_lowered_by_one_when_the_calls_have_ended() -> None:
    plan = decide(wish(1, pods(3), drains=[scale_down(1026)]), told((1026, EMPTY)), NOW)
    assert plan.replicas == 2
    assert [each.pod for each in plan.finished] == ["t-1026"]


def test_replicas_are_not_lowered_while_the_pod_still_takes_calls() -> None:
    idle = Told(draining=False, calls=0)
    assert decide(wish(1, pods(2)), told((1025, idle)), NOW).replicas == 2


def test_a_pod_without_running_containers_needs_no_drain() -> None:
    asked = wish(1, [*pods(1), pod(1025, running=False, ready=False)])
    assert decide(asked, {}, NOW) == DrainPlan(1)


def test_a_pod_that_was_never_made_or_is_gone_needs_no_drain() -> None:
    assert decide(wish(1, pods(1), has=4), {}, NOW) == DrainPlan(1)


def test_a_pod_that_is_being_deleted_already_needs_no_drain() -> None:
    assert decide(wish(1, [*pods(1), pod(1025, terminating=True)]), {}, NOW).replicas == 1


def test_a_pod_that_does_not_answer_keeps_its_calls_until_its_deadline_has_passed() -> None:
    before = wish(1, pods(2), drains=[scale_down(1025, left=timedelta(seconds=-29))])
    assert decide(before, told((1025, None)), NOW).replicas == 2
    after = wish(1, pods(2), drains=[scale_down(1025, left=timedelta(seconds=-30))])
    assert decide(after, told((1025, None)), NOW).replicas == 1


def test_a_pod_that_restarted_during_its_drain_is_asked_again_with_the_same_deadline() -> None:
    drain = scale_down(1025, left=timedelta(minutes=10))
    plan = decide(wish(1, pods(2), drains=[drain]), told((1025, SERVING)), NOW)
    assert plan.actions == (Begin(pod(1025), drain),)


def test_a_pod_that_never_heard_of_its_drain_is_not_cut_off_by_an_old_deadline() -> None:
    drain = scale_down(1025, left=timedelta(hours=-2))
    plan = decide(wish(1, pods(2), drains=[drain]), told((1025, SERVING)), NOW)
    assert plan.replicas == 2
    assert plan.drains[0].deadline == NOW + HOUR


def test_a_drain_that_the_status_has_lost_goes_on_with_the_pods_own_deadline() -> None:
    started = Told(draining=True, calls=1, deadline=NOW + timedelta(minutes=3))
    plan = decide(wish(1, pods(2)), told((1025, started)), NOW)
    assert plan.actions == ()
    assert plan.drains[0].deadline == NOW + timedelta(minutes=3)


def test_a_scale_up_cancels_the_drain() -> None:
    drained = pod(1025, ready=False)
    plan = decide(wish(2, [*pods(1), drained], drains=[scale_down(1025)]), told((1025, DRAINING)), NOW)
    assert plan == DrainPlan(2, (Cancel(drained),))


def test_a_pod_that_drains_without_being_wanted_to_is_asked_and_cancelled() -> None:
    stray = pod(1024, ready=False)
    asked = wish(1, [stray])
    assert questions(asked) == (stray,)
    assert decide(asked, told((1024, DRAINING)), NOW).actions == (Cancel(stray),)


def test_a_pod_that_may_drain_unasked_and_does_not_answer_is_asked_again_later() -> None:
    plan = decide(wish(1, [pod(1024, ready=False)]), told((1024, None)), NOW)
    assert plan.actions == ()
    assert plan.wait_seconds == 10.0


def test_a_drained_pod_beyond_the_replicas_does_not_take_calls_again() -> None:
    asked = wish(1, [*pods(1), pod(1025, ready=False)], has=1)
    assert decide(asked, told((1025, EMPTY)), NOW) == DrainPlan(1)


def test_an_outdated_pod_drains_and_is_then_deleted() -> None:
    old = pod(1025, revision="old")
    asked = wish(2, [pod(1024), old])
    plan = decide(asked, told((1025, SERVING)), NOW)
    assert [type(each) for each in plan.actions] == [Begin]
    assert plan.drains[0].reason == "Outdated"
    drain = replace(plan.drains[0], calls=0)
    plan = decide(replace(asked, drains=[drain]), told((1025, EMPTY)), NOW)
    assert plan.actions == (Remove(old, drain),)
    assert plan.finished == (drain,)
    assert plan.drains == ()
    assert plan.replicas == 2


def test_one_outdated_pod_drains_at_a_time() -> None:
    asked = wish(3, [pod(1024 + n, revision="old") for n in range(3)])
    assert [each.name for each in questions(asked)] == ["t-1026"]
    plan = decide(asked, told((1026, SERVING)), NOW)
    assert [each.pod for each in plan.drains] == ["t-1026"]


def test_the_next_outdated_pod_waits_until_the_new_one_is_ready() -> None:
    old = pod(1024, revision="old")
    assert decide(wish(2, [old, pod(1025, ready=False)]), told((1025, None)), NOW).drains == ()
    assert decide(wish(2, [old], has=2), {}, NOW).drains == ()
    assert decide(wish(2, [old, pod(1025, revision="old", terminating=True)]), {}, NOW).drains == ()
    assert [each.pod for each in decide(wish(2, [old, pod(1025)]), {}, NOW).drains] == ["t-1024"]


def test_outdated_pods_that_do_not_run_are_replaced_at_once() -> None:
    broken = [pod(1024 + n, revision="old", running=False, ready=False) for n in range(2)]
    plan = decide(wish(2, broken), {}, NOW)
    assert plan.actions == tuple(Remove(each, None) for each in broken)
    assert plan.drains == ()


def test_an_update_that_has_begun_is_finished_before_a_scale_down() -> None:
    old = pod(1024, revision="old")
    begun = Drain("t-1024", "Outdated", NOW + HOUR)
    plan = decide(wish(1, [old, pod(1025)], drains=[begun]), told((1024, DRAINING)), NOW)
    assert [each.pod for each in plan.drains] == ["t-1024"]
    assert plan.replicas == 2


def test_an_outdated_pod_that_is_scaled_away_is_not_replaced_first() -> None:
    both = [pod(1024, revision="old"), pod(1025, revision="old")]
    plan = decide(wish(1, both), told((1025, SERVING)), NOW)
    assert [(each.pod, each.reason) for each in plan.drains] == [("t-1025", "ScaleDown")]


def test_revisions_are_not_compared_before_the_controller_has_seen_the_template() -> None:
    asked = wish(1, [pod(1024, revision="old")])
    asked = replace(asked, workload=replace(asked.workload, settled=False))
    assert decide(asked, {}, NOW) == DrainPlan(1)


def test_a_pod_that_somebody_else_deletes_is_reported_while_it_has_calls_and_left_alone() -> None:
    going = pod(1024, terminating=True, ready=False, ends=NOW + HOUR)
    asked = wish(1, [going])
    assert questions(asked) == (going,)
    plan = decide(asked, told((1024, replace(DRAINING, deadline=None))), NOW)
    assert plan.actions == ()
    assert plan.drains == (Drain("t-1024", "Deleted", NOW + HOUR, 5),)
    assert plan.wait_seconds == 2.0
    assert decide(asked, told((1024, EMPTY)), NOW) == DrainPlan(1)


def test_a_report_of_a_deleted_pod_is_no_drain_of_the_one_that_follows_it() -> None:
    before = Drain("t-1025", "Deleted", NOW - HOUR, 1)
    plan = decide(wish(1, pods(2), drains=[before]), told((1025, None)), NOW)
    assert plan.replicas == 2
    assert plan.drains[0].deadline == NOW + HOUR
