"""A taken port is named together with who holds it."""

import os

import pytest
from voicecluster.common.ports import (
    PortError,
    Protocol,
    address_of,
    bind_udp,
    ensure_free,
    holder,
    listen_tcp,
)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0"])
def test_a_taken_tcp_port_names_its_holder(address: str) -> None:
    with listen_tcp(address) as first:
        taken = address_of(first)
        with pytest.raises(PortError) as caught:
            listen_tcp(taken)
    assert str(caught.value).startswith(f"{taken}/tcp: port taken, held by ")
    assert f"(pid {os.getpid()})" in str(caught.value)


def test_a_port_held_by_a_wildcard_socket_names_its_holder() -> None:
    with bind_udp("0.0.0.0:0") as wildcard:
        address = f"127.0.0.1:{wildcard.getsockname()[1]}"
        with pytest.raises(PortError, match=f"pid {os.getpid()}"):
            bind_udp(address)


def test_a_port_shared_by_reuse_port_is_not_free() -> None:
    with bind_udp("127.0.0.1:0", reuse_port=True) as first:
        bind_udp(address_of(first), reuse_port=True).close()
        with pytest.raises(PortError, match="port taken"):
            ensure_free("udp", address_of(first))


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_nobody_holds_a_free_port(protocol: Protocol) -> None:
    with listen_tcp("127.0.0.1:0") as briefly:
        address = address_of(briefly)
    assert holder(protocol, address) is None


def test_an_address_of_another_machine_is_explained() -> None:
    with pytest.raises(PortError, match="not an address of this machine"):
        bind_udp("203.0.113.1:4000")
