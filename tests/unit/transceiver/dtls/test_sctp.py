"""The data channel's fence: an association of stock aiortc on the other side, packets carried by hand."""

import asyncio
import struct
from collections import deque
from collections.abc import Callable

import pytest
from aiortc import RTCDataChannel, RTCDataChannelParameters, RTCSctpTransport
from aiortc.rtcsctptransport import (
    AbortChunk,
    Chunk,
    DataChunk,
    ForwardTsnChunk,
    InitChunk,
    ReconfigChunk,
    RTCSctpCapabilities,
    SackChunk,
    parse_packet,
    serialize_packet,
)
from voicecluster.transceiver.dtls.sctp import MAX_CHANNELS, EventChannel, _Dtls


class Pipe:
    """Our channel and a stock peer; what each sends waits in a queue until `carry`."""

    def __init__(self) -> None:
        self.opened = 0
        self.messages: list[str] = []
        self.overflows = 0
        self.echoes: list[str] = []
        self.to_us: deque[bytes] = deque()
        self.to_peer: deque[bytes] = deque()
        self.seen: list[bytes] = []
        self.ours = EventChannel(
            send=self.to_peer.append,
            role="client",
            port=5000,
            max_message_size=65_536,
            on_open=self._opened,
            on_message=self.messages.append,
            on_overflow=self._overflow,
        )
        self.peer = RTCSctpTransport(_Dtls(self.to_us.append, "server"))  # type: ignore[arg-type]

    def _opened(self) -> None:
        self.opened += 1

    def _overflow(self) -> None:
        self.overflows += 1

    async def connect(self, label: str = "oai-events") -> RTCDataChannel:
        """Bring the association up and open a channel."""
        await self.peer.start(RTCSctpCapabilities(maxMessageSize=65_536), 5000)
        channel = RTCDataChannel(self.peer, RTCDataChannelParameters(label=label))
        channel.on("message", self.echoes.append)
        await self.carry()
        return channel

    async def carry(self) -> None:
        """Deliver what waits, until nobody has anything to say."""
        for _ in range(200):
            await asyncio.sleep(0)
            if not self.to_us and not self.to_peer:
                return
            while self.to_us:
                packet = self.to_us.popleft()
                self.seen.append(packet)
                self.ours.receive(packet)
            while self.to_peer:
                await self.peer._handle_data(self.to_peer.popleft())

    def packet(self, *chunks: Chunk) -> bytes:
        """A packet from the peer, well-formed as far as the association can tell."""
        body = b"".join(bytes(chunk) for chunk in chunks)

        class Raw(Chunk):
            def __bytes__(self) -> bytes:
                return body

        tag = (
            0 if any(isinstance(chunk, InitChunk) for chunk in chunks) else self.peer._remote_verification_tag
        )
        return serialize_packet(5000, 5000, tag, Raw())


@pytest.fixture
async def pipe() -> Pipe:
    """Not connected yet."""
    return Pipe()


async def close(pipe: Pipe) -> None:
    """End both sides."""
    pipe.ours.close()
    await pipe.peer.stop()


async def test_texts_go_both_ways(pipe: Pipe) -> None:
    channel = await pipe.connect()
    channel.send("hello")
    await pipe.carry()
    pipe.ours.send("welcome")
    await pipe.carry()
    assert (pipe.opened, pipe.messages, pipe.echoes) == (1, ["hello"], ["welcome"])
    await close(pipe)


async def test_another_label_is_accepted_and_ignored(pipe: Pipe) -> None:
    channel = await pipe.connect("telemetry")
    channel.send("hello")
    await pipe.carry()
    assert (channel.readyState, pipe.opened, pipe.messages) == ("open", 0, [])
    await close(pipe)


async def test_binary_messages_are_counted_not_delivered(pipe: Pipe) -> None:
    channel = await pipe.connect()
    channel.send(b"\x00\x01")
    await pipe.carry()
    assert (pipe.messages, pipe.ours.drops["event_binary"]) == ([], 1)
    await close(pipe)


async def _repeat_the_init(pipe: Pipe, deliver: Callable[[bytes], object]) -> list[str]:
    """After ten messages a duplicate of the INIT arrives, then ten long ones; returns what was read."""
    channel = await pipe.connect()
    init = next(p for p in pipe.seen if isinstance(parse_packet(p)[3][0], InitChunk))
    for n in range(20):
        if n == 10:
            deliver(init)
        channel.send(f"{n} " + "x" * 1_000 * n)
        await pipe.carry()
    await close(pipe)
    return [message.partition(" ")[0] for message in pipe.messages]


async def test_without_the_fence_a_duplicate_init_stalls_the_channel(pipe: Pipe) -> None:
    def unfenced(packet: bytes) -> None:
        pipe.ours._contained(pipe.ours._association._handle_data(packet))

    assert len(await _repeat_the_init(pipe, unfenced)) < 20


async def test_a_duplicate_init_is_dropped_and_the_channel_goes_on(pipe: Pipe) -> None:
    assert await _repeat_the_init(pipe, pipe.ours.receive) == [str(n) for n in range(20)]
    assert pipe.ours.drops["sctp_duplicate_init"] == 1


async def test_bad_chunks_cost_the_packet_and_nothing_else(pipe: Pipe) -> None:
    channel = await pipe.connect()

    def raw(kind: int, body: bytes) -> Chunk:
        chunk = Chunk(0, body)
        chunk.type = kind
        return chunk

    not_utf8 = DataChunk(3)
    not_utf8.tsn, not_utf8.stream_id, not_utf8.stream_seq = pipe.peer._local_tsn, 1, 1
    not_utf8.protocol, not_utf8.user_data = 51, b"\xff\xfe"
    hostile = [
        b"",
        bytes(11),
        bytes(40),
        pipe.packet(raw(0, b"\x01")),
        pipe.packet(raw(3, b"\x01\x02")),
        pipe.packet(raw(3, struct.pack("!LLHH", 1, 1, 5, 0))),
        pipe.packet(raw(130, b"\x00\x0d\x00\x08abcd")),
        pipe.packet(raw(192, b"\x00\x00\x00\x01\x00")),
        pipe.packet(InitChunk(), SackChunk()),
        pipe.packet(not_utf8),
    ]
    for packet in hostile:
        pipe.ours.receive(packet)
    assert sum(pipe.ours.drops.values()) >= len(hostile) - 2
    pipe.peer._local_tsn = (pipe.peer._local_tsn + 1) % 2**32
    pipe.peer._outbound_stream_seq[1] = 2
    channel.send("still here")
    await pipe.carry()
    assert pipe.messages == ["still here"]
    await close(pipe)


async def test_a_sack_that_names_millions_of_gaps_is_dropped_unread(pipe: Pipe) -> None:
    await pipe.connect()
    sack = SackChunk()
    sack.cumulative_tsn = pipe.peer._last_received_tsn or 0
    sack.gaps = [(1, 65_535)] * 250
    pipe.ours.receive(pipe.packet(sack))
    assert pipe.ours.drops["sctp_gaps"] == 1
    await close(pipe)


async def test_data_far_beyond_the_window_is_not_kept(pipe: Pipe) -> None:
    await pipe.connect()
    for n in range(3_000):
        chunk = DataChunk(3)
        chunk.tsn, chunk.stream_id, chunk.stream_seq = (pipe.peer._local_tsn + 2 + n) % 2**32, 1, 9
        chunk.protocol, chunk.user_data = 51, b"x" * 1000
        pipe.ours.receive(pipe.packet(chunk))
    kept = sum(len(stream.reassembly) for stream in pipe.ours._association._inbound_streams.values())
    assert kept <= 1_100
    assert pipe.ours.drops["sctp_window"] >= 1_900
    await close(pipe)


async def test_channels_are_bounded(pipe: Pipe) -> None:
    await pipe.connect()
    for n in range(40):
        RTCDataChannel(pipe.peer, RTCDataChannelParameters(label=f"extra {n}"))
    await pipe.carry()
    assert len(pipe.ours._association._data_channels) == MAX_CHANNELS
    assert pipe.ours.drops["sctp_channels"] == 41 - MAX_CHANNELS
    await close(pipe)


async def test_an_abort_ends_the_channel_without_an_error(pipe: Pipe) -> None:
    await pipe.connect()
    pipe.ours.receive(pipe.packet(AbortChunk()))
    pipe.ours.send("nobody there")
    assert pipe.ours.drops == {"event_not_open": 1}
    await close(pipe)


async def test_a_backlog_over_a_mebibyte_is_reported(pipe: Pipe) -> None:
    await pipe.connect()
    for _ in range(40):
        pipe.ours.send("x" * 50_000)
    assert pipe.overflows > 0
    await close(pipe)


async def test_an_event_larger_than_the_peer_takes_is_dropped_and_counted(pipe: Pipe) -> None:
    await pipe.connect()
    pipe.ours.send("x" * 70_000)
    assert pipe.ours.drops["event_too_large"] == 1
    await close(pipe)


async def test_odd_reconfigurations_and_forward_tsns_are_contained(pipe: Pipe) -> None:
    await pipe.connect()
    forward = ForwardTsnChunk()
    forward.cumulative_tsn = (pipe.peer._local_tsn + 5) % 2**32
    forward.streams = [(n, n) for n in range(200)]
    reconfig = ReconfigChunk()
    reconfig.params = [(13, b"\x00" * 3), (16, b"")]
    for chunk in (forward, reconfig):
        pipe.ours.receive(pipe.packet(chunk))
    await close(pipe)


async def test_close_cancels_every_timer_and_may_come_twice(pipe: Pipe) -> None:
    await pipe.connect()
    pipe.ours.send("in flight")
    await asyncio.sleep(0)
    await close(pipe)
    pipe.ours.close()
    association = pipe.ours._association
    handles = (association._t1_handle, association._t2_handle, association._t3_handle)
    assert handles == (None, None, None)
