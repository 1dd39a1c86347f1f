"""Refusals of the API, in the Realtime API's JSON shape: `{"error": {"message", "type", "code", "param"}}`.

`ApiError` is raised by whatever finds the problem and turned into a response by `refusals`, the only place
that writes error bodies.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web

log = logging.getLogger(__name__)

REQUEST_SECONDS = 15.0
"""How long a request may take, its body included."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ApiError(Exception):
    """A request cannot be served. `message` is for the caller's developer; `status` decides the type."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.param = param
        self.headers = dict(headers or {})


def unknown_call() -> ApiError:
    """404: no such call, or not the caller's: the two are not told apart."""
    return ApiError(
        404, "call_not_found", "There is no call with this id; it may have ended.", param="call_id"
    )


def full(region: str, retry_after_seconds: int) -> ApiError:
    """503: nobody in `region` takes calls now."""
    return ApiError(
        503,
        "region_full",
        f"Region '{region}' takes no more calls now; try again after {retry_after_seconds} s.",
        headers={"Retry-After": str(retry_after_seconds)},
    )


def error_response(error: ApiError) -> web.Response:
    """The response that tells the caller what `error` says."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    body = {"message": error.message, "type": kind, "code": error.code, "param": error.param}
    return web.json_response({"error": body}, status=error.status, headers=error.headers)


_HTTP_CODES = {404: "not_found", 405: "method_not_allowed", 413: "too_large"}


@web.middleware
async def refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn every failure of a handler into an error of the API's shape."""
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            return await handler(request)
    except TimeoutError:
        return error_response(ApiError(408, "request_timeout", "The request took too long to arrive."))
    except ApiError as error:
        return error_response(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        code = _HTTP_CODES.get(error.status, "bad_request")
        message = f"{request.method} {request.path}: {error.reason}."
        allow = {"Allow": error.headers["Allow"]} if "Allow" in error.headers else None
        return error_response(ApiError(error.status, code, message, headers=allow))
    except Exception:  # the root of a request: whatever went wrong ends this request, nothing else
        log.exception("request failed", extra={"method": request.method, "route": _route(request)})
        return error_response(
            ApiError(500, "internal_error", "The server failed; the request may be repeated.")
        )


def _route(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return resource.canonical if resource is not None else "unknown"
