"""Turns of 20 ms on absolute deadlines."""

import asyncio

from voicecluster.cli.client.pacer import Pacer


class Turns:
    """Counts its turns and tells when it had enough."""

    def __init__(self, enough: int) -> None:
        self.times: list[float] = []
        self.enough = enough
        self.done = asyncio.get_running_loop().create_future()

    def send_frame(self, now: float) -> None:
        self.times.append(now)
        if len(self.times) == self.enough:
            self.done.set_result(None)


async def test_turns_keep_their_rate_over_many_of_them() -> None:
    pacer, turns = Pacer(), Turns(26)
    pacer.add(turns)
    await turns.done
    pacer.stop()
    assert 0.45 <= turns.times[-1] - turns.times[0] < 0.8


async def test_a_removed_session_gets_no_more_turns_and_the_others_go_on() -> None:
    pacer, removed, kept = Pacer(), Turns(1), Turns(5)
    pacer.add(removed)
    pacer.add(kept)
    await removed.done
    pacer.remove(removed)
    await kept.done
    pacer.stop()
    assert len(removed.times) == 1
