"""A relay as it runs for real: supervisor, engine and control plane, on addresses of the test's choice."""

import asyncio
import base64
import http.client
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TypeVar

import psutil
from prometheus_client.parser import text_string_to_metric_families
from voicecluster.common.atomic import write_atomic

from tests.integration.relay.namespaces import Namespace
from tests.integration.relay.parties import (
    CLUSTER,
    HINT,
    Caller,
    Peer,
    Reading,
    Transceiver,
    eventually,
    udp_socket,
)

Party = TypeVar("Party", bound=Reading)

BIN = Path(sys.executable).parent
SUPERVISOR = BIN / "voicecluster-relay-engine"


def free_port(host: str, kind: socket.SocketKind = socket.SOCK_DGRAM) -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, kind) as briefly:
        briefly.bind((host, 0))
        port: int = briefly.getsockname()[1]
        return port


def written(peer: Peer) -> str:
    host, port = peer
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class RelayProcess:
    """One relay. Listeners are (bound address, advertised address if it says one); the rest is on `inner`, a
    loopback address.
    """

    def __init__(
        self,
        directory: Path,
        listeners: list[tuple[Peer, Peer | None]],
        *,
        inner: str = "127.0.102.1",
        workers: int = 2,
        limits: dict[str, float] | None = None,
        namespace: Namespace | None = None,
        settings: dict[str, object] | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self._environment = {**os.environ, **(environment or {})}
        self.directory = directory
        self.namespace = namespace
        self.vips = [advertise or bind for bind, advertise in listeners]
        with self._inside():
            self.admin: Peer = (inner, free_port(inner, socket.SOCK_STREAM))
            self.backbone: Peer = (inner, free_port(inner))
        self.config = {
            "name": "relay-0",
            "region": "here",
            "workers": workers,
            "listeners": [
                {"name": f"vip-{index}", "bind": written(bind)}
                | ({"advertise": written(advertise)} if advertise else {})
                for index, (bind, advertise) in enumerate(listeners)
            ],
            "backbone": written(self.backbone),
            "routesFile": str(directory / "routes.yaml"),
            "keysFile": str(directory / "keys.yaml"),
            "admin": written(self.admin),
            "limits": limits or {},
            **(settings or {}),
        }
        self.configure()
        keys = {"clusters": {str(CLUSTER): {"A": base64.b64encode(HINT).decode()}}}
        write_atomic(directory / "keys.yaml", json.dumps(keys), mode=0o600)
        self.route()
        self._process: asyncio.subprocess.Process | None = None

    def configure(self, **changes: object) -> None:
        """Replace the configuration file; a value of None leaves the field out."""
        self.config |= changes
        given = {name: value for name, value in self.config.items() if value is not None}
        write_atomic(self.directory / "relay.yaml", json.dumps(given))

    def route(self, *transceivers: Transceiver) -> None:
        """Replace the routes file."""
        routes = [
            {
                "cluster": CLUSTER,
                "ordinal": transceiver.route.ordinal,
                "worker": transceiver.route.worker,
                "address": transceiver.address,
            }
            for transceiver in transceivers
        ]
        write_atomic(self.directory / "routes.yaml", json.dumps({"routes": routes}))

    async def start(self) -> None:
        """Start it and wait until it is ready."""
        prefix = self.namespace.prefix if self.namespace else ()
        with (self.directory / "relay.log").open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *prefix,
                SUPERVISOR,
                "supervise",
                "--config",
                self.directory / "relay.yaml",
                stderr=log,
                stdout=log,
                env=self._environment,
            )
        process = self._process
        await eventually(lambda: self.is_ready() or process.returncode is not None, 20, check=False)
        assert self.is_ready(), f"not ready: {self._get('/readyz')[1]} {self.log()[-2000:]}"

    async def stop(self, number: signal.Signals = signal.SIGTERM, *, within_seconds: float = 5) -> int:
        """Signal it and wait; return the exit code."""
        self.signal(number)
        async with asyncio.timeout(within_seconds):
            return await self.ended()

    async def ended(self) -> int:
        """Wait until it has ended by itself; return the exit code."""
        assert self._process is not None
        return await self._process.wait()

    def signal(self, number: signal.Signals = signal.SIGTERM) -> None:
        assert self._process is not None
        if self._process.returncode is None:
            self._process.send_signal(number)

    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    def child(self, which: str) -> psutil.Process | None:
        """The supervisor's child `engine` or `control`, None while it is not there."""
        assert self._process is not None
        word = "run" if which == "engine" else "--config"
        try:
            children = psutil.Process(self._process.pid).children()
            return next(child for child in children if word in child.cmdline())
        except (psutil.NoSuchProcess, StopIteration):
            return None

    def kill(self, which: str) -> int:
        """kill -9 the supervisor's child `engine` or `control`; return its pid."""
        child = self.child(which)
        assert child is not None
        child.kill()
        return child.pid

    def is_ready(self) -> bool:
        return self._get("/readyz")[0] == 200

    def is_alive(self) -> bool:
        return self._get("/livez")[0] == 200

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all series `voicecluster_relay_NAME` that have these labels."""
        status, text = self._get("/metrics")
        assert status == 200
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == f"voicecluster_relay_{name}" and labels.items() <= sample.labels.items()
        )

    def drops(self, reason: str) -> float:
        return self.metric("drops_total", reason=reason)

    def log(self) -> str:
        return (self.directory / "relay.log").read_text()

    @contextmanager
    def _inside(self) -> Iterator[None]:
        with self.namespace.entered() if self.namespace else nullcontext():
            yield

    def _get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self.admin, timeout=2)
        try:
            with self._inside():
                connection.connect()
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()


class Scene:
    """A relay with transceivers behind it and callers before it; `close` ends them all."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._transceivers: list[Transceiver] = []
        self._parties: list[Reading] = []
        self._relays: list[RelayProcess] = []

    def transceiver(self, ordinal: int, host: str = "", namespace: Namespace | None = None) -> Transceiver:
        """A transceiver on its own loopback address; make it before the relay, which gets its route."""
        with namespace.entered() if namespace else nullcontext():
            bound = udp_socket((host or f"127.0.102.{10 + ordinal}", 0))
        return self.add(Transceiver(bound, ordinal))

    def add(self, party: Party, *, routed: bool = True) -> Party:
        """Close this party at the end as well; a transceiver gets a route, unless told otherwise."""
        self._parties.append(party)
        if isinstance(party, Transceiver) and routed:
            self._transceivers.append(party)
        return party

    async def relay(
        self,
        *vips: str,
        limits: dict[str, float] | None = None,
        namespace: Namespace | None = None,
        advertises: bool = True,
        settings: dict[str, object] | None = None,
        environment: dict[str, str] | None = None,
    ) -> RelayProcess:
        """Start a relay that serves a free port of each of these addresses, and advertises them unless told
        otherwise. `settings` replace fields of its configuration.
        """
        directory = self._directory / f"relay-{len(self._relays)}"
        directory.mkdir()
        with namespace.entered() if namespace else nullcontext():
            listeners: list[Peer] = [(host, free_port(host)) for host in vips or ("127.0.102.2",)]
        relay = RelayProcess(
            directory,
            [(vip, vip if advertises else None) for vip in listeners],
            limits=limits,
            namespace=namespace,
            settings=settings,
            environment=environment,
        )
        relay.route(*self._transceivers)
        self._relays.append(relay)
        await relay.start()
        return relay

    def caller(
        self, vip: Peer, owner: Transceiver, bind: Peer | None = None, namespace: Namespace | None = None
    ) -> Caller:
        """A caller of a new call that `owner` has."""
        with namespace.entered() if namespace else nullcontext():
            bound = udp_socket(bind or ("::1" if ":" in vip[0] else "127.0.0.1", 0))
        return self.add(Caller(bound, vip, owner.route))

    async def close(self) -> None:
        for party in self._parties:
            party.close()
        for relay in self._relays:
            await relay.stop(signal.SIGINT)
