"""The loop around `Watched`: list, watch, go on where it ended, and never stop trying.

- A server that is absent changes nothing: the last set stays, and `on_error` says why it may be old.
- A watch is ended by the server every minute or so and goes on from its version. One that says nothing for longer
  than it should is deaf and is begun anew; so is one whose host vanished (TCP keepalive).
- After a failure the next try comes after 0.2 s, then later and later, at most 5 s, with jitter; Retry-After is
  honoured. Every failure also begins with a new connection, token and CA.
- All is bounded: pages, bytes, objects.
"""

import asyncio
import json
import logging
import random
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from http import HTTPStatus

import aiohttp
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.kube.watched import (
    Expired,
    Json,
    Malformed,
    Object,
    Watched,
    continue_of,
    items_of,
    resource_version_of,
)

_LOG = logging.getLogger(__name__)

OBJECT_BYTES = 4 * 1024 * 1024
"""No object is larger: etcd takes 1.5 MiB."""
PAGE_OBJECTS = 250
PAGE_BYTES = 64 * 1024 * 1024
MAX_OBJECTS = 20_000


@dataclass(frozen=True, slots=True)
class Pace:
    """How patient a follower is, in seconds."""

    watch: float = 60.0
    """How long the server is asked to keep one watch; then it ends it."""
    deaf: float = 10.0
    """How much later than that it is believed to be deaf."""
    answer: float = 15.0
    """A page of a list must have come in this time."""
    retry_first: float = 0.2
    retry_most: float = 5.0


async def follow(
    api: KubeApi,
    path: str,
    *,
    label_selector: str | None = None,
    field_selector: str | None = None,
    on_change: Callable[[Mapping[str, Object]], None],
    on_error: Callable[[str | None], None] | None = None,
    pace: Pace | None = None,
) -> None:
    """Follow a collection of one namespace until cancelled, which is harmless at any time.

    Args:
        api: The server.
        path: `/api/v1/namespaces/NS/configmaps` and the like.
        label_selector: As kubectl takes it.
        field_selector: For example `metadata.name=NAME`.
        on_change: Gets the whole set by name after the first list, also when it is empty, and after every
            change. It is called on the loop and must not raise.
        on_error: Gets one line when the set can no longer be kept current, and None when it is again.
        pace: Waiting times.
    """
    selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
    given = {name: value for name, value in selectors.items() if value is not None}
    await _Follower(api, path, given, on_change, on_error or (lambda _: None), pace or Pace()).run()


class _Failed(Exception):
    """The server did not do it. `retry_seconds` is what it asked for."""

    def __init__(self, message: str, retry_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_seconds = retry_seconds


class _Follower:
    def __init__(
        self,
        api: KubeApi,
        path: str,
        selectors: Mapping[str, str],
        on_change: Callable[[Mapping[str, Object]], None],
        on_error: Callable[[str | None], None],
        pace: Pace,
    ) -> None:
        self._api, self._path, self._selectors, self._pace = api, path, selectors, pace
        self._on_change, self._on_error = on_change, on_error
        self._watched = Watched()
        self._told = False
        self._error: str | None = None
        self._failures = 0
        """How often in a row; 0 again once a watch works."""

    async def run(self) -> None:
        while True:
            wanted = 0.0
            try:
                async with self._session() as session:
                    while True:
                        if self._watched.resource_version is None:
                            await self._list(session)
                        await self._watch(session)
            except Expired as error:
                self._watched.resource_version = None
                _LOG.debug("listing again", extra={"path": self._path, "cause": str(error)})
            except _Failed as error:
                wanted = error.retry_seconds or 0.0
                self._fail(str(error))
            except Malformed as error:
                self._watched.resource_version = None
                self._fail(f"the API server sent {error}")
            except (aiohttp.ClientError, OSError, ValueError) as error:
                # TimeoutError is an OSError; a line that is no JSON a ValueError.
                if self._failures > 0:  # a connection that ends once is nothing to speak of
                    self._fail(f"no answer from the API server: {error or type(error).__name__}")
            self._failures += 1
            await asyncio.sleep(self._delay(wanted))

    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._api.tls(), limit=2),
            headers={"Accept": "application/json", "User-Agent": "voicecluster"},
        )

    def _get(
        self, session: aiohttp.ClientSession, params: Mapping[str, str], timeout: aiohttp.ClientTimeout
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return session.get(
            self._api.base_url + self._path,
            params={**self._selectors, **params},
            headers=self._api.headers(),
            timeout=timeout,
            allow_redirects=False,
        )

    async def _list(self, session: aiohttp.ClientSession) -> None:
        items: list[Json] = []
        page: dict[str, str] = {}
        timeout = aiohttp.ClientTimeout(total=self._pace.answer)
        while True:
            async with self._get(session, {"limit": str(PAGE_OBJECTS), **page}, timeout) as answer:
                await _check(answer)
                document: Json = json.loads(await _body(answer, PAGE_BYTES))
            items += items_of(document)
            if len(items) > MAX_OBJECTS:
                raise _Failed(f"{self._path}: more than {MAX_OBJECTS} objects; narrow the selector")
            if (token := continue_of(document)) is None:
                break
            page = {"continue": token}
        changed = self._watched.listed(items, resource_version_of(document))
        if changed or not self._told:
            self._told = True
            self._on_change(self._watched.objects)

    async def _watch(self, session: aiohttp.ClientSession) -> None:
        """One watch, to its end."""
        clock = asyncio.get_running_loop().time
        began = clock()
        seconds = max(1, round(self._pace.watch * random.uniform(0.75, 1.0)))
        params = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._watched.resource_version or "",
            "timeoutSeconds": str(seconds),
        }
        timeout = aiohttp.ClientTimeout(
            sock_connect=self._pace.answer, sock_read=self._pace.watch + self._pace.deaf
        )
        async with self._get(session, params, timeout) as answer:
            await _check(answer)
            _keep_alive(answer)
            self._succeed()
            said = False
            async for lines in _lines(answer):
                self._failures, said = 0, True
                self._take(lines)
        if not said and clock() - began < self._pace.retry_first:
            raise _Failed("the API server ends watches at once")
        self._failures = 0

    def _take(self, lines: Sequence[bytes]) -> None:
        """What came in one piece is told as one change, also when it ends with an error."""
        before = self._watched.objects
        try:
            for line in lines:
                self._watched.event(json.loads(line))
        finally:
            if self._watched.objects != before:
                self._on_change(self._watched.objects)

    def _succeed(self) -> None:
        if self._error is not None:
            _LOG.info("following the API server again", extra={"path": self._path})
            self._error = None
            self._on_error(None)

    def _fail(self, error: str) -> None:
        if error == self._error:
            return
        extra = {"path": self._path, "error": error}
        _LOG.warning("the API server cannot be followed; the last state is kept", extra=extra)
        self._error = error
        self._on_error(error)

    def _delay(self, wanted: float) -> float:
        longest = self._pace.retry_most
        delay = min(self._pace.retry_first * 2.0 ** min(self._failures - 1, 16), longest)
        return max(delay * random.uniform(0.5, 1.0), min(wanted, 6 * longest))


async def _check(answer: aiohttp.ClientResponse) -> None:
    """Raise Expired or _Failed for all but 200; the server's own words, which hold no secret, explain it."""
    if answer.status == HTTPStatus.OK:
        return
    words = (await _body(answer, 64 * 1024)).decode(errors="replace")
    try:
        words = str(json.loads(words)["message"])
    except (ValueError, KeyError, TypeError):
        words = answer.reason or ""
    if answer.status == HTTPStatus.GONE:
        raise Expired(words)
    message = f"the API server says {answer.status}: {' '.join(words.split())[:300]}"
    if answer.status == HTTPStatus.FORBIDDEN:
        message += "; grant list and watch with a Role"
    retry = answer.headers.get("Retry-After", "")
    raise _Failed(message, float(retry) if retry.isdecimal() else None)


async def _body(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > limit:
            raise _Failed(f"an answer of the API server is longer than {limit} bytes")
    return bytes(body)


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[list[bytes]]:
    """The answer's lines, together as they came."""
    rest = b""
    async for piece in answer.content.iter_any():
        *lines, rest = (rest + piece).split(b"\n")
        if len(rest) > OBJECT_BYTES:
            raise _Failed(f"an event of the API server is longer than {OBJECT_BYTES} bytes")
        if lines := [line for line in lines if line.strip()]:
            yield lines


def _keep_alive(answer: aiohttp.ClientResponse) -> None:
    """Notice within half a minute that the other host is gone, also where nothing is ever sent."""
    transport = answer.connection.transport if answer.connection is not None else None
    bound = transport.get_extra_info("socket") if transport is not None else None
    if bound is None:
        return
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3)):
        bound.setsockopt(socket.IPPROTO_TCP, option, value)
