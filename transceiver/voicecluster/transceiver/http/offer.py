"""What a client sends to open a call: SDP alone, or a form of SDP and a session."""

import json
from dataclasses import dataclass

from aiohttp import web
from pydantic import JsonValue
from voicecluster.transceiver.http.errors import ApiError

SESSION_BYTES = 65_536
MOST_SDP_BYTES = 1_048_576
"""What `limits.sdpBytes` may allow at most."""
FORM_OVERHEAD_BYTES = 16_384

SessionParams = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class OfferRequest:
    """One request for a call, whichever form it came in. An unknown `model` means the default agent."""

    sdp: str
    model: str | None
    session: SessionParams | None

    def to_json(self) -> bytes:
        """The form in which workers pass an offer on."""
        return json.dumps({"sdp": self.sdp, "model": self.model, "session": self.session}).encode()


async def read_offer(request: web.Request, *, sdp_bytes: int) -> OfferRequest:
    """Read a client's request.

    Raises ApiError: 413 over `sdp_bytes`, 415 for other types, 400 for a bad form.
    """
    model = request.query.get("model")
    if request.content_type == "application/sdp":
        body = await _bounded(request, sdp_bytes)
        return OfferRequest(sdp=_sdp(body, sdp_bytes), model=model, session=None)
    if request.content_type == "multipart/form-data":
        sdp, session = await _form(request)
        params = _session(session) if session is not None else None
        named = params.get("model") if params is not None else None
        return OfferRequest(
            sdp=_sdp(sdp, sdp_bytes), model=named if isinstance(named, str) else model, session=params
        )
    raise ApiError(
        415,
        "unsupported_content_type",
        "Send the offer as application/sdp, or as multipart/form-data with the fields 'sdp' and 'session'.",
    )


async def read_passed_on(request: web.Request) -> OfferRequest:
    """Read an offer that a sibling passed on and has checked already. Raises ApiError for anything else."""
    try:
        body = json.loads(await request.read())
        sdp, model, session = body["sdp"], body["model"], body["session"]
    except (ValueError, KeyError, TypeError):
        raise ApiError(400, "invalid_request", "Not an offer as workers pass it on.") from None
    if not isinstance(sdp, str) or not isinstance(model, str | None) or not isinstance(session, dict | None):
        raise ApiError(400, "invalid_request", "Not an offer as workers pass it on.")
    return OfferRequest(sdp=sdp, model=model, session=session)


async def _bounded(request: web.Request, limit: int) -> bytes:
    if request.content_length is not None and request.content_length > limit:
        raise _too_large(limit)
    return await request.read()


def _too_large(limit: int) -> ApiError:
    return ApiError(413, "sdp_too_large", f"The SDP is larger than {limit} bytes.", param="sdp")


def _sdp(body: bytes, limit: int) -> str:
    if len(body) > limit:
        raise _too_large(limit)
    if not body.strip():
        raise ApiError(400, "missing_sdp", "There is no SDP in the request: send an offer.", param="sdp")
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise ApiError(
            400, "invalid_offer", "The body is not SDP: it is not UTF-8 text.", param="sdp"
        ) from None


async def _form(request: web.Request) -> tuple[bytes, bytes | None]:
    try:
        form = await request.post()
    except (ValueError, AssertionError, RuntimeError):
        raise ApiError(400, "invalid_form", "The multipart form cannot be read.") from None
    if "sdp" not in form:
        raise ApiError(400, "missing_sdp", "The form has no field 'sdp'.", param="sdp")
    session = form.get("session")
    return _field(form["sdp"]), None if session is None else _field(session)


def _field(value: str | bytes | bytearray | web.FileField) -> bytes:
    if isinstance(value, web.FileField):
        return value.file.read()
    return value.encode() if isinstance(value, str) else bytes(value)


def _session(body: bytes) -> SessionParams:
    if len(body) > SESSION_BYTES:
        raise ApiError(
            413, "session_too_large", f"The session is larger than {SESSION_BYTES} bytes.", param="session"
        )
    try:
        params = json.loads(body)
    except ValueError:
        raise ApiError(400, "invalid_session", "The field 'session' is not JSON.", param="session") from None
    if not isinstance(params, dict):
        raise ApiError(400, "invalid_session", "The field 'session' is not a JSON object.", param="session")
    return params
