"""The admin port of every component: `/livez`, `/readyz`, `/metrics` and what it adds, over plain HTTP/1.1.

Health answers are JSON: `{"ok": bool, "reasons": {check: text}}`, where `reasons` names only what is wrong;
200 when ok, else 503. The checks are plain functions that answer from memory: a probe never waits for
anything.

A few fixed paths, one request a connection: that needs no HTTP framework, and importing one would double the time
that a killed control plane takes to come back. Requests are bounded in size, time and number.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from voicecluster.common.ports import address_of, listen_tcp

REQUEST_SECONDS = 5.0
REQUEST_BYTES = 16 * 1024
BODY_BYTES = 4 * 1024
MAX_CONNECTIONS = 64

Check = Callable[[], Mapping[str, str | None]]
"""Returns each check's name with None when it is good, else one line that says what is wrong."""

Metrics = CollectorRegistry | Callable[[], Awaitable[bytes]]
"""A registry, or a coroutine function that returns the text exposition format."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a component's own route is asked."""

    headers: Mapping[str, str]
    """By name in lower case; of several of one name the last."""
    body: bytes
    """At most BODY_BYTES."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered; the server adds length and connection."""

    status: HTTPStatus
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


Route = Callable[[Request], Awaitable[Answer]]
"""Answers within the time of a request, and checks by itself who asks."""


class AdminServer:
    """HTTP server on an internal address. `start` and `close` once each."""

    def __init__(
        self,
        address: str,
        *,
        live: Check,
        ready: Check,
        metrics: Metrics,
        routes: Mapping[tuple[str, str], Route] | None = None,
    ) -> None:
        """Binds nothing yet.

        Args:
            address: `IP:PORT`; port 0 takes a free one.
            live: Failing means "restart this process".
            ready: Failing means "send nothing here yet".
            metrics: What `/metrics` shows.
            routes: The component's own, by method and path.
        """
        self.address = address
        """Where it listens; with the true port after `start`."""
        self._live = live
        self._ready = ready
        self._metrics = metrics
        self._documents = {"/livez": self._livez, "/readyz": self._readyz, "/metrics": self._exposed}
        self._routes = dict(routes or {})
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
                writer.write(_written(head.split(b" ", 1)[0], await self._answer(head, reader)))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a client that sends no request, or does not wait for the answer
        finally:
            writer.close()

    async def _answer(self, head: bytes, reader: asyncio.StreamReader) -> Answer:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        path = rest.partition(" ")[0].partition("?")[0]
        if (route := self._routes.get((method, path))) is not None:
            headers = dict(_header(line) for line in lines)
            body = await _body(headers, reader)
            return body if isinstance(body, Answer) else await route(Request(headers, body))
        if method in ("GET", "HEAD") and (document := self._documents.get(path)) is not None:
            return await document()
        return self._refused(path)

    def _refused(self, path: str) -> Answer:
        """Say which methods the path has, or which paths there are."""
        allowed = [verb for verb, own in self._routes if own == path]
        if path in self._documents:
            allowed += ["GET", "HEAD"]
        if allowed:
            allow = ", ".join(allowed)
            text = f"{allow} only\n".encode()
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, "text/plain", text, {"Allow": allow})
        *others, last = dict.fromkeys([*self._documents, *(own for _, own in self._routes)])
        here = f"here are {', '.join(others)} and {last}\n"
        return Answer(HTTPStatus.NOT_FOUND, "text/plain", here.encode())

    async def _livez(self) -> Answer:
        return _health(self._live)

    async def _readyz(self) -> Answer:
        return _health(self._ready)

    async def _exposed(self) -> Answer:
        metrics = self._metrics
        shown = generate_latest(metrics) if isinstance(metrics, CollectorRegistry) else await metrics()
        return Answer(HTTPStatus.OK, CONTENT_TYPE_LATEST, shown)


def _header(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip().lower(), value.strip()


async def _body(headers: Mapping[str, str], reader: asyncio.StreamReader) -> bytes | Answer:
    """The request's body, or the refusal of one that is too long or whose length is not told."""
    if "transfer-encoding" in headers:
        return Answer(HTTPStatus.LENGTH_REQUIRED, "text/plain", b"send Content-Length\n")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        return Answer(HTTPStatus.BAD_REQUEST, "text/plain", b"Content-Length is no number\n")
    if len(length) > 10 or int(length) > BODY_BYTES:
        text = f"at most {BODY_BYTES} bytes\n".encode()
        return Answer(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "text/plain", text)
    return await reader.readexactly(int(length))


def _health(check: Check) -> Answer:
    reasons = {name: reason for name, reason in check().items() if reason is not None}
    status = HTTPStatus.SERVICE_UNAVAILABLE if reasons else HTTPStatus.OK
    return Answer(status, "application/json", json.dumps({"ok": not reasons, "reasons": reasons}).encode())


def _written(method: bytes, answer: Answer) -> bytes:
    headers = {
        "Content-Type": answer.content_type,
        "Content-Length": str(len(answer.body)),
        "Cache-Control": "no-store",
        "Connection": "close",
        **answer.headers,
    }
    lines = [f"HTTP/1.1 {answer.status.value} {answer.status.phrase}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = "\r\n".join([*lines, "", ""])
    return head.encode("latin-1") + (b"" if method == b"HEAD" else answer.body)
