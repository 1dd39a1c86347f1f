"""Conditions and their reasons.

A finding says which object, what is wrong with it and what to do; a condition is a finding with a generation and
the time of its last change. `Reconciling` and `Stalled` are there only while they are true (kstatus), `Paused`
likewise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from voicecluster.operator.api.status import Condition, ConditionStatus


class Type(StrEnum):
    """The conditions, in the order they are written."""

    READY = "Ready"
    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    PAUSED = "Paused"
    KEYS_AVAILABLE = "KeysAvailable"
    REDIS_READY = "RedisReady"
    RELAYS_AVAILABLE = "RelaysAvailable"
    TRANSCEIVERS_AVAILABLE = "TransceiversAvailable"
    VIPS_ASSIGNED = "VIPsAssigned"
    VIPS_PUBLIC = "VIPsPublic"


class Reason(StrEnum):
    """Why a condition is as it is."""

    AVAILABLE = "Available"
    """All is as asked for."""
    STARTED = "Started"
    """The resource is new or was changed; wait."""
    ROLLING_OUT = "RollingOut"
    """Pods do not all have the present template yet; wait, or see the pods that do not start."""
    DRAINING = "Draining"
    """A transceiver waits for its calls to end; wait, or ask for more replicas again to cancel."""
    SCALING = "Scaling"
    """There are more or fewer transceivers than asked for; wait."""
    PAUSED = "Paused"
    """`paused` is set: nothing is changed; unset it."""

    INVALID_SPEC = "InvalidSpec"
    """The resource breaks a rule that the CRD should have refused; correct it, and install the newest CRD."""
    REFUSED = "Refused"
    """The API server refused an object; the message says which and why."""
    NODES_SHARED = "NodesShared"
    """Two HostNetwork regions have the same nodes; give them distinct node selectors."""

    KEYS_MISSING = "KeysMissing"
    """A key Secret is gone; restore it."""
    KEYS_INVALID = "KeysInvalid"
    """A key Secret cannot be used; correct it."""

    NO_NODES = "NoNodes"
    """No node fits a region's relays; label nodes or change the selector."""
    NAMESPACE_FORBIDS_HOST_NETWORK = "NamespaceForbidsHostNetwork"
    """Pod security of the namespace refuses HostNetwork relays; label the namespace."""
    NODE_OUTSIDE_CIDRS = "NodeOutsideCIDRs"
    """NetworkPolicies drop what a HostNetwork relay sends, since its node is in none of nodeCIDRs; add it."""
    PODS_MISSING = "PodsMissing"
    """A controller has not made the pods it should; describe it to see why."""
    PODS_FAILING = "PodsFailing"
    """Pods do not run; the message has their own words."""
    PODS_NOT_READY = "PodsNotReady"
    """Pods run but are not ready; see their logs."""

    VIP_PENDING = "VIPPending"
    """A load balancer has given no address; it needs a controller, or time."""
    HOSTNAME_UNRESOLVED = "HostnameUnresolved"
    """A load balancer's name has no addresses; check DNS."""
    NODES_UNREADABLE = "NodesUnreadable"
    """The operator may not read nodes; install it with hostNetwork.enabled=true."""
    NODE_ADDRESS_MISSING = "NodeAddressMissing"
    """Nodes lack an address of the asked type; choose the other type."""
    NO_READY_RELAY = "NoReadyRelay"
    """No Ready node has a ready relay, so there is no address to name."""
    PRIVATE_ADDRESSES = "PrivateAddresses"
    """Callers on the internet cannot reach a VIP; fine if there are none."""

    REDIS_UNREACHABLE = "RedisUnreachable"
    """Redis did not answer; calls go on without it."""
    REDIS_SECRET_INVALID = "RedisSecretInvalid"
    """The Secret of an external Redis is missing or lacks its url."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition as found now."""

    type: Type
    status: ConditionStatus
    reason: Reason
    message: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong: the reason of a condition that is False, and its message (object, cause, remedy)."""

    reason: Reason
    message: str


MESSAGE_CHARACTERS = 1024


def judged(kind: Type, faults: Sequence[Fault], good: str = "") -> Finding:
    """True if there are no faults, else False with the first one's reason and all that fit of the messages."""
    if not faults:
        return Finding(kind, "True", Reason.AVAILABLE, _clipped(good))
    return Finding(kind, "False", faults[0].reason, _joined([fault.message for fault in faults]))


def _joined(messages: Sequence[str]) -> str:
    text = _clipped(messages[0])
    for n, message in enumerate(messages[1:], start=1):
        if len(text) + len(message) + 1 > MESSAGE_CHARACTERS:
            return f"{text} (and {len(messages) - n} more)"
        text += f" {message}"
    return text


def _clipped(text: str) -> str:
    return text if len(text) <= MESSAGE_CHARACTERS else text[: MESSAGE_CHARACTERS - 1] + "…"


def conditions(
    findings: Iterable[Finding], before: Iterable[Condition], generation: int, now: datetime
) -> list[Condition]:
    """The findings as conditions: one whose status is as before keeps its time."""
    known = {condition.type: condition for condition in before}
    found = []
    for finding in sorted(findings, key=lambda finding: list(Type).index(finding.type)):
        old = known.get(finding.type)
        same = old is not None and old.status == finding.status
        found.append(
            Condition(
                type=finding.type.value,
                status=finding.status,
                reason=finding.reason.value,
                message=finding.message,
                observed_generation=generation,
                last_transition_time=old.last_transition_time if old is not None and same else timestamp(now),
            )
        )
    return found


def timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC, to the second."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
