"""DTLS between two objects, no sockets: roles, fragments, datagram sizes, and peers that are not who they
say.
"""

from collections.abc import Iterator

import pytest
from aiortc.rtcdtlstransport import certificate_digest
from voicecluster.transceiver.dtls.endpoint import DtlsEndpoint, cut
from voicecluster.transceiver.dtls.identity import MTU, DtlsIdentity
from voicecluster.transceiver.sdp import Fingerprint

RTP = b"\x80\x60\x00\x01" + bytes(8) + b"payload"


def fingerprint(identity: DtlsIdentity) -> Fingerprint:
    """What the identity's SDP says."""
    algorithm, value = identity.fingerprint.split(" ")
    return Fingerprint(algorithm, value)


@pytest.fixture(scope="module")
def ours() -> DtlsIdentity:
    """The worker's."""
    return DtlsIdentity()


@pytest.fixture(scope="module")
def theirs() -> DtlsIdentity:
    """The caller's."""
    return DtlsIdentity()


def pair(ours: DtlsIdentity, theirs: DtlsIdentity) -> tuple[DtlsEndpoint, DtlsEndpoint]:
    """A client and a server that know each other's fingerprints."""
    client = DtlsEndpoint(ours, role="client", fingerprints=[fingerprint(theirs)])
    server = DtlsEndpoint(theirs, role="server", fingerprints=[fingerprint(ours)])
    return client, server


def run(client: DtlsEndpoint, server: DtlsEndpoint) -> list[bytes]:
    """Carry datagrams until both have nothing to say; returns them all."""
    client.start()
    server.start()
    carried: list[bytes] = []
    moved = True
    while moved:
        moved = False
        for source, target in ((client, server), (server, client)):
            for datagram in source.poll_transmit():
                carried.append(datagram)
                target.receive(datagram)
                moved = True
    return carried


def test_both_ends_connect_and_their_srtp_keys_fit(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    run(client, server)
    assert (client.state, server.state) == ("connected", "connected")
    assert client.keys is not None
    assert server.keys is not None
    assert server.keys.rx.unprotect(client.keys.tx.protect(RTP)) == RTP
    assert client.keys.rx.unprotect(server.keys.tx.protect(RTP)) == RTP


def test_application_data_goes_both_ways(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    run(client, server)
    client.send(b"to server")
    (datagram,) = client.poll_transmit()
    assert server.receive(datagram) == [b"to server"]
    server.send(b"to client")
    (datagram,) = server.poll_transmit()
    assert client.receive(datagram) == [b"to client"]


def test_two_records_in_one_datagram_are_both_read(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    run(client, server)
    client.send(b"one")
    client.send(b"two")
    assert server.receive(b"".join(client.poll_transmit())) == [b"one", b"two"]


def test_a_replayed_record_is_not_authentic(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    run(client, server)
    client.send(b"once")
    (datagram,) = client.poll_transmit()
    assert server.receive(datagram) == [b"once"]
    assert server.receive(datagram) is None


def test_no_datagram_of_a_handshake_exceeds_the_mtu(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    assert max(map(len, run(client, server))) <= MTU


def test_a_client_hello_of_two_datagrams_is_put_together(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    client._ssl.set_alpn_protos(
        [bytes([65 + n]) * 200 for n in range(8)]
    )  # as long as post-quantum key shares
    client.start()
    hello = list(client.poll_transmit())
    assert len(hello) == 2
    server.start()
    for datagram in hello:
        assert server.receive(datagram) is None
    run(client, server)
    assert (client.state, server.state) == ("connected", "connected")


def records() -> Iterator[bytes]:
    """Three records of 500, 600 and 900 bytes."""
    for size in (500, 600, 900):
        yield b"\x16\xfe\xfd" + bytes(8) + (size - 13).to_bytes(2, "big") + bytes(size - 13)


def test_a_flight_is_cut_at_record_borders() -> None:
    assert [len(datagram) for datagram in cut(b"".join(records()))] == [1100, 900]


def test_a_truncated_stream_is_still_cut_into_an_end() -> None:
    assert [len(datagram) for datagram in cut(b"".join(records())[:-100])] == [1100, 800]


@pytest.mark.parametrize(
    "garbage", [b"\x16", b"\x16" + bytes(50), b"\x14\xfe\xfd" + bytes(9) + b"\x00\x01", b"\x3f" * 99]
)
def test_garbage_before_and_during_a_handshake_does_not_stop_it(
    ours: DtlsIdentity, theirs: DtlsIdentity, garbage: bytes
) -> None:
    client, server = pair(ours, theirs)
    client.start()
    server.start()
    for endpoint in (client, server):
        assert endpoint.receive(garbage) is None
    run(client, server)
    assert (client.state, server.state) == ("connected", "connected")


def test_a_peer_with_another_certificate_fails(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client = DtlsEndpoint(ours, role="client", fingerprints=[fingerprint(ours)])
    server = DtlsEndpoint(theirs, role="server", fingerprints=[fingerprint(ours)])
    run(client, server)
    assert (client.state, client.failure, client.keys) == ("failed", "fingerprint mismatch", None)


def test_one_of_several_fingerprints_of_the_strongest_hash_is_enough(
    ours: DtlsIdentity, theirs: DtlsIdentity
) -> None:
    prints = [fingerprint(ours), fingerprint(theirs)]
    client = DtlsEndpoint(ours, role="client", fingerprints=prints)
    server = DtlsEndpoint(theirs, role="server", fingerprints=prints)
    run(client, server)
    assert client.state == "connected"


def test_the_strongest_hash_decides(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    wrong = Fingerprint("sha-512", certificate_digest(ours._certificate, "sha-512"))
    client = DtlsEndpoint(ours, role="client", fingerprints=[fingerprint(theirs), wrong])
    server = DtlsEndpoint(theirs, role="server", fingerprints=[fingerprint(ours)])
    run(client, server)
    assert client.state == "failed"


def test_close_is_heard_and_may_come_twice(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    run(client, server)
    client.close()
    client.close()
    (goodbye,) = client.poll_transmit()
    server.receive(goodbye)
    assert (client.state, server.state) == ("closed", "closed")


def test_nothing_is_sent_or_read_after_close(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, server = pair(ours, theirs)
    run(client, server)
    client.close()
    list(client.poll_transmit())
    client.send(b"late")
    assert list(client.poll_transmit()) == []
    assert client.receive(b"\x17" + bytes(40)) is None


def test_the_last_flight_can_be_repeated_for_another_path(ours: DtlsIdentity, theirs: DtlsIdentity) -> None:
    client, _ = pair(ours, theirs)
    client.start()
    lost = list(client.poll_transmit())
    client.repeat_flight()
    assert list(client.poll_transmit()) == lost
    assert lost
