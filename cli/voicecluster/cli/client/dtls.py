"""DTLS-SRTP of a client (RFC 5764), without socket or clock: datagrams in and out, SRTP keys in the end."""

import datetime
import enum
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from OpenSSL import SSL
from pylibsrtp import Policy, Session

MTU = 1200
"""The largest datagram sent; flights are cut at record borders."""
RECORD_HEADER = 13
KeyKind = Literal["ecdsa", "rsa"]
Role = Literal["client", "server"]
_CIPHERS = (
    b"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
    b"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305:"
    b"ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA"
)
_HASHES: dict[str, Callable[[], hashes.HashAlgorithm]] = {
    "sha-256": hashes.SHA256,
    "sha-384": hashes.SHA384,
    "sha-512": hashes.SHA512,
}


@dataclass(frozen=True, slots=True)
class _Profile:
    name: bytes
    libsrtp: int
    key: int
    salt: int


_PROFILES = (
    _Profile(b"SRTP_AEAD_AES_128_GCM", Policy.SRTP_PROFILE_AEAD_AES_128_GCM, 16, 12),
    _Profile(b"SRTP_AES128_CM_SHA1_80", Policy.SRTP_PROFILE_AES128_CM_SHA1_80, 16, 14),
)


@dataclass(frozen=True, slots=True)
class SrtpKeys:
    """The two directions of one call."""

    rx: Session
    tx: Session


class DtlsState(enum.Enum):
    """Where a handshake stands. CLOSED: the other side said close_notify."""

    HANDSHAKE = "handshake"
    CONNECTED = "connected"
    CLOSED = "closed"
    FAILED = "failed"


class Identity:
    """A self-signed certificate and the SSL context that uses it; may serve any number of calls."""

    def __init__(self, kind: KeyKind = "ecdsa") -> None:
        key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
        if kind == "rsa":
            key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        else:
            key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, secrets.token_hex(8))])
        now = datetime.datetime.now(tz=datetime.UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=30))
            .sign(key, hashes.SHA256())
        )
        self.fingerprint = f"sha-256 {_digest(certificate, 'sha-256')}"
        context = SSL.Context(SSL.DTLS_METHOD)
        context.set_options(SSL.OP_NO_TICKET)
        # Any certificate is taken here: after the handshake the fingerprint of the SDP decides (RFC 8122
        # section 6).
        context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda *_: True)
        context.use_certificate(certificate)
        context.use_privatekey(key)
        context.set_cipher_list(_CIPHERS)
        context.set_tlsext_use_srtp(b":".join(profile.name for profile in _PROFILES))
        self.context = context


class DtlsEndpoint:
    """One handshake and what follows it.

    Driving it: `start`, then `receive` for each datagram and `handle_timeout` when `seconds_to_timeout` has
    passed; after each of them send everything `transmits` gives.
    """

    def __init__(self, identity: Identity, *, role: Role, remote_fingerprint: tuple[str, str]) -> None:
        self.state = DtlsState.HANDSHAKE
        self.failure = ""
        self.keys: SrtpKeys | None = None
        self._role = role
        self._remote_fingerprint = remote_fingerprint
        self._ssl = SSL.Connection(identity.context)
        self._ssl.set_ciphertext_mtu(MTU)
        if role == "server":
            self._ssl.set_accept_state()
        else:
            self._ssl.set_connect_state()

    def start(self) -> None:
        """Begin: a client has a ClientHello to send, a server waits for one."""
        if self._role == "client":
            self._handshake()

    def receive(self, datagram: bytes) -> None:
        """Take one DTLS datagram in. Never raises."""
        if not datagram:
            return
        self._ssl.bio_write(datagram)
        if self.state is DtlsState.HANDSHAKE:
            self._handshake()
        elif self.state is DtlsState.CONNECTED:
            try:
                self._ssl.recv(2048)
            except SSL.ZeroReturnError:
                self.state = DtlsState.CLOSED
            except SSL.Error:
                return

    def transmits(self) -> list[bytes]:
        """The datagrams to send now, each at most MTU long unless a single record is longer."""
        flight = b""
        while True:
            try:
                flight += self._ssl.bio_read(65536)
            except SSL.WantReadError:
                return split_records(flight)

    def seconds_to_timeout(self) -> float | None:
        """How long until a lost flight is to be sent again; None when nothing waits."""
        return self._ssl.DTLSv1_get_timeout() if self.state is DtlsState.HANDSHAKE else None

    def handle_timeout(self) -> None:
        """Send the last flight again if it is time."""
        if self.state is DtlsState.HANDSHAKE:
            self._ssl.DTLSv1_handle_timeout()

    def close(self) -> None:
        """Say close_notify, if there is anybody to say it to."""
        if self.state is DtlsState.CONNECTED:
            try:
                self._ssl.shutdown()
            except SSL.Error:
                return
            finally:
                self.state = DtlsState.CLOSED

    def _handshake(self) -> None:
        try:
            self._ssl.do_handshake()
        except SSL.WantReadError:
            return
        except SSL.Error as error:
            self._fail(f"the DTLS handshake failed ({_reason(error)})")
            return
        algorithm, expected = self._remote_fingerprint
        certificate = self._ssl.get_peer_certificate(as_cryptography=True)
        if algorithm not in _HASHES or certificate is None or _digest(certificate, algorithm) != expected:
            self._fail("the DTLS certificate is not the one whose fingerprint the answer named")
            return
        name = self._ssl.get_selected_srtp_profile()
        profile = next((profile for profile in _PROFILES if profile.name == name), None)
        if profile is None:
            self._fail("the other side agreed to no SRTP profile")
            return
        self.keys = self._export(profile)
        self.state = DtlsState.CONNECTED

    def _export(self, profile: _Profile) -> SrtpKeys:
        """RFC 5764 4.2: both keys, then both salts, the client's first."""
        material = self._ssl.export_keying_material(b"EXTRACTOR-dtls_srtp", 2 * (profile.key + profile.salt))
        salts = 2 * profile.key
        client = material[: profile.key] + material[salts : salts + profile.salt]
        server = material[profile.key : salts] + material[salts + profile.salt :]
        rx_key, tx_key = (server, client) if self._role == "client" else (client, server)
        rx = Policy(key=rx_key, ssrc_type=Policy.SSRC_ANY_INBOUND, srtp_profile=profile.libsrtp)
        tx = Policy(key=tx_key, ssrc_type=Policy.SSRC_ANY_OUTBOUND, srtp_profile=profile.libsrtp)
        return SrtpKeys(rx=Session(rx), tx=Session(tx))

    def _fail(self, reason: str) -> None:
        self.state = DtlsState.FAILED
        self.failure = reason


def split_records(flight: bytes) -> list[bytes]:
    """Cut what OpenSSL wrote into datagrams: whole DTLS records, as many as fit into MTU.

    A memory BIO is a byte stream: datagram borders are found again from the record headers (RFC 6347 4.1).
    """
    datagrams: list[bytes] = []
    start = end = 0
    while end + RECORD_HEADER <= len(flight):
        record_end = end + RECORD_HEADER + int.from_bytes(flight[end + 11 : end + 13], "big")
        if record_end - start > MTU and end > start:
            datagrams.append(flight[start:end])
            start = end
        end = record_end
    if end > start:
        datagrams.append(flight[start:end])
    return datagrams


def _digest(certificate: x509.Certificate, algorithm: str) -> str:
    return certificate.fingerprint(_HASHES[algorithm]()).hex(":").upper()


def _reason(error: SSL.Error) -> str:
    queue = error.args[0] if error.args else ()
    return str(queue[0][-1]) if isinstance(queue, list) and queue else "no reason given"
