"""The Realtime API's state of one call. Sans-IO: client events, frames and time in; server events and paced
frames out.
"""

import logging
from collections.abc import Callable, Iterable
from typing import Final, Literal

from pydantic import JsonValue
from voicecluster.transceiver.agents import base
from voicecluster.transceiver.realtime import client_events as client
from voicecluster.transceiver.realtime.client_events import EventError, SessionParams
from voicecluster.transceiver.realtime.conversation import ActiveResponse, Conversation, Emit
from voicecluster.transceiver.realtime.events import StatusDetails
from voicecluster.transceiver.realtime.pacer import Pacer

log = logging.getLogger(__name__)

_EVENTS_PER_SECOND: Final = 50.0
_EVENTS_BURST: Final = 200.0
_PATIENCE_MS: Final = {"low": 1500, "medium": 800, "auto": 800, "high": 400}


class RealtimeSession:
    """One call as its client sees it.

    Driving contract: `tick` every 20 ms with the frames heard since, from the call's start to its `close`,
    whether or not the data channel is open; `opened` once when it is. Nothing raises for what a client or
    an agent does.
    """

    def __init__(
        self,
        *,
        call_id: str,
        model: str | None,
        session_params: dict[str, JsonValue] | None,
        agent: base.Agent,
        emit: Emit,
        play: Callable[[bytes, float], None],
    ) -> None:
        """`session_params` as the offer brought them; if they are bad, an `error` event says so after
        session.created.
        """
        self._conversation = Conversation(call_id, emit)
        self._model = model
        self._agent = agent
        self._play = play
        self._pacer = Pacer()
        self._params = SessionParams()
        self._refused: EventError | None = None
        self._response: ActiveResponse | None = None
        self._turn_item: str | None = None
        self._detection: base.TurnDetection | None = base.TurnDetection()
        self._allowance = _EVENTS_BURST
        self._allowance_at: float | None = None
        self._told_limit = False
        self._closed = False
        try:
            self._params = client.merged(self._params, session_params or {})
        except EventError as error:
            self._refused = error
        self._configure()

    @property
    def agent_name(self) -> str:
        """Which agent answers."""
        return self._agent.name

    @property
    def responding(self) -> bool:
        """Whether an answer is being spoken."""
        return self._response is not None

    def opened(self, now: float) -> None:
        """The data channel is open: events can be heard from now on."""
        self._conversation.open = True
        self._conversation.session("session.created", self._model, self._params)
        if self._refused is not None:
            self._conversation.error(self._refused)
            self._refused = None

    def client_event(self, text: str, now: float) -> None:
        """Take one text message of the data channel. What cannot be taken gets an `error` event."""
        if self._closed or not self._admitted(now):
            return
        event_id: str | None = None
        try:
            event = client.parse(text)
            event_id = event.event_id
            self._obey(event, now)
        except EventError as error:
            error.event_id = error.event_id or event_id
            self._conversation.error(error)

    def _admitted(self, now: float) -> bool:
        if self._allowance_at is not None:
            earned = (now - self._allowance_at) * _EVENTS_PER_SECOND
            self._allowance = min(_EVENTS_BURST, self._allowance + earned)
        self._allowance_at = now
        if self._allowance >= 1:
            self._allowance -= 1
            self._told_limit = False
            return True
        if not self._told_limit:
            self._told_limit = True
            message = f"More than {_EVENTS_PER_SECOND:.0f} events a second: some were dropped."
            self._conversation.error(EventError(message, code="rate_limit_exceeded"))
        return False

    def _obey(self, event: client.ClientEvent, now: float) -> None:
        match event:
            case client.SessionUpdate():
                changes = {key: value for key, value in event.session.items() if key != "model"}
                self._params = client.merged(self._params, changes, event.event_id)
                self._configure()
                self._conversation.session("session.updated", self._model, self._params)
            case client.ResponseCreate():
                self._respond(now)
            case client.ResponseCancel():
                if self._response is None or event.response_id not in (None, self._response.id):
                    raise EventError(
                        "Cancellation failed: no active response found.",
                        code="response_cancel_not_active",
                        param="response_id" if event.response_id else None,
                    )
                self._cut_off("client_cancelled", now)
            case client.OutputClear():
                self._cut_off("client_cancelled", now)
            case client.InputCommit():
                if not self._agent.commit(now):
                    raise EventError(
                        "The input audio buffer is empty.", code="input_audio_buffer_commit_empty"
                    )
                self._conversation.committed(self._turn_item or self._conversation.name("item"))
                self._turn_item = None
            case client.InputClear():
                self._agent.clear(now)
                self._turn_item = None
                self._conversation.input_cleared()
            case client.ItemCreate():
                item: dict[str, JsonValue] = event.item.model_dump(mode="json")
                self._conversation.client_item(item, event.previous_item_id)

    def _respond(self, now: float) -> None:
        if self._response is not None:
            raise EventError(
                f"Conversation already has an active response in progress: {self._response.id}.",
                code="conversation_already_has_active_response",
            )
        try:
            answer = self._agent.respond(now)
        except Exception as failure:  # an agent is foreign code: its failure ends its turn
            answer = self._failed(failure)
        if answer:
            self._follow(answer, now)
        else:
            self._conversation.empty_response()

    def _configure(self) -> None:
        match self._params.audio.input.turn_detection:
            case client.ServerVad() as vad:
                self._detection = base.TurnDetection(
                    threshold=vad.threshold,
                    prefix_padding_ms=vad.prefix_padding_ms,
                    silence_duration_ms=vad.silence_duration_ms,
                    create_response=vad.create_response,
                    interrupt_response=vad.interrupt_response,
                )
            case client.SemanticVad() as vad:
                self._detection = base.TurnDetection(
                    silence_duration_ms=_PATIENCE_MS[vad.eagerness],
                    create_response=vad.create_response,
                    interrupt_response=vad.interrupt_response,
                )
            case None:
                self._detection = None
        self._agent.configure(self._detection)

    def tick(self, frames: list[bytes], now: float) -> None:
        """20 ms have passed: the agent hears `frames`, and at most one frame is played."""
        if self._closed:
            return
        for frame in frames:
            self._hear(frame, now)
        self._hear(None, now)
        frame_out = self._pacer.next()
        response = self._response
        if response is not None:
            if self._pacer.speech_frames or frame_out is not None:
                if not response.audible:
                    response.audible = True
                    self._conversation.output_buffer("output_audio_buffer.started", response)
            if response.finished and not self._pacer.speech_frames:
                self._complete(response)
        if frame_out is not None:
            self._play(frame_out, now)

    def _complete(self, response: ActiveResponse) -> None:
        self._response = None
        self._conversation.response_done(response, "completed", StatusDetails(type="completed"))
        if response.audible:
            self._conversation.output_buffer("output_audio_buffer.stopped", response)

    def _hear(self, frame: bytes | None, now: float) -> None:
        """Let the agent hear a frame, or that time passed."""
        try:
            told = self._agent.tick(now) if frame is None else self._agent.hear(frame, now)
        except Exception as failure:  # an agent is foreign code: its failure ends its turn, not the call
            told = self._failed(failure)
        if told:
            self._follow(told, now)

    def _failed(self, failure: Exception) -> list[base.AgentEvent]:
        log.warning("agent failed", extra={"agent": self._agent.name, "cause": type(failure).__name__})
        response, self._response = self._response, None
        self._pacer.clear()
        if response is not None:
            details = StatusDetails(type="failed", error={"type": "server_error", "code": "agent_failed"})
            self._conversation.response_done(response, "failed", details)
        return []

    def _follow(self, events: Iterable[base.AgentEvent], now: float) -> None:
        for event in events:
            match event:
                case base.LiveAudio():
                    self._pacer.pass_on(event.frame)
                case base.SpeechSuspected():
                    if self._detection is not None and self._detection.interrupt_response:
                        self._pacer.hold()
                case base.SpeechStarted():
                    self._turn_item = self._conversation.name("item")
                    self._conversation.speech_started(self._turn_item, event.at_ms)
                    if self._detection is not None and self._detection.interrupt_response:
                        self._cut_off("turn_detected", now)
                case base.SpeechStopped():
                    item = self._turn_item or self._conversation.name("item")
                    self._turn_item = None
                    self._conversation.speech_stopped(item, event.at_ms)
                    self._conversation.committed(item)
                case base.ResponseStarted():
                    if self._response is None:
                        self._response = self._conversation.response_created()
                case base.ResponseAudio():
                    if self._response is not None and not self._response.finished:
                        self._pacer.say(event.frames)
                case base.ResponseFinished():
                    if self._response is not None:
                        self._response.finished = True

    def _cut_off(self, reason: Literal["turn_detected", "client_cancelled"], now: float) -> None:
        """Silence at once; the response is over. Nothing happens if nothing is being said."""
        self._pacer.clear()
        response, self._response = self._response, None
        if response is None:
            return
        self._agent.cancel(now)
        if response.audible:
            self._conversation.output_buffer("output_audio_buffer.cleared", response)
        details = StatusDetails(type="cancelled", reason=reason)
        self._conversation.response_done(response, "cancelled", details)

    def close(self, now: float) -> None:
        """The call is over: nothing is played or told any more."""
        self._closed = True
        self._conversation.open = False
        self._pacer.clear()
        self._response = None
