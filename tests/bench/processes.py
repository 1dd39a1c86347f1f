"""Child processes of a benchmark: started on one core, measured by the kernel's own account, always ended."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parents[2]


def cpu_seconds(pid: int) -> float:
    """CPU time of a process with all its threads and its children, to the nanosecond (schedstat)."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        for child in (task / "children").read_text(encoding="ascii").split():
            total += round(1e9 * cpu_seconds(int(child)))
    return total / 1e9


def cores() -> tuple[int, int]:
    """(core of the load, core of the measured); the same one where there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[1 % len(usable)]


def _die_with_parent() -> None:
    """In the child: ask the kernel to end it when this program dies, however that comes."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG


@contextmanager
def child(
    arguments: Sequence[str], *, core: int | None, stdout: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program for the time of the block, pinned to `core`."""
    pinned = (
        ["taskset", "-c", str(core), *arguments] if core is not None and which("taskset") else list(arguments)
    )
    process = subprocess.Popen(pinned, stdout=stdout, text=True, preexec_fn=_die_with_parent)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def engine_binary() -> Path:
    """The relay engine.

    Beside this interpreter, else in target/release. Exits with advice when there is none.
    """
    places = (Path(sys.executable).parent, ROOT / "target" / "release")
    for place in places:
        if (place / "voicecluster-relay-engine").exists():
            return place / "voicecluster-relay-engine"
    sys.exit("voicecluster-relay-engine is not built; `make setup` builds it")


def compile_c(source: Path, into: Path) -> Path:
    """Compile one C file with the system's compiler. Exits with advice when there is none."""
    compiler = which("cc") or which("gcc") or which("clang")
    if compiler is None:
        sys.exit("the forwarder to compare with needs a C compiler; on Debian: apt-get install gcc libc6-dev")
    binary = into / source.stem
    subprocess.run([compiler, "-O2", "-pthread", "-o", str(binary), str(source)], check=True)
    return binary


def take_precedence() -> None:
    """Go before most of what else runs here, children included, where the system lets us (root does)."""
    with suppress(PermissionError):
        os.nice(-8)


def neighbours() -> list[str]:
    """A note for the table if others keep this machine busy; looks for half a second."""

    def read() -> tuple[int, int]:
        line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0]
        fields = [int(field) for field in line.split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    all_before, idle_before = read()
    time.sleep(0.5)
    all_after, idle_after = read()
    busy = 1 - (idle_after - idle_before) / max(1, all_after - all_before)
    if busy < 0.2:
        return []
    return [
        f"Others used {100 * busy:.0f} % of this machine before the benchmark began: its figures are worth little."
    ]
