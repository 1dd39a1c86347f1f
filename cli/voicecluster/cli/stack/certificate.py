"""A self-signed certificate for the signaling port of a local stack."""

import datetime
import ipaddress

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from voicecluster.cli.state import StackDirectory, write_private
from voicecluster.operator.plan.cluster import Certificate

VALID_DAYS = 365
RENEW_DAYS = 30


def certificate_for(directory: StackDirectory, address: str) -> Certificate:
    """The stack's certificate for an IP address, kept while it names that and is valid for a month more.

    Keeping it matters to the user: browsers remember the exception made for this certificate.
    """
    chain_file, key_file = directory.secrets / "tls.crt", directory.secrets / "tls.key"
    if chain_file.exists() and key_file.exists():
        kept = Certificate(chain_file.read_text(encoding="ascii"), key_file.read_text(encoding="ascii"))
        if _serves(kept, address):
            return kept
    made = self_signed(address)
    write_private(key_file, made.private_key)
    write_private(chain_file, made.chain)
    return made


def self_signed(address: str) -> Certificate:
    """A new P-256 certificate for an IP address, for localhost as well."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "VoiceCluster local stack")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.IPAddress(ipaddress.ip_address(address)), x509.DNSName("localhost")]
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private_key = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(built.public_bytes(serialization.Encoding.PEM).decode(), private_key.decode())


def _serves(certificate: Certificate, address: str) -> bool:
    try:
        loaded = x509.load_pem_x509_certificate(certificate.chain.encode())
        names = loaded.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return False
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=RENEW_DAYS)
    named = ipaddress.ip_address(address) in names.get_values_for_type(x509.IPAddress)
    return named and loaded.not_valid_after_utc > until
