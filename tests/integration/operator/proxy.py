"""What can happen between an operator and its API server: a reverse proxy that does it on demand.

Plain HTTP on loopback in front, the real server behind. It runs in a thread with a loop of its own, so that tests
stay plain functions.
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web

from tests.integration.operator.apiserver import ApiServer

_HOP_BY_HOP = ("Host", "Transfer-Encoding", "Connection", "Content-Length", "Content-Encoding", "Keep-Alive")


@dataclass(frozen=True, slots=True)
class Request:
    """What the operator asked."""

    method: str
    path: str
    watches: bool

    @property
    def about_lease(self) -> bool:
        """Whether it only keeps the leadership."""
        return "/leases" in self.path

    @property
    def writes(self) -> bool:
        """Whether it changes something, other than the Lease."""
        return self.method != "GET" and not self.about_lease


def any_write(request: Request) -> bool:
    """For `Fault.hits`: every write but the Lease's."""
    return request.writes


@dataclass(slots=True)
class Fault:
    """What happens to the requests that it hits, the first `times` of them."""

    hits: Callable[[Request], bool] = any_write
    status: int | None = None
    """Answer this instead of asking the server; None: ask it."""
    retry_after: int | None = None
    delay: float = 0.0
    """Seconds before anything else."""
    lose_answer: bool = False
    """The server does it, and the connection breaks before the answer."""
    times: int = 10**9
    seen: int = field(default=0, init=False)

    def takes(self, request: Request) -> bool:
        """Whether this request is one of them."""
        if self.seen >= self.times or not self.hits(request):
            return False
        self.seen += 1
        return True


class Proxy:
    """`start` and `stop` once each. `faults` may be changed at any time."""

    def __init__(self, apiserver: ApiServer) -> None:
        self.url = ""
        self.faults: list[Fault] = []
        self.deaf = False
        """While it is True, watches stay open and bring nothing: what they miss is lost to them."""
        self.swallowed = b""
        """What they have missed."""
        self.before: Callable[[Request], bool | None] = lambda _: None
        """Called before each request is passed on, in the proxy's thread; may kill who asks. False: drop it."""
        self.one_by_one = False
        """While it is True, a write is passed on when the one before it has been answered."""
        self.after: Callable[[Request], None] = lambda _: None
        """Called when the server has answered and the asker does not know it yet."""
        self._target = apiserver.url
        self._ssl = ssl.create_default_context(cafile=apiserver.ca_file)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._turn = asyncio.Lock()
        self._watches: set[aiohttp.ClientResponse] = set()
        self._runner: web.AppRunner | None = None
        self._session: aiohttp.ClientSession | None = None

    def start(self) -> None:
        """Return when it listens."""
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)

    def stop(self) -> None:
        """Close all connections."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def drop_watches(self) -> None:
        """Break every watch that is open, as a load balancer does."""

        async def drop() -> int:
            for answer in list(self._watches):
                answer.close()
            return len(self._watches)

        asyncio.run_coroutine_threadsafe(drop(), self._loop).result(10)

    @contextmanager
    def fault(self, fault: Fault) -> Iterator[Fault]:
        """The fault happens inside the block."""
        self.faults.append(fault)
        try:
            yield fault
        finally:
            self.faults.remove(fault)

    async def _start(self) -> None:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._ssl)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(total=None)
        )
        application = web.Application(client_max_size=2**24)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def _stop(self) -> None:
        for answer in list(self._watches):
            answer.close()
        assert self._runner is not None
        assert self._session is not None
        await self._session.close()
        await self._runner.cleanup()

    async def _handle(self, incoming: web.Request) -> web.StreamResponse:
        request = Request(incoming.method, incoming.path, incoming.query.get("watch") in ("true", "1"))
        async with self._turn if self.one_by_one and request.writes else nullcontext():
            return await self._passed_on(incoming, request)

    async def _passed_on(self, incoming: web.Request, request: Request) -> web.StreamResponse:
        if self.before(request) is False:
            assert incoming.transport is not None
            incoming.transport.abort()
            return web.Response()
        fault = next((each for each in self.faults if each.takes(request)), None)
        if fault is not None:
            await asyncio.sleep(fault.delay)
            if fault.status is not None:
                return _refused(fault.status, fault.retry_after, request)
        assert self._session is not None
        headers = {name: value for name, value in incoming.headers.items() if name not in _HOP_BY_HOP}
        headers["Accept-Encoding"] = "identity"
        url = self._target + incoming.raw_path
        body = await incoming.read()
        async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
            kept = {name: value for name, value in answer.headers.items() if name not in _HOP_BY_HOP}
            if request.watches and answer.status == 200:
                return await self._stream(incoming, answer, kept)
            content = await answer.read()
        self.after(request)
        if fault is not None and fault.lose_answer:
            assert incoming.transport is not None
            incoming.transport.abort()
        return web.Response(status=answer.status, headers=kept, body=content)

    async def _stream(
        self, incoming: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str]
    ) -> web.StreamResponse:
        outgoing = web.StreamResponse(headers=headers)
        self._watches.add(answer)
        try:
            with suppress(aiohttp.ClientError, ConnectionError):
                await outgoing.prepare(incoming)
                async for chunk in answer.content.iter_any():
                    if self.deaf:
                        self.swallowed += chunk
                    else:
                        await outgoing.write(chunk)
        finally:
            self._watches.discard(answer)
        if incoming.transport is not None:
            incoming.transport.abort()
        return outgoing


def _refused(status: int, retry_after: int | None, request: Request) -> web.Response:
    reasons = {
        404: "NotFound",
        409: "Conflict",
        410: "Expired",
        429: "TooManyRequests",
        500: "InternalError",
        503: "ServiceUnavailable",
    }
    about = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": status,
        "reason": reasons[status],
        "message": "injected",
    }
    if request.watches and status == 410:  # of what is too old to be watched, a watch tells in its stream
        event = json.dumps({"type": "ERROR", "object": about}) + "\n"
        return web.Response(body=event.encode(), content_type="application/json")
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return web.Response(
        status=status, headers=headers, body=json.dumps(about).encode(), content_type="application/json"
    )
