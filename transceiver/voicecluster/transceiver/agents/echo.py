"""The echo: every frame straight back, for measurement. No voice detection, no turns, no responses."""

from voicecluster.transceiver.agents.base import AgentEvent, LiveAudio, TurnDetection


class Echo:
    """Keeps nothing."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its name in the registry."""
        return "echo"

    def configure(self, turn_detection: TurnDetection | None) -> None:
        """There are no turns."""

    def hear(self, frame: bytes, now: float) -> list[AgentEvent]:
        """The caller's next 20 ms, back."""
        return [LiveAudio(frame)]

    def tick(self, now: float) -> list[AgentEvent]:
        """Nothing happens by time alone."""
        return []

    def commit(self, now: float) -> bool:
        """Nothing is kept, so nothing can be committed."""
        return False

    def clear(self, now: float) -> None:
        """Nothing is kept."""

    def respond(self, now: float) -> list[AgentEvent]:
        """The echo answers all the time and has nothing more to say."""
        return []

    def cancel(self, now: float) -> None:
        """There is no answer to cancel."""
