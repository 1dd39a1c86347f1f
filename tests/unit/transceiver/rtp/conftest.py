"""Two ends of a call and the network between them, simulated: nothing waits, and every run is the same."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pylibsrtp
import pytest
from voicecluster.common.config.transceiver import MediaConfig
from voicecluster.transceiver.rtp.session import RtpSession

OPUS = 111


def srtp_pair(key: bytes) -> tuple[pylibsrtp.Session, pylibsrtp.Session]:
    """One direction: its sender's and its receiver's session."""
    policy = pylibsrtp.Policy
    return (
        pylibsrtp.Session(policy(key=key, ssrc_type=policy.SSRC_ANY_OUTBOUND)),
        pylibsrtp.Session(policy(key=key, ssrc_type=policy.SSRC_ANY_INBOUND)),
    )


def voice(frames: int, pitch: float = 140.0) -> list[bytes]:
    """A voice-like sound: harmonics that swell and fade four times a second."""
    t = np.arange(frames * 480) / 24_000
    wave = sum(
        np.sin(2 * np.pi * pitch * k * (1 + 0.02 * np.sin(2 * np.pi * 3 * t)) * t) / k for k in range(1, 12)
    )
    loud = wave * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * t)) * 5000
    sound = loud.astype(np.int16).tobytes()
    return [sound[at : at + 960] for at in range(0, len(sound), 960)]


@dataclass
class Caller:
    """A browser's sending side, bare: packets as one wants them, protected."""

    tx: pylibsrtp.Session
    ssrc: int = 0xC0FFEE
    sequence: int = 65_530
    timestamp: int = 0xFFFFFF00

    def packet(
        self,
        payload: bytes,
        *,
        payload_type: int = OPUS,
        ticks: int = 960,
        extra: bytes = b"",
        first: int = 0x80,
    ) -> bytes:
        """The next packet in order; `extra` stands between header and payload."""
        head = (
            bytes((first, payload_type))
            + self.sequence.to_bytes(2, "big")
            + self.timestamp.to_bytes(4, "big")
        )
        self.sequence = self.sequence + 1 & 0xFFFF
        self.timestamp = self.timestamp + ticks & 0xFFFFFFFF
        return self.tx.protect(head + self.ssrc.to_bytes(4, "big") + extra + payload)


@dataclass
class Network:
    """Delivers datagrams by schedule. `delay(n)` is the transit of the n-th, None for a lost one."""

    delay: Callable[[int], float | None]
    sent: int = 0
    lost: int = 0
    _queue: list[tuple[float, int, bytes]] = field(default_factory=list)

    def send(self, datagram: bytes, now: float) -> None:
        transit = self.delay(self.sent)
        self.sent += 1
        if transit is None:
            self.lost += 1
        else:
            heapq.heappush(self._queue, (now + transit, self.sent, datagram))

    def arrived(self, now: float) -> list[tuple[float, bytes]]:
        out = []
        while self._queue and self._queue[0][0] <= now:
            at, _, datagram = heapq.heappop(self._queue)
            out.append((at, datagram))
        return out


@dataclass
class Call:
    """Our session, and a caller who reaches it over a network."""

    session: RtpSession
    caller: Caller
    from_us: list[bytes]
    caller_rx: pylibsrtp.Session

    def run(
        self, network: Network, payloads: list[bytes | None], *, start: float = 100.0, after: float = 0.5
    ) -> list[list[bytes]]:
        """Send a payload every 20 ms (None: nothing, DTX) and pull 7 ms later; what each pull gave."""
        pulled = []
        for index in range(len(payloads) + round(after / 0.02)):
            now = start + index * 0.02
            payload = payloads[index] if index < len(payloads) else None
            if payload is None:
                self.caller.timestamp = self.caller.timestamp + 960 & 0xFFFFFFFF
            else:
                network.send(self.caller.packet(payload), now)
            for at, datagram in network.arrived(now + 0.007):
                self.session.receive(datagram, at)
            pulled.append(self.session.pull(now + 0.007))
        return pulled


@pytest.fixture
def call() -> Call:
    """A call whose DTLS is up."""
    up, down = b"u" * 30, b"d" * 30
    caller_tx, our_rx = srtp_pair(up)
    our_tx, caller_rx = srtp_pair(down)
    sent: list[bytes] = []
    session = RtpSession(
        local_ssrc=0xABCD, cname="us", payload_type=OPUS, config=MediaConfig(), send=sent.append, now=100.0
    )
    session.start(our_rx, our_tx)
    return Call(session, Caller(caller_tx), sent, caller_rx)


@pytest.fixture
def network() -> Callable[..., Network]:
    """Networks by their kind; seeded."""

    def make(
        *, delay_ms: float = 5.0, jitter_ms: float = 0.0, loss: float = 0.0, drop: set[int] | None = None
    ) -> Network:
        rng = random.Random(7)

        def transit(index: int) -> float | None:
            late = rng.uniform(0, jitter_ms)
            if rng.random() < loss or (drop is not None and index in drop):
                return None
            return (delay_ms + late) / 1000

        return Network(transit)

    return make


@pytest.fixture
def spoken() -> Callable[[int], list[bytes]]:
    """Opus payloads of a voice, one per 20 ms, with in-band FEC as browsers send them."""
    from voicecluster.transceiver.rtp.opus import Encoder

    def make(frames: int) -> list[bytes]:
        encoder = Encoder(bitrate=32_000, complexity=5, loss_percent=10, dtx=False)
        return [payload for frame in voice(frames) if (payload := encoder.encode(frame)) is not None]

    return make
