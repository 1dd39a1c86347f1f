"""The bytes that VoiceCluster's parts exchange, as the Rust crate beside this package reads and writes them.

Routing hints and derived keys (DESIGN section 3), the STUN subset that ICE needs, SPP and RFC 4571 framing. All of it
is pure: no socket, no clock, no randomness. Every reader takes any bytes at all and either returns a value or raises
its one exception, whose `reason` is the label of a counter:

    ValueError
    ├── HintError      a ufrag or call id that does not say a route
    ├── StunError      a datagram that is not STUN we can read
    ├── SppError       a datagram without an SPP header
    └── FramingError   a stream or datagram that RFC 4571 cannot frame

A plain ValueError is the caller's mistake: an argument out of its range.
"""

from voicecluster.wire._wire import (
    SPP_LEN,
    CallKey,
    Deframer,
    FramingError,
    HintError,
    HintKey,
    Opened,
    Route,
    SppError,
    SppHeader,
    StunError,
    StunMessage,
    binding_error,
    binding_indication,
    binding_request,
    binding_success,
    derive_key,
    frame,
    ice_pwd,
    key_id_of,
    parse_stun,
    spp_decode,
    spp_encode,
    stun_username,
)

__all__ = [
    "SPP_LEN",
    "CallKey",
    "Deframer",
    "FramingError",
    "HintError",
    "HintKey",
    "Opened",
    "Route",
    "SppError",
    "SppHeader",
    "StunError",
    "StunMessage",
    "binding_error",
    "binding_indication",
    "binding_request",
    "binding_success",
    "derive_key",
    "frame",
    "ice_pwd",
    "key_id_of",
    "parse_stun",
    "spp_decode",
    "spp_encode",
    "stun_username",
]
