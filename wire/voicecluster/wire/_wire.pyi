"""The Rust crate's functions as Python sees them; import them from `voicecluster.wire`."""

from typing import Final, Literal, final

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

SPP_LEN: Final = 38
"""Bytes of an SPP header; the payload of a datagram is `datagram[SPP_LEN:]`."""

class HintError(ValueError):
    """A ufrag or call id that does not say a route."""

    reason: Literal["bad_length", "bad_encoding", "unknown_key", "bad_block"]

class StunError(ValueError):
    """A datagram that is not STUN we can read."""

    reason: Literal[
        "truncated",
        "bad_type",
        "bad_cookie",
        "bad_length",
        "bad_attribute",
        "too_many_attributes",
        "unknown_method",
        "bad_fingerprint",
    ]

class SppError(ValueError):
    """A datagram without an SPP header."""

    reason: Literal["truncated", "bad_magic", "bad_port"]

class FramingError(ValueError):
    """A stream or datagram that RFC 4571 cannot frame."""

    reason: Literal["empty", "too_long"]

@final
class Route:
    """Who owns a call: a worker process of a transceiver of a cluster. A value: immutable, hashable, ordered."""

    def __new__(cls, cluster: int, ordinal: int, worker: int) -> Route:
        """`cluster` in 1..65535, `ordinal` in 0..65535, `worker` in 0..255; ValueError otherwise."""

    @property
    def cluster(self) -> int:
        """The VoiceCluster's clusterId."""

    @property
    def ordinal(self) -> int:
        """The transceiver: region index * 1024 + its number in the region."""

    @property
    def worker(self) -> int:
        """The process within the transceiver."""

    @property
    def region_index(self) -> int:
        """The region's index, 0..63."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Route, /) -> bool: ...
    def __le__(self, other: Route, /) -> bool: ...
    def __gt__(self, other: Route, /) -> bool: ...
    def __ge__(self, other: Route, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs__(self) -> tuple[int, int, int]: ...

@final
class Opened:
    """What a ufrag or call id says."""

    @property
    def route(self) -> Route:
        """The call's owner."""

    @property
    def nonce(self) -> int:
        """The number it was minted with, 40 bits."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class HintKey:
    """One cluster's K_hint under its key id: mints and opens ufrags. Immutable; keep it, making it costs more than using it."""

    def __new__(cls, key_id: str, key: bytes) -> HintKey:
        """`key_id` is one of A-Z a-z 0-9, `key` the 32 bytes of `derive_key(root, "hint", cluster)`; ValueError otherwise."""

    @property
    def key_id(self) -> str:
        """The character that its ufrags begin with."""

    def mint(self, route: Route, nonce: int) -> str:
        """The ufrag that routes to `route`: 23 ice-chars. `nonce` has 40 bits, else ValueError; the same arguments give the same ufrag."""

    def open(self, ufrag: str) -> Opened:
        """Read a ufrag made with this key. Raises HintError for everything else."""

@final
class CallKey:
    """One cluster's K_call under its key id: mints and opens call ids. Immutable."""

    def __new__(cls, key_id: str, key: bytes) -> CallKey:
        """`key_id` is one of A-Z a-z 0-9, `key` the 32 bytes of `derive_key(root, "call", cluster)`; ValueError otherwise."""

    @property
    def key_id(self) -> str:
        """The character that its call ids name after `rtc_`."""

    def mint(self, route: Route, nonce: int) -> str:
        """The id of the call whose first ufrag has this route and nonce: `rtc_` and 27 more characters."""

    def open(self, call_id: str) -> Opened:
        """Read a call id made with this key. Raises HintError for everything else."""

def derive_key(
    root_secret: bytes, label: Literal["hint", "pwd", "call", "token", "internal"], cluster: int
) -> bytes:
    """K_label of a cluster, 32 bytes: HKDF-SHA256 of its root secret. ValueError unless that has 32 bytes and `cluster` is in 1..65535."""

def key_id_of(ufrag_or_call_id: str) -> str:
    """The key id in a ufrag or call id, told apart by length. Raises HintError if it has not the form of either."""

def ice_pwd(pwd_key: bytes, ufrag: str) -> str:
    """The ICE password of a ufrag, 32 ice-chars; `pwd_key` is `derive_key(root, "pwd", cluster)`."""

@final
class StunMessage:
    """A STUN Binding message. What its attributes say is signed if `verify` says so; nothing after MESSAGE-INTEGRITY is read but FINGERPRINT."""

    @property
    def method(self) -> Literal["binding"]:
        """The only method that parses."""

    @property
    def cls(self) -> Literal["request", "indication", "success", "error"]:
        """The message's class; the last two are responses."""

    @property
    def transaction_id(self) -> bytes:
        """12 bytes that a request and its response share."""

    @property
    def username(self) -> str | None:
        """USERNAME."""

    @property
    def priority(self) -> int | None:
        """PRIORITY, 32 bits."""

    @property
    def use_candidate(self) -> bool:
        """Whether USE-CANDIDATE is there."""

    @property
    def ice_controlling(self) -> int | None:
        """The tie-breaker of a controlling agent, 64 bits."""

    @property
    def ice_controlled(self) -> int | None:
        """The tie-breaker of a controlled agent, 64 bits."""

    @property
    def xor_mapped_address(self) -> tuple[str, int] | None:
        """XOR-MAPPED-ADDRESS in plain: where the request came from."""

    @property
    def error_code(self) -> int | None:
        """ERROR-CODE, 300..699."""

    @property
    def has_integrity(self) -> bool:
        """Whether MESSAGE-INTEGRITY is there, right or wrong."""

    @property
    def has_fingerprint(self) -> bool:
        """Whether FINGERPRINT is there; a wrong one does not parse."""

    def verify(self, password: str) -> bool:
        """Whether MESSAGE-INTEGRITY is there and made with this password (RFC 8489 section 14.5)."""

def parse_stun(data: bytes) -> StunMessage:
    """Read a whole datagram. Unknown attributes are skipped. Raises StunError; a FINGERPRINT has to be right, the signature need not."""

def stun_username(data: bytes) -> str | None:
    """The USERNAME of a message with a sound header and attributes, whatever its class; checks no FINGERPRINT. Never raises."""

def binding_request(
    transaction_id: bytes,
    *,
    username: str,
    password: str,
    priority: int,
    use_candidate: bool = False,
    ice_controlling: int | None = None,
    ice_controlled: int | None = None,
) -> bytes:
    """A signed connectivity check with FINGERPRINT (RFC 8445 section 7.2.2); `username` is "receiver's ufrag:sender's ufrag".

    Raises ValueError unless `transaction_id` has 12 bytes and `username` at most 508, OverflowError for numbers beyond their fields.
    """

def binding_success(transaction_id: bytes, *, mapped: tuple[str, int], password: str) -> bytes:
    """The signed success response to a request that came from `mapped`, an IP address and port."""

def binding_error(transaction_id: bytes, *, code: int, reason: str, password: str | None) -> bytes:
    """An error response, signed if there is a password; `code` in 300..699, `reason` of at most 763 bytes."""

def binding_indication(transaction_id: bytes) -> bytes:
    """A Binding indication, which keeps a path open and wants no answer; never signed."""

@final
class SppHeader:
    """Who a datagram is from or for, and by which VIP."""

    @property
    def client(self) -> tuple[str, int]:
        """The client's address as the relay sees it; IPv4 stands as IPv4."""

    @property
    def proxy(self) -> tuple[str, int]:
        """The VIP that the client talks to."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def spp_encode(client: tuple[str, int], proxy: tuple[str, int]) -> bytes:
    """The 38 bytes of a header. Raises ValueError for a host that is no IP address."""

def spp_decode(datagram: bytes) -> SppHeader:
    """Read the header at a datagram's start. Raises SppError."""

def frame(datagram: bytes) -> bytes:
    """A datagram as it stands in a stream. Raises FramingError for an empty one and for more than 65,535 bytes."""

@final
class Deframer:
    """Finds the datagrams in a stream that comes in arbitrary pieces. Holds at most one unfinished frame."""

    def __new__(cls, max_frame: int = ...) -> Deframer:
        """`max_frame`: bytes of the longest datagram, 1..65535; by default 1,472, the most that a client's may have."""

    def feed(self, data: bytes) -> list[bytes]:
        """The datagrams that these bytes complete, in order, null packets left out.

        Raises FramingError at a frame that is too long, and from then on: there is no way back into step, close the stream.
        """

    @property
    def pending(self) -> int:
        """Bytes held of an unfinished frame."""
