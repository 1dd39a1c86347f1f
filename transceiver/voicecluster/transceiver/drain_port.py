"""`/drain` on the admin port: the operator's way to empty a transceiver before it takes the pod away.

`GET /drain`, `PUT /drain {"deadline": RFC3339}` and `DELETE /drain`, with `Authorization: Bearer TOKEN`, all answer
`{"state", "calls", "oldestCallSeconds", "deadline"}`. `calls` are those of all workers or the answer is 503: nobody
must take a pod for empty because a worker was busy.

The parent keeps the deadline and gives it to every worker that it starts; here it is passed on to those that run,
again and again until each has taken it.
"""

import asyncio
import hashlib
import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Protocol

from voicecluster.common.admin import Answer, Request, Route
from voicecluster.common.config.model import ConfigError
from voicecluster.transceiver.drain import DrainReport
from voicecluster.transceiver.forward import Reply, Unreachable
from voicecluster.transceiver.http.drain import drain_request, read_report
from voicecluster.transceiver.notes import Told

log = logging.getLogger(__name__)

DRAIN = "/drain"
RETRY_SECONDS = 1.0

Ask = Callable[[int, str, bytes], Awaitable[Reply]]
"""A request for `/internal/drain` of a worker: its index, the method, the body. Raises Unreachable."""


class DrainToken:
    """Who may drain: whoever has the token in the file, which is read again each time."""

    def __init__(self, file: Path) -> None:
        """Raises ConfigError where there is no token to begin with."""
        self._file = file
        token = self._read()
        if token is None:
            raise ConfigError(f"{file}: drainTokenFile: no token in it; mount a Secret with one")
        self._digest = hashlib.sha256(token).digest()

    def admits(self, authorization: str) -> bool:
        """Whether the header is `Bearer TOKEN`. Takes the same time for all wrong tokens."""
        token = self._read()
        if token is not None:
            self._digest = hashlib.sha256(token).digest()
        scheme, _, given = authorization.partition(" ")
        same = hmac.compare_digest(hashlib.sha256(given.strip().encode()).digest(), self._digest)
        return scheme.lower() == "bearer" and same

    def _read(self) -> bytes | None:
        try:
            return self._file.read_bytes().strip() or None
        except OSError:
            return None


class Transceiver(Protocol):
    """What a drain needs of the transceiver."""

    @property
    def told(self) -> Told | None:
        """What the parent told last; None before it told anything."""

    def keep_cordon(self, deadline: float | None) -> None:
        """Have the parent keep the deadline."""


class DrainPort:
    """The drain of all workers. `told` and `keep_up` belong to the same loop as the requests."""

    def __init__(self, transceiver: Transceiver, ask: Ask, token: DrainToken | None) -> None:
        """Without a token there are no routes: then only a signal drains."""
        self._transceiver = transceiver
        self._ask = ask
        self._token = token
        self._deadline: float | None = None
        self._known = False
        self._behind: set[int] = set()
        self._wake = asyncio.Event()

    @property
    def cordoned(self) -> bool:
        """Whether new calls are refused until the operator says otherwise."""
        return self._deadline is not None

    def routes(self) -> Mapping[tuple[str, str], Route]:
        """For the admin server."""
        if (token := self._token) is None:
            return {}
        return {
            ("GET", DRAIN): self._guarded(token, self._show),
            ("PUT", DRAIN): self._guarded(token, self._begin),
            ("DELETE", DRAIN): self._guarded(token, self._cancel),
        }

    def told(self, before: Told | None, now: Told) -> None:
        """The parent told something: who has just come up must hear of the drain."""
        if not self._known:
            self._known, self._deadline = True, now.cordoned_until
        for index, worker in enumerate(now.workers):
            if worker.state == "ready" and (before is None or before.workers[index] != worker):
                self._behind.add(index)
        self._wake.set()

    async def keep_up(self) -> None:
        """Pass the drain on to workers that have not heard of it, until cancelled, which is harmless."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._behind:
                await self._pass_on(sorted(self._behind))
            if self._behind:
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self._wake.set)

    def _guarded(self, token: DrainToken, act: Callable[[Request], Awaitable[Answer]]) -> Route:
        async def route(request: Request) -> Answer:
            if not token.admits(request.headers.get("authorization", "")):
                challenge = {"WWW-Authenticate": "Bearer"}
                return Answer(
                    HTTPStatus.UNAUTHORIZED, "text/plain", b"the drain token is needed\n", challenge
                )
            if self._transceiver.told is None:
                return _unavailable("starting")
            return await act(request)

        return route

    async def _begin(self, request: Request) -> Answer:
        try:
            deadline = _deadline_of(request.body)
        except ValueError as error:
            return Answer(HTTPStatus.BAD_REQUEST, "text/plain", f"{error}\n".encode())
        self._set(deadline)
        return await self._show(request)

    async def _cancel(self, request: Request) -> Answer:
        self._set(None)
        return await self._show(request)

    def _set(self, deadline: float | None) -> None:
        if deadline != self._deadline:
            log.info(
                "drain cancelled" if deadline is None else "draining", extra={"deadline": _shown(deadline)}
            )
        self._deadline = deadline
        self._transceiver.keep_cordon(deadline)

    async def _show(self, _: Request) -> Answer:
        told = self._transceiver.told
        if told is None:
            return _unavailable("starting")
        reports = await self._pass_on(range(len(told.workers)))
        if self._behind:
            self._wake.set()
            return _unavailable(f"worker {min(self._behind)} gives no answer")
        ages = [report.oldest_call_seconds for report in reports if report.oldest_call_seconds is not None]
        document = {
            "state": "draining" if self.cordoned or told.ending else "serving",
            "calls": sum(report.calls for report in reports),
            "oldestCallSeconds": round(max(ages), 3) if ages else None,
            "deadline": _shown(self._deadline),
        }
        return Answer(HTTPStatus.OK, "application/json", json.dumps(document).encode())

    async def _pass_on(self, workers: "range | list[int]") -> list[DrainReport]:
        """Tell `workers` how it is, and note who did not hear it. Returns the reports of the others."""
        asked = await asyncio.gather(*(self._told_by(index) for index in workers))
        self._behind.difference_update(workers)
        self._behind.update(index for index, report in zip(workers, asked, strict=True) if report is None)
        return [report for report in asked if report is not None]

    async def _told_by(self, index: int) -> DrainReport | None:
        """Tell one worker; None when it gave no answer. One that does not run has no calls."""
        deadline = self._deadline
        method, body = ("DELETE", b"") if deadline is None else ("PUT", drain_request(deadline))
        try:
            reply = await self._ask(index, method, body)
            return read_report(reply.body) if reply.status == HTTPStatus.OK else None
        except Unreachable as error:
            return DrainReport(0, None) if error.gone else None
        except (TimeoutError, ValueError):
            return None


def _deadline_of(body: bytes) -> float:
    """Raises ValueError in words for who sent it."""
    form = 'send {"deadline": "2030-01-31T12:00:00Z"}'
    try:
        document = json.loads(body)
    except ValueError:
        raise ValueError(f"the body is not JSON; {form}") from None
    if not isinstance(document, dict) or set(document) != {"deadline"}:
        raise ValueError(f"the body is not a deadline; {form}")
    try:
        deadline = datetime.fromisoformat(document["deadline"])
    except (ValueError, TypeError):
        raise ValueError(f"deadline: not a time of RFC 3339; {form}") from None
    if deadline.tzinfo is None:
        raise ValueError(f"deadline: no time zone; {form}")
    return deadline.timestamp()


def _shown(deadline: float | None) -> str | None:
    return (
        None if deadline is None else datetime.fromtimestamp(deadline, UTC).isoformat().replace("+00:00", "Z")
    )


def _unavailable(why: str) -> Answer:
    headers = {"Retry-After": "1"}
    return Answer(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{why}; ask again\n".encode(), headers)
