"""The two applications of a worker: the public one, and the one for siblings."""

from collections.abc import Callable, Sequence

from aiohttp import web
from voicecluster.transceiver.directory import Directory
from voicecluster.transceiver.forward import Forwarder
from voicecluster.transceiver.http.api import Api, Caller, CallHost, Place
from voicecluster.transceiver.http.auth import ANONYMOUS, ApiKeys, InternalKeys
from voicecluster.transceiver.http.cors import cors
from voicecluster.transceiver.http.drain import Drainable, drain_routes
from voicecluster.transceiver.http.errors import refusals
from voicecluster.transceiver.http.offer import FORM_OVERHEAD_BYTES, MOST_SDP_BYTES, SESSION_BYTES
from voicecluster.transceiver.http.page import page_routes

METRICS_PATH = "/internal/metrics"
REGIONS_PATH = "/v1/realtime/regions"

_LARGEST = MOST_SDP_BYTES + SESSION_BYTES + FORM_OVERHEAD_BYTES
"""Bytes of a request's body, whatever the limits say now."""

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def public_app(
    *,
    host: CallHost,
    place: Place,
    forwarder: Forwarder,
    api_keys: Callable[[], ApiKeys | None],
    cors_origins: Callable[[], Sequence[str]],
    sdp_bytes: Callable[[], int],
) -> web.Application:
    """The page and the API. The callables give the newest state: `api_keys` None where callers need no key."""

    async def identify(request: web.Request) -> Caller:
        keys = api_keys()
        name = ANONYMOUS if keys is None else keys.name_of(request.headers.get("Authorization"))
        return Caller(key_name=name, passed_on=False)

    async def regions(_: web.Request) -> web.Response:
        directory: Directory = place.directory()
        return web.json_response({"regions": list(directory.regions), "default": directory.default_region})

    api = Api(host=host, place=place, forwarder=forwarder, identify=identify, sdp_bytes=sdp_bytes)
    app = web.Application(middlewares=[cors(cors_origins), refusals], client_max_size=_LARGEST)
    app.on_response_prepare.append(_sign)
    app.add_routes([*api.routes(), web.get(REGIONS_PATH, regions), *page_routes()])
    return app


def internal_app(
    *,
    host: CallHost,
    place: Place,
    forwarder: Forwarder,
    keys: Callable[[], InternalKeys],
    metrics: Callable[[], bytes],
    drain: Drainable,
    sdp_bytes: Callable[[], int],
) -> web.Application:
    """What siblings and the parent ask. Every request must be signed with K_internal."""

    async def identify(request: web.Request) -> Caller:
        body = await request.read()
        name = keys().verify(request.method, request.raw_path, body, request.headers)
        return Caller(key_name=name, passed_on=True)

    async def show_metrics(request: web.Request) -> web.Response:
        await identify(request)
        return web.Response(body=metrics(), headers={"Content-Type": _METRICS_TYPE})

    api = Api(host=host, place=place, forwarder=forwarder, identify=identify, sdp_bytes=sdp_bytes)
    app = web.Application(middlewares=[refusals], client_max_size=4 * _LARGEST)
    app.add_routes([*api.routes(), *drain_routes(drain, identify)])
    app.router.add_get(METRICS_PATH, show_metrics)
    return app


async def _sign(_: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "voicecluster"  # instead of every version that we are made of
