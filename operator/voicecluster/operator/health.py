"""What the operator's probes answer: a leader whose watch has gone deaf says so, and is started anew.

Watches are asked for again every few minutes, so an answer to such a request is a sign of life of each; the sweep
finds a watch that answers and brings nothing. A replica that does not lead has nothing to watch and is ready:
it is there to take over.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from voicecluster.operator.kube.port import Kind

SILENT_SECONDS = 420.0
"""A watch that has said nothing for so long is deaf: it should have been asked for twice meanwhile."""
UNANSWERED_SECONDS = 30.0
"""An API server that has not answered for so long is away."""

Watch = tuple[Kind, str | None]
"""What is watched: a kind, in one namespace or in all."""


@dataclass(slots=True)
class Health:
    """Told by everybody who hears something; asked by the admin server."""

    clock: Callable[[], float] = time.monotonic
    _heard: dict[Watch, float] = field(default_factory=dict)
    _listed: set[Watch] = field(default_factory=set)
    _deaf: dict[Watch, str] = field(default_factory=dict)
    _answered: float | None = None
    _waits_for: str | None = None

    def starts_watching(self, watches: list[Watch]) -> None:
        """From now on these are expected to be heard."""
        self._heard = dict.fromkeys(watches, self.clock())
        self._waits_for = None

    def waits_for(self, what: str | None) -> None:
        """Why nothing is watched yet, for people; None for a replica that only waits for its turn."""
        self._waits_for = what

    def heard(self, watch: Watch) -> None:
        """The API server answered a request to list or to watch."""
        self._heard[watch] = self.clock()

    def listed(self, watch: Watch) -> None:
        """Its objects are known."""
        self._listed.add(watch)

    def swept(self, watch: Watch, *, missed: str | None) -> None:
        """A list was compared with what the watch had brought; `missed` names an object that it had not."""
        if missed is None:
            self._deaf.pop(watch, None)
        else:
            self._deaf[watch] = missed

    def answered(self) -> None:
        """The API server answered something else."""
        self._answered = self.clock()

    def silence(self) -> float:
        """For how many seconds the quietest watch has said nothing."""
        return self.clock() - min(self._heard.values(), default=self.clock())

    def live(self) -> Mapping[str, str | None]:
        """Failing means that this process is to be started anew."""
        found: dict[str, str | None] = {}
        for watch, at in self._heard.items():
            silent = self.clock() - at
            if silent > SILENT_SECONDS:
                found[_text(watch)] = f"the watch has said nothing for {silent:.0f} s"
            elif watch in self._deaf:
                found[_text(watch)] = f"the watch has not brought {self._deaf[watch]}"
        return found

    def ready(self) -> Mapping[str, str | None]:
        """Failing means that this replica cannot do its work, or take over."""
        found = dict(self.live())
        found["start"] = self._waits_for
        for watch in self._heard.keys() - self._listed:
            found[_text(watch)] = "not listed yet"
        if self._answered is not None and self.clock() - self._answered > UNANSWERED_SECONDS:
            found["api"] = f"no answer from the API server for {self.clock() - self._answered:.0f} s"
        return found


def _text(watch: Watch) -> str:
    kind, namespace = watch
    return f"watch {kind.plural}" + (f" in {namespace}" if namespace else "")
