"""Kubernetes Events about decisions: what `kubectl describe` shows a person.

An event's name follows from what it says about whom, so that saying it again (after a crash, in a second
reconcile) writes nothing. Events never fail a reconcile.
"""

import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from voicecluster.operator.fields import text
from voicecluster.operator.kube.kinds import ref
from voicecluster.operator.kube.port import Exists, Json, Kube, KubeError, Object
from voicecluster.operator.status.conditions import timestamp

log = logging.getLogger(__name__)

COMPONENT = "voicecluster-operator"
REMEMBERED = 4096
MESSAGE_CHARACTERS = 1024


class EventReason(StrEnum):
    """What events tell of."""

    KEYS_GENERATED = "KeysGenerated"
    """A key Secret was made."""
    VIP_ASSIGNED = "VIPAssigned"
    """A region has its first VIPs."""
    VIP_CHANGED = "VIPChanged"
    """A region's VIPs are others than before: new calls are answered with these."""
    DRAIN_STARTED = "DrainStarted"
    """A transceiver takes no new calls, and its calls are waited for."""
    DRAIN_FINISHED = "DrainFinished"
    """A transceiver goes; its calls have ended, or their time was up."""
    DRAIN_CANCELLED = "DrainCancelled"
    """A transceiver takes calls again."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened to an object of ours. `once` tells it from the same thing at another time."""

    about: Object
    reason: EventReason
    message: str
    once: str = ""


class Recorder:
    """Writes events, each once."""

    def __init__(self, kube: Kube, clock: Callable[[], datetime]) -> None:
        """`clock`: the time in UTC."""
        self._kube = kube
        self._clock = clock
        self._written: dict[str, None] = {}

    async def record(self, occurrence: Occurrence) -> None:
        """Write it, unless it has been."""
        event = as_event(occurrence, self._clock())
        name = f"{text(event, 'metadata', 'namespace')}/{text(event, 'metadata', 'name')}"
        if name in self._written:
            return
        try:
            await self._kube.create(event)
            log.info(
                "event",
                extra={
                    "object": str(ref(occurrence.about)),
                    "reason": occurrence.reason,
                    "said": occurrence.message,
                },
            )
        except Exists:
            pass
        except KubeError as error:
            log.warning("event %s of %s is lost: %s", occurrence.reason, name, error)
            return
        if len(self._written) >= REMEMBERED:
            self._written.pop(next(iter(self._written)))
        self._written[name] = None


def as_event(occurrence: Occurrence, now: datetime) -> Object:
    """The Event object."""
    about = occurrence.about
    name, namespace = text(about, "metadata", "name"), text(about, "metadata", "namespace")
    uid = text(about, "metadata", "uid")
    said = "\0".join((uid, occurrence.reason, occurrence.message, occurrence.once))
    when: Json = timestamp(now)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{name}.{hashlib.sha256(said.encode()).hexdigest()[:16]}",
            "namespace": namespace,
        },
        "involvedObject": {
            "apiVersion": text(about, "apiVersion"),
            "kind": text(about, "kind"),
            "name": name,
            "namespace": namespace,
            "uid": uid,
        },
        "reason": occurrence.reason.value,
        "message": occurrence.message[:MESSAGE_CHARACTERS],
        "type": "Normal",
        "count": 1,
        "firstTimestamp": when,
        "lastTimestamp": when,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }
