"""The admin port of every component: `/livez`, `/readyz` and `/metrics`.

Health answers are JSON: `{"ok": bool, "reasons": {check: text}}`, where `reasons` names only what is wrong;
200 when ok, else 503. The checks are plain functions that answer from memory: a probe never waits for
anything.
"""

from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from voicecluster.common.ports import address_of, listen_tcp

Check = Callable[[], Mapping[str, str | None]]
"""Returns each check's name with None when it is good, else one line that says what is wrong."""

Metrics = CollectorRegistry | Callable[[], Awaitable[bytes]]
"""A registry, or a coroutine function that returns the text exposition format."""


class AdminServer:
    """HTTP server on an internal address. `start` and `close` once each; `app` takes more routes until
    `start`.
    """

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
        self.app = web.Application()
        self._metrics = metrics
        self._runner = web.AppRunner(self.app, access_log=None, shutdown_timeout=0.2)
        self.app.router.add_get("/livez", _health(live))
        self.app.router.add_get("/readyz", _health(ready))
        self.app.router.add_get("/metrics", self._expose)

    async def start(self) -> None:
        """Listen. Raises `PortError`, a `ConfigError`, where the port is taken."""
        listening = listen_tcp(self.address)
        self.address = address_of(listening)
        await self._runner.setup()
        await web.SockSite(self._runner, listening).start()

    async def close(self) -> None:
        """Stop listening and end open requests; takes at most a fraction of a second."""
        await self._runner.cleanup()

    async def _expose(self, _: web.Request) -> web.Response:
        if isinstance(self._metrics, CollectorRegistry):
            body = generate_latest(self._metrics)
        else:
            body = await self._metrics()
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})


def _health(check: Check) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        reasons = {name: reason for name, reason in check().items() if reason is not None}
        return web.json_response({"ok": not reasons, "reasons": reasons}, status=503 if reasons else 200)

    return answer
