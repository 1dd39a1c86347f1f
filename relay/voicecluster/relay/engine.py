"""The control plane's end of the engine's control protocol.

The engine listens on a Unix socket and speaks lines of JSON, one reply to one request. `EngineLink` keeps a
connection, brings the engine to the wanted state, and brings it back there whenever the engine (or the
connection) is new: `configure`, then `routes`, then `keys`, each as a whole snapshot.

    EngineError
    ├── EngineGone      no connection, a time-out, or no real reply: the link connects again by itself
    └── EngineRefused   the engine read the request and said why not
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

_LOG = logging.getLogger(__name__)

LINE_BYTES = 64 * 1024 * 1024
"""The longest line of the protocol."""
REQUEST_SECONDS = 5.0
RETRY_FIRST_SECONDS = 0.02
RETRY_MOST_SECONDS = 0.5

Snapshot = Literal["configure", "routes", "keys"]
_ORDER: tuple[Snapshot, ...] = ("configure", "routes", "keys")
Payload = Mapping[str, object]


class EngineError(Exception):
    """The engine did not do what was asked."""


class EngineGone(EngineError):
    """There is no working connection now."""


class EngineRefused(EngineError):
    """The engine's own one-line reason."""


class EngineLink:
    """A connection to the engine that repairs itself. `run` owns it; the rest may be called at any time."""

    def __init__(self, socket: Path, *, request_seconds: float = REQUEST_SECONDS) -> None:
        """Connects to nothing before `run`."""
        self._socket = socket
        self._request_seconds = request_seconds
        self._wanted: dict[Snapshot, Payload] = {}
        self._unsent: set[Snapshot] = set()
        self._confirmed: set[Snapshot] = set()
        self._wake = asyncio.Event()
        self._turn = asyncio.Lock()
        self._last_id = 0
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.connections = 0
        """How many connections there have been: whatever an engine said before the latest may be of another one."""
        self.refused: dict[Snapshot, str] = {}
        """Why the engine does not have the newest snapshot, where it said so."""

    @property
    def connected(self) -> bool:
        """Whether there is a connection that has not failed yet."""
        return self._writer is not None

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether the engine that is connected now has confirmed a `snapshot` of ours, maybe not the
        newest.
        """
        return self.connected and snapshot in self._confirmed

    def want(self, snapshot: Snapshot, payload: Payload) -> None:
        """Set what the engine is to have from now on; `run` sends it, again and again if engines come and go.

        Only the newest payload of each kind is kept, so a slow engine never makes a queue.
        """
        self._wanted[snapshot] = payload
        self._unsent.add(snapshot)
        self._wake.set()

    async def run(self) -> None:
        """Connect, bring the engine to the wanted state, repeat. Runs until cancelled."""
        delay = RETRY_FIRST_SECONDS
        try:
            while True:
                try:
                    await self._connect()
                    delay = RETRY_FIRST_SECONDS
                    await self._serve()
                except EngineGone as error:
                    _LOG.debug("no engine", extra={"error": str(error)})
                self._drop()
                await asyncio.sleep(delay)
                delay = min(2 * delay, RETRY_MOST_SECONDS)
        finally:
            self._drop()

    async def request(self, op: str, payload: Payload | None = None) -> dict[str, object]:
        """Send one request and return its reply. Requests wait for one another.

        Cancelling it while the reply is on its way drops the connection; `run` makes a new one.

        Raises:
            EngineGone: No connection, no reply in time, or nonsense.
            EngineRefused: The engine said no.
        """
        async with self._turn:
            if self._reader is None or self._writer is None:
                raise EngineGone("not connected")
            self._last_id += 1
            line = json.dumps({"id": self._last_id, "op": op, **(payload or {})}, separators=(",", ":"))
            try:
                async with asyncio.timeout(self._request_seconds):
                    self._writer.write(line.encode() + b"\n")
                    await self._writer.drain()
                    reply = await self._reader.readuntil(b"\n")
                return _checked(reply, self._last_id)
            except (TimeoutError, OSError, ValueError, EOFError, asyncio.LimitOverrunError) as error:
                self._drop()
                raise EngineGone(f"{op}: {error or type(error).__name__}") from None
            except asyncio.CancelledError:
                self._drop()
                raise

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=LINE_BYTES, loop=loop)
        protocol = _Protocol(reader, self._lost)
        try:
            async with asyncio.timeout(self._request_seconds):
                transport, _ = await loop.create_unix_connection(lambda: protocol, str(self._socket))
        except (OSError, TimeoutError) as error:
            raise EngineGone(str(error)) from None
        self._reader, self._writer = reader, asyncio.StreamWriter(transport, protocol, reader, loop)
        self.connections += 1
        self._unsent = set(self._wanted)
        self._confirmed.clear()
        self.refused.clear()
        self._wake.set()
        _LOG.info("connected to the engine")

    async def _serve(self) -> None:
        while True:
            self._wake.clear()
            if not self.connected:
                raise EngineGone("connection lost")
            for snapshot in _ORDER:
                if snapshot in self._unsent:
                    await self._send(snapshot)
            if not self._unsent:
                await self._wake.wait()

    async def _send(self, snapshot: Snapshot) -> None:
        payload = self._wanted[snapshot]
        try:
            await self.request(snapshot, payload)
        except EngineRefused as error:
            if self.refused.get(snapshot) != str(error):
                _LOG.error("engine refused", extra={"snapshot": snapshot, "error": str(error)})
            self.refused[snapshot] = str(error)
        else:
            self.refused.pop(snapshot, None)
            self._confirmed.add(snapshot)
        if self._wanted[snapshot] is payload:
            self._unsent.discard(snapshot)

    def _lost(self, reader: asyncio.StreamReader) -> None:
        if reader is self._reader:
            self._drop()

    def _drop(self) -> None:
        if self._writer is not None:
            _LOG.info("disconnected from the engine")
            self._writer.close()
        self._reader = self._writer = None
        self._wake.set()


class _Protocol(asyncio.StreamReaderProtocol):
    """Tells of a lost connection at once, also while nobody reads: a restarted engine waits for its state."""

    def __init__(self, reader: asyncio.StreamReader, lost: Callable[[asyncio.StreamReader], None]) -> None:
        super().__init__(reader)
        self._held_reader = reader
        self._lost = lost

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._lost(self._held_reader)


def _checked(line: bytes, request_id: int) -> dict[str, object]:
    """The reply's fields. Raises ValueError for what is no reply to this request, EngineRefused for a no."""
    reply = json.loads(line)
    if not isinstance(reply, dict) or reply.get("id") != request_id:
        raise ValueError("a reply to something else")
    if reply.get("ok") is not True:
        raise EngineRefused(str(reply.get("error", "no reason given")))
    return reply
