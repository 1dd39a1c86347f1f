"""One call's media against a simulated caller and network."""

import itertools
import os
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from voicecluster.common.config.transceiver import MediaConfig
from voicecluster.transceiver.rtp import packet as rtp
from voicecluster.transceiver.rtp import rtcp
from voicecluster.transceiver.rtp.audio import SILENCE
from voicecluster.transceiver.rtp.opus import Decoder
from voicecluster.transceiver.rtp.session import RtpSession

Spoken = Callable[[int], list[bytes]]


def delays_ms(pulled: list[list[bytes]]) -> list[int]:
    """How long after its sending each frame was heard, 20 ms steps, by counting frames."""
    heard = 0
    out = []
    for step, frames in enumerate(pulled):
        for _ in frames:
            out.append((step - heard) * 20 + 7)
            heard += 1
    return out


def decoded(payloads: list[bytes]) -> list[bytes]:
    decoder = Decoder()
    return [decoder.decode(payload) for payload in payloads]


def test_a_clean_stream_is_heard_whole_and_without_added_delay(call, network, spoken: Spoken) -> None:
    payloads = spoken(200)
    pulled = call.run(network(), payloads)
    assert [frame for frames in pulled for frame in frames][:200] == decoded(payloads)
    assert max(delays_ms(pulled)[:200]) <= 27


def test_one_lost_packet_stalls_nothing_and_leaves_no_delay(call, network, spoken: Spoken) -> None:
    pulled = call.run(network(drop={100}), spoken(200))
    late = delays_ms(pulled)[:200]
    assert max(late) <= 47, "the lost frame itself waits for its successor"
    assert max(late[102:]) <= 27, "and nothing after it"
    stats = call.session.stats()
    assert (stats.lost, stats.fec) == (1, 1)


def test_two_per_cent_loss_conceals_no_more_than_was_lost(call, network, spoken: Spoken) -> None:
    wire = network(loss=0.02)
    pulled = call.run(wire, spoken(1000), after=0.02)
    stats = call.session.stats()
    assert wire.lost > 10
    assert stats.concealed + stats.fec <= 1.2 * wire.lost
    assert stats.fec >= 0.7 * wire.lost
    assert float(np.percentile(delays_ms(pulled), 95)) <= 60


def test_thirty_milliseconds_of_jitter_cost_less_than_eighty(call, network, spoken: Spoken) -> None:
    pulled = call.run(network(jitter_ms=30), spoken(600), after=0.02)
    assert float(np.percentile(delays_ms(pulled), 95)) <= 80
    assert call.session.stats().lost == 0


def test_the_tail_of_an_utterance_is_heard_before_the_next_packet(call, network, spoken: Spoken) -> None:
    pulled = call.run(network(), spoken(50), after=0.1)
    assert sum(len(frames) for frames in pulled[:51]) == 50


def test_dtx_adds_no_delay(call, network, spoken: Spoken) -> None:
    speech = spoken(100)
    comfort: list[bytes | None] = [None] * 19 + [b"\x68\xff\xfe"]
    pulled = call.run(network(), [*speech[:50], *comfort * 5, *speech[50:]])
    heard = sum(len(frames) for frames in pulled[:150])
    assert 140 <= heard <= 150, "the pause is heard as time"
    assert [len(frames) for frames in pulled[152:200]] == [1] * 48
    assert call.session.stats().buffer_ms < 5


def test_a_backward_timestamp_is_heard_on(call, network, spoken: Spoken) -> None:
    speech = spoken(100)
    call.run(network(), speech[:50], after=0)
    call.caller.timestamp = 12_345
    pulled = call.run(network(), speech[50:], start=101.0, after=0)
    assert sum(map(len, pulled)) >= 49


def test_a_new_source_is_heard_at_once_and_stragglers_of_the_old_do_not_win_it_back(
    call, network, spoken: Spoken
) -> None:
    speech = spoken(100)
    call.run(network(), speech[:50], after=0)
    straggler = call.caller.packet(speech[49])
    call.caller.ssrc, call.caller.sequence = 0xFEED, 7
    assert call.session.receive(call.caller.packet(speech[50]), 101.0)
    assert call.session.receive(straggler, 101.001)
    assert len(call.session.pull(101.01)) == 1
    assert call.session.stats().rejected == {"former_source": 1}
    pulled = call.run(network(), speech[51:], start=101.02, after=0)
    assert [len(frames) for frames in pulled] == [1] * 49


def test_bye_does_not_end_hearing(call, network, spoken: Spoken) -> None:
    speech = spoken(60)
    call.run(network(), speech[:30], after=0)
    bye = call.caller.tx.protect_rtcp(
        rtcp.build([rtcp.ReceiverReport(call.caller.ssrc), rtcp.Bye((call.caller.ssrc,))])
    )
    assert call.session.receive(bye, 100.6)
    assert call.session.stats().remote_left
    pulled = call.run(network(), speech[30:], start=100.6, after=0)
    assert sum(map(len, pulled)) == 30
    assert not call.session.stats().remote_left


@pytest.mark.parametrize(
    ("first", "extra"),
    [
        (0x90, b"\xbe\xde\x00\x00"),
        (0x90, b"\xbe\xde\x00\x01\x10\xff\x00\x00"),
        (0x90, b"\x10\x00\x00\x03" + bytes(12)),
        (0x90, b"\xbe\xde\x00\x20" + b"\xff" * 128),
        (0x83, bytes(12)),
    ],
    ids=["empty", "one byte form", "two byte form", "long and senseless", "contributing sources"],
)
def test_extensions_and_csrcs_of_any_form_are_read_over(
    call, spoken: Spoken, first: int, extra: bytes
) -> None:
    for index, payload in enumerate(spoken(5)):
        assert call.session.receive(call.caller.packet(payload, first=first, extra=extra), 100 + index * 0.02)
        assert len(call.session.pull(100 + index * 0.02)) == 1


def test_padding_is_taken_off(call, spoken: Spoken) -> None:
    (payload,) = spoken(1)
    assert call.session.receive(call.caller.packet(payload + b"\x00\x00\x03", first=0xA0), 100.0)
    assert call.session.pull(100.0) == decoded([payload])


def test_other_payload_types_are_counted_and_leave_no_gap(call, spoken: Spoken) -> None:
    speech = spoken(20)
    for index, payload in enumerate(speech):
        now = 100 + index * 0.02
        if index == 10:
            assert call.session.receive(
                call.caller.packet(b"\x05\x0a\x00\xa0", payload_type=126, ticks=0), now
            )
        assert call.session.receive(call.caller.packet(payload), now)
        assert len(call.session.pull(now)) == 1
    assert (call.session.stats().not_audio, call.session.stats().lost) == (1, 0)


def test_replays_and_forgeries_are_counted_and_change_nothing(call, spoken: Spoken) -> None:
    packet, other = (call.caller.packet(payload) for payload in spoken(2))
    assert call.session.receive(packet, 100.0)
    assert not call.session.receive(packet, 100.0)
    assert not call.session.receive(other[:-1] + bytes((other[-1] ^ 1,)), 100.0)
    assert call.session.stats().rejected == {"replay": 1, "authentication": 1}
    assert len(call.session.pull(100.0)) == 1


@pytest.mark.parametrize("length", [0, 1, 2, 11, 12, 28, 1472, 1501, 9000])
@pytest.mark.parametrize("second", [0x6F, 0xC8])
def test_hostile_datagrams_of_any_length_are_dropped(call, length: int, second: int) -> None:
    datagram = (bytes((0x80, second)) + os.urandom(9000))[:length]
    assert not call.session.receive(datagram, 100.0)
    assert sum(call.session.stats().rejected.values()) == 1


def test_authentic_garbage_harms_nothing(call, spoken: Spoken) -> None:
    for index, payload in enumerate((b"\xff", b"\xff\xff\xff", b"", b"\x00" * 5, b"\x0b")):
        assert call.session.receive(call.caller.packet(payload), 100 + index * 0.02)
        call.session.pull(100 + index * 0.02)
    for payload in (b"\x00\x00\x05", bytes((255,)) * 3):
        call.session.receive(call.caller.packet(payload, first=0xA0), 100.1)
    call.session.receive(call.caller.tx.protect_rtcp(bytes((0x9F, 200, 0, 1)) + bytes(8)), 100.1)
    speech = spoken(20)
    heard = 0
    for index, payload in enumerate(speech):
        call.session.receive(call.caller.packet(payload), 100.12 + index * 0.02)
        heard += len(call.session.pull(100.121 + index * 0.02))
    assert heard >= 20


def test_an_unpulled_flood_is_bounded(call, spoken: Spoken) -> None:
    payload = spoken(1)[0]
    for index in range(3000):
        call.session.receive(call.caller.packet(payload), 100 + index * 0.0001)
    assert len(call.session.pull(101.0)) <= 250
    assert call.session.stats().overflowed >= 2700


def test_before_dtls_nothing_is_believed_and_nothing_sent() -> None:
    sent: list[bytes] = []
    session = RtpSession(
        local_ssrc=1, cname="us", payload_type=111, config=MediaConfig(), send=sent.append, now=100.0
    )
    assert not session.receive(b"\x80" * 100, 100.0)
    session.play(SILENCE, 100.0)
    session.rtcp(200.0)
    assert (sent, session.pull(101.0), session.stats().unsent) == ([], [], 1)


def test_what_is_played_reaches_the_caller_in_sequence_with_our_own_clock(call) -> None:
    loud = (np.sin(np.arange(480) / 5) * 9000).astype(np.int16).tobytes()
    for index in range(10):
        call.session.play(loud, 100 + index * 0.02 + (0.012 if index == 4 else 0))
    for index in range(5):
        call.session.play(loud, 103 + index * 0.02)
    packets = [rtp.parse(call.caller_rx.unprotect(datagram)) for datagram in call.from_us]
    assert [later.sequence - packets[0].sequence for later in packets] == list(range(15))
    steps = [(after.timestamp - before.timestamp) / 960 for before, after in itertools.pairwise(packets)]
    assert steps == [1] * 9 + [141] + [1] * 4, "the pause is in the timestamps"
    assert [index for index, packet in enumerate(packets) if packet.marker] == [0, 10], (
        "each talk spurt is marked"
    )


def test_reports_are_sent_seldom_and_tell_loss_and_round_trip(call, network, spoken: Spoken) -> None:
    call.run(network(drop={20, 30, 40}), spoken(100))
    loud = (np.sin(np.arange(480) / 5) * 9000).astype(np.int16).tobytes()
    call.session.play(loud, 102.6)
    for step in range(250):
        call.session.rtcp(102.6 + step * 0.02)
    reports = [rtcp.parse(call.caller_rx.unprotect_rtcp(d)) for d in call.from_us if rtp.is_rtcp(d)]
    assert 2 <= len(reports) <= 3
    sender, name = reports[0]
    assert isinstance(sender, rtcp.SenderReport)
    assert name == rtcp.Sdes(0xABCD, "us")
    assert (sender.blocks[0].cumulative_lost, sender.packets) == (3, 1)
    block = rtcp.ReportBlock(0xABCD, 128, 9, 0, 960, last_sr=sender.ntp >> 16 & 0xFFFFFFFF, delay_since_sr=0)
    reply = call.caller.tx.protect_rtcp(rtcp.build([rtcp.ReceiverReport(call.caller.ssrc, (block,))]))
    assert call.session.receive(reply, 102.65)
    stats = call.session.stats()
    assert stats.rtt_ms == pytest.approx(50, abs=0.1)
    assert (stats.remote_lost, stats.remote_jitter_ms) == (9, 20)


def test_packets_of_sixty_milliseconds_come_out_as_frames_of_twenty(call) -> None:
    payload = b"\x4b\x03" + bytes(60)  # three frames of 20 ms, SILK, constant rate
    for index in range(10):
        assert call.session.receive(call.caller.packet(payload, ticks=2880), 100 + index * 0.06)
        frames = call.session.pull(100 + index * 0.06)
        assert [len(frame) for frame in frames] == [960] * 3


class Open:
    """An SRTP session without cryptography: whatever comes is authentic."""

    def unprotect(self, datagram: bytes) -> bytes:
        return datagram

    unprotect_rtcp = protect = protect_rtcp = unprotect


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"\x80\x6f", b"\x90\x6f", b"\xb1\xef", b"\x81\xc8", b"\x80\xc9", b"\x82\xcb"]),
            st.binary(min_size=10, max_size=80),
            st.floats(0, 0.3),
        ),
        max_size=30,
    )
)
def test_nothing_authentic_raises(datagrams: list[tuple[bytes, bytes, float]]) -> None:
    sent: list[bytes] = []
    session = RtpSession(
        local_ssrc=1, cname="us", payload_type=111, config=MediaConfig(), send=sent.append, now=100.0
    )
    session.start(Open(), Open())
    now = 100.0
    for head, rest, passed in datagrams:
        now += passed
        assert session.receive(head + rest, now)
        assert all(len(frame) == 960 for frame in session.pull(now))
        session.rtcp(now)
