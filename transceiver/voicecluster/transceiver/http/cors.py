"""Cross-origin access for browsers: preflights are answered here, and `Location` (the call's id) is readable.

Without `Access-Control-Expose-Headers: Location` a page of another origin cannot learn its own call_id.
"""

from collections.abc import Sequence

from aiohttp import web
from aiohttp.typedefs import Middleware
from voicecluster.transceiver.http.errors import Handler

METHODS = "GET, POST, PATCH, DELETE, OPTIONS"
EXPOSED = "Location, Retry-After"
DEFAULT_HEADERS = "Authorization, Content-Type, X-Voice-Region"
PREFLIGHT_SECONDS = 7200


def cors(origins: Sequence[str]) -> Middleware:
    """A middleware that lets pages of `origins` (or of all, `*`) call the API. Cookies are never involved."""
    everyone = "*" in origins

    def allowed(request: web.Request) -> str | None:
        origin = request.headers.get("Origin")
        if origin is None:
            return None
        if everyone:
            return "*"
        return origin if origin in origins else None

    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = allowed(request)
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
