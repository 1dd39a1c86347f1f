"""An API server's list and watch with behaviour, over real HTTP, for followers to follow."""

import asyncio
from collections.abc import Mapping

from aiohttp import web

PATH = "/api/v1/namespaces/ns/things"


def thing(
    name: str, version: int, labels: Mapping[str, str] | None = None, **fields: object
) -> dict[str, object]:
    metadata = {"name": name, "resourceVersion": str(version), "labels": dict(labels or {})}
    return {"metadata": metadata, **fields}


class FakeApiServer:
    """Serves `things` at a path and keeps every change, so that a watch goes on from any version it still knows.

    `requests` are the query parameters seen, `tokens` the Authorization headers.
    """

    def __init__(self, path: str = PATH) -> None:
        self._path = path
        self.things: dict[str, dict[str, object]] = {}
        self.requests: list[Mapping[str, str]] = []
        self.tokens: list[str | None] = []
        self.status = 200
        self.retry_after: str | None = None
        self.page_size = 1000
        self.deaf = False
        self.ends_watches = False
        self._version = 1
        self._oldest = 0
        self._log: list[tuple[int, dict[str, object]]] = []
        self._changed = asyncio.Condition()
        self._watching: set[web.StreamResponse] = set()
        self._runner: web.AppRunner | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get(self._path, self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Cut all connections; `start` comes back on the same port with the same things."""
        assert self._runner is not None
        await self.drop_watches()
        await self._runner.cleanup()

    async def put(self, name: str, labels: Mapping[str, str] | None = None, **fields: object) -> None:
        known = name in self.things
        self._version += 1
        self.things[name] = thing(name, self._version, labels or {"app": "relay"}, **fields)
        await self.emit({"type": "MODIFIED" if known else "ADDED", "object": self.things[name]})

    async def remove(self, name: str) -> None:
        self._version += 1
        gone = self.things.pop(name)
        gone = {**gone, **thing(name, self._version, gone["metadata"]["labels"])}  # type: ignore[index]
        await self.emit({"type": "DELETED", "object": gone})

    async def bookmark(self) -> None:
        self._version += 1
        await self.emit({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self._version)}}})

    async def emit(self, event: dict[str, object]) -> None:
        async with self._changed:
            self._log.append((self._version, event))
            self._changed.notify_all()

    def forget(self) -> None:
        """Compact: watches from before now get 410."""
        self._oldest = self._version
        self._log.clear()

    async def drop_watches(self) -> None:
        for watch in list(self._watching):
            if watch._req is not None and watch._req.transport is not None:
                watch._req.transport.abort()
        async with self._changed:
            self._changed.notify_all()

    async def until_requests(self, count: int) -> None:
        async with asyncio.timeout(5), self._changed:
            await self._changed.wait_for(lambda: len(self.requests) >= count)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(dict(request.query))
        self.tokens.append(request.headers.get("Authorization"))
        async with self._changed:
            self._changed.notify_all()
        if self.status != 200:
            headers = {"Retry-After": self.retry_after} if self.retry_after else None
            return web.json_response({"message": "not you"}, status=self.status, headers=headers)
        return await (self._watch(request) if "watch" in request.query else self._list(request))

    async def _list(self, request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("continue", "0"))
        items = [item for item in self.things.values() if _is_selected(item, request)]
        metadata = {"resourceVersion": str(self._version)}
        if start + self.page_size < len(items):
            metadata["continue"] = str(start + self.page_size)
        return web.json_response({"metadata": metadata, "items": items[start : start + self.page_size]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        seen = int(request.query["resourceVersion"])
        answer = web.StreamResponse()
        await answer.prepare(request)
        if seen < self._oldest:
            await answer.write(b'{"type": "ERROR", "object": {"code": 410, "message": "too old"}}\n')
            return answer
        if self.ends_watches:
            return answer
        self._watching.add(answer)
        try:
            async with asyncio.timeout(int(request.query["timeoutSeconds"])):
                await self._tell(answer, request, seen)
        except TimeoutError:
            pass
        finally:
            self._watching.discard(answer)
        return answer

    async def _tell(self, answer: web.StreamResponse, request: web.Request, seen: int) -> None:
        while request.transport is not None and not request.transport.is_closing():
            news = [(version, event) for version, event in self._log if version > seen]
            for version, event in news:
                seen = version
                if not self.deaf and (event["type"] == "BOOKMARK" or _is_selected(event["object"], request)):
                    await answer.write(web.json_response(event).body + b"\n")  # type: ignore[operator]
            async with self._changed:
                if not any(version > seen for version, _ in self._log):
                    await self._changed.wait()


def _is_selected(item: object, request: web.Request) -> bool:
    assert isinstance(item, dict)
    wanted = [term.split("=", 1) for term in request.query.get("labelSelector", "").split(",") if term]
    return all(item["metadata"]["labels"].get(key) == value for key, value in wanted)
