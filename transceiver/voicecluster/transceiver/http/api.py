"""The Realtime calls API: what each request does, wherever its call lives.

The same handlers serve the public port and the internal one; they differ in who the caller is (`Identify`)
and in that a request that a sibling has passed on is never passed on again.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from aiohttp import web
from voicecluster.transceiver.directory import Directory, Worker
from voicecluster.transceiver.forward import Forwarder, Reply, Unreachable
from voicecluster.transceiver.http.errors import ApiError, full, unknown_call
from voicecluster.transceiver.http.offer import OfferRequest, read_offer, read_passed_on
from voicecluster.wire import Route

CALLS = "/v1/realtime/calls"
FRAGMENT_TYPE = "application/trickle-ice-sdpfrag"
FRAGMENT_BYTES = 16_384
REGION_HEADER = "X-Voice-Region"
RETRY_SECONDS = 2
MOST_SIBLINGS_ASKED = 8

_CALL_ID = r"{call_id:[A-Za-z0-9_]{1,64}}"

Debug = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the name of the key that was checked, here or by the sibling that passed the request on."""

    key_name: str
    passed_on: bool


Identify = Callable[[web.Request], Awaitable[Caller]]


@dataclass(frozen=True, slots=True)
class Answered:
    """A new call's id and the SDP answer."""

    call_id: str
    sdp: str


class HostedCall(Protocol):
    """A call of this worker, as the API sees it."""

    @property
    def key_name(self) -> str: ...

    def hang_up(self) -> None:
        """End the call; what is left to do happens in the background. Harmless when it has ended."""

    def restart_ice(self, fragment: str) -> str | None:
        """Apply a client's sdpfrag; our new fragment, or None when it restarts nothing.

        Raises ApiError 400.
        """

    def debug(self) -> Debug:
        """The call's path, set-up phases and quality."""


class CallHost(Protocol):
    """The calls of this worker."""

    def has_room(self) -> bool:
        """Whether a new call would be taken now."""

    async def open(self, offer: OfferRequest, *, key_name: str) -> Answered:
        """Take a call. Raises ApiError 400 for a bad offer."""

    def find(self, call_id: str) -> HostedCall | None: ...


@dataclass(frozen=True, slots=True)
class Place:
    """Which worker this is and how it finds the others.

    The callables give the newest state of watched files.
    """

    region: str
    ordinal: int
    worker: int
    directory: Callable[[], Directory]
    route_of_call: Callable[[str], Route | None]


class Api:
    """Handlers of the calls API for callers that `identify` tells apart."""

    def __init__(
        self,
        *,
        host: CallHost,
        place: Place,
        forwarder: Forwarder,
        identify: Identify,
        sdp_bytes: Callable[[], int],
    ) -> None:
        self._host = host
        self._place = place
        self._forwarder = forwarder
        self._identify = identify
        self._sdp_bytes = sdp_bytes

    def routes(self) -> list[web.RouteDef]:
        call = f"{CALLS}/{_CALL_ID}"
        return [
            web.post(CALLS, self.create),
            web.post(f"{call}/hangup", self.hang_up),
            web.delete(call, self.hang_up),
            web.patch(call, self.restart),
            web.get(f"{call}/debug", self.debug, allow_head=False),
        ]

    async def create(self, request: web.Request) -> web.Response:
        """Open a call in the wanted region, here or at a worker that has room."""
        caller = await self._identify(request)
        if caller.passed_on:
            region, offer = self._place.region, await read_passed_on(request)
        else:
            region, offer = self._region_of(request), await read_offer(request, sdp_bytes=self._sdp_bytes())
        if region == self._place.region and self._host.has_room():
            answered = await self._host.open(offer, key_name=caller.key_name)
            headers = {"Location": f"{CALLS}/{answered.call_id}"}
            return web.Response(
                status=201, text=answered.sdp, content_type="application/sdp", headers=headers
            )
        if caller.passed_on:
            raise full(region, RETRY_SECONDS)
        return await self._elsewhere(region, offer, caller)

    async def hang_up(self, request: web.Request) -> web.Response:
        """End a call."""
        return await self._on_call(request, lambda call, _: _hung_up(call))

    async def restart(self, request: web.Request) -> web.Response:
        """

        Restart ICE (new credentials in the fragment), or accept trickled candidates, which we do not need.
        """
        return await self._on_call(request, _restarted)

    async def debug(self, request: web.Request) -> web.Response:
        """The call's path and quality, for its owner."""
        return await self._on_call(request, lambda call, _: web.json_response(call.debug()))

    async def _on_call(
        self, request: web.Request, act: Callable[[HostedCall, "Fragment"], web.Response]
    ) -> web.Response:
        caller = await self._identify(request)
        fragment = await _fragment_of(request)
        call_id = request.match_info["call_id"]
        route = self._place.route_of_call(call_id)
        if route is None:
            raise unknown_call()
        if (route.ordinal, route.worker) == (self._place.ordinal, self._place.worker):
            call = self._host.find(call_id)
            if call is None or call.key_name != caller.key_name:
                raise unknown_call()
            return act(call, fragment)
        owner = self._place.directory().worker_at(route)
        if caller.passed_on or owner is None:
            raise unknown_call()
        try:
            reply = await self._forwarder.ask(
                owner,
                request.method,
                request.path,
                key_name=caller.key_name,
                body=fragment.body,
                content_type=fragment.content_type,
            )
        except Unreachable as error:
            if error.gone:
                raise unknown_call() from None
            raise ApiError(
                503, "owner_unreachable", "The call's server gives no answer; try again."
            ) from None
        return _passed_back(reply)

    def _region_of(self, request: web.Request) -> str:
        directory = self._place.directory()
        region = request.headers.get(REGION_HEADER) or request.query.get("region") or directory.default_region
        if region not in directory.regions:
            known = ", ".join(directory.regions)
            raise ApiError(
                400,
                "unknown_region",
                f"There is no region '{region[:64]}'; the regions are: {known}.",
                param="region",
            )
        return region

    async def _elsewhere(self, region: str, offer: OfferRequest, caller: Caller) -> web.Response:
        for worker in self._candidates(region):
            try:
                reply = await self._forwarder.ask(
                    worker,
                    "POST",
                    CALLS,
                    key_name=caller.key_name,
                    body=offer.to_json(),
                    content_type="application/json",
                )
            except Unreachable:
                continue
            if reply.status != 503:
                return _passed_back(reply)
        raise full(region, RETRY_SECONDS)

    def _candidates(self, region: str) -> Sequence[Worker]:
        """Workers of the region but this one: some of the same pod first, then some others at random."""
        directory, here = self._place.directory(), self._place.ordinal
        pod = [worker for worker in directory.workers_of_transceiver(region, here) if not self._is_us(worker)]
        near = random.sample(pod, min(len(pod), MOST_SIBLINGS_ASKED // 2))  # all are full where it is drained
        some = directory.some_workers_of(region, 2 * MOST_SIBLINGS_ASKED)
        others = [worker for worker in some if worker not in near and not self._is_us(worker)]
        return [*near, *others][:MOST_SIBLINGS_ASKED]

    def _is_us(self, worker: Worker) -> bool:
        return (worker.ordinal, worker.index) == (self._place.ordinal, self._place.worker)


@dataclass(frozen=True, slots=True)
class Fragment:
    """The body of a request on a call."""

    content_type: str
    body: bytes


async def _fragment_of(request: web.Request) -> Fragment:
    if request.method != "PATCH":
        return Fragment("", b"")
    if request.content_type != FRAGMENT_TYPE:
        raise ApiError(415, "unsupported_content_type", f"Send the fragment as {FRAGMENT_TYPE}.")
    body = await request.read()
    if len(body) > FRAGMENT_BYTES:
        raise ApiError(413, "fragment_too_large", f"The fragment is larger than {FRAGMENT_BYTES} bytes.")
    return Fragment(request.content_type, body)


def _hung_up(call: HostedCall) -> web.Response:
    call.hang_up()
    return web.Response(status=200)


def _restarted(call: HostedCall, fragment: Fragment) -> web.Response:
    try:
        text = fragment.body.decode()
    except UnicodeDecodeError:
        raise ApiError(400, "invalid_fragment", "The body is not an sdpfrag: it is not UTF-8 text.") from None
    ours = call.restart_ice(text)
    if ours is None:
        return web.Response(status=204)
    return web.Response(text=ours, content_type=FRAGMENT_TYPE)


def _passed_back(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, headers=reply.headers, body=reply.body or None)
