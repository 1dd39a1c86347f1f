"""Two transceivers as processes, a forwarder in the place of relays, and a stock aiortc client.

All on loopback addresses of this test's own, with ports chosen anew for each session.
"""

import asyncio
import base64
import contextlib
import json
import secrets
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import wave
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import aioice.ice
import av
import numpy
import psutil
import pytest
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)
from voicecluster.wire import (
    SPP_LEN,
    HintError,
    HintKey,
    derive_key,
    spp_decode,
    spp_encode,
    stun_username,
)

HOST = "127.0.105.1"
CLUSTER = 7
ORDINALS = {"eu-west": 0, "us-east": 1024}
WORKERS = {"eu-west": 2, "us-east": 1}
KEY = "test-key"
OTHER_KEY = "other-key"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
READY_SECONDS = 50.0

Address = tuple[str, int]


class Forwarder(threading.Thread):
    """A relay without limits: VIP on one side, SPP on the other, routes by the ufrag of each check."""

    def __init__(self, hint: HintKey, media: dict[tuple[int, int], Address]) -> None:
        super().__init__(name="forwarder", daemon=True)
        self._hint = hint
        self._media = media
        self._routes: dict[Address, Address] = {}
        self._done, self._wake = socket.socketpair()
        self._front = self._bound()
        self._back = self._bound()
        self.vip: Address = self._front.getsockname()
        self.backbone: Address = self._back.getsockname()

    @staticmethod
    def _bound() -> socket.socket:
        bound = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        bound.bind((HOST, 0))
        return bound

    def run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for each in (self._front, self._back, self._done):
                selector.register(each, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.fileobj is self._done:
                        return
                    if key.fileobj is self._front:
                        self._inward(*self._front.recvfrom(2048))
                    else:
                        datagram, _ = self._back.recvfrom(2048)
                        self._front.sendto(datagram[SPP_LEN:], spp_decode(datagram).client)

    def _inward(self, datagram: bytes, client: Address) -> None:
        if datagram and datagram[0] == 0:
            with contextlib.suppress(HintError, KeyError):
                ufrag = (stun_username(datagram) or "").partition(":")[0]
                route = self._hint.open(ufrag).route
                self._routes[client] = self._media[(route.ordinal, route.worker)]
        if client in self._routes:
            self._back.sendto(spp_encode(client, self.vip) + datagram, self._routes[client])

    def close(self) -> None:
        """Forward no more. May be called twice."""
        if self._wake.fileno() < 0:
            return
        self._wake.send(b"x")
        self.join()
        for each in (self._front, self._back, self._done, self._wake):
            each.close()


@dataclass
class Stack:
    """Two regions' transceivers, each a parent with its workers."""

    directory: Path
    signaling: str
    admin: dict[str, str]
    forwarder: Forwarder
    configs: dict[str, Path]
    hint: HintKey
    media: dict[tuple[int, int], Address]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, region: str) -> None:
        """Start a region's transceiver and wait until all its workers take calls."""
        log = (self.directory / f"{region}.log").open("ab")
        command = [
            sys.executable,
            "-m",
            "voicecluster.transceiver.main",
            "--config",
            str(self.configs[region]),
        ]
        self.processes[region] = subprocess.Popen(command, stderr=log)
        log.close()

    def log(self, region: str) -> list[dict[str, object]]:
        """What it has logged."""
        lines = (self.directory / f"{region}.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_ready(self, region: str, seconds: float = READY_SECONDS) -> float:
        """Wait until `/readyz` says so; how long it took."""
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            process = self.processes[region]
            assert process.poll() is None, (self.directory / f"{region}.log").read_text()
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{self.admin[region]}/readyz", timeout=1)
                return time.monotonic() - start
            time.sleep(0.02)
        raise AssertionError((self.directory / f"{region}.log").read_text())

    def worker_pids(self, region: str) -> list[int]:
        """The workers, in no particular order."""
        children = psutil.Process(self.processes[region].pid).children()
        return [child.pid for child in children if child.name().startswith("worker-")]

    def stop(self, region: str) -> int:
        """End it at once; its exit code."""
        process = self.processes.pop(region)
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(10)
        finally:
            process.kill()


def _free_ports(count: int) -> int:
    """The first of `count` ports that were free a moment ago."""
    while True:
        first = 20_000 + secrets.randbelow(10_000)
        try:
            for port in range(first, first + count):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(socket.AF_INET, kind) as probe:
                        probe.bind((HOST, port))
        except OSError:
            continue
        return first


def write_stack(directory: Path, **changes: object) -> Stack:
    """Write the files of both transceivers; `changes` are fields of their configurations."""
    secret = secrets.token_bytes(32)
    base = _free_ports(16)
    hint = HintKey("A", derive_key(secret, "hint", CLUSTER))
    ports = {"eu-west": base, "us-east": base + 6}
    media = {
        (ORDINALS[region], worker): (HOST, ports[region] + worker)
        for region, count in WORKERS.items()
        for worker in range(count)
    }
    forwarder = Forwarder(hint, media)
    keys = directory / "api-keys"
    keys.mkdir()
    (keys / "test").write_text(KEY)
    (keys / "other").write_text(OTHER_KEY)
    files: dict[str, object] = {
        "keys": {"mint": "A", "keys": {"A": base64.b64encode(secret).decode()}},
        "vips": {"regions": {region: [{"address": HOST, "port": forwarder.vip[1]}] for region in ORDINALS}},
        "directory": {
            "regions": [
                {
                    "name": region,
                    "index": ordinal >> 10,
                    "transceivers": [
                        {
                            "ordinal": ordinal,
                            "host": HOST,
                            "internalPort": ports[region] + 2,
                            "workers": WORKERS[region],
                        }
                    ],
                }
                for region, ordinal in ORDINALS.items()
            ]
        },
    }
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    stack = Stack(directory, f"http://{HOST}:{base + 12}", {}, forwarder, {}, hint, media)
    for region, ordinal in ORDINALS.items():
        config = {
            "name": f"{region}-0",
            "clusterId": CLUSTER,
            "region": region,
            "ordinal": ordinal,
            "workers": WORKERS[region],
            "mediaAddress": HOST,
            "mediaPort": ports[region],
            "internalAddress": HOST,
            "internalPort": ports[region] + 2,
            "admin": f"{HOST}:{ports[region] + 4}",
            "signaling": {"bind": f"{HOST}:{base + 12}", "auth": {"apiKeysDir": str(keys)}},
            "keysFile": str(directory / "keys.json"),
            "vipsFile": str(directory / "vips.json"),
            "directoryFile": str(directory / "directory.json"),
            **changes,
        }
        stack.configs[region] = directory / f"{region}.json"
        stack.configs[region].write_text(json.dumps(config))
        stack.admin[region] = f"http://{HOST}:{ports[region] + 4}"
    return stack


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


class Sound(MediaStreamTrack):
    """`samples` (48 kHz) once, then silence; without any a sine of 440 Hz for ever. Paced."""

    kind = "audio"

    def __init__(self, samples: numpy.ndarray | None = None) -> None:
        super().__init__()
        self._start: float | None = None
        self._frames = 0
        self._samples = samples

    async def recv(self) -> av.AudioFrame:
        loop = asyncio.get_running_loop()
        if self._start is None:
            self._start = loop.time()
        await asyncio.sleep(max(0.0, self._start + self._frames * 0.02 - loop.time()))
        if self._samples is None:
            at = (numpy.arange(960) + self._frames * 960) / 48_000
            samples = (numpy.sin(2 * numpy.pi * 440 * at) * 12_000).astype(numpy.int16)
        else:
            samples = numpy.zeros(960, numpy.int16)
            said = self._samples[self._frames * 960 : (self._frames + 1) * 960]
            samples[: len(said)] = said
        frame = av.AudioFrame.from_ndarray(samples.reshape(1, -1), layout="mono")
        frame.sample_rate, frame.pts = 48_000, self._frames * 960
        self._frames += 1
        return frame


@dataclass
class Client:
    """One stock WebRTC client and its call."""

    http: aiohttp.ClientSession
    signaling: str
    peer: RTCPeerConnection
    channel: RTCDataChannel
    events: "asyncio.Queue[dict[str, object]]" = field(default_factory=asyncio.Queue)
    heard: "asyncio.Queue[float]" = field(default_factory=asyncio.Queue)
    location: str = ""
    answer: str = ""

    async def offer(self) -> str:
        await self.peer.setLocalDescription(await self.peer.createOffer())
        sdp: str = self.peer.localDescription.sdp
        return sdp

    async def dial(self, *, model: str = "echo", region: str = "eu-west") -> None:
        """Make the call; returns when it is connected."""
        async with self.http.post(
            f"{self.signaling}/v1/realtime/calls",
            params={"model": model, "region": region},
            data=await self.offer(),
            headers={**AUTHORIZED, "Content-Type": "application/sdp"},
        ) as reply:
            self.answer = await reply.text()
            assert reply.status == 201, self.answer
            self.location = reply.headers["Location"]
        await self.peer.setRemoteDescription(RTCSessionDescription(self.answer, "answer"))
        while self.peer.connectionState != "connected":
            changed = asyncio.Event()
            self.peer.once("connectionstatechange", changed.set)
            if self.peer.connectionState != "connected":
                await asyncio.wait_for(changed.wait(), 10)

    async def ask(
        self, method: str, tail: str = "", *, key: str = KEY, **options: object
    ) -> tuple[int, object]:
        """A request on the call, each on a connection of its own, so that any worker may get it."""
        async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key}"}) as session:
            url = f"{self.signaling}{self.location}{tail}"
            async with session.request(method, url, **options) as reply:  # type: ignore[arg-type]
                body = await reply.text()
                is_json = reply.content_type == "application/json"
                return reply.status, json.loads(body) if is_json else body

    async def event(self, kind: str, seconds: float = 10) -> dict[str, object]:
        """The next event of this kind; others before it are dropped."""
        async with asyncio.timeout(seconds):
            while True:
                event = await self.events.get()
                if event["type"] == kind:
                    return event

    async def hear(self, loudness: float = 1000, seconds: float = 10) -> None:
        """Wait until sound comes."""
        async with asyncio.timeout(seconds):
            while await self.heard.get() < loudness:
                pass


@contextlib.asynccontextmanager
async def open_client(signaling: str, sound: numpy.ndarray | None = None) -> AsyncIterator[Client]:
    """A client that is closed afterwards, whatever became of its call."""
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [HOST]
    peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
    listening: list[asyncio.Task[None]] = []
    async with aiohttp.ClientSession() as http:
        client = Client(http, signaling, peer, peer.createDataChannel("oai-events"))
        client.channel.on("message", lambda text: client.events.put_nowait(json.loads(text)))
        peer.addTrack(Sound(sound))

        async def listen(track: MediaStreamTrack) -> None:
            while True:
                frame = await track.recv()
                client.heard.put_nowait(float(numpy.abs(frame.to_ndarray()).mean()))

        peer.on("track", lambda track: listening.append(asyncio.create_task(listen(track))))
        try:
            yield client
        finally:
            for task in listening:
                task.cancel()
            await asyncio.gather(*listening, return_exceptions=True)
            await peer.close()


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


StackWriter = Callable[..., Stack]
ClientOpener = Callable[..., contextlib.AbstractAsyncContextManager[Client]]


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
