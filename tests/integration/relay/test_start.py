"""What a relay that cannot start says, and how it ends."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.integration.relay.harness import SUPERVISOR, RelayProcess, Scene, free_port, written
from tests.integration.relay.parties import udp_socket

HOST = "127.0.102.2"


async def refusal(config: Path) -> str:
    """Start a supervisor that must end by itself with exit code 2; return what it said."""
    process = await asyncio.create_subprocess_exec(
        SUPERVISOR, "supervise", "--config", config, stderr=asyncio.subprocess.PIPE
    )
    try:
        async with asyncio.timeout(10):
            _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode == 2, errors
    return errors.decode()


@pytest.fixture
def relay(tmp_path: Path, scene: Scene) -> RelayProcess:
    vip = (HOST, free_port(HOST))
    return RelayProcess(tmp_path, [(vip, vip)])


async def test_a_bad_config_ends_the_supervisor_too(relay: RelayProcess) -> None:
    file = relay.directory / "relay.yaml"
    file.write_text(json.dumps({**relay.config, "wrokers": 3}))
    assert f"error: {file}: wrokers: unknown field; remove it or check its spelling\n" in await refusal(file)


@pytest.mark.parametrize("which", ["vip", "backbone"])
async def test_a_taken_port_is_named_with_who_holds_it(relay: RelayProcess, which: str) -> None:
    peer = relay.vips[0] if which == "vip" else relay.backbone
    with udp_socket(peer):
        said = await refusal(relay.directory / "relay.yaml")
    (line,) = (line for line in said.splitlines() if line.startswith("error: "))
    assert line.startswith(f"error: {written(peer)}/udp: port taken, held by ")
    assert f"(pid {os.getpid()})" in line
