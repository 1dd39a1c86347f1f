"""The status of a VoiceCluster and of its VoiceRegions. Pure but for the time, which is an argument."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from importlib.metadata import version

from voicecluster.common.config.model import join_address
from voicecluster.operator.api.status import (
    Condition,
    KeysStatus,
    RegionSummary,
    SignalingStatus,
    Summary,
    VoiceClusterStatus,
    VoiceRegionStatus,
)
from voicecluster.operator.decisions import Decisions
from voicecluster.operator.fields import number
from voicecluster.operator.observe import Observed
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.status.conditions import (
    Fault,
    Finding,
    Reason,
    Type,
    conditions,
    judged,
)
from voicecluster.operator.status.region import RegionReport

OPERATOR_VERSION = version("voicecluster")


def begun(observed: Observed, now: datetime) -> VoiceClusterStatus:
    """The very first status: without it, tools that wait would take the resource for finished."""
    message = "The resource is new; its objects are made now."
    findings = [
        Finding(Type.READY, "Unknown", Reason.STARTED, message),
        Finding(Type.RECONCILING, "True", Reason.STARTED, message),
    ]
    return VoiceClusterStatus(
        observed_generation=observed.generation,
        conditions=conditions(findings, (), observed.generation, now),
        operator_version=OPERATOR_VERSION,
    )


def stalled(before: VoiceClusterStatus, generation: int, fault: Fault, now: datetime) -> VoiceClusterStatus:
    """The status of a resource that cannot be understood: all else stays as it was."""
    kept = [each for each in before.conditions if each.type not in ("Ready", "Reconciling", "Stalled")]
    findings = [
        Finding(Type.READY, "False", fault.reason, fault.message),
        Finding(Type.STALLED, "True", fault.reason, fault.message),
    ]
    found = conditions(findings, before.conditions, generation, now)
    return before.model_copy(
        update={
            "observed_generation": generation,
            "conditions": found + kept,
            "operator_version": OPERATOR_VERSION,
        }
    )


def cluster_status(
    observed: Observed, decisions: Decisions, reports: Sequence[RegionReport], now: datetime
) -> VoiceClusterStatus:
    """What the VoiceCluster shall say."""
    ready = {each.region.name: _region_ready(each) for each in reports}
    good = sum(finding.status == "True" for finding in ready.values())
    keys, before = decisions.keys, observed.status.keys
    known = KeysStatus(mint=keys.material.mint, ids=list(keys.ids)) if keys.material else before
    return VoiceClusterStatus(
        observed_generation=observed.generation,
        conditions=conditions(
            _cluster_findings(observed, decisions, reports, list(ready.values())),
            observed.status.conditions,
            observed.generation,
            now,
        ),
        regions=[
            RegionSummary(
                name=each.region.spec.name,
                ready=ready[each.region.name].status == "True",
                relays=f"{each.region.relays.ready}/{each.region.relays.desired}",
                transceivers=f"{each.region.transceivers.ready}/{each.region.wish}",
                vips=list(each.found),
            )
            for each in reports
        ],
        summary=Summary(
            regions=f"{good}/{len(reports)}",
            relays=_sum((each.region.relays.ready, each.region.relays.desired) for each in reports),
            transceivers=_sum((each.region.transceivers.ready, each.region.wish) for each in reports),
        ),
        signaling=SignalingStatus(urls=signaling_urls(observed)),
        keys=known,
        operator_version=OPERATOR_VERSION,
    )


def region_status(each: RegionReport, now: datetime) -> VoiceRegionStatus:
    """What a VoiceRegion shall say."""
    region = each.region
    generation = number(region.resource, "metadata", "generation")
    findings = [
        _region_ready(each),
        *_progress([each]),
        judged(Type.RELAYS_AVAILABLE, each.relays),
        judged(Type.TRANSCEIVERS_AVAILABLE, each.transceivers),
        judged(Type.VIPS_ASSIGNED, each.vips, each.note),
        _public([each]),
    ]
    if each.paused:
        findings.append(
            _paused(f"Region {region.spec.name} is paused: nothing of it is changed; unset paused.")
        )
    return VoiceRegionStatus(
        observed_generation=generation,
        conditions=conditions(findings, region.status.conditions, generation, now),
        replicas=region.transceivers.existing,
        ready_replicas=region.transceivers.ready,
        selector=_selector(each),
        relay=each.relay_count,
        transceiver=each.transceiver_count,
        vips=list(each.found),
    )


def signaling_urls(observed: Observed) -> list[str]:
    """Where clients reach the public API: from outside first, and inside the Kubernetes cluster always."""
    service, port = observed.signaling, observed.cluster.spec.signaling.service.port
    if not service.exists:
        return []
    outside = [
        _url(way.address or way.hostname, port) for way in service.ingress if service.type == "LoadBalancer"
    ]
    if service.type == "NodePort":
        for node in [node for node in observed.nodes or () if node.ready][:16]:
            address = _any_address(dict(reversed(node.addresses)))
            outside += [_url(address, found) for found in service.node_ports if address]
    return [*outside, _url(f"{service.name}.{observed.namespace}.svc", port)]


def _any_address(by_type: dict[str, str]) -> str:
    return by_type.get("ExternalIP") or by_type.get("InternalIP") or ""


def _url(host: str, port: int) -> str:
    where = join_address(host, port)
    return f"http://{where.removesuffix(':80') if port == 80 else where}"


def _cluster_findings(
    observed: Observed, decisions: Decisions, reports: Sequence[RegionReport], regions: Sequence[Finding]
) -> list[Finding]:
    keys = judged(Type.KEYS_AVAILABLE, decisions.keys.faults, "All key Secrets are there.")
    blocking = [*decisions.stalled, *decisions.keys.faults]
    blocking += [Fault(each.reason, each.message) for each in regions if each.status != "True"]
    findings = [
        _kept(observed.status.conditions, judged(Type.READY, blocking, "All is as asked for."))
        if observed.cluster.spec.paused
        else judged(Type.READY, blocking, "All is as asked for."),
        *_progress(reports),
        keys,
        *([] if decisions.redis is None else [decisions.redis]),
        judged(Type.RELAYS_AVAILABLE, [fault for each in reports for fault in each.relays]),
        judged(Type.TRANSCEIVERS_AVAILABLE, [fault for each in reports for fault in each.transceivers]),
        judged(
            Type.VIPS_ASSIGNED,
            [fault for each in reports for fault in each.vips],
            " ".join(each.note for each in reports if each.note),
        ),
        _public(reports),
    ]
    if decisions.stalled:
        fault = decisions.stalled[0]
        findings.append(
            Finding(Type.STALLED, "True", fault.reason, judged(Type.STALLED, decisions.stalled).message)
        )
    if observed.cluster.spec.paused:
        findings.append(_paused("Nothing is changed while spec.paused is true; unset it to go on."))
    elif paused := [each.region.spec.name for each in reports if each.paused]:
        findings.append(
            _paused(f"Nothing of region {', '.join(paused)} is changed; unset its paused to go on.")
        )
    return findings


def _region_ready(each: RegionReport) -> Finding:
    found = judged(Type.READY, each.faults, "All is as asked for.")
    return _kept(each.region.status.conditions, found) if each.paused else found


def _kept(before: Iterable[Condition], found: Finding) -> Finding:
    """Ready as it was: what is paused is not judged."""
    for condition in before:
        if condition.type == Type.READY and condition.reason in list(Reason):
            return Finding(Type.READY, condition.status, Reason(condition.reason), condition.message)
    return found


def _progress(reports: Sequence[RegionReport]) -> list[Finding]:
    faults = [fault for each in reports if not each.paused for fault in each.progress]
    if not faults:
        return []
    message = judged(Type.RECONCILING, faults).message
    return [Finding(Type.RECONCILING, "True", faults[0].reason, message)]


def _public(reports: Sequence[RegionReport]) -> Finding:
    if not any(each.found for each in reports):
        return Finding(Type.VIPS_PUBLIC, "Unknown", Reason.VIP_PENDING, "There are no VIPs yet.")
    return judged(Type.VIPS_PUBLIC, [fault for each in reports for fault in each.private])


def _paused(message: str) -> Finding:
    return Finding(Type.PAUSED, "True", Reason.PAUSED, message)


def _sum(counts: Iterable[tuple[int, int]]) -> str:
    pairs = list(counts)
    return f"{sum(ready for ready, _ in pairs)}/{sum(wanted for _, wanted in pairs)}"


def _selector(each: RegionReport) -> str:
    cluster = each.region.transceivers.name.removesuffix(f"-{each.region.spec.name}-transceiver")
    return names.text(names.selector(cluster, "transceiver", each.region.spec.name))
