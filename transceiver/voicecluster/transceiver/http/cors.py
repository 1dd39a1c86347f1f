"""Cross-origin access for browsers: preflights are answered here, and `Location` (the call's id) is readable.

Without `Access-Control-Expose-Headers: Location` a page of another origin cannot learn its own call_id.
"""

from collections.abc import Callable, Sequence

from aiohttp import web
from aiohttp.typedefs import Middleware
from voicecluster.transceiver.http.errors import Handler

METHODS = "GET, POST, PATCH, DELETE, OPTIONS"
EXPOSED = "Location, Retry-After"
DEFAULT_HEADERS = "Authorization, Content-Type, X-Voice-Region"
PREFLIGHT_SECONDS = 7200


def cors(origins: Callable[[], Sequence[str]]) -> Middleware:
    """A middleware that lets pages of `origins` (or of all, `*`) call the API. Cookies are never involved."""

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        known = origins()
        everyone = "*" in known
        origin = _allowed(request.headers.get("Origin"), known)
        if request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers:
            response: web.StreamResponse = web.Response(status=204)
            if origin is not None:
                wanted = request.headers.get("Access-Control-Request-Headers", DEFAULT_HEADERS)
                response.headers["Access-Control-Allow-Methods"] = METHODS
                response.headers["Access-Control-Allow-Headers"] = wanted
                response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)
        else:
            response = await handler(request)
        if origin is not None:
            response.headers["Access-Control-Allow-Origin"] = origin
            response.headers["Access-Control-Expose-Headers"] = EXPOSED
        if not everyone:
            response.headers["Vary"] = "Origin"
        return response

    return middleware


def _allowed(origin: str | None, known: Sequence[str]) -> str | None:
    if origin is None or "*" in known:
        return None if origin is None else "*"
    return origin if origin in known else None
