"""One VoiceCluster made right: read, decide, apply, prune, drain, report. Idempotent, and safe to stop anywhere.

    store ─> Observed ─> Decisions ─> Facts ─> plan ─> apply, prune ─> drains ─> status

Nothing is remembered between two calls but caches of what can be asked again. Nothing is written that is there
already. The status comes last and is of what is there then, so it never promises what failed to be done.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from voicecluster.common.config.model import ConfigError, join_address, parse
from voicecluster.common.config.transceiver import Vip
from voicecluster.operator.api.status import VipStatus, VoiceClusterStatus
from voicecluster.operator.api.v1alpha1 import ORDINALS_PER_REGION, VoiceCluster
from voicecluster.operator.decisions import Decisions, paused
from voicecluster.operator.drain.act import act
from voicecluster.operator.drain.admin import Transceivers
from voicecluster.operator.drain.decide import Drain, DrainPlan, Told, Wish, decide, questions
from voicecluster.operator.events import EventReason, Occurrence, Recorder
from voicecluster.operator.fields import number, text, texts
from voicecluster.operator.keys import KeyState, ensure_keys
from voicecluster.operator.kube import port
from voicecluster.operator.kube.apply import Refusal, apply_all
from voicecluster.operator.kube.kinds import Ref, ref
from voicecluster.operator.kube.port import Kube, Object, Refused, Store
from voicecluster.operator.kube.prune import prune
from voicecluster.operator.observe import Observed, RegionState, observe
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.cluster import objects
from voicecluster.operator.plan.kubernetes.facts import Defaults, Facts
from voicecluster.operator.queue import Key
from voicecluster.operator.redis import RedisCheck
from voicecluster.operator.resolve import LIFETIME_SECONDS, Resolver
from voicecluster.operator.scale import hand_over
from voicecluster.operator.status.cluster import begun, cluster_status, region_status, stalled
from voicecluster.operator.status.conditions import Fault, Reason
from voicecluster.operator.status.region import report
from voicecluster.operator.status.write import read_status, write_status
from voicecluster.operator.vips import discover, hostnames, shared_nodes

UNWATCHED_SECONDS = 5.0
"""Until a missing Secret, or a namespace's labels, are looked at again: they are not watched."""
ENFORCE = "pod-security.kubernetes.io/enforce"


class Reconciler:
    """What the queue calls. `now` is the time in UTC."""

    def __init__(
        self,
        kube: Kube,
        store: Store,
        defaults: Defaults,
        *,
        transceivers: Transceivers,
        redis: RedisCheck,
        resolver: Resolver,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Does nothing yet."""
        self._kube = kube
        self._store = store
        self._defaults = defaults
        self._transceivers = transceivers
        self._redis = redis
        self._resolver = resolver
        self._now = now
        self._events = Recorder(kube, now)

    async def reconcile(self, key: Key) -> float | None:
        """Make one VoiceCluster right.

        Returns the seconds after which to come again even if nothing happens, None if events suffice. Raises
        KubeError: what is done stays done, and trying again goes on from there.
        """
        resource = self._store.get(port.CLUSTERS, key.namespace, key.name)
        if resource is None or text(resource, "metadata", "deletionTimestamp"):
            return None  # its children are owned by it and go without us
        try:
            cluster = parse(_without_status(resource), VoiceCluster, source=f"VoiceCluster {key}")
        except ConfigError as error:
            await self._stall(resource, Fault(Reason.INVALID_SPEC, f"{error}."))
            return None
        observed = observe(self._store, resource, cluster)
        if observed.first:
            await write_status(self._kube, resource, begun(observed, self._now()))
        try:
            wait, refused = await self._converge(observed)
        except Refused as error:
            await self._stall(resource, Fault(Reason.REFUSED, _refused(str(error))))
            raise
        if refused:
            raise Refused(refused[0].message)
        return wait

    async def _converge(self, observed: Observed) -> tuple[float | None, tuple[Refusal, ...]]:
        decisions, wait = await self._decide(observed)
        refused: tuple[Refusal, ...] = ()
        changed = observed.first  # then a status was written
        if not observed.cluster.spec.paused:
            refused, wrote = await self._write(observed, decisions)
            changed |= wrote
            faults = tuple(Fault(Reason.REFUSED, _refused(each.message)) for each in refused)
            decisions = replace(decisions, stalled=decisions.stalled + faults)
            decisions = await self._act(observed, decisions)
        await self._report(observed, decisions, changed)
        return wait, refused

    async def _decide(self, observed: Observed) -> tuple[Decisions, float | None]:
        keys = await ensure_keys(
            self._kube, self._store, observed, may_generate=not observed.cluster.spec.paused
        )
        resolved, enforced, (redis, redis_wait), told = await asyncio.gather(
            self._resolver.resolve(hostnames(observed)),
            self._enforced(observed),
            self._redis.check(observed),
            self._ask(observed, keys),
        )
        drains = {region.spec.name: self._drain(observed, region, told) for region in observed.regions}
        waits = [redis_wait, *(plan.wait_seconds for plan in drains.values())]
        waits += [UNWATCHED_SECONDS] if keys.faults or enforced else []
        waits += [LIFETIME_SECONDS] if resolved else []
        shared = shared_nodes(observed)
        decisions = Decisions(
            keys=keys,
            vips={
                region.spec.name: discover(region, observed.nodes, resolved) for region in observed.regions
            },
            drains=drains,
            redis=redis,
            enforced=enforced,
            stalled=(shared,) if shared is not None else (),
        )
        return decisions, min((wait for wait in waits if wait is not None), default=None)

    async def _enforced(self, observed: Observed) -> str:
        """The namespace's pod security level, if HostNetwork relays are missing and it may be why."""
        missing = any(
            region.spec.relay.vip.mode == "HostNetwork"
            and len(region.relay_pods) < max(1, region.relays.desired)
            for region in observed.regions
        )
        if not missing or observed.nodes is None:
            return ""
        try:
            namespace = await self._kube.get(port.NAMESPACES, None, observed.namespace)
        except Refused:
            return ""  # not granted: then the message about missing pods has to do
        return texts(namespace, "metadata", "labels").get(ENFORCE, "")

    async def _ask(self, observed: Observed, keys: KeyState) -> Mapping[str, Told | None]:
        """What the transceivers say that a decision depends on, of all regions at once."""
        moving = [region for region in observed.regions if not paused(observed, region.spec.name)]
        asked = [pod for region in moving for pod in questions(as_wish(region))]
        return await self._transceivers.ask(asked, keys.token) if asked else {}

    def _drain(self, observed: Observed, region: RegionState, told: Mapping[str, Told | None]) -> DrainPlan:
        wish = as_wish(region)
        if not paused(observed, region.spec.name):
            return decide(wish, told, self._now())
        there = region.transceivers
        return DrainPlan(there.desired if there.exists else region.wish, drains=tuple(wish.drains))

    async def _write(self, observed: Observed, decisions: Decisions) -> tuple[tuple[Refusal, ...], bool]:
        """Apply what is wanted and prune what is not. Returns what was refused, and whether anything was done."""
        wanted = objects(observed.cluster, facts(observed, decisions, self._defaults))
        still = {region.spec.name for region in observed.regions if paused(observed, region.spec.name)}
        due = [each for each in wanted if texts(each, "metadata", "labels").get(names.REGION) not in still]
        await hand_over(self._kube, self._store, observed, due)
        changes = await apply_all(self._kube, self._store, due)
        generated = (names.root_keys, names.api_keys, names.drain_token, names.hint_keys)
        keep = {ref(each) for each in wanted}
        keep |= {Ref("Secret", observed.namespace, name(observed.name)) for name in generated}
        pruned = await prune(
            self._kube,
            self._store,
            namespace=observed.namespace,
            cluster=observed.name,
            uid=observed.uid,
            keep=keep,
        )
        return changes.refused, bool(changes.applied or pruned)

    async def _act(self, observed: Observed, decisions: Decisions) -> Decisions:
        """Ask transceivers to drain, delete those that have, and tell of everything that happened."""
        told: list[Occurrence] = []
        drains = dict(decisions.drains)
        for region in observed.regions:
            about = self._store.get(port.REGIONS, observed.namespace, region.name)
            if about is None or paused(observed, region.spec.name):
                continue
            plan = drains[region.spec.name]
            under_way, happened = await act(
                self._kube, self._transceivers, decisions.keys.token, about, plan, as_wish(region)
            )
            drains[region.spec.name] = replace(plan, drains=under_way)
            told += happened
            told += vip_changes(about, region, decisions.vips[region.spec.name].vips)
        resource = self._store.get(port.CLUSTERS, observed.namespace, observed.name)
        if decisions.keys.generated and resource is not None:
            made = ", ".join(decisions.keys.generated)
            told.append(Occurrence(resource, EventReason.KEYS_GENERATED, f"Generated, once: Secret {made}."))
        for occurrence in told:
            await self._events.record(occurrence)
        return replace(decisions, drains=drains)

    async def _report(self, observed: Observed, decisions: Decisions, changed: bool) -> None:
        """Write the status of what is there now. `changed`: something else than was observed, by our own doing."""
        resource = self._store.get(port.CLUSTERS, observed.namespace, observed.name)
        if resource is None or text(resource, "metadata", "uid") != observed.uid:
            return
        present = observed
        if changed:
            present = replace(
                observe(self._store, resource, observed.cluster), generation=observed.generation
            )
        reports = [report(present, region, decisions) for region in present.regions]
        for each in reports:
            if each.region.resource is not None:
                await write_status(self._kube, each.region.resource, region_status(each, self._now()))
        await write_status(self._kube, resource, cluster_status(present, decisions, reports, self._now()))

    async def _stall(self, resource: Object, fault: Fault) -> None:
        name, namespace = text(resource, "metadata", "name"), text(resource, "metadata", "namespace")
        present = self._store.get(port.CLUSTERS, namespace, name)
        if present is None:
            return
        before = read_status(VoiceClusterStatus, present)
        generation = number(resource, "metadata", "generation")
        await write_status(self._kube, present, stalled(before, generation, fault, self._now()))


def facts(observed: Observed, decisions: Decisions, defaults: Defaults) -> Facts:
    """What the plan needs to know."""
    return Facts(
        namespace=observed.namespace,
        uid=observed.uid,
        defaults=defaults,
        keys=decisions.keys.material,
        vips={
            region: tuple(Vip(address=vip.address, port=vip.port, node=vip.node) for vip in found.vips)
            for region, found in decisions.vips.items()
        },
        replicas={region: plan.replicas for region, plan in decisions.drains.items()},
        workers={
            region.spec.name: max((pod.workers for pod in region.transceiver_pods), default=0)
            for region in observed.regions
        },
    )


def as_wish(region: RegionState) -> Wish:
    """A region as the drain logic sees it."""
    return Wish(
        replicas=region.wish,
        first=region.spec.index * ORDINALS_PER_REGION,
        workload=region.transceivers,
        pods=region.transceiver_pods,
        drains=[
            Drain(each.pod, each.reason, datetime.fromisoformat(each.deadline), each.calls)
            for each in region.status.transceiver.draining
        ],
        timeout=timedelta(seconds=region.spec.transceiver.limits.drain_timeout_seconds),
    )


def vip_changes(about: Object, region: RegionState, found: Sequence[VipStatus]) -> list[Occurrence]:
    """What to tell of VIPs that are others than the last status says."""
    before, after = _addresses(region.status.vips), _addresses(found)
    if before == after:
        return []
    once = text(about, "metadata", "resourceVersion")
    if not before:
        return [Occurrence(about, EventReason.VIP_ASSIGNED, f"Callers reach it at {after}.", once)]
    message = f"Callers reach it at {after or 'no address'}, before at {before}."
    return [Occurrence(about, EventReason.VIP_CHANGED, message, once)]


def _addresses(vips: Sequence[VipStatus]) -> str:
    found = [join_address(vip.address, vip.port) for vip in vips]
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return ", ".join(found[:8]) + more


def _refused(message: str) -> str:
    return (
        f"The API server refused: {message}. Correct what it names (a quota, a policy, the operator's role)."
    )


def _without_status(resource: Object) -> Mapping[str, object]:
    return {name: value for name, value in resource.items() if name != "status"}
