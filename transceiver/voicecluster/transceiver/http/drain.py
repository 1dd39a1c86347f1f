"""`/internal/drain`: how the admin process drains a worker, and what a worker says of it."""

import json
import math
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Protocol

from aiohttp import web
from voicecluster.transceiver.drain import DrainReport
from voicecluster.transceiver.http.errors import ApiError

DRAIN_PATH = "/internal/drain"


class Drainable(Protocol):
    """A worker's drain."""

    def begin(self, deadline: float) -> None:
        """Take no more calls; those there are end at `deadline` (Unix time) at the latest."""

    def cancel(self) -> None:
        """Take calls again."""

    def report(self) -> DrainReport:
        """What is left."""


def drain_routes(
    drain: Drainable, identify: Callable[[web.Request], Awaitable[object]]
) -> list[web.RouteDef]:
    """GET, PUT `{"deadline": UNIX_TIME}` and DELETE; each answers with the worker's report."""

    async def get(request: web.Request) -> web.Response:
        await identify(request)
        return web.json_response(asdict(drain.report()))

    async def put(request: web.Request) -> web.Response:
        await identify(request)
        drain.begin(_deadline_of(await request.read()))
        return await get(request)

    async def delete(request: web.Request) -> web.Response:
        await identify(request)
        drain.cancel()
        return await get(request)

    return [
        web.get(DRAIN_PATH, get, allow_head=False),
        web.put(DRAIN_PATH, put),
        web.delete(DRAIN_PATH, delete),
    ]


def drain_request(deadline: float) -> bytes:
    """The body of a PUT."""
    return json.dumps({"deadline": deadline}).encode()


def read_report(body: bytes) -> DrainReport:
    """A worker's report. Raises ValueError for anything else."""
    try:
        report = json.loads(body)
        oldest = report["oldest_call_seconds"]
        return DrainReport(int(report["calls"]), None if oldest is None else float(oldest))
    except (KeyError, TypeError) as error:
        raise ValueError("not a report of a drain") from error


def _deadline_of(body: bytes) -> float:
    try:
        deadline = float(json.loads(body)["deadline"])
    except (ValueError, KeyError, TypeError):
        deadline = math.nan
    if not math.isfinite(deadline):
        raise ApiError(400, "invalid_request", "Not a drain as the admin process asks for it.")
    return deadline
