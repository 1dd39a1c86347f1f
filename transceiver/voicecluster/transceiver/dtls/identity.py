"""The worker's certificate and its one SSL context, shared by all calls (a context costs 200 µs and 30 KiB
each).
"""

from aiortc.rtcdtlstransport import SRTP_PROFILES, RTCCertificate, SRTPProtectionProfile, certificate_digest
from OpenSSL import SSL

MTU = 1_200
"""Bytes of a DTLS datagram: fits every path, with SPP and two IP headers before it."""

_SUITES = (b"AES128-GCM-SHA256", b"AES256-GCM-SHA384", b"CHACHA20-POLY1305", b"AES128-SHA", b"AES256-SHA")
_CIPHERS = b":".join(
    b"-".join([b"ECDHE", signature, suite])
    # RSA for callers whose own certificate is RSA: as their DTLS client we must offer suites they can sign.
    for suite in (
        b"AES128-GCM-SHA256",
        b"AES256-GCM-SHA384",
        b"CHACHA20-POLY1305",
        b"AES128-SHA",
        b"AES256-SHA",
    )
    for signature in (b"ECDSA", b"RSA")
)


class DtlsIdentity:
    """One self-signed ECDSA P-256 certificate and the context made of it. Make one per process."""

    def __init__(self) -> None:
        certificate = RTCCertificate.generateCertificate()
        self._certificate = certificate._cert
        self.srtp_profiles: tuple[SRTPProtectionProfile, ...] = tuple(SRTP_PROFILES)
        self._context = SSL.Context(SSL.DTLS_METHOD)
        # Records of DTLS 1.3 may lack the length by which datagrams are cut; browsers speak 1.2 just as well.
        self._context.set_max_proto_version(0xFEFD)
        self._context.set_options(SSL.OP_NO_TICKET | SSL.OP_NO_QUERY_MTU)
        self._context.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        # Any certificate passes here: the endpoint compares its fingerprint with the offer's (RFC 8122).
        self._context.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, lambda *_: True)
        self._context.use_certificate(certificate._cert)
        self._context.use_privatekey(certificate._key)
        self._context.set_cipher_list(_CIPHERS)
        self._context.set_tlsext_use_srtp(
            b":".join(profile.openssl_profile for profile in self.srtp_profiles)
        )

    @property
    def fingerprint(self) -> str:
        """As in SDP: `sha-256 AA:BB:…`."""
        return f"sha-256 {certificate_digest(self._certificate, 'sha-256')}"

    def connection(self) -> SSL.Connection:
        """A DTLS connection over memory, with our MTU."""
        connection = SSL.Connection(self._context, None)
        connection.set_ciphertext_mtu(MTU)
        return connection
