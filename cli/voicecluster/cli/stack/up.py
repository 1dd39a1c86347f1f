"""`voicecluster up`: prepare, supervise, say when it is ready, and leave nothing behind."""

import asyncio
import os
import time
from collections.abc import Callable

from rich.console import Console
from voicecluster.cli.stack.prepare import Prepared
from voicecluster.cli.stack.supervisor import Supervisor
from voicecluster.cli.state import ProcessStatus, RegionStatus, StackDirectory, StackStatus
from voicecluster.common.config.model import join_address


def status_of(name: str, prepared: Prepared, processes: list[ProcessStatus]) -> StackStatus:
    """What `stack.json` says."""
    return StackStatus(
        name=name,
        pid=os.getpid(),
        cluster_id=prepared.cluster.spec.cluster_id,
        url=prepared.url,
        internal=str(prepared.place.internal),
        regions=[
            RegionStatus(
                name=region.name,
                index=region.index,
                vips=[join_address(*vip.advertise) for vip in prepared.place.vips(region)],
            )
            for region in prepared.cluster.spec.regions
        ],
        processes=processes,
        ready=all(process.state == "ready" for process in processes),
    )


def run(
    name: str,
    directory: StackDirectory,
    prepared: Prepared,
    console: Console,
    on_ready: Callable[[float], None],
) -> None:
    """Run the stack until a stop signal. The caller holds its lock; `on_ready` gets the seconds it took."""
    started = time.monotonic()
    announced = False
    for process in prepared.plan.processes:
        directory.log_file(process.name).unlink(missing_ok=True)

    with console.status("starting") as progress:

        def changed(processes: list[ProcessStatus]) -> None:
            nonlocal announced
            status = status_of(name, prepared, processes)
            if not announced:
                ready = sum(process.state == "ready" for process in processes)
                progress.update(f"starting: {ready} of {len(processes)} processes ready")
                if status.ready:
                    announced = True
                    progress.stop()
                    on_ready(time.monotonic() - started)
            directory.write_status(status)  # last: who waits for it finds everything said

        programs = list(zip(prepared.plan.processes, prepared.executables, strict=True))
        asyncio.run(Supervisor(programs, directory.log_file, changed).run())
