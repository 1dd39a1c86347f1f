"""Two transceivers as processes, each a parent with its workers, on loopback addresses of these tests' own."""

import asyncio
import base64
import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from voicecluster.wire import (
    HintKey,
    derive_key,
)

from tests.integration.transceiver.forwarder import HOST, Address, Forwarder

CLUSTER = 7
ORDINALS = {"eu-west": 0, "us-east": 1024}
WORKERS = {"eu-west": 2, "us-east": 1}
KEY = "test-key"
OTHER_KEY = "other-key"
AUTHORIZED = {"Authorization": f"Bearer {KEY}"}
READY_SECONDS = 50.0


@dataclass
class Stack:
    """Two regions' transceivers, each a parent with its workers."""

    directory: Path
    signaling: str
    admin: dict[str, str]
    forwarder: Forwarder
    configs: dict[str, Path]
    hint: HintKey
    media: dict[tuple[int, int], Address]
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    """What its processes have beside the tests' own."""

    def start(self, region: str) -> None:
        """Start a region's transceiver and wait until all its workers take calls."""
        log = (self.directory / f"{region}.log").open("ab")
        command = [
            sys.executable,
            "-m",
            "voicecluster.transceiver.main",
            "--config",
            str(self.configs[region]),
        ]
        environment = {**os.environ, **self.environment}
        self.processes[region] = subprocess.Popen(command, stderr=log, env=environment)
        log.close()

    def log(self, region: str) -> list[dict[str, object]]:
        """What it has logged."""
        lines = (self.directory / f"{region}.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_ready(self, region: str, seconds: float = READY_SECONDS) -> float:
        """Wait until `/readyz` says so; how long it took."""
        start = time.monotonic()
        while time.monotonic() - start < seconds:
            process = self.processes[region]
            assert process.poll() is None, (self.directory / f"{region}.log").read_text()
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(f"{self.admin[region]}/readyz", timeout=1)
                return time.monotonic() - start
            time.sleep(0.02)
        raise AssertionError((self.directory / f"{region}.log").read_text())

    def reconfigure(self, region: str, /, **changes: object) -> None:
        """Replace its configuration file, as a whole, with fields changed."""
        file = self.configs[region]
        content = json.loads(file.read_text()) | changes
        file.with_suffix(".new").write_text(json.dumps(content))
        file.with_suffix(".new").rename(file)

    async def logged(
        self,
        region: str,
        wanted: Callable[[dict[str, object]], bool] | str,
        count: int = 1,
        seconds: float = 20,
    ) -> list[dict[str, object]]:
        """The wanted lines of its log (a message, or a condition), as soon as there are so many."""
        is_wanted = (lambda line: line["message"] == wanted) if isinstance(wanted, str) else wanted
        async with asyncio.timeout(seconds):
            while True:
                lines = [line for line in self.log(region) if is_wanted(line)]
                if len(lines) >= count:
                    return lines
                await asyncio.sleep(0.02)

    def worker_pids(self, region: str) -> list[int]:
        """The workers, in no particular order."""
        children = psutil.Process(self.processes[region].pid).children()
        return [child.pid for child in children if child.name().startswith("worker-")]

    def stop(self, region: str) -> int:
        """End it at once; its exit code."""
        process = self.processes.pop(region)
        process.send_signal(signal.SIGINT)
        try:
            return process.wait(10)
        finally:
            process.kill()


def _free_ports(count: int) -> int:
    """The first of `count` ports that were free a moment ago."""
    while True:
        first = 20_000 + secrets.randbelow(10_000)
        try:
            for port in range(first, first + count):
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    with socket.socket(socket.AF_INET, kind) as probe:
                        probe.bind((HOST, port))
        except OSError:
            continue
        return first


def write_stack(directory: Path, **changes: object) -> Stack:
    """Write the files of both transceivers; `changes` are fields of their configurations."""
    secret = secrets.token_bytes(32)
    base = _free_ports(16)
    hint = HintKey("A", derive_key(secret, "hint", CLUSTER))
    ports = {"eu-west": base, "us-east": base + 6}
    media = {
        (ORDINALS[region], worker): (HOST, ports[region] + worker)
        for region, count in WORKERS.items()
        for worker in range(count)
    }
    forwarder = Forwarder(hint, media)
    keys = directory / "api-keys"
    keys.mkdir()
    (keys / "test").write_text(KEY)
    (keys / "other").write_text(OTHER_KEY)
    files: dict[str, object] = {
        "keys": {"mint": "A", "keys": {"A": base64.b64encode(secret).decode()}},
        "vips": {"regions": {region: [{"address": HOST, "port": forwarder.vip[1]}] for region in ORDINALS}},
        "directory": {
            "regions": [
                {
                    "name": region,
                    "index": ordinal >> 10,
                    "transceivers": [
                        {
                            "ordinal": ordinal,
                            "host": HOST,
                            "internalPort": ports[region] + 2,
                            "workers": WORKERS[region],
                        }
                    ],
                }
                for region, ordinal in ORDINALS.items()
            ]
        },
    }
    for name, content in files.items():
        (directory / f"{name}.json").write_text(json.dumps(content))
    stack = Stack(directory, f"http://{HOST}:{base + 12}", {}, forwarder, {}, hint, media)
    for region, ordinal in ORDINALS.items():
        config = {
            "name": f"{region}-0",
            "clusterId": CLUSTER,
            "region": region,
            "ordinal": ordinal,
            "workers": WORKERS[region],
            "mediaAddress": HOST,
            "mediaPort": ports[region],
            "internalAddress": HOST,
            "internalPort": ports[region] + 2,
            "admin": f"{HOST}:{ports[region] + 4}",
            "signaling": f"{HOST}:{base + 12}",
            "auth": {"apiKeysDir": str(keys)},
            "keysFile": str(directory / "keys.json"),
            "vipsFile": str(directory / "vips.json"),
            "directoryFile": str(directory / "directory.json"),
            **changes,
        }
        stack.configs[region] = directory / f"{region}.json"
        stack.configs[region].write_text(json.dumps(config))
        stack.admin[region] = f"http://{HOST}:{ports[region] + 4}"
    return stack


StackWriter = Callable[..., Stack]
