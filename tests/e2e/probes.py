"""Probes from inside pods: does a packet from this pod get there, and is it answered?"""

import secrets
from dataclasses import dataclass

from voicecluster.common.config.keys import decode_key
from voicecluster.common.config.transceiver import RootKeysFile
from voicecluster.wire import (
    HintKey,
    Route,
    binding_request,
    derive_key,
    ice_pwd,
    parse_stun,
    spp_encode,
)

from tests.e2e.cluster import Cluster, Object

CLIENT, VIP = ("198.51.100.7", 50000), ("203.0.113.5", 3478)
"""Whom the probes' SPP header names: nobody."""
SPP_BYTES = 38
_SECONDS = "3"
_TCP = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), float(sys.argv[3])).close()
    print("yes")
except OSError:
    print("no")
"""
_UDP = """
import socket, sys
where, port, seconds, datagram = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), bytes.fromhex(sys.argv[4])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
    udp.connect((where, port))
    udp.settimeout(seconds / 3)
    for _ in range(3):
        try:
            udp.send(datagram)
            print(udp.recv(2048).hex())
            break
        except OSError:
            pass
"""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that has Python in its image."""

    namespace: str
    name: str
    address: str
    """Its IPv4 address."""

    @classmethod
    def of(cls, pod: Object) -> "Pod":
        return cls(pod["metadata"]["namespace"], pod["metadata"]["name"], pod["status"]["podIP"])


def pods(cluster: Cluster, namespace: str, selector: str) -> list[Pod]:
    """The running pods with these labels, by name."""
    return [
        Pod.of(pod)
        for pod in cluster.list("pods", namespace, selector)
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def connects(cluster: Cluster, source: Pod, target: Pod, port: int) -> bool:
    """Whether a TCP connection comes about."""
    return _python(cluster, source, _TCP, target.address, str(port), _SECONDS) == "yes"


def answer(cluster: Cluster, source: Pod, target: Pod, port: int, datagram: bytes) -> bytes | None:
    """What comes back for a UDP datagram, which is sent three times at most."""
    said = _python(cluster, source, _UDP, target.address, str(port), _SECONDS, datagram.hex())
    return bytes.fromhex(said) if said else None


def _python(cluster: Cluster, source: Pod, script: str, *arguments: str) -> str:
    command = ("python3", "-c", script, *arguments)
    return cluster.kubectl("exec", "-n", source.namespace, source.name, "--", *command).strip()


class Checks:
    """Connectivity checks for calls that nobody knows: a transceiver answers an authentic one with error 400."""

    def __init__(self, keys: RootKeysFile, cluster_id: int) -> None:
        """`keys`: of the Secret `<cluster>-root-keys`."""
        self._id = keys.mint
        self._root = decode_key(keys.keys[keys.mint])
        self._cluster = cluster_id

    def check(self, ordinal: int, worker: int = 0) -> bytes:
        """A fresh one for a transceiver's worker."""
        hint = HintKey(self._id, derive_key(self._root, "hint", self._cluster))
        ufrag = hint.mint(Route(self._cluster, ordinal, worker), secrets.randbits(40))
        password = ice_pwd(derive_key(self._root, "pwd", self._cluster), ufrag)
        return binding_request(
            secrets.token_bytes(12),
            username=f"{ufrag}:probe",
            password=password,
            priority=1,
            ice_controlling=1,
        )

    def from_relay(self, ordinal: int, worker: int = 0) -> bytes:
        """One as a relay hands it on."""
        return spp_encode(CLIENT, VIP) + self.check(ordinal, worker)


def is_error_400(datagram: bytes | None) -> bool:
    """Whether it is a transceiver's answer to a check for a call that it does not know."""
    return datagram is not None and parse_stun(datagram).error_code == 400
