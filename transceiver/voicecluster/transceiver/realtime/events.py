"""The server events, after the Realtime API (GA). Field names and order of events are the API's, not ours."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue, SerializeAsAny


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True)


class ServerEvent(_Value):
    """What every server event has. `event_id` is unique in its call."""

    type: str
    event_id: str


class ErrorDetails(_Value):
    """What was wrong. `event_id` and `param` name the client event and its field, where there are such."""

    type: Literal["invalid_request_error", "server_error"] = "invalid_request_error"
    code: str
    message: str
    param: str | None = None
    event_id: str | None = None


class Error(ServerEvent):
    """A client event was refused; the session goes on."""

    type: Literal["error"] = "error"
    error: ErrorDetails


class SessionEvent(ServerEvent):
    """The whole session as it now is."""

    type: Literal["session.created", "session.updated"]
    session: dict[str, JsonValue]


class SpeechStarted(ServerEvent):
    """The caller began to speak; interrupts what plays unless the session says otherwise."""

    type: Literal["input_audio_buffer.speech_started"] = "input_audio_buffer.speech_started"
    audio_start_ms: int
    item_id: str


class SpeechStopped(ServerEvent):
    """The caller's turn ended."""

    type: Literal["input_audio_buffer.speech_stopped"] = "input_audio_buffer.speech_stopped"
    audio_end_ms: int
    item_id: str


class InputCommitted(ServerEvent):
    """The caller's turn became an item."""

    type: Literal["input_audio_buffer.committed"] = "input_audio_buffer.committed"
    previous_item_id: str | None
    item_id: str


class InputCleared(ServerEvent):
    """The caller's turn so far is forgotten."""

    type: Literal["input_audio_buffer.cleared"] = "input_audio_buffer.cleared"


class Content(_Value):
    """Part of an item. Audio itself goes by RTP; nothing is transcribed here."""

    type: Literal["input_audio", "output_audio", "audio"]
    transcript: str | None = None


class MessageItem(_Value):
    """One side's turn."""

    id: str
    object: Literal["realtime.item"] = "realtime.item"
    type: Literal["message"] = "message"
    status: Literal["in_progress", "completed", "incomplete"]
    role: Literal["user", "assistant"]
    content: list[Content]


class ConversationItem(ServerEvent):
    """An item came into the conversation, or is whole."""

    type: Literal["conversation.item.added", "conversation.item.done"]
    previous_item_id: str | None
    item: SerializeAsAny[_Value] | dict[str, JsonValue]


class StatusDetails(_Value):
    """Why a response ended as it did."""

    type: Literal["completed", "cancelled", "failed"]
    reason: Literal["turn_detected", "client_cancelled"] | None = None
    error: dict[str, str] | None = None


class Response(_Value):
    """An answer of the agent."""

    id: str
    object: Literal["realtime.response"] = "realtime.response"
    status: Literal["in_progress", "completed", "cancelled", "failed"]
    status_details: StatusDetails | None = None
    output: list[MessageItem]
    conversation_id: str | None
    output_modalities: list[str]
    max_output_tokens: int | Literal["inf"] = "inf"
    metadata: dict[str, str] | None = None
    usage: None = None


class ResponseEvent(ServerEvent):
    """A response began or ended."""

    type: Literal["response.created", "response.done"]
    response: Response


class OutputItem(ServerEvent):
    """The response's item began or is whole."""

    type: Literal["response.output_item.added", "response.output_item.done"]
    response_id: str
    output_index: int = 0
    item: MessageItem


class ContentPart(ServerEvent):
    """The item's audio began or is whole."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0
    part: Content = Content(type="audio", transcript="")


class OutputAudioDone(ServerEvent):
    """All of the item's audio was sent."""

    type: Literal["response.output_audio.done"] = "response.output_audio.done"
    response_id: str
    item_id: str
    output_index: int = 0
    content_index: int = 0


class OutputBuffer(ServerEvent):
    """A response's audio starts to play, has played, or was cut off."""

    type: Literal["output_audio_buffer.started", "output_audio_buffer.stopped", "output_audio_buffer.cleared"]
    response_id: str
