"""The status of one region. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from voicecluster.operator.api.status import Draining, RelayCount, TransceiverCount, VipStatus
from voicecluster.operator.decisions import Decisions, paused
from voicecluster.operator.drain.decide import WHY, Drain
from voicecluster.operator.observe import Observed, RegionState
from voicecluster.operator.status import pods
from voicecluster.operator.status.conditions import Fault, Reason, timestamp
from voicecluster.operator.vips import private


@dataclass(frozen=True, slots=True)
class RegionReport:
    """What is to be said of one region; of each kind of fault as many as there are."""

    region: RegionState
    paused: bool
    relays: tuple[Fault, ...]
    transceivers: tuple[Fault, ...]
    vips: tuple[Fault, ...]
    private: tuple[Fault, ...]
    progress: tuple[Fault, ...]
    """What is under way: the region is not as asked for yet, and will be."""
    note: str
    found: tuple[VipStatus, ...]
    drains: tuple[Drain, ...]

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What keeps it from being Ready, the likeliest cause first."""
        return self.relays + self.transceivers + self.vips

    @property
    def relay_count(self) -> RelayCount:
        """For the VoiceRegion's status."""
        relays = self.region.relays
        return RelayCount(desired=relays.desired, ready=relays.ready, updated=relays.updated)

    @property
    def transceiver_count(self) -> TransceiverCount:
        """For the VoiceRegion's status."""
        there = self.region.transceivers
        return TransceiverCount(
            desired=self.region.wish,
            ready=there.ready,
            updated=there.updated,
            draining=[
                Draining(
                    pod=drain.pod, reason=drain.reason, calls=drain.calls, deadline=timestamp(drain.deadline)
                )
                for drain in self.drains
            ],
        )


def report(observed: Observed, region: RegionState, decisions: Decisions) -> RegionReport:
    """Look at one region."""
    name = region.spec.name
    discovery = decisions.vips[name]
    drains = decisions.drains[name].drains
    return RegionReport(
        region=region,
        paused=paused(observed, name),
        relays=_relays(observed, region, decisions.enforced),
        transceivers=_transceivers(observed, region, drains),
        vips=() if discovery.fault is None else (discovery.fault,),
        private=_private(name, discovery.vips),
        progress=_progress(region, drains),
        note=discovery.note,
        found=discovery.vips,
        drains=drains,
    )


def _relays(observed: Observed, region: RegionState, enforced: str) -> tuple[Fault, ...]:
    relays, hosted = region.relays, region.spec.relay.vip.mode == "HostNetwork"
    if not relays.exists:
        return (pods.absent(relays),)
    if hosted and enforced in ("baseline", "restricted") and len(region.relay_pods) < max(1, relays.desired):
        message = (
            f"DaemonSet {relays.name}: namespace {observed.namespace} enforces pod security level {enforced}, which"
            f" forbids HostNetwork; run `kubectl label --overwrite namespace {observed.namespace}"
            " pod-security.kubernetes.io/enforce=privileged`, or use another relay.vip.mode."
        )
        return (Fault(Reason.NAMESPACE_FORBIDS_HOST_NETWORK, message),)
    if relays.desired == 0:
        if not relays.settled:
            return (pods.unseen(relays),)
        labels = ",".join(f"{key}={value}" for key, value in region.spec.node_selector.items())
        wanted = f"with the labels {labels} and no taints" if labels else "without taints"
        message = (
            f"DaemonSet {relays.name}: there is no node {wanted} but those that it tolerates; label nodes, or change"
            f" nodeSelector or tolerations of region {region.spec.name}."
        )
        return (Fault(Reason.NO_NODES, message),)
    if outside := _outside(observed, region):
        return (outside,)
    replaced = 1 if hosted and relays.updated < relays.desired else 0
    if relays.ready >= max(1, relays.desired - replaced):
        return ()
    return (pods.lacking(relays, relays.desired, region.relay_pods, observed.nodes),)


def _outside(observed: Observed, region: RegionState) -> Fault | None:
    """A HostNetwork relay whose packets the NetworkPolicies do not let through."""
    policy = observed.cluster.spec.network_policy
    if region.spec.relay.vip.mode != "HostNetwork" or not policy.enabled:
        return None
    networks = [ip_network(cidr) for cidr in policy.node_cidrs]
    for pod in region.relay_pods:
        if pod.address and not any(ip_address(pod.address) in network for network in networks):
            message = (
                f"DaemonSet {region.relays.name}: node {pod.node} ({pod.address}) is in none of"
                " networkPolicy.nodeCIDRs, so NetworkPolicies drop what its relay sends to transceivers; add the node's"
                " network there."
            )
            return Fault(Reason.NODE_OUTSIDE_CIDRS, message)
    return None


def _transceivers(observed: Observed, region: RegionState, drains: Sequence[Drain]) -> tuple[Fault, ...]:
    there, wish = region.transceivers, region.wish
    if not there.exists:
        return (pods.absent(there),)
    if there.ready >= wish:
        return ()
    if not there.settled and there.existing == 0:
        return (pods.unseen(there),)
    being_replaced = 1 if drains or there.updated < there.existing else 0
    if there.ready >= max(1, wish - being_replaced):
        return ()
    waiting = {drain.pod for drain in drains}
    if waiting and all(pod.ready or pod.name in waiting for pod in region.transceiver_pods):
        message = (
            f"{there.kind} {there.name}: {there.ready} of {wish} pods take new calls while Pod {drains[0].pod} drains;"
            f" wait, or give region {region.spec.name} one replica more before a change."
        )
        return (Fault(Reason.DRAINING, message),)
    return (pods.lacking(there, wish, region.transceiver_pods, observed.nodes),)


def _progress(region: RegionState, drains: Sequence[Drain]) -> tuple[Fault, ...]:
    found = []
    found += [Fault(Reason.DRAINING, _waiting(region, drain)) for drain in drains]
    of_each = ((region.relays, region.relay_pods), (region.transceivers, region.transceiver_pods))
    for workload, made in of_each:
        if workload.exists and not (workload.settled and workload.updated >= workload.desired):
            done = f"{workload.updated} of {workload.desired} pods have the present template"
            message = f"{workload.kind} {workload.name}: {done}; {pods.failing(made) or 'wait'}."
            found.append(Fault(Reason.ROLLING_OUT, message))
    there = region.transceivers
    if there.exists and not drains and there.existing != region.wish:
        message = f"{there.kind} {there.name} has {there.existing} pods, asked for are {region.wish}; wait."
        found.append(Fault(Reason.SCALING, message))
    return tuple(found)


def _waiting(region: RegionState, drain: Drain) -> str:
    why, until = WHY.get(drain.reason, drain.reason), timestamp(drain.deadline)
    if drain.calls is None:
        return (
            f"Pod {drain.pod} shall drain, since {why}, and does not answer on its admin port; it goes half a minute"
            f" after {until} at the latest. Check that the pod runs and that NetworkPolicies let the operator reach it."
        )
    see = f"see `kubectl describe voiceregion {region.name}`"
    return f"Pod {drain.pod} waits for its calls until {until} at most, since {why}; {see}."


def _private(name: str, vips: Sequence[VipStatus]) -> tuple[Fault, ...]:
    addresses = ", ".join(vip.address for vip in private(vips)[:4])
    if not addresses:
        return ()
    message = (
        f"Region {name}: {addresses} is no public address, so callers on the internet cannot reach it; for them, give"
        " the load balancer or the nodes a public one, or use relay.vip.mode External. Inside your network all is"
        " well."
    )
    return (Fault(Reason.PRIVATE_ADDRESSES, message),)
