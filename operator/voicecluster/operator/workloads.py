"""Pods and what makes them, as typed values.

A workload that does not exist reads as one with zeroes and `exists` False, so that nobody downstream branches on
None; counts that a controller wrote for an older generation are told apart by `settled`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from voicecluster.operator.fields import at, is_true, items, mapping, number, text, texts
from voicecluster.operator.kube.port import Json, Object
from voicecluster.operator.plan.kubernetes import names


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a pod does not run, in Kubernetes' own words."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Pod:
    """One pod of a region."""

    name: str
    uid: str
    node: str
    address: str
    """Empty until it has one."""
    running: bool
    """All its containers run: only such a pod can have calls."""
    ready: bool
    terminating: bool
    """Told to end; it may have calls until `ends`."""
    revision: str
    """Of the template that it was made from."""
    workers: int = 0
    """Of a transceiver, as its label says."""
    ends: datetime | None = None
    """When a terminating pod is killed."""
    problem: Problem | None = None

    @property
    def ordinal(self) -> int:
        """The number at the end of the name, -1 where there is none."""
        number = re.search(r"-(\d+)$", self.name)
        return int(number[1]) if number else -1


@dataclass(frozen=True, slots=True)
class Workload:
    """A DaemonSet or StatefulSet."""

    kind: str
    name: str
    exists: bool = False
    settled: bool = False
    """Whether its controller has seen its present spec: the counts below are about that."""
    desired: int = 0
    """Pods that it is to have."""
    existing: int = 0
    ready: int = 0
    updated: int = 0
    """Pods of the present template."""
    revision: str = ""
    """Of the present template (StatefulSets)."""
    secrets: frozenset[str] = frozenset()
    """Names of the Secrets that its pods mount."""


def read_pod(pod: Object) -> Pod:
    """A pod as its kubelet and its controller describe it."""
    labels = texts(pod, "metadata", "labels")
    containers = items(pod, "status", "containerStatuses")
    running = text(pod, "status", "phase") == "Running"
    return Pod(
        name=text(pod, "metadata", "name"),
        uid=text(pod, "metadata", "uid"),
        node=text(pod, "spec", "nodeName"),
        address=text(pod, "status", "podIP"),
        running=running and all(at(each, "state", "running") is not None for each in containers),
        ready=is_true(items(pod, "status", "conditions"), "Ready"),
        terminating=at(pod, "metadata", "deletionTimestamp") is not None,
        revision=labels.get("controller-revision-hash", ""),
        workers=int(workers) if (workers := labels.get(names.WORKERS, "")).isdecimal() else 0,
        ends=_time(text(pod, "metadata", "deletionTimestamp")),
        problem=_problem(pod, containers),
    )


def _problem(pod: Object, containers: Sequence[Json]) -> Problem | None:
    for container in containers:
        waiting = mapping(container, "state", "waiting")
        reason = text(waiting, "reason")
        if reason and reason not in ("ContainerCreating", "PodInitializing"):
            ended = mapping(container, "lastState", "terminated")
            return Problem(reason, _ending(ended) if ended else text(waiting, "message"))
        if ended := mapping(container, "state", "terminated"):
            return Problem(text(ended, "reason") or "Terminated", _ending(ended))
    for condition in items(pod, "status", "conditions"):
        if text(condition, "type") == "PodScheduled" and text(condition, "status") == "False":
            return Problem(text(condition, "reason") or "Unschedulable", text(condition, "message"))
    if text(pod, "status", "phase") == "Failed":
        return Problem(text(pod, "status", "reason") or "Failed", text(pod, "status", "message"))
    return None


def _time(moment: str) -> datetime | None:
    return datetime.fromisoformat(moment) if moment else None


def _ending(ended: Object) -> str:
    said = text(ended, "message").strip().splitlines()
    code = f"exit code {number(ended, 'exitCode')}"
    return f"{code}: {said[-1]}" if said else code


def read_daemon_set(name: str, found: Object | None) -> Workload:
    """The DaemonSet of this name, or that there is none."""
    if found is None:
        return Workload("DaemonSet", name)
    return Workload(
        "DaemonSet",
        name,
        exists=True,
        settled=_settled(found),
        desired=number(found, "status", "desiredNumberScheduled"),
        existing=number(found, "status", "currentNumberScheduled"),
        ready=number(found, "status", "numberReady"),
        updated=number(found, "status", "updatedNumberScheduled"),
        secrets=_secrets(found),
    )


def read_stateful_set(name: str, found: Object | None) -> Workload:
    """The StatefulSet of this name, or that there is none."""
    if found is None:
        return Workload("StatefulSet", name)
    return Workload(
        "StatefulSet",
        name,
        exists=True,
        settled=_settled(found),
        desired=number(found, "spec", "replicas"),
        existing=number(found, "status", "replicas"),
        ready=number(found, "status", "readyReplicas"),
        updated=number(found, "status", "updatedReplicas"),
        revision=text(found, "status", "updateRevision"),
        secrets=_secrets(found),
    )


def _settled(workload: Object) -> bool:
    return number(workload, "status", "observedGeneration") >= number(workload, "metadata", "generation")


def _secrets(workload: Object) -> frozenset[str]:
    volumes = items(workload, "spec", "template", "spec", "volumes")
    named = [text(volume, "secret", "secretName") for volume in volumes]
    named += [
        text(source, "secret", "name")
        for volume in volumes
        for source in items(volume, "projected", "sources")
    ]
    return frozenset(filter(None, named))
