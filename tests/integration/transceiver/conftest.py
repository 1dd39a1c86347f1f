"""Running stacks and clients for the tests of the transceiver as processes."""

import shutil
import subprocess
import wave
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy
import pytest

from tests.integration.transceiver.client import Client, ClientOpener, open_client
from tests.integration.transceiver.stack import ORDINALS, Stack, StackWriter, write_stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Both regions, ready."""
    running = write_stack(tmp_path_factory.mktemp("stack"))
    running.forwarder.start()
    try:
        for region in ORDINALS:
            running.start(region)
        for region in ORDINALS:
            running.wait_ready(region)
        yield running
    finally:
        for region in list(running.processes):
            running.stop(region)
        running.forwarder.close()


@pytest.fixture
async def client(stack: Stack) -> AsyncIterator[Client]:
    """A client that has not dialled yet."""
    async with open_client(stack.signaling) as opened:
        yield opened


@pytest.fixture
async def other_client(stack: Stack) -> AsyncIterator[Client]:
    """Another one."""
    async with open_client(stack.signaling) as opened:
        yield opened


@pytest.fixture
def new_stack(tmp_path: Path) -> Iterator[StackWriter]:
    """Writes a stack whose transceivers the test starts by itself."""
    written: list[Stack] = []

    def write(**changes: object) -> Stack:
        written.append(write_stack(tmp_path, **changes))
        written[-1].forwarder.start()
        return written[-1]

    yield write
    for each in written:
        for region in list(each.processes):
            each.stop(region)
        each.forwarder.close()


@pytest.fixture
def client_of() -> ClientOpener:
    """Opens clients of any stack."""
    return open_client


@pytest.fixture(scope="session")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> numpy.ndarray:
    """A sentence, 48 kHz, spoken by espeak-ng."""
    program = shutil.which("espeak-ng")
    if program is None:
        pytest.skip("espeak-ng is missing (Debian: apt-get install espeak-ng)")
    file = tmp_path_factory.mktemp("speech") / "sentence.wav"
    subprocess.run(
        [program, "-w", str(file), "The quick brown fox jumps over the lazy dog"], check=True, timeout=20
    )
    with wave.open(str(file)) as opened:
        rate = opened.getframerate()
        raw = numpy.frombuffer(opened.readframes(opened.getnframes()), numpy.int16)
    at = numpy.arange(int(len(raw) * 48_000 / rate)) * rate / 48_000
    return numpy.interp(at, numpy.arange(len(raw)), raw).astype(numpy.int16)
