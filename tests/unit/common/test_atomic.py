"""Files are replaced as a whole."""

from pathlib import Path

import pytest
from voicecluster.common.atomic import write_atomic


def test_the_new_content_replaces_the_old(tmp_path: Path) -> None:
    target = tmp_path / "file"
    write_atomic(target, "old")
    write_atomic(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_a_secret_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    target = tmp_path / "secret"
    write_atomic(target, "x", mode=0o600)
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_atomic(tmp_path / "taken", "x")
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken"]
