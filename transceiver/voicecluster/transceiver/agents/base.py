"""What an agent is to a call.

An agent hears the caller's frames and answers with events. It never waits, owns no task and no clock: the
session calls `hear` for each 20 ms frame and `tick` once every 20 ms, and turns what comes back into
Realtime events and paced audio. A failure inside an agent ends its turn, not the call.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class TurnDetection:
    """When a caller's turn begins and ends (the Realtime API's `server_vad`)."""

    threshold: float = 0.5
    """0..1: louder and clearer speech is asked for as it grows."""
    prefix_padding_ms: int = 300
    """How much of what came before the first speech belongs to the turn."""
    silence_duration_ms: int = 500
    """So much silence ends the turn."""
    create_response: bool = True
    interrupt_response: bool = True


@dataclass(frozen=True, slots=True)
class SpeechSuspected:
    """This frame may be the caller's first: an answer that plays holds its breath for one tick."""


@dataclass(frozen=True, slots=True)
class SpeechStarted:
    """The caller began to speak, `at_ms` of heard audio after the session's start, prefix padding
    included.
    """

    at_ms: int


@dataclass(frozen=True, slots=True)
class SpeechStopped:
    """The caller's turn ended; it lasted until `at_ms` of heard audio."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class ResponseStarted:
    """The agent begins to answer."""


@dataclass(frozen=True, slots=True)
class ResponseAudio:
    """More of the answer: whole 20 ms frames, faster than real time if the agent likes; the session paces
    them.
    """

    frames: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ResponseFinished:
    """The answer is complete; it is done when its audio was played."""


@dataclass(frozen=True, slots=True)
class LiveAudio:
    """A frame outside of any response, to be played now: when it is late, older ones are dropped, not
    queued.
    """

    frame: bytes


AgentEvent = (
    SpeechSuspected
    | SpeechStarted
    | SpeechStopped
    | ResponseStarted
    | ResponseAudio
    | ResponseFinished
    | LiveAudio
)


class Agent(Protocol):
    """One agent of one call; calls come from one thread."""

    @property
    def name(self) -> str:
        """Its name in the registry."""

    def configure(self, turn_detection: TurnDetection | None) -> None:
        """Use these from the next frame on; None: turns are made by the client (`commit`, `respond`)."""

    def hear(self, frame: bytes, now: float) -> list[AgentEvent]:
        """The caller's next 20 ms."""

    def tick(self, now: float) -> list[AgentEvent]:
        """20 ms have passed, heard or not."""

    def commit(self, now: float) -> bool:
        """The client ends the caller's turn. False if nothing was heard in it."""

    def clear(self, now: float) -> None:
        """The client throws away what was heard of this turn."""

    def respond(self, now: float) -> list[AgentEvent]:
        """The client asks for an answer now."""

    def cancel(self, now: float) -> None:
        """The answer was interrupted or cancelled: say no more of it."""
