"""The admin port of every component: `/livez`, `/readyz` and `/metrics` over plain HTTP/1.1.

Health answers are JSON: `{"ok": bool, "reasons": {check: text}}`, where `reasons` names only what is wrong;
200 when ok, else 503. The checks are plain functions that answer from memory: a probe never waits for
anything.

Three fixed documents, one request a connection: that needs no HTTP framework, and importing one would double
the time that a killed control plane takes to come back. Requests are bounded in size, time and number.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from voicecluster.common.ports import address_of, listen_tcp

REQUEST_SECONDS = 5.0
REQUEST_BYTES = 16 * 1024
MAX_CONNECTIONS = 64

Check = Callable[[], Mapping[str, str | None]]
"""Returns each check's name with None when it is good, else one line that says what is wrong."""

Metrics = CollectorRegistry | Callable[[], Awaitable[bytes]]
"""A registry, or a coroutine function that returns the text exposition format."""

_Answer = tuple[HTTPStatus, str, bytes]


class AdminServer:
    """HTTP server on an internal address. `start` and `close` once each."""

    def __init__(self, address: str, *, live: Check, ready: Check, metrics: Metrics) -> None:
        """Binds nothing yet.

        Args:
            address: `IP:PORT`; port 0 takes a free one.
            live: Failing means "restart this process".
            ready: Failing means "send nothing here yet".
            metrics: What `/metrics` shows.
        """
        self.address = address
        """Where it listens; with the true port after `start`."""
        self._live = live
        self._ready = ready
        self._metrics = metrics
        self._server: asyncio.Server | None = None
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. Raises `PortError`, a `ConfigError`, where the port is taken."""
        listening = listen_tcp(self.address)
        self.address = address_of(listening)
        self._server = await asyncio.start_server(self._accept, sock=listening, limit=REQUEST_BYTES)

    async def close(self) -> None:
        """Stop listening and end open requests, at once."""
        if self._server is not None:
            self._server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._serving) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._serve(reader, writer), name="admin-request")
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_written(head.split(b" ", 1)[0], await self._answer(head)))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that sends no request, or does not wait for the answer
        finally:
            writer.close()

    async def _answer(self, head: bytes) -> _Answer:
        method, _, rest = head.decode("latin-1").partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", b"GET only\n"
        match path:
            case "/livez":
                return _health(self._live)
            case "/readyz":
                return _health(self._ready)
            case "/metrics":
                return HTTPStatus.OK, CONTENT_TYPE_LATEST, await self._exposed()
            case _:
                return HTTPStatus.NOT_FOUND, "text/plain", b"here are /livez, /readyz and /metrics\n"

    async def _exposed(self) -> bytes:
        if isinstance(self._metrics, CollectorRegistry):
            return generate_latest(self._metrics)
        return await self._metrics()


def _health(check: Check) -> _Answer:
    reasons = {name: reason for name, reason in check().items() if reason is not None}
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    return status, "application/json", json.dumps({"ok": not reasons, "reasons": reasons}).encode()


def _written(method: bytes, answer: _Answer) -> bytes:
    status, content_type, body = answer
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("latin-1") + (b"" if method == b"HEAD" else body)
