"""The data channel of a call: aiortc's SCTP, fenced in.

aiortc's association never really waits for anything but its transport, and ours never makes it wait, so its
coroutines are run to their end where they are called: no task and no queue per packet. What its parser raises
on bad chunks is counted and ends with the packet. Dropped before it sees them, because it would not survive
or would make all other calls pay (all senders are authenticated, so this is one caller against the others):

* INIT once the association is up: a duplicate would reset the receive sequence and stall the channel for
  ever;
* SACKs whose gap blocks name more TSNs than can be outstanding, which it would walk one by one;
* DATA beyond the window it advertised, or with more holes than it can sort cheaply;
* DATA_CHANNEL_OPEN beyond 16 channels.

Private names of aiortc that this relies on are checked when the module is imported.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine

from aiortc import RTCDataChannel, RTCSctpTransport
from aiortc.rtcsctptransport import (
    DATA_CHANNEL_OPEN,
    WEBRTC_DCEP,
    DataChunk,
    ForwardTsnChunk,
    InitChunk,
    RTCSctpCapabilities,
    SackChunk,
    parse_packet,
)

logger = logging.getLogger(__name__)

LABEL = "oai-events"
MAX_BUFFERED = 1 << 20
MAX_CHANNELS = 16
MAX_HOLES = 1_024
MAX_GAP_TSNS = 8_192

_PRIVATE = (
    "_handle_data",
    "_receive_chunk",
    "_receive",
    "_data_channel_receive",
    "_init",
    "_abort",
    "_set_state",
    "_mark_received",
)
for _name in _PRIVATE:
    if not hasattr(RTCSctpTransport, _name):
        raise ImportError(f"aiortc has changed: RTCSctpTransport.{_name} is gone")


class _Dtls:
    """What RTCSctpTransport uses of a DTLS transport."""

    def __init__(self, send: Callable[[bytes], None], role: str) -> None:
        self.state = "connected"
        self._role = role
        self._send = send

    def _register_data_receiver(self, receiver: object) -> None:
        """Packets are handed over by `EventChannel.receive`."""

    def _unregister_data_receiver(self, receiver: object) -> None:
        """See `_register_data_receiver`."""

    async def _send_data(self, data: bytes) -> None:
        """Never waits and never raises: after close it sends nothing."""
        self._send(data)


class _Association(RTCSctpTransport):
    """aiortc's association behind the checks that the module's docstring lists."""

    def __init__(self, dtls: _Dtls, drops: Counter[str]) -> None:
        super().__init__(dtls)  # type: ignore[arg-type]
        self.drops = drops

    def acceptable(self, packet: bytes) -> str | None:
        """The reason why this packet must not reach aiortc; `None` where it may.

        Raises what aiortc's parser raises.
        """
        try:
            chunks = parse_packet(packet)[3]
        except ValueError:
            return "sctp_malformed"
        up = self._association_state in (self.State.ESTABLISHED, self.State.SHUTDOWN_PENDING)
        for chunk in chunks:
            if isinstance(chunk, InitChunk) and up:
                return "sctp_duplicate_init"
            if isinstance(chunk, SackChunk):
                if sum(max(0, end - start) + 1 for start, end in chunk.gaps) > MAX_GAP_TSNS:
                    return "sctp_gaps"
            elif isinstance(chunk, DataChunk | ForwardTsnChunk):
                if self._last_received_tsn is None:
                    return "sctp_early_data"
                if isinstance(chunk, DataChunk) and not self._has_room(chunk):
                    return "sctp_window"
        return None

    def _has_room(self, chunk: DataChunk) -> bool:
        last = self._last_received_tsn
        if last is not None and chunk.tsn == (last + 1) % 2**32:
            return True  # fills the first hole: refusing this one would be a deadlock
        return len(self._sack_misordered) < MAX_HOLES and self._advertised_rwnd >= len(chunk.user_data)

    async def _data_channel_receive(self, stream_id: int, pp_id: int, data: bytes) -> None:
        if (
            pp_id == WEBRTC_DCEP
            and data[:1] == bytes([DATA_CHANNEL_OPEN])
            and len(self._data_channels) >= MAX_CHANNELS
        ):
            self.drops["sctp_channels"] += 1
            return
        await super()._data_channel_receive(stream_id, pp_id, data)


class EventChannel:
    """The `oai-events` channel: text in, text out.

    The caller opens the channel; other labels are accepted and ignored. `on_overflow` is called when a caller
    takes so little of what we send that more than 1 MiB waits; the owner then ends the call.
    """

    def __init__(
        self,
        *,
        send: Callable[[bytes], None],
        role: str,
        port: int,
        max_message_size: int,
        on_open: Callable[[], None],
        on_message: Callable[[str], None],
        on_overflow: Callable[[], None],
    ) -> None:
        self.drops: Counter[str] = Counter()
        self._channel: RTCDataChannel | None = None
        self._closed = False
        self._on_open = on_open
        self._on_message = on_message
        self._on_overflow = on_overflow
        self._association = _Association(_Dtls(send, role), self.drops)
        self._association.on("datachannel", self._opened)
        self._contained(self._association.start(RTCSctpCapabilities(maxMessageSize=max_message_size), port))

    def receive(self, packet: bytes) -> None:
        """One SCTP packet, decrypted. Never raises."""
        if self._closed:
            return
        try:
            reason = self._association.acceptable(packet)
        except Exception:  # aiortc's chunk parsers raise whatever struct and they themselves happen to raise
            reason = "sctp_malformed"
        if reason is not None:
            self.drops[reason] += 1
            return
        self._contained(self._association._handle_data(packet))

    def send(self, text: str) -> None:
        """Queue a text message; dropped while the channel is not open."""
        channel = self._channel
        if channel is None or channel.readyState != "open" or self._closed:
            self.drops["event_not_open"] += 1
            return
        if channel.bufferedAmount > MAX_BUFFERED:
            self.drops["event_overflow"] += 1
            self._on_overflow()
            return
        try:
            channel.send(text)
        except ValueError:
            self.drops["event_too_large"] += 1

    def close(self) -> None:
        """Abort the association and cancel its timers. May be called twice."""
        if not self._closed:
            self._closed = True
            self._contained(self._association.stop())
            self._association.remove_all_listeners()

    def _opened(self, channel: RTCDataChannel) -> None:
        if channel.label != LABEL or (self._channel is not None and self._channel.readyState == "open"):
            return
        self._channel = channel
        channel.on("message", self._received)
        self._on_open()

    def _received(self, message: str | bytes) -> None:
        if isinstance(message, str):
            self._on_message(message)
        else:
            self.drops["event_binary"] += 1

    def _contained(self, coroutine: Coroutine[object, object, None]) -> None:
        """Run one of aiortc's coroutines to its end, here and now."""
        try:
            coroutine.send(None)
        except StopIteration:
            return
        except asyncio.CancelledError:
            raise
        except Exception:  # one caller's bad chunk: this association bears it alone
            self.drops["sctp_error"] += 1
            logger.debug("aiortc refused a packet", exc_info=True)
            return
        coroutine.close()
        raise RuntimeError("aiortc's SCTP waited for something; its transport never does")
