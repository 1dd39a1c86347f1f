"""Who drains, who is cancelled, who goes, and how many replicas a region has meanwhile. Pure.

One transceiver of a region drains at a time. A StatefulSet is scaled down from its highest ordinal, so that one
drains first, and `replicas` is lowered only when its calls have ended: a pod of an ordinal that is still asked for
is never in the way. A pod of an old template drains and is then deleted. What has begun is finished before the
next, unless it is no longer wanted: then it takes calls again.

A pod that somebody else deletes (`kubectl drain` of its node, for one) ends its calls by itself; it is only
reported, so that people see who waits for whom.

Pods that do not run have no calls, so they need no drain. One that cannot be asked keeps its calls until its
deadline has passed by 30 seconds: by then it has ended them itself.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TypeAlias

from voicecluster.operator.workloads import Pod, Workload

GRACE = timedelta(seconds=30)
POLL_SECONDS = 2.0
"""Between two looks at the calls of a pod that drains."""
RETRY_SECONDS = 10.0
"""Between two tries to ask a pod that may be draining without being wanted to."""


class DrainReason(StrEnum):
    """Why a transceiver drains."""

    SCALE_DOWN = "ScaleDown"
    """Fewer transceivers are asked for."""
    OUTDATED = "Outdated"
    """Its template has changed: it is replaced."""
    DELETED = "Deleted"
    """Somebody deleted it, or drains its node. It waits for its calls by itself."""


WHY = {
    DrainReason.SCALE_DOWN.value: "fewer transceivers are asked for",
    DrainReason.OUTDATED.value: "its template has changed",
    DrainReason.DELETED.value: "it was deleted, or its node is drained",
}


@dataclass(frozen=True, slots=True)
class Told:
    """What a transceiver says about its drain."""

    draining: bool
    calls: int
    deadline: datetime | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain that is under way."""

    pod: str
    reason: str
    deadline: datetime
    calls: int | None = None
    """None while it has not said that it drains, and how many are left."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Ask a pod to take no new calls."""

    pod: Pod
    drain: Drain


@dataclass(frozen=True, slots=True)
class Cancel:
    """Let a pod take calls again."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a pod, to be made anew from the present template. `drain` is None if it had no calls to wait for."""

    pod: Pod
    drain: Drain | None


Action: TypeAlias = Begin | Cancel | Remove


@dataclass(frozen=True, slots=True)
class Wish:
    """One region's transceivers as they are and shall be."""

    replicas: int
    """As asked for."""
    first: int
    """The lowest ordinal."""
    workload: Workload
    pods: Sequence[Pod]
    drains: Sequence[Drain]
    """As last reported."""
    timeout: timedelta
    """How long a drain waits for calls to end by themselves."""

    def pod(self, ordinal: int) -> Pod | None:
        """The pod with this ordinal."""
        return next((pod for pod in self.pods if pod.ordinal == ordinal), None)

    def drain(self, pod: Pod) -> Drain | None:
        """The drain of ours of a pod, as last reported."""
        ours = (drain for drain in self.drains if drain.reason != DrainReason.DELETED)
        return next((drain for drain in ours if drain.pod == pod.name), None)


@dataclass(frozen=True, slots=True)
class DrainPlan:
    """What is to happen in one region now."""

    replicas: int
    """Of the StatefulSet."""
    actions: tuple[Action, ...] = ()
    drains: tuple[Drain, ...] = ()
    """Under way after the actions."""
    finished: tuple[Drain, ...] = ()
    """Those whose pods go now."""
    wait_seconds: float | None = None
    """When to look again, if nothing happens before."""


def questions(wish: Wish) -> tuple[Pod, ...]:
    """The pods whose answers `decide` needs."""
    candidates = {candidate.name for candidate, _ in _candidates(wish, _lowered(wish, {}, None)[0])}
    reported = {drain.pod for drain in wish.drains}
    return tuple(
        pod
        for pod in wish.pods
        if pod.running
        and pod.address
        and (not pod.ready or pod.terminating or pod.name in candidates or pod.name in reported)
    )


def decide(wish: Wish, told: Mapping[str, Told | None], now: datetime) -> DrainPlan:
    """The next step. `told` has every pod that was asked, with None for those that could not be."""
    if not wish.workload.exists:
        return DrainPlan(wish.replicas)
    replicas, finished = _lowered(wish, told, now)
    actions: list[Action] = []
    drains: list[Drain] = []
    waits: list[float] = []
    wanted = list(_candidates(wish, replicas))
    for pod, reason in wanted:
        if not _alive(pod):
            actions.append(Remove(pod, None))
            continue
        drain = _current(wish, pod, reason, told.get(pod.name), now)
        if _over(drain, told.get(pod.name), now):
            finished.append(drain)
            actions.append(Remove(pod, drain))
            continue
        drains.append(drain)
        waits.append(POLL_SECONDS)
        answer = told.get(pod.name)
        if answer is not None and not answer.draining:
            actions.append(Begin(pod, drain))
    names = {pod.name for pod, _ in wanted} | {drain.pod for drain in finished}
    for drain in _ending(wish, told):
        drains.append(drain)
        waits.append(POLL_SECONDS)
    for pod in wish.pods:
        answer = told.get(pod.name)
        if pod.name in names or not _alive(pod) or pod.ordinal >= wish.first + replicas:
            continue  # one beyond `replicas` is about to go: it must not take calls again
        if answer is not None and answer.draining:
            actions.append(Cancel(pod))
        elif answer is None and not pod.ready and pod.name in told:
            waits.append(RETRY_SECONDS)
    return DrainPlan(replicas, tuple(actions), tuple(drains), tuple(finished), min(waits, default=None))


def _ending(wish: Wish, told: Mapping[str, Told | None]) -> Iterator[Drain]:
    """Pods that end by themselves and still have calls."""
    for pod in wish.pods:
        answer = told.get(pod.name)
        if pod.terminating and pod.ends is not None and answer is not None and answer.calls > 0:
            yield Drain(pod.name, DrainReason.DELETED.value, answer.deadline or pod.ends, answer.calls)


def _lowered(wish: Wish, told: Mapping[str, Told | None], now: datetime | None) -> tuple[int, list[Drain]]:
    """The replicas after all that need no waiting are gone, and the drains that ended so."""
    replicas = max(wish.replicas, wish.workload.desired)
    finished = []
    while replicas > wish.replicas:
        pod = wish.pod(wish.first + replicas - 1)
        if pod is not None and _alive(pod):
            if now is None:
                break
            drain = _current(wish, pod, DrainReason.SCALE_DOWN, told.get(pod.name), now)
            if not _over(drain, told.get(pod.name), now):
                break
            finished.append(drain)
        replicas -= 1
    return replicas, finished


def _candidates(wish: Wish, replicas: int) -> Iterator[tuple[Pod, DrainReason]]:
    """Who shall go now: outdated pods without calls at once, of the others at most one."""
    kept = [pod for pod in wish.pods if wish.first <= pod.ordinal < wish.first + replicas]
    outdated = [pod for pod in kept if _outdated(wish, pod) and not pod.terminating]
    yield from ((pod, DrainReason.OUTDATED) for pod in outdated if not _alive(pod))
    outdated = [pod for pod in outdated if _alive(pod)]
    begun = [pod for pod in outdated if wish.drain(pod) is not None]
    top = wish.pod(wish.first + replicas - 1) if replicas > wish.replicas else None
    if top is not None and (not begun or top in begun):
        yield top, DrainReason.SCALE_DOWN
    elif begun:
        yield begun[0], DrainReason.OUTDATED
    elif outdated and _others_ready(wish, kept, replicas):
        yield max(outdated, key=lambda pod: (not pod.ready, pod.ordinal)), DrainReason.OUTDATED


def _others_ready(wish: Wish, kept: Sequence[Pod], replicas: int) -> bool:
    """Whether no pod is going or coming, nor fails with the present template: a bad one stops at its first pod."""
    there = len(kept) == replicas and not any(pod.terminating for pod in kept)
    return there and all(pod.ready or _outdated(wish, pod) for pod in kept)


def _outdated(wish: Wish, pod: Pod) -> bool:
    known = wish.workload.settled and wish.workload.revision and pod.revision
    return bool(known) and pod.revision != wish.workload.revision


def _alive(pod: Pod) -> bool:
    """Whether it may have calls that it does not end by itself already."""
    return pod.running and not pod.terminating


def _current(wish: Wish, pod: Pod, reason: DrainReason, told: Told | None, now: datetime) -> Drain:
    known = wish.drain(pod)
    calls = told.calls if told is not None and told.draining else None
    if known is not None and told is None:
        calls = known.calls  # as it said last: it may only be busy
    serving = told is not None and not told.draining
    if known is not None and not (serving and known.deadline <= now):
        return replace(known, calls=calls, reason=reason.value)
    deadline = told.deadline if told is not None and told.draining else None
    return Drain(pod.name, reason.value, deadline or (now + wish.timeout).replace(microsecond=0), calls)


def _over(drain: Drain, told: Told | None, now: datetime) -> bool:
    if told is not None and not told.draining:
        return False  # it never heard of the drain, or has restarted since
    return (told is not None and told.calls == 0) or now >= drain.deadline + GRACE
