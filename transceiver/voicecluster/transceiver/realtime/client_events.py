"""The client events understood, and the session object, after the Realtime API (GA).

Unknown fields of what acts are errors, as the API has it; what a client may say of tools, voices and the
like is kept and told back, since an agent here may ignore it.
"""

import json
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

MAX_TEXT_BYTES: Final = 65_536


class EventError(Exception):
    """A client event that cannot be taken, in the words and fields of an `error` event."""

    def __init__(
        self, message: str, *, code: str, param: str | None = None, event_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param
        self.event_id = event_id


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerVad(_Strict):
    """Turns by voice activity."""

    type: Literal["server_vad"] = "server_vad"
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    prefix_padding_ms: Annotated[int, Field(ge=0, le=5000)] = 300
    silence_duration_ms: Annotated[int, Field(ge=20, le=10_000)] = 500
    create_response: bool = True
    interrupt_response: bool = True
    idle_timeout_ms: Annotated[int, Field(ge=5000, le=30_000)] | None = None


class SemanticVad(_Strict):
    """Turns by meaning: here by voice activity, patient after `eagerness`."""

    type: Literal["semantic_vad"]
    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


Vad = Annotated[ServerVad | SemanticVad, Field(discriminator="type")]


class PcmFormat(_Strict):
    """The only format of events' audio; a call's media is Opus whatever this says."""

    type: Literal["audio/pcm", "audio/pcmu", "audio/pcma"] = "audio/pcm"
    rate: Literal[24000] | None = None


class AudioInput(_Strict):
    """How the caller is heard."""

    format: PcmFormat = PcmFormat(rate=24000)
    noise_reduction: JsonValue = None
    transcription: JsonValue = None
    turn_detection: Vad | None = ServerVad()


class AudioOutput(_Strict):
    """How the agent sounds."""

    format: PcmFormat = PcmFormat(rate=24000)
    voice: JsonValue = None
    speed: Annotated[float, Field(ge=0.25, le=1.5)] = 1.0


class Audio(_Strict):
    """Both directions."""

    input: AudioInput = AudioInput()
    output: AudioOutput = AudioOutput()


class SessionParams(_Strict):
    """What a client may set of a session; fields left out stay as they are."""

    type: Literal["realtime"] = "realtime"
    model: str | None = None
    audio: Audio = Audio()
    instructions: str = ""
    output_modalities: list[Literal["audio", "text"]] = ["audio"]
    max_output_tokens: int | Literal["inf"] = "inf"
    tools: list[JsonValue] = []
    tool_choice: JsonValue = "auto"
    parallel_tool_calls: bool | None = None
    reasoning: JsonValue = None
    tracing: JsonValue = None
    truncation: JsonValue = "auto"
    prompt: JsonValue = None
    include: list[str] | None = None


class _Client(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    event_id: Annotated[str, Field(max_length=512)] | None = None


class SessionUpdate(_Client):
    """Change the session; merged into what it is, so checked after that."""

    type: Literal["session.update"]
    session: dict[str, JsonValue]


class ResponseCreate(_Client):
    """Answer now."""

    type: Literal["response.create"]
    response: dict[str, JsonValue] | None = None


class ResponseCancel(_Client):
    """Stop answering."""

    type: Literal["response.cancel"]
    response_id: str | None = None


class OutputClear(_Client):
    """Cut off the audio that plays."""

    type: Literal["output_audio_buffer.clear"]


class InputCommit(_Client):
    """The caller's turn ends here."""

    type: Literal["input_audio_buffer.commit"]


class InputClear(_Client):
    """Forget the caller's turn so far."""

    type: Literal["input_audio_buffer.clear"]


class Item(BaseModel):
    """A conversation item by the client: told back, and no more than that by agents that only hear."""

    model_config = ConfigDict(extra="allow", frozen=True)
    id: Annotated[str, Field(max_length=128)] | None = None
    type: Literal["message", "function_call", "function_call_output"]
    status: Literal["completed", "incomplete", "in_progress"] = "completed"


class ItemCreate(_Client):
    """Add an item to the conversation."""

    type: Literal["conversation.item.create"]
    item: Item
    previous_item_id: str | None = None


ClientEvent = (
    SessionUpdate | ResponseCreate | ResponseCancel | OutputClear | InputCommit | InputClear | ItemCreate
)

_EVENTS: Final[dict[str, type[ClientEvent]]] = {
    "session.update": SessionUpdate,
    "response.create": ResponseCreate,
    "response.cancel": ResponseCancel,
    "output_audio_buffer.clear": OutputClear,
    "input_audio_buffer.commit": InputCommit,
    "input_audio_buffer.clear": InputClear,
    "conversation.item.create": ItemCreate,
}
_OBJECT: Final = TypeAdapter(dict[str, JsonValue])


def parse(text: str) -> ClientEvent:
    """Read one client event. Raises EventError, with the event's own id where it has one."""
    if len(text) > MAX_TEXT_BYTES or len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        raise EventError(f"An event may have at most {MAX_TEXT_BYTES} bytes.", code="event_too_large")
    try:
        read = json.loads(text)
        # NaN, infinities and lone surrogates are read gladly, but no other parser would read them back from us.
        json.dumps(read, ensure_ascii=False, allow_nan=False).encode()
        raw = _OBJECT.validate_python(read)
    except (ValueError, RecursionError):
        raise EventError("The event is not a JSON object.", code="invalid_json") from None
    given = raw.get("event_id")
    event_id = given[:512] if isinstance(given, str) else None
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise EventError(
            "Missing required parameter: 'type'.",
            code="missing_required_parameter",
            param="type",
            event_id=event_id,
        )
    model = _EVENTS.get(kind)
    if model is None:
        known = ", ".join(sorted(_EVENTS))
        raise EventError(
            f"Invalid value: '{kind[:64]}'. Supported values are: {known}.",
            code="invalid_value",
            param="type",
            event_id=event_id,
        )
    try:
        return model.model_validate(raw)
    except ValidationError as failure:
        raise _explained(failure, prefix="", event_id=event_id) from None


def merged(
    current: SessionParams, changes: dict[str, JsonValue], event_id: str | None = None
) -> SessionParams:
    """`current` with `changes` laid over it, object by object. Raises EventError with `session.…` as the
    parameter.
    """
    before: dict[str, JsonValue] = current.model_dump(mode="json")
    try:
        return SessionParams.model_validate(_laid_over(before, changes, depth=4))
    except ValidationError as failure:
        raise _explained(failure, prefix="session.", event_id=event_id) from None


def _laid_over(below: dict[str, JsonValue], above: dict[str, JsonValue], depth: int) -> dict[str, JsonValue]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        if (
            depth
            and isinstance(old, dict)
            and isinstance(value, dict)
            and value.get("type", old.get("type")) == old.get("type")
        ):
            result[key] = _laid_over(old, value, depth - 1)
        else:
            result[key] = value
    return result


def _explained(failure: ValidationError, *, prefix: str, event_id: str | None) -> EventError:
    first = failure.errors(include_url=False, include_input=False, include_context=False)[0]
    param = prefix + ".".join(
        str(part) for part in first["loc"] if part not in ("server_vad", "semantic_vad")
    )
    match first["type"]:
        case "extra_forbidden":
            return EventError(
                f"Unknown parameter: '{param}'.", code="unknown_parameter", param=param, event_id=event_id
            )
        case "missing":
            return EventError(
                f"Missing required parameter: '{param}'.",
                code="missing_required_parameter",
                param=param,
                event_id=event_id,
            )
        case _:
            return EventError(
                f"Invalid value for '{param}': {first['msg']}.",
                code="invalid_value",
                param=param,
                event_id=event_id,
            )
