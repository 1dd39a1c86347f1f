"""Binding sockets, and a clear answer where that fails: which port, held by what."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from voicecluster.common.config.model import ConfigError, join_address, split_address

Protocol = Literal["tcp", "udp"]


class PortError(ConfigError):
    """An address cannot be bound. `str()` is one line: address, why (and held by what), remedy."""


def listen_tcp(address: str, *, reuse_port: bool = False, backlog: int = 256) -> socket.socket:
    """Return a listening, non-blocking TCP socket on `address` (`IP:PORT`). Raises `PortError`."""
    return _bound("tcp", address, reuse_port=reuse_port, backlog=backlog)


def bind_udp(address: str, *, reuse_port: bool = False) -> socket.socket:
    """Return a bound, non-blocking UDP socket on `address` (`IP:PORT`). Raises `PortError`."""
    return _bound("udp", address, reuse_port=reuse_port, backlog=0)


def ensure_free(protocol: Protocol, address: str) -> None:
    """Raise `PortError` where `address` is taken, even by a socket that would share it (SO_REUSEPORT)."""
    _bound(protocol, address, reuse_port=False, backlog=0).close()


def taken(protocol: Protocol, address: str) -> PortError:
    """Return the error for an `address` that is in use, with who holds it where /proc tells."""
    found = holder(protocol, address)
    by = f"held by {found}" if found else "held by a process of another user or namespace"
    return PortError(f"{address}/{protocol}: port taken, {by}; stop that process or choose another port")


def holder(protocol: Protocol, address: str) -> str | None:
    """Return `NAME (pid N)` of a process that has `address` bound, or None where /proc does not show one.

    A wildcard socket on the same port counts: it is in the way as well.
    """
    host, port = split_address(address)
    inodes = _inodes(protocol, host, port)
    if not inodes:
        return None
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        if not inodes.isdisjoint(_open_links(pid)):
            return f"{_name(pid)} (pid {pid})"
    return None


def _open_links(pid: int) -> Iterator[str]:
    """What the process's descriptors point to; nothing for a process that ended or is another user's."""
    try:
        descriptors = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return
    for descriptor in descriptors:
        with suppress(OSError):  # closed since the listing
            yield os.readlink(f"/proc/{pid}/fd/{descriptor}")


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "a process"


def _bound(protocol: Protocol, address: str, *, reuse_port: bool, backlog: int) -> socket.socket:
    host, port = split_address(address)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kind = socket.SOCK_STREAM if protocol == "tcp" else socket.SOCK_DGRAM
    bound = socket.socket(family, kind)
    try:
        if protocol == "tcp":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if reuse_port:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.setblocking(False)
        bound.bind((host, port))
        if backlog:
            bound.listen(backlog)
    except OSError as error:
        bound.close()
        raise _explained(error, protocol, address) from None
    return bound


def _explained(error: OSError, protocol: Protocol, address: str) -> PortError:
    if error.errno == errno.EADDRINUSE:
        return taken(protocol, address)
    if error.errno == errno.EADDRNOTAVAIL:
        return PortError(
            f"{address}/{protocol}: not an address of this machine; use one that `ip address` shows"
        )
    if error.errno == errno.EACCES:
        return PortError(f"{address}/{protocol}: not permitted; choose a port above 1023")
    return PortError(f"{address}/{protocol}: {error.strerror}; choose another address")


def _inodes(protocol: Protocol, host: str, port: int) -> set[str]:
    """The `socket:[inode]` links of sockets bound to host:port or to the wildcard with that port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    wanted = {_kernel_form(host, port), _kernel_form("::" if ":" in host else "0.0.0.0", port)}
    table = Path(f"/proc/net/{protocol}{'6' if family == socket.AF_INET6 else ''}")
    tables = [table] if family == socket.AF_INET6 else [table, Path(f"/proc/net/{protocol}6")]
    wanted |= {_kernel_form("::", port)}
    found: set[str] = set()
    for path in tables:
        try:
            lines = path.read_text().splitlines()[1:]
        except OSError:
            continue
        rows = [line.split() for line in lines]
        found.update(
            f"socket:[{row[9]}]"
            for row in rows
            if row[1] in wanted and (protocol == "udp" or row[3] == _LISTENING)
        )
    return found


_LISTENING = "0A"


def _kernel_form(host: str, port: int) -> str:
    """`/proc/net` writes addresses as 32-bit words in host order."""
    packed = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    words = (int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"


def address_of(bound: socket.socket) -> str:
    """Return the `IP:PORT` that a socket is bound to; useful after binding port 0."""
    host, port = bound.getsockname()[:2]
    return join_address(host, port)
