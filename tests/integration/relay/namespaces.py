"""Network namespaces for tests: hosts and links of our own, where sources can be forged and NATs stressed."""

import contextlib
import ctypes
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

_CLONE_NEWNET = 0x40000000
_LIBC = ctypes.CDLL(None, use_errno=True)


def why_not() -> str | None:
    """What keeps this machine from making namespaces, None if nothing does."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in ("ip", "nft") if shutil.which(tool) is None]
    if missing:
        return f"{' and '.join(missing)} missing: apt-get install iproute2 nftables"
    probe = subprocess.run(["ip", "netns", "add", "vcprobe"], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", "vcprobe"], capture_output=True, check=False)
    return f"no network namespaces here: {probe.stderr.strip()}" if probe.returncode else None


needs_namespaces = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")


@dataclass(frozen=True, slots=True)
class Namespace:
    """One host. Use it to make sockets and to start processes in it; both stay there."""

    name: str

    @property
    def prefix(self) -> tuple[str, ...]:
        """Goes before a command that is to run inside."""
        return ("ip", "netns", "exec", self.name)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Make this thread's new sockets inside. No await may be in the block: the whole thread is inside."""
        with open("/proc/thread-self/ns/net") as outside, open(f"/run/netns/{self.name}") as inside:
            _setns(inside.fileno())
            try:
                yield
            finally:
                _setns(outside.fileno())

    def run(self, *command: str, stdin: str | None = None) -> None:
        subprocess.run([*self.prefix, *command], check=True, capture_output=True, text=True, input=stdin)

    def nft(self, rules: str) -> None:
        """Load nftables rules inside."""
        self.run("nft", "-f", "-", stdin=rules)

    def raw_socket(self) -> socket.socket:
        """A socket that sends whole IPv4 packets, with any source."""
        with self.entered():
            return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)


class Network:
    """Namespaces and the links between them; all gone after `close`."""

    def __init__(self) -> None:
        self._tag = f"vc{secrets.token_hex(2)}"
        self._namespaces: list[Namespace] = []
        self._links = 0

    def host(self, name: str) -> Namespace:
        """A new host that forwards, and believes any source."""
        namespace = Namespace(f"{self._tag}-{name}")
        subprocess.run(["ip", "netns", "add", namespace.name], check=True)
        self._namespaces.append(namespace)
        namespace.run("ip", "link", "set", "lo", "up")
        for setting in ("ip_forward", "conf/all/rp_filter=0", "conf/default/rp_filter=0"):
            key, _, value = setting.partition("=")
            namespace.run("sh", "-c", f"echo {value or 1} > /proc/sys/net/ipv4/{key}")
        return namespace

    def link(self, first: Namespace, first_address: str, second: Namespace, second_address: str) -> None:
        """A cable between two hosts; addresses with their prefix length."""
        self._links += 1
        ends = (f"{self._tag}{self._links}a", f"{self._tag}{self._links}b")
        peers = ("netns", first.name, "type", "veth", "peer", "name", ends[1], "netns", second.name)
        subprocess.run(["ip", "link", "add", ends[0], *peers], check=True)
        for host, end, address in ((first, ends[0], first_address), (second, ends[1], second_address)):
            host.run("ip", "address", "add", address, "dev", end)
            host.run("ip", "link", "set", end, "up")

    def close(self) -> None:
        for namespace in self._namespaces:
            subprocess.run(["ip", "netns", "del", namespace.name], check=False)


def udp_packet(source: tuple[str, int], target: tuple[str, int], payload: bytes) -> bytes:
    """An IPv4 packet with a UDP datagram from whatever source one likes; the UDP checksum is left out."""
    udp = source[1].to_bytes(2) + target[1].to_bytes(2) + (8 + len(payload)).to_bytes(2) + bytes(2) + payload
    addresses = socket.inet_aton(source[0]) + socket.inet_aton(target[0])
    # The kernel fills in identification and checksum (raw(7)).
    return b"\x45\x00" + (20 + len(udp)).to_bytes(2) + bytes(4) + b"\x40\x11\x00\x00" + addresses + udp


def _setns(descriptor: int) -> None:
    if _LIBC.setns(descriptor, _CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
