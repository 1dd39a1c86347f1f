"""The command: its errors, and how fast it ends."""

import asyncio
import json
import signal
import socket
import sys
from pathlib import Path

import pytest
from voicecluster.common.config.relay import RelayConfig

COMMAND = (sys.executable, "-c", "from voicecluster.relay.main import main; main()")


async def start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*COMMAND, *arguments, stderr=asyncio.subprocess.PIPE)


def written(config: RelayConfig, tmp_path: Path) -> str:
    file = tmp_path / "relay.yaml"
    file.write_text(json.dumps(config.model_dump(mode="json", by_alias=True)))
    return str(file)


async def test_a_bad_config_exits_2_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "relay.yaml").write_text("name: eu-0")
    process = await start("--config", str(tmp_path / "relay.yaml"), "--control", "none")
    _, errors = await process.communicate()
    assert process.returncode == 2
    assert errors.decode() == f"error: {tmp_path}/relay.yaml: region: required field is missing; add it\n"


async def test_a_taken_admin_port_exits_2_and_names_its_holder(config: RelayConfig, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        file = written(config.model_copy(update={"admin": address}), tmp_path)
        process = await start("--config", file, "--control", str(tmp_path / "engine.sock"))
        _, errors = await process.communicate()
    assert process.returncode == 2
    assert errors.decode().startswith(f"error: {address}/tcp: port taken, held by ")
    assert errors.decode().count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_within_a_second(
    config: RelayConfig, fake_engine, tmp_path: Path, number: signal.Signals
) -> None:
    process = await start("--config", written(config, tmp_path), "--control", str(fake_engine.socket))
    async with asyncio.timeout(10):
        await fake_engine.until(lambda: len(fake_engine.held) == 3)
    process.send_signal(number)
    async with asyncio.timeout(1):
        _, errors = await process.communicate()
    assert process.returncode == 0
    assert json.loads(errors.decode().splitlines()[-1])["relay"] == "eu-0"


async def test_a_signal_ends_it_also_while_it_waits_for_an_engine(
    config: RelayConfig, tmp_path: Path
) -> None:
    process = await start("--config", written(config, tmp_path), "--control", str(tmp_path / "none.sock"))
    assert process.stderr is not None
    line = await process.stderr.readline()
    assert json.loads(line)["message"] == "started"
    process.terminate()
    async with asyncio.timeout(1):
        await process.communicate()
    assert process.returncode == 0
