"""Child processes of a benchmark: started on one core, measured by the kernel's own account, always ended."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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


@contextmanager
def child(
    arguments: Sequence[str], *, core: int | None, stdout: int | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program for the time of the block, pinned to `core`."""
    pinned = (
        ["taskset", "-c", str(core), *arguments] if core is not None and which("taskset") else list(arguments)
    )
    process = subprocess.Popen(pinned, stdout=stdout, text=True)
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
