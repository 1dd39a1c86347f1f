"""A relay engine's control socket with behaviour, for the control plane to talk to."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from voicecluster.common.config.model import parse
from voicecluster.common.config.relay import RelayConfig


class FakeEngine:
    """Speaks the control protocol on a real Unix socket. State is lost at `die`, as a killed engine's is."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.requests: list[str] = []
        self.held: dict[str, dict[str, object]] = {}
        self.refuse: dict[str, str] = {}
        self.mute = False
        self.garbage = False
        self.stats: dict[str, object] = {"workers": [], "uptimeSeconds": 1.0}
        self.alive = True
        self._changed = asyncio.Condition()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.socket, limit=1 << 26)

    async def die(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        self.held.clear()
        self.socket.unlink(missing_ok=True)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition` holds; it is looked at after every request."""
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(condition)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while line := await reader.readline():
                request = json.loads(line)
                reply = self._reply(request)
                if not self.mute:
                    writer.write(b"what?\n" if self.garbage else json.dumps(reply).encode() + b"\n")
                async with self._changed:
                    self._changed.notify_all()
        except ConnectionError:
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _reply(self, request: dict[str, object]) -> dict[str, object]:
        op = str(request.pop("op"))
        number = request.pop("id")
        self.requests.append(op)
        if op in self.refuse:
            return {"id": number, "ok": False, "error": self.refuse[op]}
        if op == "stats":
            routes = self.held.get("routes", {}).get("routes", [])
            assert isinstance(routes, list)
            return {"id": number, "ok": True, "routes": len(routes), **self.stats}
        if op == "ping":
            return {"id": number, "ok": True, "alive": self.alive}
        self.held[op] = request
        return {"id": number, "ok": True}


@pytest.fixture
async def fake_engine(tmp_path: Path) -> AsyncIterator[FakeEngine]:
    engine = FakeEngine(tmp_path / "engine.sock")
    await engine.start()
    yield engine
    await engine.die()


@pytest.fixture
def config(tmp_path: Path) -> RelayConfig:
    """A relay's configuration with one route and one key in its files."""
    (tmp_path / "routes.yaml").write_text(
        "routes: [{cluster: 7, ordinal: 0, worker: 0, address: '127.0.0.1:40000'}]"
    )
    key = base64.b64encode(bytes(range(32))).decode()
    (tmp_path / "keys.yaml").write_text(json.dumps({"clusters": {"7": {"A": key}}}))
    document = {
        "name": "eu-0",
        "region": "eu",
        "listeners": [{"name": "vip", "bind": "127.0.0.1:1", "advertise": "127.0.0.1:1"}],
        "backbone": "127.0.0.1:2",
        "routesFile": str(tmp_path / "routes.yaml"),
        "keysFile": str(tmp_path / "keys.yaml"),
        "admin": "127.0.0.1:0",
    }
    return parse(document, RelayConfig, source="test")
