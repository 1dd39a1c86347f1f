"""One `up` owns a stack's directory, others see who, and nobody else's eyes get in."""

import stat
from pathlib import Path

import pytest
from voicecluster.cli.stack.secrets import key_material
from voicecluster.cli.state import (
    RegionStatus,
    StackDirectory,
    StackError,
    StackStatus,
    all_running,
    check_name,
    directory_of,
    find_running,
    state_home,
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "voicecluster"


def status(name: str, pid: int) -> StackStatus:
    return StackStatus(
        name=name,
        pid=pid,
        cluster_id=7,
        url="http://127.0.0.1:8080",
        internal="127.0.1.0/24",
        regions=[RegionStatus(name="eu", index=0, vips=["127.0.0.1:3478"])],
        processes=[],
        ready=True,
    )


def own_pid(directory: StackDirectory) -> int:
    pid = directory.holder()
    assert pid is not None
    return pid


def test_state_lives_below_xdg_state_home(home: Path) -> None:
    assert state_home() == home


def test_without_xdg_state_home_state_lives_in_the_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    assert state_home() == Path.home() / ".local" / "state" / "voicecluster"


def test_a_stack_runs_as_long_as_its_lock_is_held() -> None:
    directory = directory_of("one")
    with directory.lock():
        directory.write_status(status("one", own_pid(directory)))
        assert [found.name for _, found in all_running()] == ["one"]
    assert all_running() == []


def test_a_status_left_behind_by_an_earlier_up_is_not_believed() -> None:
    directory = directory_of("one")
    with directory.lock():
        directory.write_status(status("one", pid=1))
        assert directory.running() is None


def test_a_second_up_of_the_same_stack_is_refused_with_what_to_do() -> None:
    directory = directory_of("one")
    with directory.lock():
        with pytest.raises(
            StackError, match=r"runs already \(process \d+\).*down --name one.*another --name"
        ):
            with directory.lock():
                pass


def test_the_only_running_stack_needs_no_name_and_two_do() -> None:
    one, two = directory_of("one"), directory_of("two")
    with one.lock():
        one.write_status(status("one", own_pid(one)))
        assert find_running(None)[1].name == "one"
        with two.lock():
            two.write_status(status("two", own_pid(two)))
            with pytest.raises(StackError, match="several stacks run: one, two; choose one with --name"):
                find_running(None)
            assert find_running("two")[0] == two


def test_no_running_stack_is_said_with_how_to_start_one() -> None:
    with pytest.raises(StackError, match="voicecluster up FILE"):
        find_running(None)


@pytest.mark.parametrize("name", ["", "..", "a/b", "x" * 64, "ü"])
def test_a_name_that_is_no_plain_directory_is_refused(name: str) -> None:
    with pytest.raises(StackError, match="cannot name a stack"):
        check_name(name)


def test_keys_are_generated_once_and_kept() -> None:
    first, second = (key_material(directory_of("one")) for _ in range(2))
    assert first == second
    assert len(first.roots[first.mint]) == 32
    assert key_material(directory_of("two")).roots != first.roots


def test_secrets_and_their_directories_are_for_the_owner_only(home: Path) -> None:
    key_material(directory_of("one"))
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.rglob("*")}
    assert modes == {
        "one": 0o700,
        "secrets": 0o700,
        "api-keys": 0o700,
        "root-keys.yaml": 0o600,
        "local": 0o600,
    }


def test_a_secret_that_others_can_read_is_refused_with_how_to_repair_it() -> None:
    directory = directory_of("one")
    key_material(directory)
    directory.root_keys_file.chmod(0o644)
    with pytest.raises(StackError, match="chmod 600"):
        key_material(directory)
