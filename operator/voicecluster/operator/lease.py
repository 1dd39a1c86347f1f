"""One leader: who holds the Lease may write.

`Election` decides, with the time as an argument; `Leadership` asks the API server. As Kubernetes' own
controllers do it, a holder counts as dead when *we* have seen its record unchanged for the duration that it
promised: the time in the record is another machine's clock and is never compared with ours.

A holder that cannot renew for `RENEW_SECONDS` has lost, and its process must end: others may write from
`DURATION_SECONDS` on, and what it had in flight must be over by then.
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from voicecluster.operator.fields import mapping, number, text
from voicecluster.operator.kube.port import LEASES, Conflict, Exists, Kind, KubeError, Object

DURATION_SECONDS = 15.0
RENEW_SECONDS = 10.0
RETRY_SECONDS = 2.0
ATTEMPT_SECONDS = 3.0
"""The least that one renewal gets, even if we are late ourselves; with the above, still less than the duration."""
RELEASE_SECONDS = 3.0
"""How long the end of the process waits for giving the Lease back."""
_LOG = logging.getLogger(__name__)


class LeaseLost(Exception):
    """Somebody else may lead now; end the process."""


@dataclass(slots=True)
class Election:
    """What one candidate has seen of the Lease, and what follows."""

    identity: str
    _seen: Object | None = None
    _seen_at: float = 0.0

    def observe(self, lease: Object | None, now: float) -> None:
        """Take note of the Lease as it is (None: there is none). `now` is monotonic."""
        spec = None if lease is None else mapping(lease, "spec")
        if spec != self._seen:
            self._seen, self._seen_at = spec, now

    @property
    def leads(self) -> bool:
        """Whether we are the holder that was seen."""
        return text(self._seen, "holderIdentity") == self.identity

    @property
    def holder(self) -> str:
        """Whom the Lease names, or nothing."""
        return text(self._seen, "holderIdentity")

    def may_take(self, now: float) -> bool:
        """Whether the Lease is ours, free, or its holder is dead."""
        if self.leads or not self.holder:
            return True
        return now - self._seen_at >= (number(self._seen, "leaseDurationSeconds") or DURATION_SECONDS)

    def claim(self, wall: datetime) -> Object:
        """The spec that makes us the holder, or keeps us so. `wall` is for people to read."""
        stamp = wall.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        taken = number(self._seen, "leaseTransitions")
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(DURATION_SECONDS),
            "acquireTime": (text(self._seen, "acquireTime") if self.leads else "") or stamp,
            "renewTime": stamp,
            "leaseTransitions": taken if self.leads or self._seen is None else taken + 1,
        }


class LeaseKube(Protocol):
    """The verbs that leadership needs."""

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """See `Kube.get`."""

    async def create(self, wanted: Object) -> Object:
        """See `Kube.create`."""

    async def replace(self, changed: Object) -> Object:
        """Write the whole object; Conflict unless it is at its `resourceVersion`."""


class Leadership:
    """Gets the Lease, keeps it, gives it back: `acquire`, `hold`, `release`, in this order."""

    def __init__(
        self,
        kube: LeaseKube,
        *,
        namespace: str,
        name: str,
        identity: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`identity` is this process's alone."""
        self._kube = kube
        self._namespace, self._name = namespace, name
        self._election = Election(identity)
        self._clock = clock
        self._lease: Object | None = None
        self._renewed = 0.0

    async def acquire(self) -> None:
        """Return when we lead. An API server that does not answer is asked again for ever."""
        told = ""
        while True:
            try:
                if await self._try():
                    _LOG.info("leads", extra={"lease": f"{self._namespace}/{self._name}"})
                    return
                if (holder := self._election.holder) != told:
                    _LOG.info("waits for the Lease", extra={"holder": holder})
                    told = holder
            except KubeError as error:
                _LOG.warning("cannot get the Lease", extra={"reason": str(error)})
            await asyncio.sleep(RETRY_SECONDS * random.uniform(0.8, 1.2))

    async def hold(self) -> None:
        """Renew until cancelled. Raises LeaseLost."""
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            left = max(ATTEMPT_SECONDS, self._renewed + RENEW_SECONDS - self._clock())
            reason = "no answer in time"
            try:
                async with asyncio.timeout(left):
                    if not await self._try() and not self._election.leads:
                        raise LeaseLost(f"{self._election.holder} holds the Lease")
            except KubeError as error:
                reason = str(error)
            except TimeoutError:
                pass
            if self._clock() - self._renewed >= RENEW_SECONDS:
                raise LeaseLost(f"the Lease could not be renewed for {RENEW_SECONDS:g} s: {reason}")

    async def release(self) -> None:
        """Name no holder, so that the next one need not wait. Failing is harmless."""
        if not self._election.leads or self._lease is None:
            return
        spec: Object = {**mapping(self._lease, "spec"), "holderIdentity": "", "leaseDurationSeconds": 1}
        with suppress(KubeError, TimeoutError):
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._kube.replace({**self._lease, "spec": spec})
                _LOG.info("gave the Lease back")

    async def _try(self) -> bool:
        """Take or renew, if we may; False if nothing was written. Raises KubeError."""
        asked = self._clock()
        if self._lease is None or not self._election.leads:
            self._saw(await self._kube.get(LEASES, self._namespace, self._name))
        if not self._election.may_take(self._clock()):
            return False
        spec = self._election.claim(datetime.now(UTC))
        try:
            if self._lease is None:
                identity: Object = {"name": self._name, "namespace": self._namespace}
                about: Object = {"apiVersion": LEASES.api_version, "kind": LEASES.kind, "metadata": identity}
                self._saw(await self._kube.create({**about, "spec": spec}))
            else:
                self._saw(await self._kube.replace({**self._lease, "spec": spec}))
        except (Conflict, Exists):  # another one was faster, or our own write got through without its answer
            self._saw(await self._kube.get(LEASES, self._namespace, self._name))
            return False
        self._renewed = asked
        return True

    def _saw(self, lease: Object | None) -> None:
        self._lease = lease
        self._election.observe(lease, self._clock())
