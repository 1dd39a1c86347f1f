"""The jitter buffer by its decisions alone: no sockets, no sound, time as an argument."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from voicecluster.transceiver.rtp.jitter import Comfort, Conceal, Item, JitterBuffer, Packet

TICK = 0.02


def push(
    buffer: JitterBuffer, number: int, now: float, *, timestamp: int | None = None, size: int = 80
) -> None:
    """Packet `number` of a stream that sends one each 20 ms."""
    stamp = number * 960 if timestamp is None else timestamp
    buffer.push(number & 0xFFFF, stamp & 0xFFFFFFFF, bytes([number & 0xFF]) * size, 960, now)


def stream(buffer: JitterBuffer, numbers: range, start: float) -> list[Item]:
    """Push and pull these in order, one each 20 ms."""
    out: list[Item] = []
    for step, number in enumerate(numbers):
        push(buffer, number, start + step * TICK)
        out += buffer.pull(start + step * TICK + 0.001)
    return out


def numbers(items: list[Item]) -> list[int | str]:
    """What came out, short: a packet's number, or what was made up for how many frames."""
    out: list[int | str] = []
    for item in items:
        match item:
            case Packet():
                out.append(item.payload[0])
            case Conceal(ticks, following):
                out.append(
                    f"lost {ticks // 960}" + ("" if following is None else f" before {following.payload[0]}")
                )
            case Comfort(ticks):
                out.append(f"pause {ticks // 960}")
    return out


@pytest.fixture
def buffer() -> JitterBuffer:
    return JitterBuffer(max_hold_ms=120)


def test_packets_in_order_are_played_at_the_next_pull(buffer: JitterBuffer) -> None:
    assert numbers(stream(buffer, range(1, 50), 10.0)) == list(range(1, 50))
    assert buffer.target_ms < 0.1


def test_a_lost_packet_is_concealed_from_the_next_one_and_delays_nothing_after_it(
    buffer: JitterBuffer,
) -> None:
    stream(buffer, range(1, 10), 10.0)
    assert buffer.pull(10.0 + 9 * TICK) == []  # 10 is missing
    push(buffer, 11, 10.0 + 10 * TICK)
    assert numbers(buffer.pull(10.0 + 11 * TICK)) == ["lost 1 before 11", 11]
    push(buffer, 12, 10.0 + 11 * TICK)
    assert numbers(buffer.pull(10.0 + 11 * TICK + 0.001)) == [12]
    assert (buffer.lost, buffer.target_ms < 1) == (1, True)


def test_a_missing_packet_is_held_for_max_hold_at_most(buffer: JitterBuffer) -> None:
    late = [(number * TICK + (0.1 if number % 6 == 0 else 0.0), number) for number in range(1, 60)]
    for at, number in sorted(late):  # a network that reorders by 100 ms teaches the buffer to wait
        push(buffer, number, 10.0 + at)
        buffer.pull(10.0 + at)
    now, lost = 10.0 + 61 * TICK, buffer.lost
    push(buffer, 61, now)
    assert numbers(buffer.pull(now + 0.08)) == [55, 56, 57, 58, 59], "60 may still come"
    assert numbers(buffer.pull(now + 0.121)) == ["lost 1 before 61", 61]
    assert buffer.lost == lost + 1


def test_reordered_packets_come_out_in_order(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 5), 10.0)
    now = 10.0 + 5 * TICK
    push(buffer, 6, now)
    assert buffer.pull(now + 0.001) == []
    push(buffer, 5, now + 0.005)
    assert numbers(buffer.pull(now + 0.006)) == [5, 6]
    assert (buffer.reordered, buffer.lost) == (1, 0)


def test_a_duplicate_is_played_once(buffer: JitterBuffer) -> None:
    push(buffer, 1, 10.0)
    push(buffer, 1, 10.0)
    assert numbers(buffer.pull(10.0)) == [1]
    push(buffer, 1, 10.01)
    assert buffer.pull(10.01) == []
    assert (buffer.duplicates, buffer.late) == (1, 1)


def test_sequence_and_timestamp_wrap(buffer: JitterBuffer) -> None:
    out: list[Item] = []
    for step in range(20):
        number = 65_530 + step
        push(buffer, number, 10.0 + step * TICK, timestamp=0xFFFFE000 + step * 960)
        out += buffer.pull(10.0 + step * TICK)
    assert [item.sequence for item in out if isinstance(item, Packet)] == list(range(65_530, 65_550))
    assert len(out) == 20


def test_the_tail_of_an_utterance_is_not_held_back(buffer: JitterBuffer) -> None:
    out = stream(buffer, range(1, 21), 10.0)
    assert numbers(out)[-1] == 20


def test_a_dtx_pause_adds_no_delay_and_is_filled_in_time(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 11), 10.0)
    now = 10.0 + 10 * TICK
    made = 0
    buffer.push(11, 11 * 960, b"\x68", 960, now)  # comfort packets, 400 ms apart
    for frame in range(1, 60):
        if frame % 20 == 0:
            buffer.push(11 + frame // 20, (11 + frame) * 960, b"\x68", 960, now + frame * TICK)
        made += sum(item.ticks // 960 for item in buffer.pull(now + frame * TICK + 0.001))
    assert made in (58, 59, 60)
    buffer.push(14, (11 + 60) * 960, bytes(80), 960, now + 60 * TICK)
    assert isinstance(buffer.pull(now + 60 * TICK + 0.001)[-1], Packet)
    assert buffer.target_ms < 1
    assert buffer.lost == 0


def test_a_pause_without_any_packet_is_no_loss(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 11), 10.0)
    now = 10.0 + 29 * TICK
    buffer.push(11, 30 * 960, b"\x0b" * 80, 960, now)  # next number, 20 frames later
    assert numbers(buffer.pull(now)) == ["pause 19", 11]
    assert buffer.lost == 0


def test_silence_of_the_network_is_made_up_in_real_time(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 11), 10.0)
    made = 0
    for step in range(10, 60):
        made += len(buffer.pull(10.0 + step * TICK))
    assert 40 <= made <= 46


def test_after_a_stall_everything_comes_at_once_and_nothing_is_lost(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 101), 10.0)
    resumed = 10.0 + 120 * TICK
    for step in range(100, 120):
        buffer.pull(10.0 + step * TICK)
    for number in range(101, 121):
        push(buffer, number, resumed)
    at_once = buffer.pull(resumed + 0.001)
    assert len(at_once) >= 15, "what is overdue waits no longer"
    rest = stream(buffer, range(121, 256), 10.0 + 120 * TICK)
    assert numbers(at_once + rest) == list(range(101, 256))
    assert buffer.target_ms < 1, "the delay is back after the burst"
    assert buffer.lost == 0


def test_the_target_follows_jitter_up_and_down(buffer: JitterBuffer) -> None:
    for step in range(100):
        push(buffer, step, 10.0 + step * TICK + (0.04 if step % 3 else 0.0))
        buffer.pull(10.0 + step * TICK + 0.04)
    assert 35 <= buffer.target_ms <= 45
    stream(buffer, range(100, 250), 10.0 + 100 * TICK)
    assert buffer.target_ms < 1


def test_what_was_made_up_in_an_outage_is_not_made_up_again(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 11), 10.0)
    made = 0
    for step in range(10, 40):
        made += len(buffer.pull(10.0 + step * TICK))
    push(buffer, 41, 10.0 + 40 * TICK)
    out = buffer.pull(10.0 + 41 * TICK)
    gap = out[0]
    assert isinstance(gap, Conceal)
    assert made + gap.ticks // 960 == 30
    assert buffer.lost == 30


@pytest.mark.parametrize("jump", [-48_000 * 60, 48_000 * 60, 0x7FFF_0000, -960])
def test_a_timestamp_jump_stalls_nothing(buffer: JitterBuffer, jump: int) -> None:
    stream(buffer, range(1, 11), 10.0)
    for number in range(11, 30):
        now = 10.0 + (number - 1) * TICK
        push(buffer, number, now, timestamp=number * 960 + jump)
        played = [item for item in buffer.pull(now + 0.001) if isinstance(item, Packet)]
        assert [item.payload[0] for item in played] == [number]


def test_a_sequence_jump_starts_anew(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 11), 10.0)
    push(buffer, 30_000, 10.2, timestamp=11 * 960)
    assert [type(item) for item in buffer.pull(10.201)] == [Packet]
    assert (buffer.resyncs, buffer.lost) == (1, 0)


def test_a_flood_is_bounded_in_packets_and_bytes() -> None:
    buffer = JitterBuffer(max_hold_ms=120, max_packets=50, max_bytes=20_000)
    for number in range(1, 900):
        push(buffer, number, 10.0, size=1000)
        assert len(buffer) <= 50
        assert buffer.held_bytes <= 20_000
    assert buffer.overflowed > 800


def test_packets_that_hold_no_audio_leave_no_gap(buffer: JitterBuffer) -> None:
    stream(buffer, range(1, 11), 10.0)
    buffer.push(11, 3, b"", 0, 10.2)  # a DTMF event has a timestamp of its own
    push(buffer, 12, 10.2, timestamp=11 * 960)
    assert numbers(buffer.pull(10.201)) == [12]
    assert buffer.lost == 0


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 65_535), st.integers(0, 0xFFFFFFFF), st.integers(0, 3), st.floats(0, 0.5)),
        max_size=60,
    )
)
def test_no_stream_of_packets_breaks_it(packets: list[tuple[int, int, int, float]]) -> None:
    buffer, now, played = JitterBuffer(max_hold_ms=60, max_packets=20), 5.0, 0
    for sequence, timestamp, size, passed in packets:
        now += passed
        buffer.push(sequence, timestamp, bytes(size), 960 if size else 0, now)
        played += sum(isinstance(item, Packet) for item in buffer.pull(now))
        assert len(buffer) <= 20
    played += sum(isinstance(item, Packet) for item in buffer.pull(now + 1.0))
    assert played <= len(packets)
    assert len(buffer) == 0, "a second later nothing is held any more"
