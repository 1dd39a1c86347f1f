"""Names and the event sequences of turns and responses. Knows order and fields, decides nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue
from voicecluster.transceiver.realtime import events
from voicecluster.transceiver.realtime.client_events import EventError, SessionParams

Emit = Callable[[dict[str, object]], None]


@dataclass(slots=True)
class ActiveResponse:
    """The response being spoken."""

    id: str
    item_id: str
    previous_item_id: str | None
    finished: bool = False
    audible: bool = False


class Conversation:
    """Emits one call's events. Before `open` nothing is emitted: no channel could carry it."""

    __slots__ = ("_emit", "_last_item", "_made", "_suffix", "id", "open", "session_id")

    def __init__(self, call_id: str, emit: Emit) -> None:
        self._emit = emit
        self._suffix = call_id.removeprefix("rtc_")[-12:]
        self._made = 0
        self._last_item: str | None = None
        self.open = False
        self.id = f"conv_{self._suffix}"
        self.session_id = f"sess_{self._suffix}"

    def name(self, kind: Literal["event", "item", "resp"]) -> str:
        """A fresh id, unique in the call."""
        self._made += 1
        return f"{kind}_{self._suffix}{self._made:06x}"

    def _send(self, event: events.ServerEvent) -> None:
        if self.open:
            self._emit(event.model_dump(mode="json"))

    def _event_id(self) -> str:
        return self.name("event")

    def session(
        self, kind: Literal["session.created", "session.updated"], model: str | None, params: SessionParams
    ) -> None:
        """The whole session."""
        body: dict[str, JsonValue] = params.model_dump(mode="json")
        body |= {"object": "realtime.session", "id": self.session_id, "model": model}
        self._send(events.SessionEvent(type=kind, event_id=self._event_id(), session=body))

    def error(self, problem: EventError) -> None:
        """A client event was refused."""
        details = events.ErrorDetails(
            code=problem.code, message=problem.message, param=problem.param, event_id=problem.event_id
        )
        self._send(events.Error(event_id=self._event_id(), error=details))

    def speech_started(self, item_id: str, at_ms: int) -> None:
        """The caller speaks."""
        self._send(events.SpeechStarted(event_id=self._event_id(), audio_start_ms=at_ms, item_id=item_id))

    def speech_stopped(self, item_id: str, at_ms: int) -> None:
        """The caller is done."""
        self._send(events.SpeechStopped(event_id=self._event_id(), audio_end_ms=at_ms, item_id=item_id))

    def committed(self, item_id: str) -> None:
        """The caller's turn is an item of the conversation now."""
        previous = self._last_item
        self._send(
            events.InputCommitted(event_id=self._event_id(), previous_item_id=previous, item_id=item_id)
        )
        item = events.MessageItem(
            id=item_id, status="completed", role="user", content=[events.Content(type="input_audio")]
        )
        self._item("conversation.item.added", previous, item)
        self._item("conversation.item.done", previous, item)
        self._last_item = item_id

    def input_cleared(self) -> None:
        """The caller's turn so far is forgotten."""
        self._send(events.InputCleared(event_id=self._event_id()))

    def client_item(self, item: dict[str, JsonValue], after: str | None) -> None:
        """The client added an item."""
        item_id = item.get("id")
        if not isinstance(item_id, str):
            item_id = self.name("item")
        whole: dict[str, JsonValue] = {"object": "realtime.item", **item, "id": item_id}
        previous = after or self._last_item
        self._item("conversation.item.added", previous, whole)
        self._item("conversation.item.done", previous, whole)
        self._last_item = item_id

    def _item(
        self,
        kind: Literal["conversation.item.added", "conversation.item.done"],
        previous: str | None,
        item: events.MessageItem | dict[str, JsonValue],
    ) -> None:
        self._send(
            events.ConversationItem(
                type=kind, event_id=self._event_id(), previous_item_id=previous, item=item
            )
        )

    def response_created(self) -> ActiveResponse:
        """A response begins."""
        response = ActiveResponse(self.name("resp"), self.name("item"), self._last_item)
        self._response("response.created", response, "in_progress", None, [])
        item = self._answer(response, "in_progress")
        self._send(
            events.OutputItem(
                type="response.output_item.added",
                event_id=self._event_id(),
                response_id=response.id,
                item=item,
            )
        )
        self._item("conversation.item.added", response.previous_item_id, item)
        self._send(
            events.ContentPart(
                type="response.content_part.added",
                event_id=self._event_id(),
                response_id=response.id,
                item_id=response.item_id,
            )
        )
        self._last_item = response.item_id
        return response

    def response_done(
        self,
        response: ActiveResponse,
        status: Literal["completed", "cancelled", "failed"],
        details: events.StatusDetails | None,
    ) -> None:
        """A response ended; what it said so far is closed first."""
        item = self._answer(response, "completed" if status == "completed" else "incomplete")
        self._send(
            events.OutputAudioDone(
                event_id=self._event_id(), response_id=response.id, item_id=response.item_id
            )
        )
        self._send(
            events.ContentPart(
                type="response.content_part.done",
                event_id=self._event_id(),
                response_id=response.id,
                item_id=response.item_id,
            )
        )
        self._send(
            events.OutputItem(
                type="response.output_item.done",
                event_id=self._event_id(),
                response_id=response.id,
                item=item,
            )
        )
        self._item("conversation.item.done", response.previous_item_id, item)
        self._response("response.done", response, status, details, [item])

    def empty_response(self) -> None:
        """The agent has nothing to say, which is an answer too."""
        response = ActiveResponse(self.name("resp"), "", self._last_item)
        self._response("response.created", response, "in_progress", None, [])
        self._response("response.done", response, "completed", None, [])

    def output_buffer(
        self,
        kind: Literal[
            "output_audio_buffer.started", "output_audio_buffer.stopped", "output_audio_buffer.cleared"
        ],
        response: ActiveResponse,
    ) -> None:
        """What became of a response's audio."""
        self._send(events.OutputBuffer(type=kind, event_id=self._event_id(), response_id=response.id))

    def _answer(
        self, response: ActiveResponse, status: Literal["in_progress", "completed", "incomplete"]
    ) -> events.MessageItem:
        content = [] if status == "in_progress" else [events.Content(type="output_audio", transcript="")]
        return events.MessageItem(id=response.item_id, status=status, role="assistant", content=content)

    def _response(
        self,
        kind: Literal["response.created", "response.done"],
        response: ActiveResponse,
        status: Literal["in_progress", "completed", "cancelled", "failed"],
        details: events.StatusDetails | None,
        output: list[events.MessageItem],
    ) -> None:
        body = events.Response(
            id=response.id,
            status=status,
            status_details=details,
            output=output,
            conversation_id=self.id,
            output_modalities=["audio"],
        )
        self._send(events.ResponseEvent(type=kind, event_id=self._event_id(), response=body))
