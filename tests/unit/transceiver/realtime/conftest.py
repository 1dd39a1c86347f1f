"""A Realtime session with an agent that does what a test tells it to."""

import json
from dataclasses import dataclass, field

import pytest
from pydantic import JsonValue
from voicecluster.transceiver.agents.base import (
    AgentEvent,
    ResponseAudio,
    ResponseFinished,
    ResponseStarted,
    TurnDetection,
)
from voicecluster.transceiver.realtime.session import RealtimeSession


@dataclass
class Puppet:
    """An agent: `will` is what it does at the next frame, `answer` what it says when asked."""

    will: list[AgentEvent] = field(default_factory=list)
    answer: list[AgentEvent] = field(default_factory=list)
    heard: list[bytes] = field(default_factory=list)
    configured: list[TurnDetection | None] = field(default_factory=list)
    cancelled: int = 0
    fails: bool = False
    name: str = "puppet"

    def configure(self, turn_detection: TurnDetection | None) -> None:
        self.configured.append(turn_detection)

    def hear(self, frame: bytes, now: float) -> list[AgentEvent]:
        if self.fails:
            raise RuntimeError("backend gone")
        self.heard.append(frame)
        will, self.will = self.will, []
        return will

    def tick(self, now: float) -> list[AgentEvent]:
        return []

    def commit(self, now: float) -> bool:
        return bool(self.heard)

    def clear(self, now: float) -> None:
        self.heard.clear()

    def respond(self, now: float) -> list[AgentEvent]:
        if self.fails:
            raise RuntimeError("backend gone")
        return self.answer

    def cancel(self, now: float) -> None:
        self.cancelled += 1


QUIET = bytes(960)


@dataclass
class Desk:
    """A session, what it emitted and what it played; time goes on by `run`."""

    agent: Puppet
    params: dict[str, JsonValue] | None = None
    now: float = 50.0
    events: list[dict[str, object]] = field(default_factory=list)
    played: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.session = RealtimeSession(
            call_id="rtc_aabcdefghijklmnopqrstuvwxyz2",
            model="gpt-realtime",
            session_params=self.params,
            agent=self.agent,
            emit=self.events.append,
            play=lambda frame, now: self.played.append(frame),
        )

    def send(self, event: str | dict[str, object]) -> list[dict[str, object]]:
        """A client event; what it caused at once."""
        before = len(self.events)
        self.session.client_event(event if isinstance(event, str) else json.dumps(event), self.now)
        return self.events[before:]

    def run(self, ticks: int = 1, *will: AgentEvent) -> list[dict[str, object]]:
        """So many ticks with one quiet frame each; at the first the agent does `will`. What was emitted."""
        before = len(self.events)
        self.agent.will = list(will)
        for _ in range(ticks):
            self.session.tick([QUIET], self.now)
            self.now += 0.02
        return self.events[before:]

    def speaking(self, frames: int = 50) -> list[bytes]:
        """Let the agent begin to say frames that can be told apart."""
        said = [index.to_bytes(2, "little") * 480 for index in range(1, frames + 1)]
        self.run(1, ResponseStarted(), ResponseAudio(tuple(said)), ResponseFinished())
        return said


@pytest.fixture
def desk() -> Desk:
    """A session whose data channel is open."""
    made = Desk(Puppet())
    made.session.opened(made.now)
    return made


@pytest.fixture
def new_desk() -> type[Desk]:
    """To make one's own."""
    return Desk


@pytest.fixture
def puppet() -> type[Puppet]:
    """To make one's own."""
    return Puppet
