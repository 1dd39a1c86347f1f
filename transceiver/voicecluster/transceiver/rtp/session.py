"""RTP of one call: SRTP in, 24 kHz frames out of `pull()`; frames in, SRTP out. No tasks, threads or queues
per packet.
"""

import logging
import struct
from collections import Counter
from collections.abc import Callable
from typing import Final

import pylibsrtp
from voicecluster.common.config.transceiver import MediaConfig
from voicecluster.transceiver.rtp import packet as rtp
from voicecluster.transceiver.rtp import rtcp
from voicecluster.transceiver.rtp.audio import (
    FRAME_BYTES,
    FRAME_SECONDS,
    FRAME_TICKS,
    RTP_RATE,
    SILENCE,
    TICKS_PER_SAMPLE,
)
from voicecluster.transceiver.rtp.jitter import Conceal, JitterBuffer, Packet
from voicecluster.transceiver.rtp.opus import Decoder, Encoder, OpusError, has_fec, packet_ticks
from voicecluster.transceiver.rtp.reports import Reception, RoundTrip
from voicecluster.transceiver.rtp.stats import RtpStats

log = logging.getLogger(__name__)

_MAX_DATAGRAM: Final = 1472
_STRAGGLER_SECONDS: Final = 2.0
"""After a change of source, packets of the former one are dropped for so long instead of changing back."""
_FADED_FRAMES: Final = 10
"""The decoder's concealment is silent after so many frames: from then on silence costs nothing."""
_CONCEAL_STEP: Final = 120
"""libopus conceals in steps of 2.5 ms."""
_IDLE_SECONDS: Final = 0.06
"""A longer pause between frames played is a pause in the RTP clock too; a late tick is not."""
_MIN_LOSS_PERCENT: Final = 5
_MAX_LOSS_PERCENT: Final = 30


class RtpSession:
    """The media of one call.

    Driving contract: `start` once when DTLS is up; `receive` each datagram; every 20 ms `pull`, then at
    most one `play`, then `rtcp`. Nothing raises for what a peer sent. `now` is the loop's clock and never
    goes back.
    """

    def __init__(
        self,
        *,
        local_ssrc: int,
        cname: str,
        payload_type: int,
        config: MediaConfig,
        send: Callable[[bytes], None],
        now: float,
    ) -> None:
        """`payload_type` is Opus in both directions; `send` takes one protected datagram. Raises OpusError
        (no libopus).
        """
        self._ssrc = local_ssrc
        self._cname = cname
        self._payload_type = payload_type
        self._send = send
        self._rx: pylibsrtp.Session | None = None
        self._tx: pylibsrtp.Session | None = None
        self._decoder = Decoder()
        self._encoder = Encoder(
            bitrate=config.bitrate, complexity=config.complexity, loss_percent=_MIN_LOSS_PERCENT
        )
        self._jitter = JitterBuffer(max_hold_ms=config.max_hold_ms)
        self._pcm = b""
        self._faded = 0
        self._remote: int | None = None
        self._former: int | None = None
        self._former_until = 0.0
        self._remote_left = False
        self._reception = Reception()
        self._round_trip = RoundTrip(local_ssrc)
        self._sequence = local_ssrc * 31 & 0x7FFF
        self._timestamp = local_ssrc * 17 & 0x7FFFFFFF
        self._last_play: float | None = None
        self._talking = False
        self._sent = self._sent_bytes = self._sent_octets = self._unsent = 0
        self._received = self._received_bytes = self._not_audio = self._undecodable = 0
        self._fec_ticks = self._changes = 0
        self._rejected: Counter[str] = Counter()
        self._report_at = now

    def start(self, rx: pylibsrtp.Session, tx: pylibsrtp.Session) -> None:
        """DTLS is up: from now on datagrams can be read and sent."""
        self._rx, self._tx = rx, tx

    def receive(self, datagram: bytes, now: float) -> bool:
        """Take one SRTP or SRTCP datagram. True if it authenticated and is no replay, whatever came of it
        then.
        """
        if self._rx is None:
            self._rejected["early"] += 1
            return False
        if not 12 <= len(datagram) <= _MAX_DATAGRAM:
            self._rejected["length"] += 1
            return False
        control = rtp.is_rtcp(datagram)
        try:
            plain = self._rx.unprotect_rtcp(datagram) if control else self._rx.unprotect(datagram)
        except pylibsrtp.Error as error:
            self._rejected[_reason(error)] += 1
            return False
        if control:
            self._take_reports(plain, now)
        else:
            self._take_media(plain, now)
        return True

    def _take_media(self, plain: bytes, now: float) -> None:
        try:
            packet = rtp.parse(plain)
        except rtp.RtpError:
            self._rejected["malformed"] += 1
            return
        if packet.ssrc != self._remote and not self._change_source(packet.ssrc, now):
            return
        self._received += 1
        self._received_bytes += len(plain)
        self._remote_left = False
        ticks = packet_ticks(packet.payload) if packet.payload_type == self._payload_type else 0
        if not ticks:
            self._not_audio += 1
        self._reception.count(packet.sequence)
        # What is no audio still has its place in the sequence: without it there would seem to be a loss.
        self._jitter.push(packet.sequence, packet.timestamp, packet.payload if ticks else b"", ticks, now)

    def _change_source(self, ssrc: int, now: float) -> bool:
        """Follow the caller to another SSRC; False for a straggler of the former one."""
        if ssrc == self._former and now < self._former_until:
            self._rejected["former_source"] += 1
            return False
        if self._remote is not None:
            self._changes += 1
            self._former, self._former_until = self._remote, now + _STRAGGLER_SECONDS
            self._jitter.reset()
            self._decoder.reset()
            self._reception.restart()
        self._remote = ssrc
        return True

    def _take_reports(self, plain: bytes, now: float) -> None:
        try:
            reports = rtcp.parse(plain)
        except rtcp.RtcpError:
            self._rejected["malformed"] += 1
            return
        for report in reports:
            match report:
                case rtcp.SenderReport():
                    self._reception.sender_report(report, now)
                    self._take_blocks(report.blocks, now)
                case rtcp.ReceiverReport():
                    self._take_blocks(report.blocks, now)
                case rtcp.Bye():
                    # Browsers say BYE when a track is replaced and go on: packets after it are heard as ever.
                    self._remote_left = self._remote in report.sources or self._remote_left
                case rtcp.Sdes():
                    pass

    def _take_blocks(self, blocks: tuple[rtcp.ReportBlock, ...], now: float) -> None:
        for block in blocks:
            if self._round_trip.take(block, now):
                percent = block.fraction_lost * 100 // 256
                self._encoder.expect_loss(max(_MIN_LOSS_PERCENT, min(_MAX_LOSS_PERCENT, percent)))

    def pull(self, now: float) -> list[bytes]:
        """The caller's 20 ms frames due by `now`: usually one, none while one may still come, several after
        a stall.
        """
        frames: list[bytes] = []
        for item in self._jitter.pull(now):
            if isinstance(item, Packet):
                self._faded = 0
                try:
                    sound = self._decoder.decode(item.payload)
                except OpusError:
                    self._undecodable += 1
                    sound = self._make_up(item.ticks)
            elif isinstance(item, Conceal):
                sound = self._restore(item)
            elif self._pcm:
                sound = _pause(item.ticks)
            else:
                frames += [SILENCE] * (item.ticks // FRAME_TICKS)
                continue
            if not self._pcm and len(sound) == FRAME_BYTES:
                frames.append(sound)
            else:
                self._cut(sound, frames)
        return frames

    def _cut(self, sound: bytes, frames: list[bytes]) -> None:
        sound = self._pcm + sound
        whole = len(sound) - len(sound) % FRAME_BYTES
        frames.extend(sound[at : at + FRAME_BYTES] for at in range(0, whole, FRAME_BYTES))
        self._pcm = sound[whole:]

    def _restore(self, gap: Conceal) -> bytes:
        following = gap.following
        if following is None or not has_fec(following.payload) or gap.ticks < following.ticks:
            return self._make_up(gap.ticks)
        before = self._make_up(gap.ticks - following.ticks)
        self._faded = 0
        try:
            sound = self._decoder.decode_fec(following.payload, following.ticks)
        except OpusError:
            return before + self._make_up(following.ticks)
        self._fec_ticks += following.ticks
        return before + sound

    def _make_up(self, ticks: int) -> bytes:
        """`ticks` of concealment, faded out after a while."""
        sound = []
        while ticks > 0:
            step = min(ticks, FRAME_TICKS)
            ticks -= step
            self._faded += 1
            if self._faded > _FADED_FRAMES or step % _CONCEAL_STEP:
                sound.append(_pause(step))
            else:
                sound.append(self._decoder.conceal(step))
        return b"".join(sound) if len(sound) != 1 else sound[0]

    def play(self, frame: bytes, now: float) -> None:
        """Encode, protect and send one 20 ms frame. After a pause the RTP clock has gone on with `now`."""
        if self._last_play is None or now - self._last_play > _IDLE_SECONDS:
            paused = 1 if self._last_play is None else max(1, round((now - self._last_play) / FRAME_SECONDS))
            self._timestamp += paused * FRAME_TICKS
            self._talking = False
        else:
            self._timestamp += FRAME_TICKS
        self._last_play = now
        if self._tx is None:
            self._unsent += 1
            return
        try:
            payload = self._encoder.encode(frame)
        except OpusError:
            payload = None
        if payload is None:
            self._talking = False
            self._unsent += 1
            return
        self._sequence = self._sequence + 1 & 0xFFFF
        head = rtp.header(
            self._payload_type,
            marker=not self._talking,
            sequence=self._sequence,
            timestamp=self._timestamp & 0xFFFFFFFF,
            ssrc=self._ssrc,
        )
        self._talking = True
        try:
            datagram = self._tx.protect(head + payload)
        except pylibsrtp.Error as error:
            self._rejected[f"send_{_reason(error)}"] += 1
            return
        self._sent += 1
        self._sent_octets += len(payload)
        self._sent_bytes += len(datagram)
        self._send(datagram)

    def rtcp(self, now: float) -> None:
        """Send a report with our name when one is due (RFC 3550 6.2, about every 2.5 s, spread over
        calls).
        """
        if self._tx is None or now < self._report_at:
            return
        spread = (self._ssrc + self._sent) % 97 / 97
        self._report_at = now + 2.0 + spread
        blocks = self._reception.blocks(self._remote, self._jitter.jitter_ms, now)
        report: rtcp.Report = rtcp.ReceiverReport(self._ssrc, blocks)
        if self._last_play is not None:
            ticks = round((now - self._last_play) * RTP_RATE)
            report = rtcp.SenderReport(
                self._ssrc,
                self._round_trip.ntp(now),
                self._timestamp + ticks & 0xFFFFFFFF,
                self._sent & 0xFFFFFFFF,
                self._sent_octets & 0xFFFFFFFF,
                blocks,
            )
        try:
            datagram = self._tx.protect_rtcp(rtcp.build([report, rtcp.Sdes(self._ssrc, self._cname)]))
        except (pylibsrtp.Error, struct.error) as error:
            self._rejected["send_report"] += 1
            log.debug("no report sent", extra={"cause": type(error).__name__})
            return
        self._send(datagram)

    def stats(self) -> RtpStats:
        """What happened so far."""
        jitter = self._jitter
        return RtpStats(
            received=self._received,
            received_bytes=self._received_bytes,
            lost=jitter.lost,
            late=jitter.late,
            duplicates=jitter.duplicates,
            reordered=jitter.reordered,
            overflowed=jitter.overflowed,
            resyncs=jitter.resyncs + self._changes,
            jitter_ms=jitter.jitter_ms,
            buffer_ms=jitter.target_ms,
            concealed=(jitter.concealed_ticks - self._fec_ticks) // FRAME_TICKS,
            fec=self._fec_ticks // FRAME_TICKS,
            comfort=jitter.paused_ticks // FRAME_TICKS,
            undecodable=self._undecodable,
            not_audio=self._not_audio,
            rejected=dict(self._rejected),
            sent=self._sent,
            sent_bytes=self._sent_bytes,
            unsent=self._unsent,
            rtt_ms=self._round_trip.rtt_ms,
            remote_lost=self._round_trip.remote_lost,
            remote_jitter_ms=self._round_trip.remote_jitter_ms,
            remote_left=self._remote_left,
        )


def _pause(ticks: int) -> bytes:
    return SILENCE if ticks == FRAME_TICKS else bytes(2 * (ticks // TICKS_PER_SAMPLE))


def _reason(error: pylibsrtp.Error) -> str:
    words = str(error)
    if words.startswith("authentication"):
        return "authentication"
    return "replay" if words.startswith("replay") or "too old" in words else "srtp"
