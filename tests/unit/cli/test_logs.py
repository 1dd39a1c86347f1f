"""Logs are bounded while they are written and readable while they are bounded."""

import os
from itertools import islice
from pathlib import Path

from voicecluster.cli.stack.logs import bound, show


def test_the_last_lines_of_each_log_are_shown_with_its_process(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("1\n2\n3\n")
    (tmp_path / "b.log").write_text("4\n")
    shown = list(show([tmp_path / "a.log", tmp_path / "b.log"], last=2, follow=False))
    assert shown == [("a", "2"), ("a", "3"), ("b", "4")]


def test_a_log_too_large_is_moved_aside_and_its_writer_goes_on_at_the_new_end(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    writer = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(writer, b"x" * 100)
        bound(path, largest_bytes=50)
        os.write(writer, b"next\n")
    finally:
        os.close(writer)
    assert path.read_text() == "next\n"
    assert (tmp_path / "a.log.1").stat().st_size == 100


def test_a_log_within_its_bound_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("short\n")
    bound(path, largest_bytes=50)
    assert path.read_text() == "short\n"
    assert not (tmp_path / "a.log.1").exists()


def test_following_shows_what_is_written_later_even_after_the_log_was_emptied(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("first line that is long\n")
    lines = show([path], last=10, follow=True)
    assert next(lines) == ("a", "first line that is long")
    path.write_text("new\n")
    assert list(islice(lines, 1)) == [("a", "new")]
