"""The self-signed certificate of `up --tls`."""

import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from voicecluster.cli.stack.certificate import certificate_for, self_signed
from voicecluster.cli.state import StackDirectory


def test_it_names_the_address_that_is_served() -> None:
    made = x509.load_pem_x509_certificate(self_signed("192.0.2.5").chain.encode())
    names = made.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("192.0.2.5")]


def test_it_is_kept_for_the_same_address_and_made_anew_for_another(tmp_path: Path) -> None:
    directory = StackDirectory(tmp_path / "one")
    first = certificate_for(directory, "192.0.2.5")
    assert certificate_for(directory, "192.0.2.5") == first
    assert certificate_for(directory, "192.0.2.6") != first


def test_a_tls_server_can_use_it(tmp_path: Path) -> None:
    directory = StackDirectory(tmp_path / "one")
    certificate_for(directory, "192.0.2.5")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(directory.secrets / "tls.crt", directory.secrets / "tls.key")
