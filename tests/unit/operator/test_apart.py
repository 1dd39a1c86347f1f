"""What must not wait for the main loop does not."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest
from voicecluster.operator.apart import Apart


@pytest.fixture
def apart() -> Iterator[Apart]:
    made = Apart("test")
    made.start()
    yield made
    made.close()


async def test_it_goes_on_while_the_main_loop_is_busy(apart: Apart) -> None:
    done = threading.Event()

    async def quick() -> None:
        await asyncio.sleep(0.01)
        done.set()

    waiting = asyncio.create_task(apart.run(quick()))
    await asyncio.sleep(0)
    assert done.wait(5), "the main loop stands still here"
    await waiting


async def test_its_result_and_its_errors_come_back(apart: Apart) -> None:
    async def works() -> int:
        return 7

    async def fails() -> None:
        raise ValueError("no")

    assert await apart.run(works()) == 7
    with pytest.raises(ValueError, match="no"):
        await apart.run(fails())


async def test_cancelling_here_cancels_there(apart: Apart) -> None:
    began, ended = threading.Event(), threading.Event()

    async def forever() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    task = asyncio.create_task(apart.run(forever()))
    await asyncio.sleep(0)
    assert began.wait(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.wait(5)


def test_closing_does_not_wait_for_what_runs() -> None:
    apart = Apart("test")
    apart.start()
    began = time.monotonic()
    apart.close()
    assert time.monotonic() - began < 2.0
