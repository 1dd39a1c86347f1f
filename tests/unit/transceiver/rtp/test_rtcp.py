"""RTCP: what is built parses to the same, and no bytes break the parser."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from voicecluster.transceiver.rtp import rtcp
from voicecluster.transceiver.rtp.reports import Reception, RoundTrip

U32 = st.integers(0, 0xFFFFFFFF)
BLOCKS = st.lists(
    st.builds(
        rtcp.ReportBlock,
        ssrc=U32,
        fraction_lost=st.integers(0, 255),
        cumulative_lost=st.integers(-0x800000, 0x7FFFFF),
        highest_sequence=U32,
        jitter=U32,
        last_sr=U32,
        delay_since_sr=U32,
    ),
    max_size=3,
).map(tuple)
REPORTS = st.one_of(
    st.builds(
        rtcp.SenderReport,
        ssrc=U32,
        ntp=st.integers(0, 2**64 - 1),
        rtp=U32,
        packets=U32,
        octets=U32,
        blocks=BLOCKS,
    ),
    st.builds(rtcp.ReceiverReport, ssrc=U32, blocks=BLOCKS),
    st.builds(rtcp.Sdes, ssrc=U32, cname=st.text("abc@.", min_size=0, max_size=40)),
    st.builds(rtcp.Bye, sources=st.lists(U32, max_size=5).map(tuple)),
)


@settings(max_examples=50, deadline=None)
@given(st.lists(REPORTS, max_size=4))
def test_what_is_built_parses_to_the_same(reports: list[rtcp.Report]) -> None:
    assert rtcp.parse(rtcp.build(reports)) == reports


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_rtcp_error(data: bytes) -> None:
    try:
        rtcp.parse(data)
    except rtcp.RtcpError:
        pass


def test_feedback_and_extended_reports_are_skipped() -> None:
    feedback = bytes((0x81, 205, 0, 2)) + bytes(8)
    assert rtcp.parse(feedback + rtcp.build([rtcp.Bye((5,))])) == [rtcp.Bye((5,))]


@pytest.mark.parametrize("cut", range(1, 28))
def test_a_truncated_report_is_an_error(cut: int) -> None:
    whole = rtcp.build([rtcp.SenderReport(1, 2, 3, 4, 5)])
    with pytest.raises(rtcp.RtcpError):
        rtcp.parse(whole[:cut])


def test_a_report_block_counts_loss_since_the_last_one() -> None:
    reception = Reception()
    for number in (65_534, 65_535, 1, 2):  # 0 is lost, over the wrap
        reception.count(number)
    (first,) = reception.blocks(9, 0.0, now=1.0)
    assert (first.fraction_lost, first.cumulative_lost, first.highest_sequence) == (256 // 5, 1, 65_538)
    reception.count(3)
    (second,) = reception.blocks(9, 0.0, now=2.0)
    assert (second.fraction_lost, second.cumulative_lost) == (0, 1)


def test_the_round_trip_is_the_time_since_our_report_less_the_far_ends_delay() -> None:
    trip = RoundTrip(ssrc=1)
    sent = trip.ntp(50.0) >> 16 & 0xFFFFFFFF
    block = rtcp.ReportBlock(1, 0, 0, 0, 0, last_sr=sent, delay_since_sr=round(0.3 * 65536))
    assert trip.take(block, 50.38)
    assert trip.rtt_ms == pytest.approx(80, abs=0.1)


def test_a_report_about_another_source_is_not_ours() -> None:
    trip = RoundTrip(ssrc=1)
    assert not trip.take(rtcp.ReportBlock(2, 0, 7, 0, 0, 0, 0), 50.0)
    assert trip.remote_lost == 0
