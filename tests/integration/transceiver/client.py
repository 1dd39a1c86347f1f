"""A stock aiortc client of the calls API."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import aiohttp
import aioice.ice
import av
import numpy
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCSessionDescription,
)

from tests.integration.transceiver.forwarder import HOST
from tests.integration.transceiver.stack import AUTHORIZED, KEY


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


ClientOpener = Callable[..., contextlib.AbstractAsyncContextManager[Client]]
