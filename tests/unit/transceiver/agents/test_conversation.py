"""A caller talks to an agent over SRTP, a simulated network and simulated time."""

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pylibsrtp
import pytest
from voicecluster.common.config.transceiver import MediaConfig
from voicecluster.transceiver.agents.registry import create
from voicecluster.transceiver.realtime.session import RealtimeSession
from voicecluster.transceiver.rtp.audio import SILENCE
from voicecluster.transceiver.rtp.session import RtpSession

QUIET = bytes(960)
START = 100.0


def srtp(key: bytes, kind: int) -> pylibsrtp.Session:
    return pylibsrtp.Session(pylibsrtp.Policy(key=key, ssrc_type=kind))


@dataclass
class Wire:
    """One direction: seeded loss, delay and jitter."""

    loss: float
    jitter_ms: float
    rng: random.Random
    waiting: list[tuple[float, int, bytes]] = field(default_factory=list)
    count: int = 0

    def send(self, datagram: bytes, now: float) -> None:
        self.count += 1
        transit = 0.01 + self.rng.uniform(0, self.jitter_ms) / 1000
        if self.rng.random() >= self.loss:
            heapq.heappush(self.waiting, (now + transit, self.count, datagram))

    def arrived(self, now: float) -> list[tuple[float, bytes]]:
        out = []
        while self.waiting and self.waiting[0][0] <= now:
            at, _, datagram = heapq.heappop(self.waiting)
            out.append((at, datagram))
        return out


class Conversation:
    """The caller's side is an RtpSession too; it sends and hears one frame every 20 ms."""

    def __init__(self, agent: str, *, loss: float = 0.0, jitter_ms: float = 0.0) -> None:
        self.up, self.down = (Wire(loss, jitter_ms, random.Random(seed)) for seed in (1, 2))
        self.now = START
        self.events: list[tuple[float, str]] = []
        self.heard: list[tuple[float, bytes]] = []
        ours, theirs = b"o" * 30, b"t" * 30
        policy = pylibsrtp.Policy
        self.caller = self._end(1, self.up)
        self.us = self._end(2, self.down)
        self.caller.start(srtp(ours, policy.SSRC_ANY_INBOUND), srtp(theirs, policy.SSRC_ANY_OUTBOUND))
        self.us.start(srtp(theirs, policy.SSRC_ANY_INBOUND), srtp(ours, policy.SSRC_ANY_OUTBOUND))
        self.session = RealtimeSession(
            call_id="rtc_aconversation",
            model=agent,
            session_params=None,
            agent=create(agent),
            emit=lambda event: self.events.append((self.now, str(event["type"]))),
            play=self.us.play,
        )
        self.session.opened(self.now)

    def _end(self, ssrc: int, wire: Wire) -> RtpSession:
        return RtpSession(
            local_ssrc=ssrc,
            cname=f"end {ssrc}",
            payload_type=111,
            config=MediaConfig(),
            send=lambda datagram: wire.send(datagram, self.now),
            now=self.now,
        )

    def say(self, frames: list[bytes]) -> None:
        """The caller says these, one each 20 ms; what comes back goes to `heard`."""
        for frame in frames:
            self.caller.play(frame, self.now)
            self.caller.rtcp(self.now)
            for at, datagram in self.up.arrived(self.now + 0.013):
                assert self.us.receive(datagram, at)
            self.now += 0.013
            self.session.tick(self.us.pull(self.now), self.now)
            self.us.rtcp(self.now)
            self.now += 0.007
            for at, datagram in self.down.arrived(self.now):
                assert self.caller.receive(datagram, at)
            self.heard += [(self.now, frame) for frame in self.caller.pull(self.now)]

    def sound(self, since: float = 0.0) -> list[bytes]:
        """What the caller heard after `since`."""
        return [frame for at, frame in self.heard if at >= since]

    def at(self, kind: str) -> list[float]:
        """When such events were emitted, seconds after the start."""
        return [at - START for at, name in self.events if name == kind]


def samples(frames: list[bytes]) -> npt.NDArray[np.float64]:
    return np.frombuffer(b"".join(frames), np.int16).astype(np.float64)


def likeness(said: list[bytes], heard: list[bytes]) -> float:
    """The best normalised correlation of `said` anywhere in `heard`."""
    a, b = samples(said), samples(heard)
    size = 1 << (len(a) + len(b)).bit_length()
    product = np.fft.irfft(np.fft.rfft(b, size) * np.conj(np.fft.rfft(a, size)), size)[: len(b) - len(a)]
    energy = (
        np.convolve(b**2, np.ones(len(a)), "valid")[: len(product)] if len(a) < 2000 else _running(b, len(a))
    )
    return float(np.max(product / np.sqrt(np.maximum(energy[: len(product)], 1) * np.sum(a**2))))


def _running(sound: npt.NDArray[np.float64], width: int) -> npt.NDArray[np.float64]:
    total = np.concatenate([[0.0], np.cumsum(sound**2)])
    return total[width:] - total[:-width]


def loudest(frames: list[bytes]) -> float:
    return float(np.abs(samples(frames)).max())


def test_the_parrot_says_back_what_was_said(speak: Callable[[str], list[bytes]]) -> None:
    call = Conversation("parrot")
    speech = speak("The quick brown fox jumps over the lazy dog.")
    call.say([QUIET] * 50 + speech)
    call.heard.clear()
    call.say([QUIET] * (len(speech) + 150))
    assert likeness(speech, call.sound()) > 0.8
    assert call.events[-1][1] == "output_audio_buffer.stopped"


@pytest.mark.parametrize(("loss", "jitter_ms"), [(0.02, 0), (0.0, 30), (0.05, 20)])
def test_it_does_so_over_bad_networks(
    speak: Callable[[str], list[bytes]], loss: float, jitter_ms: float
) -> None:
    call = Conversation("parrot", loss=loss, jitter_ms=jitter_ms)
    speech = speak("She sells sea shells by the sea shore.")
    call.say([QUIET] * 50 + speech)
    call.heard.clear()
    call.say([QUIET] * (len(speech) + 200))
    assert likeness(speech[:50], call.sound()) > 0.6
    assert len(call.at("output_audio_buffer.stopped")) == 1


@pytest.mark.parametrize("network", [{}, {"loss": 0.02}, {"jitter_ms": 30}], ids=str)
def test_interruption_silences_it_within_200_ms_of_the_first_sample(speak, network: dict[str, float]) -> None:
    call = Conversation("parrot", **network)
    speech = speak(
        "This is a rather long sentence, so that there is something to interrupt, and it goes on and on."
    )
    call.say([QUIET] * 50 + speech + [QUIET] * 80)
    assert loudest(call.sound(call.now - 0.4)) > 2000, "it is speaking"
    began = call.now
    call.say(speak("Stop it.")[:30])
    assert loudest(call.sound(began + 0.2)) < 100, "silent from 200 ms on"
    assert call.at("output_audio_buffer.cleared")


def test_a_conversation_of_half_a_minute_has_its_turns(speak: Callable[[str], list[bytes]]) -> None:
    call = Conversation("parrot", loss=0.01, jitter_ms=10)
    sentences = ["Good morning.", "How do you do?", "Fine weather today.", "See you soon.", "Goodbye then."]
    for sentence in sentences:
        speech = speak(sentence)
        call.say(speech + [QUIET] * (300 - len(speech)))
    assert call.now - START == pytest.approx(30)
    for kind in ("input_audio_buffer.speech_started", "response.created", "output_audio_buffer.stopped"):
        assert len(call.at(kind)) == 5
    assert not call.at("output_audio_buffer.cleared")


def test_the_echo_comes_back_whole_and_soon(speak: Callable[[str], list[bytes]]) -> None:
    call = Conversation("echo")
    speech = speak("Every frame straight back to me, please.")
    call.say(speech + [QUIET] * 20)
    assert likeness(speech, call.sound() + [SILENCE] * 50) > 0.8
    heard = next(at for at, frame in call.heard if loudest([frame]) > 1000)
    spoken = next(index for index, frame in enumerate(speech) if loudest([frame]) > 1000) * 0.02
    assert heard - START - spoken <= 0.08
    assert call.events == [(START, "session.created")]


def test_a_silent_agent_sends_nothing_but_reports() -> None:
    call = Conversation("parrot")
    call.say([QUIET] * 500)
    assert call.us.stats().sent == 0
    assert 3 <= call.down.count <= 5


def test_the_far_end_hears_no_stretched_sound_after_the_answer(speak: Callable[[str], list[bytes]]) -> None:
    call = Conversation("parrot")
    call.say(speak("Short one.") + [QUIET] * 150)
    assert loudest(call.sound(call.now - 0.4)) < 50
    assert call.caller.stats().lost == 0
