"""What browsers need to talk: a running stack, speech, and a sound device that swallows everything."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.browser import speech
from tests.integration.stack import stacks


@dataclass(slots=True)
class Stack:
    """The stack of examples/local.yaml on addresses of its own, as its callers see it."""

    running: stacks.Stack
    url: str
    vips: dict[str, str]

    async def kill_worker(self, debug: dict[str, Any]) -> None:
        """Kill the worker process that `debug` says serves a call."""
        seen = await asyncio.to_thread(self.running.look)
        assert seen is not None
        parent = next(process for process in seen.processes if process.name == debug["transceiver"])
        workers = [
            child for child in parent.children if re.search(rf"worker\D+{debug['worker']}\b", child.command)
        ]
        assert len(workers) == 1, f"no single worker {debug['worker']} in {parent.children}"
        os.kill(workers[0].pid, signal.SIGKILL)

    async def refused_checks(self, debug: dict[str, Any]) -> None:
        """Return as soon as the worker of `debug` has answered a check of a call it does not know."""
        seen = await asyncio.to_thread(self.running.look)
        assert seen is not None
        admin = next(process.admin for process in seen.processes if process.name == debug["transceiver"])
        wanted = re.compile(
            rf'datagrams_dropped_total\{{worker="{debug["worker"]}",reason="unknown_call"\}} [1-9]'
        )
        async with aiohttp.ClientSession() as http:
            while True:
                try:
                    async with http.get(f"http://{admin}/metrics") as reply:
                        if wanted.search(await reply.text()):
                            return
                except aiohttp.ClientError:
                    pass  # the worker is on its way back
                await asyncio.sleep(0.02)


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    home = tmp_path_factory.mktemp("stack")
    file = home / "browsers.yaml"
    text = stacks.EXAMPLE.read_text(encoding="utf-8")
    file.write_text(text.replace("[127.0.0.1]", "[127.0.116.1]").replace("[127.0.0.2]", "[127.0.116.2]"))
    running = stacks.start(home, file, "--signaling", "127.0.116.1:8080", "--internal", "127.0.117.0/24")
    vips = {"eu-west": "127.0.116.1:3478", "us-east": "127.0.116.2:3478"}
    yield Stack(running, "http://127.0.116.1:8080/", vips)
    stacks.end(running)


@pytest.fixture(scope="session", autouse=True)
def sound_device(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Firefox starts no AudioContext without an output device: PulseAudio with a null sink is one."""
    program = shutil.which("pulseaudio")
    if program is None:
        pytest.fail("pulseaudio is missing: run `make test-packages`")
    home = tmp_path_factory.mktemp("pulse")
    address = home / "native"
    server = subprocess.Popen(
        [
            program,
            "-n",
            "--daemonize=no",
            "--exit-idle-time=-1",
            "--use-pid-file=no",
            "--disable-shm",
            "--load=module-null-sink rate=48000",
            f"--load=module-native-protocol-unix socket={address} auth-anonymous=1",
        ],
        env={**os.environ, "HOME": str(home), "XDG_RUNTIME_DIR": str(home)},
        stderr=subprocess.DEVNULL,
    )
    stacks.within(10, lambda: _accepts(address))
    os.environ["PULSE_SERVER"] = f"unix:{address}"
    yield
    del os.environ["PULSE_SERVER"]
    server.terminate()
    server.wait(10)


def _accepts(address: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(address)) == 0


@pytest.fixture(scope="session")
def utterance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A WAV of one sentence and nothing after it."""
    return speech.synthesise(tmp_path_factory.mktemp("speech") / "utterance.wav", tail_seconds=0)


@pytest.fixture(scope="session")
def microphone_file(utterance: Path) -> Path:
    """What Chromium's fake microphone plays: time to connect, the sentence, then a long silence."""
    path = utterance.with_name("microphone.wav")
    speech.write(path, speech.read_48k(utterance), lead_seconds=2, tail_seconds=20)
    return path
