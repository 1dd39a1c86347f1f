"""One leader: the decisions by arithmetic, then whole candidates against a Lease in memory."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from voicecluster.operator import lease as module
from voicecluster.operator.fields import number, text
from voicecluster.operator.kube.port import Conflict, Exists, Kind, Object, Unavailable
from voicecluster.operator.lease import Election, Leadership, LeaseLost

WALL = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def held(by: str, *, renewed: str = "2030-01-01T00:00:00.000000Z", transitions: int = 0) -> Object:
    return {
        "spec": {
            "holderIdentity": by,
            "leaseDurationSeconds": 15,
            "acquireTime": "2029-01-01T00:00:00.000000Z",
            "renewTime": renewed,
            "leaseTransitions": transitions,
        }
    }


def test_a_lease_that_is_not_there_may_be_taken() -> None:
    election = Election("me")
    election.observe(None, 0.0)
    assert election.may_take(0.0)


def test_a_lease_without_holder_may_be_taken_at_once() -> None:
    election = Election("me")
    election.observe(held(""), 0.0)
    assert election.may_take(0.0)


def test_another_holder_has_the_duration_that_it_promised() -> None:
    election = Election("me")
    election.observe(held("other"), 100.0)
    assert not election.may_take(114.9)
    assert election.may_take(115.0)


def test_a_renewal_gives_the_holder_its_time_again() -> None:
    election = Election("me")
    election.observe(held("other"), 100.0)
    election.observe(held("other", renewed="2030-01-01T00:00:02.000000Z"), 110.0)
    assert not election.may_take(124.9)


def test_the_holders_clock_does_not_matter() -> None:
    election = Election("me")
    election.observe(held("other", renewed="1999-01-01T00:00:00.000000Z"), 100.0)
    assert not election.may_take(110.0)


def test_taking_over_counts_a_transition_and_says_since_when() -> None:
    election = Election("me")
    election.observe(held("other", transitions=3), 0.0)
    spec = election.claim(WALL)
    assert (spec["leaseTransitions"], spec["acquireTime"]) == (4, "2030-01-02T03:04:05.000000Z")


def test_renewing_keeps_since_when() -> None:
    election = Election("me")
    election.observe(held("me", transitions=3), 0.0)
    spec = election.claim(WALL)
    assert (spec["leaseTransitions"], spec["acquireTime"]) == (3, "2029-01-01T00:00:00.000000Z")


class OneLease:
    """An API server that has nothing but one Lease."""

    def __init__(self) -> None:
        self.lease: Object | None = None
        self.version = 0
        self.away = False
        self.written = asyncio.Event()

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        self._answer()
        return self.lease

    async def create(self, wanted: Object) -> Object:
        self._answer()
        if self.lease is not None:
            raise Exists("there is one")
        return self._put(wanted)

    async def replace(self, changed: Object) -> Object:
        self._answer()
        if self.lease is None or text(changed, "metadata", "resourceVersion") != str(self.version):
            raise Conflict("it changed")
        return self._put(changed)

    @property
    def holder(self) -> str:
        return text(self.lease, "spec", "holderIdentity")

    def _put(self, value: Object) -> Object:
        self.version += 1
        metadata = value["metadata"]
        assert isinstance(metadata, dict)
        self.lease = {**value, "metadata": {**metadata, "resourceVersion": str(self.version)}}
        self.written.set()
        return self.lease

    def _answer(self) -> None:
        if self.away:
            raise Unavailable("no answer")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The true proportions, a hundred times as fast."""
    for name in ("DURATION_SECONDS", "RENEW_SECONDS", "RETRY_SECONDS", "ATTEMPT_SECONDS"):
        monkeypatch.setattr(module, name, getattr(module, name) / 100)


def candidate(kube: OneLease, identity: str, clock: Callable[[], float] | None = None) -> Leadership:
    more = {} if clock is None else {"clock": clock}
    return Leadership(kube, namespace="system", name="lease", identity=identity, **more)


async def test_the_first_candidate_leads_and_the_second_waits() -> None:
    kube = OneLease()
    await candidate(kube, "first").acquire()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await candidate(kube, "second").acquire()
    assert kube.holder == "first"


async def test_a_leader_that_gives_the_lease_back_is_followed_at_once() -> None:
    kube = OneLease()
    first = candidate(kube, "first")
    await first.acquire()
    await first.release()
    assert kube.holder == ""
    async with asyncio.timeout(1.0):
        await candidate(kube, "second").acquire()
    assert number(kube.lease, "spec", "leaseTransitions") == 1


async def test_a_candidate_does_not_give_back_what_is_not_its_own() -> None:
    kube = OneLease()
    await candidate(kube, "first").acquire()
    await candidate(kube, "second").release()
    assert kube.holder == "first"


async def test_a_leader_that_somebody_has_followed_has_lost() -> None:
    kube = OneLease()
    leader = candidate(kube, "first")
    await leader.acquire()
    kube._put({**(kube.lease or {}), **held("second")})
    with pytest.raises(LeaseLost, match="second holds the Lease"):
        async with asyncio.timeout(1.0):
            await leader.hold()


async def test_a_leader_that_cannot_renew_has_lost_before_another_may_lead() -> None:
    kube = OneLease()
    leader = candidate(kube, "first")
    await leader.acquire()
    kube.away = True
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(LeaseLost, match=r"could not be renewed for 0\.1 s: no answer"):
        await leader.hold()
    assert loop.time() - began < module.DURATION_SECONDS


async def test_a_short_outage_costs_nothing() -> None:
    kube = OneLease()
    leader = candidate(kube, "first")
    await leader.acquire()
    holding = asyncio.create_task(leader.hold())
    kube.away = True
    await asyncio.sleep(0.05)
    kube.away = False
    kube.written.clear()
    async with asyncio.timeout(1.0):
        await kube.written.wait()
    assert not holding.done()
    holding.cancel()


async def test_somebody_elses_annotation_on_the_lease_costs_nothing() -> None:
    kube = OneLease()
    leader = candidate(kube, "first")
    await leader.acquire()
    holding = asyncio.create_task(leader.hold())
    assert kube.lease is not None
    kube._put(kube.lease)
    kube.written.clear()
    async with asyncio.timeout(1.0):
        await kube.written.wait()
    assert not holding.done()
    holding.cancel()
