"""What the engine says about itself, typed; and totals that survive its restarts."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

Counter = Annotated[int, Field(ge=0)]


class _Reply(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True)


class WorkerStats(_Reply):
    """Counters of one engine thread since the engine started; dictionaries are by label."""

    worker: int
    turns: Counter
    packets: dict[str, Counter] = {}
    bytes: dict[str, Counter] = {}
    drops: dict[str, Counter] = {}
    decodes: dict[str, Counter] = {}
    send_errors: dict[str, Counter] = {}


class EngineStats(_Reply):
    """Reply to `stats`. `flows`, `routes` and `keys` are gauges, the rest are counters."""

    workers: list[WorkerStats]
    flows: dict[str, Counter] = {}
    evictions: dict[str, Counter] = {}
    routes: Counter = 0
    keys: Counter = 0
    uptime_seconds: Annotated[float, Field(ge=0)]


Series = tuple[str, str, str]
"""Counter, worker (empty for the whole engine), label (empty where there is none)."""


class Totals:
    """Sums of the engine's counters over its restarts: they never go back while this process lives."""

    def __init__(self) -> None:
        """Start at zero."""
        self._before: dict[Series, int] = {}
        self._latest: dict[Series, int] = {}
        self._started_at: float | None = None

    def update(self, stats: EngineStats, now: float) -> None:
        """Take the engine's latest counters, read at `now` (seconds on any steady clock)."""
        started_at = now - stats.uptime_seconds
        counters = dict(_counters(stats))
        later = self._started_at is not None and started_at > self._started_at + _START_SLACK_SECONDS
        if later or any(counters.get(series, 0) < count for series, count in self._latest.items()):
            for series, count in self._latest.items():
                self._before[series] = self._before.get(series, 0) + count
            self._started_at = started_at
        elif self._started_at is None:
            self._started_at = started_at
        self._latest = counters

    def __iter__(self) -> Iterator[tuple[Series, int]]:
        """Every series seen so far and its total."""
        for series in sorted(self._before.keys() | self._latest.keys()):
            yield series, self._before.get(series, 0) + self._latest.get(series, 0)


_START_SLACK_SECONDS = 1.0
"""The reply's way and a busy machine make the computed start wander by less than this."""


def _counters(stats: EngineStats) -> Iterator[tuple[Series, int]]:
    for worker in stats.workers:
        name = str(worker.worker)
        yield ("turns", name, ""), worker.turns
        for counter, by_label in (
            ("packets", worker.packets),
            ("bytes", worker.bytes),
            ("drops", worker.drops),
            ("decodes", worker.decodes),
            ("send_errors", worker.send_errors),
        ):
            for label, count in by_label.items():
                yield (counter, name, label), count
    for reason, count in stats.evictions.items():
        yield ("evictions", "", reason), count
