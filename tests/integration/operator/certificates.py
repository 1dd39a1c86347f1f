"""A certificate authority for one test session, and a server certificate for 127.0.0.1."""

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID


class Certificates:
    """Files in PEM, written at once. The key also signs service account tokens: those want RSA."""

    def __init__(self, home: Path) -> None:
        """Write the three files under `home`."""
        self.ca_file, self.server_certificate, self.server_key = (
            home / name for name in ("ca.crt", "server.crt", "server.key")
        )
        authority, key = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))
        issuer = _name("test authority")
        ca = (
            _builder(issuer, issuer, authority.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_SIGNS, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority.public_key()), critical=False)
            .sign(authority, hashes.SHA256())
        )
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        server = (
            _builder(_name("kube-apiserver"), issuer, key.public_key())
            .add_extension(names, critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False
            )
            .sign(authority, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        self.ca_file.write_bytes(ca.public_bytes(pem))
        self.server_certificate.write_bytes(server.public_bytes(pem))
        self.server_key.write_bytes(
            key.private_bytes(
                pem, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
            )
        )


_SIGNS = x509.KeyUsage(
    digital_signature=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(days=1))
    )
