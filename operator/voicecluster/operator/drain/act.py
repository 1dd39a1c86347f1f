"""Carries out what was decided about drains, and tells of it in events."""

from dataclasses import replace

from voicecluster.operator.drain.admin import Transceivers
from voicecluster.operator.drain.decide import WHY, Begin, Cancel, Drain, DrainPlan, Remove, Wish
from voicecluster.operator.events import EventReason, Occurrence
from voicecluster.operator.fields import text
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Kube, Object
from voicecluster.operator.status.conditions import timestamp
from voicecluster.operator.workloads import Pod


async def act(
    kube: Kube, transceivers: Transceivers, token: str, about: Object, plan: DrainPlan, wish: Wish
) -> tuple[tuple[Drain, ...], list[Occurrence]]:
    """Do what the plan says; the StatefulSet has its replicas already.

    Returns the drains under way with what the pods said, and what is worth an event. `about` is the VoiceRegion.
    A pod that does not answer is asked again the next time. Raises KubeError.
    """
    drains = {drain.pod: drain for drain in plan.drains}
    told: list[Occurrence] = []
    for action in plan.actions:
        match action:
            case Begin(pod, drain):
                answer = await transceivers.drain(pod, token, drain.deadline)
                if answer is not None and answer.draining:
                    drains[pod.name] = replace(drain, calls=answer.calls)
            case Cancel(pod):
                if await transceivers.cancel(pod, token) is not None:
                    told.append(_cancelled(about, pod))
            case Remove(pod):
                await kube.delete(port.PODS, text(about, "metadata", "namespace"), pod.name, uid=pod.uid)
    before = {drain.pod for drain in wish.drains if drain.calls is not None}
    uids = {pod.name: pod.uid for pod in wish.pods}
    begun = [drain for drain in drains.values() if drain.calls is not None and drain.pod not in before]
    told += [_started(about, drain, uids.get(drain.pod, "")) for drain in begun]
    told += [_finished(about, drain, uids.get(drain.pod, "")) for drain in plan.finished]
    return tuple(drains.values()), told


def _started(about: Object, drain: Drain, uid: str) -> Occurrence:
    message = (
        f"Pod {drain.pod} takes no new calls, since {WHY.get(drain.reason, drain.reason)}; it ends those that are"
        f" left at {timestamp(drain.deadline)}."
    )
    return Occurrence(about, EventReason.DRAIN_STARTED, message, once=uid)


def _cancelled(about: Object, pod: Pod) -> Occurrence:
    message = f"Pod {pod.name} is wanted after all: it takes calls again."
    return Occurrence(
        about,
        EventReason.DRAIN_CANCELLED,
        message,
        once=f"{pod.uid} {text(about, 'metadata', 'resourceVersion')}",
    )


def _finished(about: Object, drain: Drain, uid: str) -> Occurrence:
    how = "its calls have ended" if drain.calls == 0 else "the time for its calls is up"
    message = f"Pod {drain.pod} goes, since {WHY.get(drain.reason, drain.reason)}: {how}."
    return Occurrence(about, EventReason.DRAIN_FINISHED, message, once=uid)
