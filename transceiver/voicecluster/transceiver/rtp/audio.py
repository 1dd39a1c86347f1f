"""The one audio format inside a transceiver: mono, signed 16 bit little endian, 24 kHz, frames of 20 ms."""

from typing import Final

SAMPLE_RATE: Final = 24_000
FRAME_MS: Final = 20
FRAME_SECONDS: Final = 0.02
FRAME_SAMPLES: Final = 480
FRAME_BYTES: Final = 960

RTP_RATE: Final = 48_000
"""RFC 7587 4.1: Opus timestamps count 48 kHz ticks, whatever rate is coded."""
FRAME_TICKS: Final = 960
TICKS_PER_SAMPLE: Final = 2

SILENCE: Final = bytes(FRAME_BYTES)
