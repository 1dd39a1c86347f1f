"""Calls that go on while something is broken, and what their callers noticed of it."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from voicecluster.cli.client.load import Load, LoadPlan
from voicecluster.cli.client.signaling import Json

REPORTED_SECONDS = 6.0
"""The server tells what it lost in reports of its own, every 5 s."""


@dataclass(frozen=True, slots=True)
class Noticed:
    """What the callers noticed, over all calls."""

    ended: int
    """Calls that did not last."""
    gap_ms: float
    """The longest silence that any caller heard for lost packets."""
    server_gap_ms: float
    """The most of any one call that the server missed, in all."""
    lost: int
    received: int

    @classmethod
    def of(cls, report: Json) -> "Noticed":
        """Read a report of `voicecluster load --json`."""
        return cls(
            ended=_integer(report, "ended_early"),
            gap_ms=_longest(report, "gap_ms"),
            server_gap_ms=_longest(report, "server_gap_ms"),
            lost=_integer(report, "lost"),
            received=_integer(report, "packets_received"),
        )


class Crowd:
    """Calls that are up. `noticed` waits until their time is over, `enough` shortens it."""

    def __init__(self, load: Load, running: asyncio.Task[Json]) -> None:
        self._load = load
        self._running = running

    async def enough(self) -> None:
        """End their time as soon as the server has told what it lost until now."""
        await asyncio.sleep(REPORTED_SECONDS)
        self._load.enough()

    async def noticed(self) -> Noticed:
        """What they noticed since they were up."""
        return Noticed.of(await self._running)


@contextlib.asynccontextmanager
async def crowd(
    url: str, key: str | None, *, calls: int, seconds: float, region: str | None = None
) -> AsyncIterator[Crowd]:
    """Have `calls` calls to the echo; inside, all are up, and stay so for `seconds`, or fewer if they end."""
    up = asyncio.Event()

    def progress(connected: int, failed: int) -> None:
        if connected + failed == calls:
            up.set()

    plan = LoadPlan(url, key, "echo", region, calls, seconds + REPORTED_SECONDS, per_second=20)
    async with asyncio.TaskGroup() as tasks:
        load = Load(plan, progress=progress)
        running = tasks.create_task(load.run(), name="crowd")
        waiting = tasks.create_task(up.wait(), name="all up")
        await asyncio.wait({running, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if running.done():
            running.result()
        try:
            yield Crowd(load, running)
        finally:
            running.cancel()


def _integer(report: Json, name: str) -> int:
    found = report[name]
    assert isinstance(found, int)
    return found


def _longest(report: Json, name: str) -> float:
    found = report[name]
    assert isinstance(found, dict)
    longest = found["max"]
    assert isinstance(longest, int | float)
    return float(longest)
