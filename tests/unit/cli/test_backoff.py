"""How soon a dead process is started again."""

from voicecluster.cli.stack.backoff import Backoff


def test_the_first_restart_is_at_once_and_later_ones_double_up_to_five_seconds() -> None:
    backoff = Backoff()
    pauses = [backoff.next(uptime_seconds=0.1) for _ in range(9)]
    assert pauses == [0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


def test_a_process_that_stayed_up_for_ten_seconds_is_restarted_at_once_again() -> None:
    backoff = Backoff()
    for _ in range(5):
        backoff.next(uptime_seconds=1)
    assert backoff.next(uptime_seconds=10) == 0.0
    assert backoff.next(uptime_seconds=0) == 0.1
