"""DTLS 1.2 with SRTP keys (RFC 5764) over pyOpenSSL, as a sans-IO object.

Hand in datagrams (`receive`) and time-outs (`handle_timeout`), then drain `poll_transmit`. OpenSSL writes
records into a byte stream; `poll_transmit` cuts it at record borders into datagrams of at most 1,200 bytes.
Nothing here raises for what a peer sends: a handshake that cannot succeed ends in state `failed` with a
reason.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Literal

from aiortc.rtcdtlstransport import certificate_digest
from OpenSSL import SSL
from pylibsrtp import Policy, Session
from voicecluster.transceiver.dtls.identity import MTU, DtlsIdentity
from voicecluster.transceiver.sdp.offer import Fingerprint

State = Literal["new", "connecting", "connected", "closed", "failed"]
_RECORD_HEADER = 13
_SRTP_WINDOW = 1_024


class SrtpKeys:
    """The two SRTP sessions of a call; `rx` unprotects what the caller sends, `tx` protects what we send."""

    __slots__ = ("profile", "rx", "tx")

    def __init__(self, rx: Session, tx: Session, profile: str) -> None:
        self.rx = rx
        self.tx = tx
        self.profile = profile


class DtlsEndpoint:
    """One end of a DTLS association.

    Args:
        role: `client` sends the first flight, in `start`.
        fingerprints: what the peer's certificate must match: any one of its strongest hash (RFC 8122 section
            5).
    """

    def __init__(
        self,
        identity: DtlsIdentity,
        *,
        role: Literal["client", "server"],
        fingerprints: Sequence[Fingerprint],
    ) -> None:
        self.role = role
        self.state: State = "new"
        self.failure: str | None = None
        self.keys: SrtpKeys | None = None
        self._identity = identity
        self._fingerprints = tuple(fingerprints)
        self._ssl = identity.connection()
        self._transmits: deque[bytes] = deque()
        self._last_flight: list[bytes] = []

    def start(self) -> None:
        """Begin the handshake."""
        if self.state != "new":
            return
        self.state = "connecting"
        if self.role == "client":
            self._ssl.set_connect_state()
        else:
            self._ssl.set_accept_state()
        self._handshake()

    def receive(self, datagram: bytes) -> list[bytes] | None:
        """A datagram of the peer's.

        Returns the application data in it; `None` where nothing in it was authentic.
        """
        if self.state not in ("connecting", "connected"):
            return None
        self._ssl.bio_write(datagram)
        handshaking = self.state == "connecting"
        if handshaking:
            self._handshake()
        data: list[bytes] = []
        while self.state == "connected":
            try:
                data.append(self._ssl.recv(65_536))
            except SSL.WantReadError:
                break
            except SSL.ZeroReturnError:
                self.state = "closed"
                return data
            except SSL.Error:
                break  # a record that is not the peer's, or a late handshake record: OpenSSL goes on
        self._flush()
        completed = handshaking and self.state == "connected"
        return data if data or completed else None

    def send(self, data: bytes) -> None:
        """Encrypt application data; silently nothing unless connected."""
        if self.state == "connected":
            try:
                self._ssl.send(data)
            except SSL.Error:
                return
            self._flush()

    def timeout(self) -> float | None:
        """Seconds until `handle_timeout` is wanted: a handshake flight may have to be sent again."""
        if self.state != "connecting":
            return None
        seconds: float | None = self._ssl.DTLSv1_get_timeout()
        return seconds

    def handle_timeout(self) -> None:
        """Send the last flight again if its time has come."""
        if self.state == "connecting":
            try:
                self._ssl.DTLSv1_handle_timeout()
            except SSL.Error:
                self._fail("handshake timed out")
            self._flush()

    def repeat_flight(self) -> None:
        """Send the last flight again now: the path changed under the handshake."""
        if self.state == "connecting":
            self._transmits.extend(self._last_flight)

    def close(self) -> None:
        """Say goodbye (close_notify) if there is anyone to say it to. May be called twice."""
        if self.state == "connected":
            try:
                self._ssl.shutdown()
            except SSL.Error:
                pass
            self._flush()
        if self.state != "failed":
            self.state = "closed"

    def poll_transmit(self) -> Iterator[bytes]:
        """Drain the datagrams to send, in order."""
        while self._transmits:
            yield self._transmits.popleft()

    def _handshake(self) -> None:
        try:
            self._ssl.do_handshake()
        except SSL.WantReadError:
            self._flush()
            return
        except SSL.Error as error:
            self._flush()
            self._fail(_reason(error))
            return
        self._flush()
        if not self._peer_is_the_offerer():
            self._fail("fingerprint mismatch")
            return
        self.keys = self._export_keys()
        if self.keys is None:
            self._fail("no SRTP profile in common")
            return
        self.state = "connected"

    def _fail(self, reason: str) -> None:
        self.state = "failed"
        self.failure = reason

    def _peer_is_the_offerer(self) -> bool:
        certificate = self._ssl.get_peer_certificate(as_cryptography=True)
        if certificate is None:
            return False
        strongest = max(fingerprint.algorithm for fingerprint in self._fingerprints)
        digest = certificate_digest(certificate, strongest)
        return any(print_.algorithm == strongest and print_.value == digest for print_ in self._fingerprints)

    def _export_keys(self) -> SrtpKeys | None:
        selected = self._ssl.get_selected_srtp_profile()
        for profile in self._identity.srtp_profiles:
            if profile.openssl_profile == selected:
                break
        else:
            return None
        size = 2 * (profile.key_length + profile.salt_length)
        material = self._ssl.export_keying_material(b"EXTRACTOR-dtls_srtp", size)
        ours, theirs = (0, 1) if self.role == "client" else (1, 0)

        def session(index: int, direction: int) -> Session:
            policy = Policy(
                key=profile.get_key_and_salt(material, index),
                ssrc_type=direction,
                srtp_profile=profile.libsrtp_profile,
            )
            policy.window_size = _SRTP_WINDOW
            return Session(policy)

        return SrtpKeys(
            rx=session(theirs, Policy.SSRC_ANY_INBOUND),
            tx=session(ours, Policy.SSRC_ANY_OUTBOUND),
            profile=profile.openssl_profile.decode(),
        )

    def _flush(self) -> None:
        stream = bytearray()
        while True:
            try:
                stream += self._ssl.bio_read(65_536)
            except SSL.Error:
                break
        if stream:
            datagrams = list(cut(bytes(stream)))
            if self.state == "connecting":
                self._last_flight = datagrams
            self._transmits.extend(datagrams)


def cut(stream: bytes, limit: int = MTU) -> Iterator[bytes]:
    """Cut a stream of DTLS 1.2 records into datagrams of whole records, each at most `limit` bytes if it can
    be.
    """
    start = end = 0
    while end < len(stream):
        size = _RECORD_HEADER + int.from_bytes(stream[end + 11 : end + 13], "big")
        if end > start and end + size - start > limit:
            yield stream[start:end]
            start = end
        end += size
    if start < len(stream):
        yield stream[start:]


def _reason(error: SSL.Error) -> str:
    """OpenSSL's own words for a failed handshake; they name the step, never key material."""
    details = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return "; ".join(str(entry[-1]) for entry in details[:3]) or "handshake failed"
