"""Counting what comes, and the reports about it."""

import itertools
import struct

import pytest
from voicecluster.cli.client.rtp import FRAME_TICKS, AudioStream

FRAMES = (b"one", b"two", b"three")


def stream(ssrc: int = 1) -> AudioStream:
    return AudioStream(FRAMES, ssrc=ssrc, payload_type=111, cname="me")


def packet(seq: int, *, ssrc: int = 9, payload: bytes = b"opus") -> bytes:
    timestamp = seq * FRAME_TICKS & 0xFFFFFFFF
    return struct.pack("!BBHLL", 0x80, 111, seq & 0xFFFF, timestamp, ssrc) + payload


def test_frames_are_sent_in_turn_with_growing_sequence_and_time() -> None:
    sender = stream()
    packets = [sender.next_packet() for _ in range(4)]
    assert [one[12:] for one in packets] == [b"one", b"two", b"three", b"one"]
    steps = {
        ((b[3] - a[3]) & 0xFF, int.from_bytes(b[4:8], "big") - int.from_bytes(a[4:8], "big"))
        for a, b in itertools.pairwise(packets)
    }
    assert steps == {(1, FRAME_TICKS)}


def test_gaps_are_lost_and_late_packets_fill_them() -> None:
    receiver = stream()
    for seq in (1, 2, 5, 3):
        receiver.receive(packet(seq), seq * 0.02)
    assert (receiver.stats().received, receiver.stats().lost) == (4, 1)


def test_the_longest_loss_is_the_most_packets_missing_in_a_row_since_it_was_watched() -> None:
    receiver = stream()
    for seq in (1, 5, 6, 8):
        receiver.receive(packet(seq), seq * 0.02)
    assert receiver.stats().longest_loss == 3
    receiver.watch_losses()
    receiver.receive(packet(11), 0.22)
    assert receiver.stats().longest_loss == 2


def test_the_sequence_number_may_wrap() -> None:
    receiver = stream()
    for seq in (65534, 65535, 0, 1):
        receiver.receive(packet(seq), 0.0)
    assert (receiver.stats().received, receiver.stats().lost) == (4, 0)


def test_evenly_spaced_packets_have_no_jitter_and_uneven_ones_have() -> None:
    even, uneven = stream(), stream()
    for seq in range(50):
        even.receive(packet(seq), seq * 0.02)
        uneven.receive(packet(seq), seq * 0.02 + 0.004 * (seq % 2))
    assert even.stats().jitter_ms == pytest.approx(0, abs=0.001)
    assert uneven.stats().jitter_ms == pytest.approx(4, rel=0.1)


def test_payloads_are_handed_on_without_extension_and_padding() -> None:
    receiver, got = stream(), []
    receiver.on_payload = lambda arrival, timestamp, payload: got.append(payload)
    header = struct.pack("!BBHLL", 0x80 | 0x10 | 0x20, 111, 1, 0, 9)
    receiver.receive(header + b"\xbe\xde\0\1" + b"ext." + b"opus" + b"\0\0\3", 0.0)
    assert got == [b"opus"]


def test_two_streams_understand_each_others_reports() -> None:
    a, b = stream(1), stream(2)
    for _ in range(10):
        b.receive(a.next_packet(), 1.0)
    dropped = a.next_packet()
    assert dropped
    b.receive(a.next_packet(), 1.0)
    b.receive_report(a.report(1.0, 1000.0), 1.05, 1000.05)
    a.receive_report(b.report(1.25, 1000.25), 1.30, 1000.30)
    stats = a.stats()
    assert stats.remote_lost == 1
    assert stats.report_rtt_ms == pytest.approx(100, abs=1)


@pytest.mark.parametrize(
    "report", [b"", b"\x80", b"\x81\xc8\0\6", b"\x9f\xc9\0\1" + bytes(4), b"\x80\xc8\xff\xff"]
)
def test_a_malformed_report_is_passed_over(report: bytes) -> None:
    a = stream()
    a.receive_report(report, 0.0, 0.0)
    assert a.stats().remote_lost is None


def test_a_truncated_packet_is_not_counted() -> None:
    a = stream()
    a.receive(b"\x80\x6f\0", 0.0)
    assert a.stats().received == 0
