"""Two of the client's DTLS endpoints against each other."""

import pytest
from voicecluster.cli.client.dtls import MTU, DtlsEndpoint, DtlsState, Identity, KeyKind, split_records


def endpoints(client: Identity, server: Identity) -> tuple[DtlsEndpoint, DtlsEndpoint]:
    return (
        DtlsEndpoint(client, role="client", remote_fingerprint=named(server)),
        DtlsEndpoint(server, role="server", remote_fingerprint=named(client)),
    )


def named(identity: Identity) -> tuple[str, str]:
    algorithm, _, digest = identity.fingerprint.partition(" ")
    return algorithm, digest


def shake(a: DtlsEndpoint, b: DtlsEndpoint) -> list[int]:
    """Carry datagrams both ways until nobody has any; gives their lengths."""
    a.start()
    b.start()
    lengths = []
    while flights := [(b, a.transmits()), (a, b.transmits())]:
        if not any(datagrams for _, datagrams in flights):
            return lengths
        for receiver, datagrams in flights:
            for datagram in datagrams:
                lengths.append(len(datagram))
                receiver.receive(datagram)


@pytest.mark.parametrize("server", ["ecdsa", "rsa"])
@pytest.mark.parametrize("client", ["ecdsa", "rsa"])
def test_every_pair_of_certificate_kinds_agrees_on_keys(client: KeyKind, server: KeyKind) -> None:
    a, b = endpoints(Identity(client), Identity(server))
    lengths = shake(a, b)
    assert (a.state, b.state) == (DtlsState.CONNECTED, DtlsState.CONNECTED)
    assert max(lengths) <= MTU
    assert a.keys is not None
    assert b.keys is not None
    packet = b"\x80\x6f\0\1" + b"\0\0\3\xc0" + b"ssrc" + b"opus"
    assert b.keys.rx.unprotect(a.keys.tx.protect(packet)) == packet
    assert a.keys.rx.unprotect(b.keys.tx.protect(packet)) == packet


def test_a_certificate_with_another_fingerprint_is_refused() -> None:
    mine, theirs = Identity(), Identity()
    a = DtlsEndpoint(mine, role="client", remote_fingerprint=named(mine))
    b = DtlsEndpoint(theirs, role="server", remote_fingerprint=named(mine))
    shake(a, b)
    assert a.state is DtlsState.FAILED
    assert a.keys is None
    assert "fingerprint" in a.failure


def test_a_lost_flight_is_sent_again() -> None:
    a, _ = endpoints(Identity(), Identity())
    a.start()
    first = a.transmits()
    wait = a.seconds_to_timeout()
    assert first
    assert wait is not None
    assert 0 < wait <= 1.1


def test_closing_is_heard_by_the_other_side() -> None:
    a, b = endpoints(Identity(), Identity())
    shake(a, b)
    a.close()
    for datagram in a.transmits():
        b.receive(datagram)
    assert b.state is DtlsState.CLOSED


@pytest.mark.parametrize("datagram", [b"", b"\x16", b"\x16\xfe\xff" + b"\xff" * 60, b"\x17" * 2000])
def test_garbage_harms_no_established_call(datagram: bytes) -> None:
    a, b = endpoints(Identity(), Identity())
    shake(a, b)
    a.receive(datagram)
    assert a.state is DtlsState.CONNECTED


def test_flights_are_cut_between_records_and_not_inside_them() -> None:
    record = b"\x16\xfe\xfd" + bytes(8) + (500).to_bytes(2, "big") + bytes(500)
    assert split_records(record * 5) == [record * 2, record * 2, record]


def test_a_record_longer_than_the_limit_leaves_whole() -> None:
    record = b"\x16\xfe\xfd" + bytes(8) + (1400).to_bytes(2, "big") + bytes(1400)
    assert split_records(record) == [record]
