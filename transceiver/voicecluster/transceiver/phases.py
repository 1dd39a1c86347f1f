"""How long each phase of a call's set-up took."""

from typing import Literal

Phase = Literal["answered", "first_check", "dtls", "first_audio"]
PHASES: tuple[Phase, ...] = ("answered", "first_check", "dtls", "first_audio")


class Phases:
    """Seconds from the arrival of the offer to the end of each phase; each is reached once."""

    def __init__(self, start: float) -> None:
        self.start = start
        self._reached: dict[Phase, float] = {}

    def reached(self, phase: Phase, now: float) -> None:
        """Note `phase`; only the first time counts."""
        self._reached.setdefault(phase, now - self.start)

    def has(self, phase: Phase) -> bool:
        return phase in self._reached

    def seconds(self) -> dict[Phase, float]:
        """The phases reached so far."""
        return dict(self._reached)

    def milliseconds(self) -> dict[str, float | None]:
        """All phases as `PHASE_ms`; None for those not reached."""
        return {f"{phase}_ms": _ms(self._reached.get(phase)) for phase in PHASES}


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 2)
