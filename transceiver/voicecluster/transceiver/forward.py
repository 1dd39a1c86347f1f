"""Requests that one worker passes on to another, over the internal ports."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

import aiohttp
from voicecluster.transceiver.directory import Worker
from voicecluster.transceiver.http.auth import InternalKeys
from yarl import URL

CONNECT_SECONDS = 1.0
TOTAL_SECONDS = 5.0

_PASSED_BACK = ("Content-Type", "Location", "Retry-After", "WWW-Authenticate")


class Unreachable(Exception):
    """The other worker gave no answer. `gone`: nobody listens there, as after its end."""

    def __init__(self, *, gone: bool) -> None:
        super().__init__("gone" if gone else "no answer in time")
        self.gone = gone


@dataclass(frozen=True, slots=True)
class Reply:
    """A sibling's response, of which only harmless headers are kept."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Forwarder:
    """Asks siblings, signing each request. An async context manager: it owns its connections.

    Requests may run concurrently; cancelling one closes its connection and nothing else.
    """

    def __init__(self, keys: Callable[[], InternalKeys]) -> None:
        self._keys = keys
        timeout = aiohttp.ClientTimeout(total=TOTAL_SECONDS, connect=CONNECT_SECONDS)
        self._session = aiohttp.ClientSession(timeout=timeout, auto_decompress=False)

    async def __aenter__(self) -> "Forwarder":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(
        self,
        worker: Worker,
        method: str,
        path: str,
        *,
        key_name: str,
        body: bytes = b"",
        content_type: str | None = None,
    ) -> Reply:
        """Repeat a request of the caller with `key_name` at `worker`. Raises Unreachable."""
        headers = self._keys().sign(method, path, body, key_name)
        headers["Content-Type"] = content_type or "application/octet-stream"
        url = URL(worker.base_url + path, encoded=True)
        try:
            async with self._session.request(method, url, data=body, headers=headers) as response:
                kept = {name: response.headers[name] for name in _PASSED_BACK if name in response.headers}
                return Reply(response.status, kept, await response.read())
        except (ConnectionRefusedError, aiohttp.ClientConnectorError) as error:
            raise Unreachable(gone=_refused(error)) from None
        except (aiohttp.ClientError, TimeoutError):
            raise Unreachable(gone=False) from None


def _refused(error: OSError) -> bool:
    """Whether nobody listens there, or the name is nobody's: pods' names go with them."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, socket.gaierror):
        return cause.errno in (socket.EAI_NONAME, socket.EAI_NODATA)
    return isinstance(cause, ConnectionRefusedError)
