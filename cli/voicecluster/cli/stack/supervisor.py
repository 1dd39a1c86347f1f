"""Runs the processes of a plan until it is told to stop.

Nothing outlives it: on the way out every process is asked, given two seconds, and killed; should the
supervisor itself be killed, the kernel ends its children.
"""

import asyncio
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

from voicecluster.cli.stack import logs
from voicecluster.cli.stack.child import Child
from voicecluster.cli.state import ProcessStatus
from voicecluster.operator.plan.process import Process

ASK_SECONDS = 2.0
KILL_SECONDS = 0.5
LOG_CHECK_SECONDS = 2.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Supervisor:
    """All processes of a stack."""

    def __init__(
        self,
        processes: Sequence[tuple[Process, Path]],
        log_of: Callable[[str], Path],
        on_change: Callable[[list[ProcessStatus]], None],
    ) -> None:
        """`processes` come with their executables; `on_change` hears of changes, several at once as one."""
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        self._logs = [log_of(process.name) for process, _ in processes]
        self._on_change = on_change
        self._children = [
            Child(process, executable, log, self._changed.set)
            for (process, executable), log in zip(processes, self._logs, strict=True)
        ]

    async def run(self) -> None:
        """Start everything and keep it running until a stop signal. Raises StackError if that is hopeless."""
        loop = asyncio.get_running_loop()
        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, self._stop_or_kill)
        children = [asyncio.create_task(child.run(), name=child.name) for child in self._children]
        helpers = [asyncio.create_task(self._report()), asyncio.create_task(self._bound_logs())]
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([stop, *children, *helpers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for helper in (stop, *helpers):
                helper.cancel()
            await self._end(children)
        for task in (*children, *helpers):
            if task.done() and not task.cancelled() and (failure := task.exception()) is not None:
                raise failure

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        for child in self._children:
            child.end()
        await asyncio.wait(tasks, timeout=ASK_SECONDS)
        for child in self._children:
            child.kill()
        await asyncio.wait(tasks, timeout=KILL_SECONDS)

    def _stop_or_kill(self) -> None:
        if self._stop.is_set():  # asked a second time: no patience left
            for child in self._children:
                child.kill()
        self._stop.set()

    async def _report(self) -> None:
        while True:
            self._changed.clear()
            self._on_change([child.status() for child in self._children])
            await self._changed.wait()

    async def _bound_logs(self) -> None:
        while True:
            for log in self._logs:
                logs.bound(log)
            await asyncio.sleep(LOG_CHECK_SECONDS)
