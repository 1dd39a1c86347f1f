"""What a local stack keeps on disk, below $XDG_STATE_HOME/voicecluster/<name>, for its owner's eyes only.

lock            held (flock) by the `up` that runs the stack; contains its process id
stack.json      what runs, replaced atomically by `up`; stale unless the lock is held
secrets/        key material, generated once and kept: root keys, API keys, certificate
volumes/        the files of the plan, written anew by each `up`
logs/           one bounded file per process
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError
from voicecluster.common.atomic import write_atomic
from voicecluster.common.config.model import ConfigError

ProcessState = Literal["starting", "ready", "unready", "waiting", "stopped"]
"""`unready`: it was ready and answers no longer. `waiting`: it died and is started again after a pause."""


class StackError(ConfigError):
    """A local stack, or the lack of one, is in the way of a command. `str()` is one line with the remedy."""


class PortStatus(BaseModel):
    """A socket of a process."""

    name: str
    protocol: str
    address: str


class ProcessStatus(BaseModel):
    """A process as its supervisor last saw it."""

    name: str
    role: str
    region: str
    state: ProcessState
    pid: int | None
    restarts: int
    admin: str
    ports: list[PortStatus]


class RegionStatus(BaseModel):
    """A region and the public addresses that callers reach."""

    name: str
    index: int
    vips: list[str]


class StackStatus(BaseModel):
    """`stack.json`."""

    name: str
    pid: int
    cluster_id: int
    url: str
    internal: str
    regions: list[RegionStatus]
    processes: list[ProcessStatus]
    ready: bool
    """Every process was ready when this was written."""


@dataclass(frozen=True, slots=True)
class StackDirectory:
    """The directory of one stack."""

    root: Path

    @property
    def secrets(self) -> Path:
        """Key material."""
        return self.root / "secrets"

    @property
    def logs(self) -> Path:
        """One file per process."""
        return self.root / "logs"

    @property
    def root_keys_file(self) -> Path:
        """The cluster's root secrets."""
        return self.secrets / "root-keys.yaml"

    @property
    def api_key_file(self) -> Path:
        """The API key that was generated for this stack."""
        return self.secrets / "api-keys" / "local"

    def log_file(self, process: str) -> Path:
        """The log of a process."""
        return self.logs / f"{process}.log"

    def write_status(self, status: StackStatus) -> None:
        """Replace `stack.json`."""
        write_private(self.root / "stack.json", status.model_dump_json(indent=2))

    def running(self) -> StackStatus | None:
        """What runs here, or None when no `up` holds the lock or it has not written anything yet."""
        pid = self.holder()
        if pid is None:
            return None
        try:
            status = StackStatus.model_validate_json((self.root / "stack.json").read_bytes())
        except (OSError, ValidationError):
            return None
        return status if status.pid == pid else None

    def holder(self) -> int | None:
        """The process id of the `up` that runs this stack, or None."""
        try:
            with open(self.root / "lock", encoding="ascii") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    text = lock.read().strip()
                    return int(text) if text.isdigit() else None
        except OSError:
            return None
        return None

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Own this stack until the block ends, however it ends. Raises StackError when another `up` does."""
        private_directory(self.root)
        handle = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(handle, "r+", encoding="ascii") as lock:
            if not _locked(lock.fileno()):
                name = self.root.name
                raise StackError(
                    f"stack '{name}' runs already (process {self.holder()}); "
                    f"end it with 'voicecluster down --name {name}' or choose another --name"
                )
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
            yield


def state_home() -> Path:
    """Where all local stacks live."""
    base = os.environ.get("XDG_STATE_HOME") or ""
    return (Path(base) if base.startswith("/") else Path.home() / ".local" / "state") / "voicecluster"


def check_name(name: str) -> str:
    """Return `name` if it can name a stack. Raises StackError."""
    if not name.replace("-", "").replace("_", "").isalnum() or not name.isascii() or len(name) > 63:
        raise StackError(f"'{name}' cannot name a stack; use letters, digits, '-' and '_', at most 63")
    return name


def directory_of(name: str) -> StackDirectory:
    """The directory of the stack called `name`; it need not exist."""
    return StackDirectory(state_home() / name)


def all_running() -> list[tuple[StackDirectory, StackStatus]]:
    """The stacks that run now, by name."""
    home = state_home()
    directories = [StackDirectory(path) for path in sorted(home.iterdir())] if home.is_dir() else []
    found = [(directory, directory.running()) for directory in directories]
    return [(directory, status) for directory, status in found if status is not None]


def find_running(name: str | None) -> tuple[StackDirectory, StackStatus]:
    """The running stack called `name`, or the only one. Raises StackError when that is not exactly one."""
    running = all_running()
    if name is not None:
        running = [(directory, status) for directory, status in running if status.name == name]
    if len(running) == 1:
        return running[0]
    if running:
        names = ", ".join(status.name for _, status in running)
        raise StackError(f"several stacks run: {names}; choose one with --name")
    which = "no stack runs" if name is None else f"stack '{name}' does not run"
    raise StackError(f"{which}; start one with 'voicecluster up FILE'")


def _locked(handle: int) -> bool:
    """Take the lock. Tries for a moment, since `holder` takes it shared for an instant to look."""
    for _ in range(10):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def find_latest(name: str | None) -> StackDirectory:
    """The stack called `name`, else the one that runs, else the one that ran last. Raises StackError."""
    if name is not None:
        found = directory_of(check_name(name))
        if not found.logs.is_dir():
            raise StackError(f"there is no stack '{name}' and has been none; see 'voicecluster status'")
        return found
    if all_running():
        return find_running(None)[0]
    kept = [path / "logs" for path in state_home().glob("*") if (path / "logs").is_dir()]
    if not kept:
        raise StackError("no stack runs or has run; start one with 'voicecluster up FILE'")
    return StackDirectory(max(kept, key=lambda path: path.stat().st_mtime).parent)


def private_directory(path: Path) -> None:
    """Make `path` and what is missing above it, readable by its owner only."""
    if not path.is_dir():
        private_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def write_private(path: Path, text: str) -> None:
    """Replace `path` atomically by a file that only its owner can read; make its directory if need be."""
    private_directory(path.parent)
    write_atomic(path, text, mode=0o600)
