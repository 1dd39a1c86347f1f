"""libopus, as much of it as a call needs, behind two small classes.

Bound directly because concealment (PLC) and in-band FEC are calls on the decoder that libraries above
libopus hide. The library is the system's, else the one that PyAV's wheel ships. A coder is used by one
thread at a time.
"""

import ctypes
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, Protocol, cast

import numpy as np
import numpy.typing as npt
from voicecluster.transceiver.rtp.audio import (
    FRAME_BYTES,
    FRAME_SAMPLES,
    RTP_RATE,
    SAMPLE_RATE,
    SILENCE,
    TICKS_PER_SAMPLE,
)

_APPLICATION_VOIP: Final = 2048
_SET_BITRATE: Final = 4002
_SET_COMPLEXITY: Final = 4010
_SET_INBAND_FEC: Final = 4012
_SET_PACKET_LOSS: Final = 4014
_SET_SIGNAL: Final = 4024
_SIGNAL_VOICE: Final = 3001
_RESET_STATE: Final = 4028

_MAX_PACKET_TICKS: Final = RTP_RATE * 120 // 1000
_MAX_SAMPLES: Final = SAMPLE_RATE * 120 // 1000
_MAX_PAYLOAD: Final = 1275
_HUSH_FRAMES: Final = 10
"""After so many frames below the floor the pause begins, so that a decoder has faded by then."""
_COMFORT_FRAMES: Final = 20
"""In a pause one frame in so many (400 ms) is sent, as Opus's own DTX does."""
_HUSH_PEAK: Final = 16
"""About -66 dBFS."""


class OpusError(Exception):
    """libopus refused: the payload is not Opus, or the library is missing or out of memory."""


class _Library(Protocol):
    """The functions of libopus in use; pointers are ctypes handles."""

    opus_decoder_create: Callable[[int, int, object], int | None]
    opus_decoder_destroy: Callable[[int], None]
    opus_decode: Callable[[int, bytes | None, int, object, int, int], int]
    opus_decoder_ctl: Callable[..., int]
    opus_encoder_create: Callable[[int, int, int, object], int | None]
    opus_encoder_destroy: Callable[[int], None]
    opus_encode: Callable[[int, bytes, int, object, int], int]
    opus_encoder_ctl: Callable[..., int]
    opus_strerror: Callable[[int], bytes]
    opus_get_version_string: Callable[[], bytes]


def _candidates() -> list[str]:
    names = ["libopus.so.0", "libopus.0.dylib"]
    av = importlib.util.find_spec("av")
    if av is not None and av.origin is not None:
        bundled = Path(av.origin).parent.parent / "av.libs"
        names += sorted(str(path) for path in bundled.glob("libopus-*.so*"))
    return names


@cache
def _library() -> _Library:
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        pointer, integer, size = ctypes.c_void_p, ctypes.c_int, ctypes.c_int32
        signatures: dict[str, tuple[list[type], type | None]] = {
            "opus_decoder_create": ([size, integer, pointer], pointer),
            "opus_decoder_destroy": ([pointer], None),
            "opus_decode": ([pointer, ctypes.c_char_p, size, pointer, integer, integer], integer),
            "opus_encoder_create": ([size, integer, integer, pointer], pointer),
            "opus_encoder_destroy": ([pointer], None),
            "opus_encode": ([pointer, ctypes.c_char_p, integer, pointer, size], size),
            "opus_strerror": ([integer], ctypes.c_char_p),
            "opus_get_version_string": ([], ctypes.c_char_p),
        }
        for function, (arguments, result) in signatures.items():
            bound = getattr(library, function)
            bound.argtypes = arguments
            bound.restype = result
        return cast(_Library, library)
    raise OpusError("libopus is missing; install it (Debian: apt-get install libopus0)")


def version() -> str:
    """The library's own words, as `libopus 1.3.1`."""
    return _library().opus_get_version_string().decode()


def _frame_ticks(config: int) -> int:
    if config < 12:  # SILK: 10, 20, 40, 60 ms
        return (480, 960, 1920, 2880)[config & 3]
    if config < 16:  # hybrid: 10, 20 ms
        return (480, 960)[config & 1]
    return (120, 240, 480, 960)[config & 3]  # CELT: 2.5, 5, 10, 20 ms


_TICKS_BY_TOC: Final = tuple(_frame_ticks(toc >> 3) for toc in range(256))


def packet_ticks(payload: bytes) -> int:
    """How long `payload` sounds, in 48 kHz ticks, by its TOC byte (RFC 6716 3.1); 0 if it is no Opus
    packet.
    """
    if not payload:
        return 0
    toc = payload[0]
    code = toc & 3
    if code == 0:
        return _TICKS_BY_TOC[toc]
    if code < 3:
        return 2 * _TICKS_BY_TOC[toc]
    if len(payload) < 2:
        return 0
    ticks = (payload[1] & 0x3F) * _TICKS_BY_TOC[toc]
    return ticks if ticks <= _MAX_PACKET_TICKS else 0


def has_fec(payload: bytes) -> bool:
    """Whether a one-frame packet carries a coarse copy (LBRR) of the frame before it (RFC 6716 4.2.4)."""
    if len(payload) < 2 or payload[0] & 0x83:  # CELT has none; several frames a packet: not worth the parsing
        return False
    silk_frames = max(1, _TICKS_BY_TOC[payload[0]] // 960)
    flags = payload[1]
    if flags >> (7 - silk_frames) & 1:
        return True
    return bool(payload[0] & 4) and 2 * silk_frames <= 6 and bool(flags >> (6 - 2 * silk_frames) & 1)


class Decoder:
    """Opus of any kind to 24 kHz mono s16. One per stream: it remembers what came before, for concealment."""

    __slots__ = ("_library", "_out", "_state", "_view")

    def __init__(self) -> None:
        """Raises OpusError when the library is missing."""
        self._library = _library()
        error = ctypes.c_int()
        state = self._library.opus_decoder_create(SAMPLE_RATE, 1, ctypes.byref(error))
        if state is None:
            raise OpusError(f"no decoder: {_words(error.value)}")
        self._state = state
        self._out = ctypes.create_string_buffer(2 * _MAX_SAMPLES)
        self._view = memoryview(self._out).cast("B")

    def __del__(self) -> None:
        if hasattr(self, "_state"):
            self._library.opus_decoder_destroy(self._state)

    def decode(self, payload: bytes) -> bytes:
        """The audio of one packet, at most 120 ms. Raises OpusError if it is not Opus."""
        return self._run(payload, _MAX_SAMPLES, 0)

    def decode_fec(self, following: bytes, ticks: int) -> bytes:
        """The lost packet before `following`, `ticks` long, from its in-band FEC (concealed where it has
        none).
        """
        return self._run(following, ticks // TICKS_PER_SAMPLE, 1)

    def conceal(self, ticks: int) -> bytes:
        """`ticks` (a multiple of 2.5 ms, at most 120 ms) of plausible sound for what was lost; fades when
        repeated.
        """
        return self._run(None, ticks // TICKS_PER_SAMPLE, 0)

    def reset(self) -> None:
        """Forget the stream: what comes next is another one."""
        self._library.opus_decoder_ctl(ctypes.c_void_p(self._state), _RESET_STATE)

    def _run(self, payload: bytes | None, samples: int, fec: int) -> bytes:
        length = 0 if payload is None else len(payload)
        done = self._library.opus_decode(self._state, payload, length, self._out, samples, fec)
        if done < 0:
            raise OpusError(_words(done))
        return bytes(self._view[: 2 * done])


class Encoder:
    """20 ms frames of 24 kHz mono s16 to Opus for speech, with in-band FEC and pauses (DTX).

    Pauses go by level, not by libopus's DTX: that takes steady tones for background noise and drops them,
    and it spends a whole encoding on finding out.
    """

    __slots__ = ("_dtx", "_hushed", "_library", "_loss_percent", "_out", "_state", "_view")

    def __init__(self, *, bitrate: int, complexity: int, loss_percent: int = 5, dtx: bool = True) -> None:
        """`bitrate` in bit/s, `complexity` 0..10. Raises OpusError when libopus is missing or refuses
        them.
        """
        self._library = _library()
        error = ctypes.c_int()
        state = self._library.opus_encoder_create(SAMPLE_RATE, 1, _APPLICATION_VOIP, ctypes.byref(error))
        if state is None:
            raise OpusError(f"no encoder: {_words(error.value)}")
        self._state = state
        self._out = ctypes.create_string_buffer(_MAX_PAYLOAD)
        self._view = memoryview(self._out).cast("B")
        self._loss_percent = loss_percent
        self._control(_SET_BITRATE, bitrate)
        self._control(_SET_COMPLEXITY, complexity)
        self._control(_SET_SIGNAL, _SIGNAL_VOICE)
        self._control(_SET_INBAND_FEC, 1)
        self._control(_SET_PACKET_LOSS, loss_percent)
        self._dtx = dtx
        self._hushed = 0

    def __del__(self) -> None:
        if hasattr(self, "_state"):
            self._library.opus_encoder_destroy(self._state)

    def encode(self, frame: bytes) -> bytes | None:
        """The packet of one 20 ms frame, None when silence needs none (DTX). Raises OpusError on another
        length.
        """
        if len(frame) != FRAME_BYTES:
            raise OpusError(f"a frame is {FRAME_BYTES} bytes, not {len(frame)}")
        if self._dtx and _is_hushed(frame):
            self._hushed += 1
            if self._hushed > _HUSH_FRAMES and self._hushed % _COMFORT_FRAMES:
                return None
        else:
            self._hushed = 0
        done = self._library.opus_encode(self._state, frame, FRAME_SAMPLES, self._out, _MAX_PAYLOAD)
        if done < 0:
            raise OpusError(_words(done))
        return bytes(self._view[:done])

    def expect_loss(self, percent: int) -> None:
        """Tell the encoder what the far end loses (0..100): more loss, more bits for FEC."""
        if percent != self._loss_percent:
            self._loss_percent = percent
            self._control(_SET_PACKET_LOSS, percent)

    def _control(self, request: int, value: int) -> None:
        result = self._library.opus_encoder_ctl(
            ctypes.c_void_p(self._state), ctypes.c_int(request), ctypes.c_int(value)
        )
        if result < 0:
            raise OpusError(f"setting {request} to {value}: {_words(result)}")


def _is_hushed(frame: bytes) -> bool:
    if frame is SILENCE:
        return True
    samples: npt.NDArray[np.int16] = np.frombuffer(frame, np.int16)
    return int(samples.max()) < _HUSH_PEAK and int(samples.min()) > -_HUSH_PEAK


def _words(code: int) -> str:
    return _library().opus_strerror(code).decode()
