"""The page at `/` and its files under `/page/`: whatever lies in the package's `page` directory."""

from pathlib import Path

from aiohttp import web

PAGE_DIRECTORY = Path(__file__).parent.parent / "page"

SECURITY_HEADERS = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "Permissions-Policy": "microphone=(self)",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_TYPES = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wav": "audio/wav",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}


def page_routes(directory: Path = PAGE_DIRECTORY) -> list[web.RouteDef]:
    """Routes that serve the flat `directory`; names that could leave it do not match."""

    def send(name: str) -> web.StreamResponse:
        path = directory / name
        kind = _TYPES.get(path.suffix)
        if kind is None or not path.is_file():
            raise web.HTTPNotFound
        charset = "; charset=utf-8" if kind.startswith("text/") else ""
        return web.FileResponse(path, headers={**SECURITY_HEADERS, "Content-Type": kind + charset})

    async def index(_: web.Request) -> web.StreamResponse:
        return send("index.html")

    async def file(request: web.Request) -> web.StreamResponse:
        return send(request.match_info["name"])

    return [web.get("/", index), web.get(r"/page/{name:[A-Za-z0-9][A-Za-z0-9._-]*}", file)]
