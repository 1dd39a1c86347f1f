"""The relay engine under a benchmark: started, configured through its control socket, its flows confirmed."""

import base64
import json
import os
import secrets
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from voicecluster import wire

CLUSTER = 7
Address = tuple[str, int]


class Engine:
    """A client of the control protocol: one request, one reply."""

    def __init__(self, path: Path, *, seconds: float = 5.0) -> None:
        """Connect as soon as the engine has made its socket."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(10)
        deadline = time.monotonic() + seconds
        while True:
            try:
                self._socket.connect(str(path))
                break
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        self._lines = self._socket.makefile("rb")
        self._id = 0

    def close(self) -> None:
        """Leave; the engine keeps what it was told."""
        self._lines.close()
        self._socket.close()

    def ask(self, op: str, **fields: object) -> dict[str, object]:
        """Send one request. Raises RuntimeError with the engine's own words if it refuses."""
        self._id += 1
        self._socket.sendall(json.dumps({"id": self._id, "op": op, **fields}).encode() + b"\n")
        reply = json.loads(self._lines.readline())
        if not reply.get("ok"):
            raise RuntimeError(f"{op}: {reply.get('error')}")
        return reply

    def configure(self, *, vip: Address, backbone: Address, sink: Address, key: bytes) -> None:
        """One worker, one listener, one route. Limits are the defaults but for how fast flows may begin: the
        benchmark's callers all come from one address."""
        self.ask(
            "configure",
            workers=1,
            pin=False,
            backbone=_text(backbone),
            listeners=[{"name": "bench", "bind": _text(vip), "advertise": _text(vip)}],
            limits={"newFlowsPerSource": 1_000_000, "newFlows": 1_000_000},
        )
        self.ask("routes", routes=[{"cluster": CLUSTER, "ordinal": 0, "worker": 0, "address": _text(sink)}])
        self.ask("keys", clusters={str(CLUSTER): {"A": base64.b64encode(key).decode()}})


def confirm_flows(callers: Sequence[socket.socket], sink: socket.socket, root_secret: bytes) -> None:
    """Give every caller's socket a confirmed flow: it sends a check with a valid hint, the sink answers as a
    transceiver would.

    Raises:
        TimeoutError: the engine did not forward a check or its answer.
    """
    hint = wire.HintKey("A", wire.derive_key(root_secret, "hint", CLUSTER))
    pwd_key = wire.derive_key(root_secret, "pwd", CLUSTER)
    route = wire.Route(CLUSTER, 0, 0)
    for nonce, caller in enumerate(callers):
        ufrag = hint.mint(route, nonce)
        password = wire.ice_pwd(pwd_key, ufrag)
        check = wire.binding_request(
            secrets.token_bytes(12),
            username=f"{ufrag}:bench",
            password=password,
            priority=1,
            use_candidate=True,
            ice_controlling=nonce,
        )
        caller.settimeout(2)
        caller.send(check)
        datagram, relay = sink.recvfrom(2048)
        header, request = wire.spp_decode(datagram), wire.parse_stun(datagram[wire.SPP_LEN :])
        answer = wire.binding_success(request.transaction_id, mapped=header.client, password=password)
        sink.sendto(wire.spp_encode(header.client, header.proxy) + answer, relay)
        caller.recv(2048)
        caller.setblocking(False)


def callers(count: int, target: Address, *, first_fd: int) -> list[socket.socket]:
    """Connected UDP sockets with the descriptors `first_fd`, `first_fd + 1`, …, as the generator wants
    them."""
    made = []
    for fd in range(first_fd, first_fd + count):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            os.dup2(one.fileno(), fd)
        made.append(socket.socket(fileno=fd))
        made[-1].connect(target)
    return made


def free_port(host: str) -> int:
    """A UDP port of `host` that nobody had a moment ago."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _text(address: Address) -> str:
    return f"{address[0]}:{address[1]}"
