"""Why a call could not be made or did not last. One class; `stage` says how far it had come."""

from typing import Literal

Stage = Literal["signaling", "ice", "dtls", "media"]


class CallError(Exception):
    """A call failed. `str()` is one sentence for people; `stage` is the part of the set-up that failed."""

    def __init__(self, stage: Stage, message: str) -> None:
        super().__init__(message)
        self.stage: Stage = stage
