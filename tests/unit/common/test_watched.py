"""A watched file: every way of replacing it is noticed, nothing bad replaces what was good."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from voicecluster.common.atomic import write_atomic
from voicecluster.common.config.model import ConfigError, Model
from voicecluster.common.watched import WatchedFile


class Numbers(Model):
    numbers: list[int]


class Watcher:
    """Runs a watched file and hands out what it reports."""

    def __init__(self, path: Path) -> None:
        self.file = WatchedFile(path, Numbers, empty=lambda value: not value.numbers)
        self.changes: asyncio.Queue[Numbers] = asyncio.Queue()
        self.task = asyncio.create_task(self.file.run(self.changes.put_nowait))

    async def next(self) -> list[int]:
        async with asyncio.timeout(5):
            return (await self.changes.get()).numbers


@pytest.fixture
async def watcher(tmp_path: Path) -> AsyncIterator[Watcher]:
    write_atomic(tmp_path / "file", "numbers: [1]")
    watcher = Watcher(tmp_path / "file")
    assert await watcher.next() == [1]
    yield watcher
    watcher.task.cancel()
    async with asyncio.timeout(1):
        await asyncio.wait([watcher.task])


async def test_a_file_renamed_over_is_noticed(watcher: Watcher) -> None:
    write_atomic(watcher.file.path, "numbers: [2]")
    assert await watcher.next() == [2]


async def test_a_file_written_in_place_is_noticed(watcher: Watcher) -> None:
    watcher.file.path.write_text("numbers: [3]")
    assert await watcher.next() == [3]


async def test_a_kubernetes_symlink_swap_is_noticed(tmp_path: Path) -> None:
    for version in (1, 2):
        (tmp_path / f"..v{version}").mkdir()
        (tmp_path / f"..v{version}" / "file").write_text(f"numbers: [{version}]")
    (tmp_path / "..data").symlink_to("..v1")
    (tmp_path / "file").symlink_to("..data/file")
    watcher = Watcher(tmp_path / "file")
    assert await watcher.next() == [1]
    (tmp_path / "..data_tmp").symlink_to("..v2")
    (tmp_path / "..data_tmp").rename(tmp_path / "..data")
    assert await watcher.next() == [2]
    watcher.task.cancel()


async def test_a_file_that_appears_later_is_noticed(tmp_path: Path) -> None:
    watcher = Watcher(tmp_path / "later" / "file")
    await asyncio.sleep(0)
    assert watcher.file.error is not None
    (tmp_path / "later").mkdir()
    write_atomic(watcher.file.path, "numbers: [4]")
    assert await watcher.next() == [4]
    assert watcher.file.error is None
    watcher.task.cancel()


@pytest.mark.parametrize("bad", ["", "numbers: [", "numbers: []", "numbers: many", "other: 1", None])
def test_bad_content_never_replaces_good(tmp_path: Path, bad: str | None) -> None:
    path = tmp_path / "file"
    path.write_text("numbers: [1]")
    file = WatchedFile(path, Numbers, empty=lambda value: not value.numbers)
    assert file.load().numbers == [1]
    path.unlink() if bad is None else path.write_text(bad)
    assert not file.refresh()
    assert file.value == Numbers(numbers=[1])
    assert file.error is not None


def test_a_bad_file_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "file"
    path.write_text("numbers: many")
    file = WatchedFile(path, Numbers)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            file.refresh()
    assert [record.message for record in caplog.records] == ["file refused, last good content kept"]


def test_a_bad_file_at_the_start_is_an_error_for_the_caller(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        WatchedFile(tmp_path / "absent", Numbers).load()


def test_good_content_after_bad_clears_the_error(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("numbers: [1]")
    file = WatchedFile(path, Numbers)
    file.refresh()
    path.write_text("")
    file.refresh()
    path.write_text("numbers: [1]")
    assert (file.refresh(), file.error) == (False, None)


def test_an_empty_first_content_is_taken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("numbers: []")
    assert WatchedFile(tmp_path / "file", Numbers, empty=lambda value: not value.numbers).load().numbers == []
