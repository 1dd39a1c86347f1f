"""The calls of one worker, by call id, and the nonces that keep their ufrags apart."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence

from voicecluster.transceiver.call import Call, Opening, WorkerParts, offer_refused
from voicecluster.transceiver.candidates import candidates_of
from voicecluster.transceiver.files import Files
from voicecluster.transceiver.http.api import Answered
from voicecluster.transceiver.http.errors import ApiError
from voicecluster.transceiver.http.offer import OfferRequest
from voicecluster.transceiver.ice.path import IceCredentials
from voicecluster.transceiver.sdp.answer import Candidate
from voicecluster.transceiver.sdp.lines import OfferError
from voicecluster.transceiver.sdp.offer import parse_offer
from voicecluster.wire import Route

NONCE_BITS = 40


class Calls:
    """Opens calls and finds them again. Every call's task belongs to `group`."""

    def __init__(self, parts: WorkerParts, files: Files, *, cluster: int, group: asyncio.TaskGroup) -> None:
        self.ending = False
        """True: the worker ends, and takes no new call."""
        self.cordoned = False
        """True: it is being drained, and takes no new call until that is taken back."""
        self._parts = parts
        self._files = files
        self._group = group
        self._route = Route(cluster, parts.ordinal, parts.worker)
        self._calls: dict[str, Call] = {}
        self._nonces: set[int] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[Call]:
        return iter(tuple(self._calls.values()))

    @property
    def open_to_calls(self) -> bool:
        """Whether new calls are taken, as long as there is room."""
        return not self.ending and not self.cordoned

    def has_room(self) -> bool:
        """Whether a new call would be taken now."""
        return self.open_to_calls and len(self._calls) < self._files.config.limits.calls_per_worker

    def oldest_seconds(self) -> float | None:
        """How long the oldest call has been there; None where there is none."""
        now = asyncio.get_running_loop().time()
        return max((now - call.phases.start for call in self._calls.values()), default=None)

    def find(self, call_id: str) -> Call | None:
        """The call with this id; None when it is ending already."""
        call = self._calls.get(call_id)
        return None if call is None or call.ending else call

    async def open(self, offer: OfferRequest, *, key_name: str) -> Answered:
        """Take a call and answer it. Raises ApiError 400 for a bad offer, 503 where no VIP is known yet."""
        now = asyncio.get_running_loop().time()
        try:
            parsed = parse_offer(offer.sdp)
        except OfferError as error:
            self._parts.metrics.refused.labels(error.code).inc()
            raise offer_refused(error, param="sdp") from None
        nonces: set[int] = set()
        nonce = self._new_nonce(nonces)
        ufrag, pwd = self._files.keyring.credentials(self._route, nonce)
        candidates = self._candidates(ufrag, ())
        if not candidates:
            self._nonces -= nonces
            raise ApiError(
                503,
                "no_vip",
                "No relay is known in this region yet; try again.",
                headers={"Retry-After": "2"},
            )
        opening = Opening(
            call_id=self._files.keyring.call_id(self._route, nonce),
            key_name=key_name,
            config=self._files.config,
            offer=parsed,
            model=offer.model,
            session=offer.session,
            credentials=IceCredentials(ufrag, pwd),
            candidates=candidates,
            newer_candidates=lambda told: self._candidates(ufrag, told),
            mint=lambda: self._credentials(nonces),
        )
        try:
            call = Call(self._parts, opening, now=now)
            answer = call.answer()
        except BaseException:
            self._nonces -= nonces
            raise
        self._calls[call.call_id] = call
        self._idle.clear()
        self._parts.metrics.calls.set(len(self._calls))
        self._group.create_task(self._keep(call, nonces), name=f"call {call.call_id}")
        return Answered(call.call_id, answer)

    def end_all(self, reason: str) -> None:
        """End every call; `wait_idle` tells when they have."""
        for call in self:
            call.end(reason)

    async def wait_idle(self) -> None:
        """Return as soon as there is no call. Cancelling is harmless."""
        await self._idle.wait()

    async def _keep(self, call: Call, nonces: set[int]) -> None:
        try:
            await call.run()
        finally:
            del self._calls[call.call_id]
            self._nonces -= nonces
            self._parts.metrics.calls.set(len(self._calls))
            if not self._calls:
                self._idle.set()

    def _candidates(self, ufrag: str, told: Sequence[Candidate]) -> Sequence[Candidate]:
        """What the call whose first ufrag this is names now, after `told`."""
        return candidates_of(self._files.vips.regions.get(self._parts.region, ()), ufrag, keep=told)

    def _credentials(self, nonces: set[int]) -> IceCredentials:
        ufrag, pwd = self._files.keyring.credentials(self._route, self._new_nonce(nonces))
        return IceCredentials(ufrag, pwd)

    def _new_nonce(self, nonces: set[int]) -> int:
        """A nonce that no live call of this worker has, noted as the call's own."""
        while (nonce := secrets.randbits(NONCE_BITS)) in self._nonces:
            pass
        self._nonces.add(nonce)
        nonces.add(nonce)
        return nonce
