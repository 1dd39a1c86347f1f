"""An event loop in a thread of its own, for what must not wait: the Lease is renewed while a large plan is computed.

A main loop that hangs for good does not keep the Lease for ever either: its probes go unanswered, and the kubelet
ends the process.
"""

import asyncio
import threading
from collections.abc import Coroutine
from typing import TypeVar

T = TypeVar("T")
END_SECONDS = 2.0


class Apart:
    """`start` and `close` once each."""

    def __init__(self, name: str) -> None:
        """`name` is the thread's."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    def start(self) -> None:
        """Begin to run what is given."""
        self._thread.start()

    async def run(self, coroutine: Coroutine[None, None, T]) -> T:
        """Run it there and await it here; cancelling this cancels it there."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, self._loop))

    def close(self) -> None:
        """End the thread. Whatever still runs there ends with it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_SECONDS)
