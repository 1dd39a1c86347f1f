"""Our side of `make bench-transceiver`: one transceiver of one worker behind one relay engine, from
configuration files in a temporary directory."""

import base64
import json
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from control import CLUSTER, Engine, free_port
from processes import child, engine_binary
from voicecluster import wire
from voicecluster.common.config.model import Model
from voicecluster.common.config.transceiver import (
    Auth,
    CallLimits,
    DirectoryFile,
    DirectoryRegion,
    RootKeysFile,
    Sibling,
    TransceiverConfig,
    Vip,
    VipsFile,
)

RELAY_HOST = "127.0.107.3"
TRANSCEIVER_HOST = "127.0.107.4"
READY_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where it answers, and whose CPU counts."""

    url: str
    transceiver_pid: int
    engine_pid: int


@contextmanager
def deployment(work: Path, *, measured_core: int, other_core: int, calls: int) -> Iterator[Deployment]:
    """Run both for the time of the block, the transceiver on the core to be measured."""
    root = secrets.token_bytes(32)
    vip = (RELAY_HOST, free_port(RELAY_HOST))
    media_port = free_port(TRANSCEIVER_HOST)
    internal, signaling, admin = (tcp_port(TRANSCEIVER_HOST) for _ in range(3))
    config = TransceiverConfig(
        name="bench",
        cluster_id=CLUSTER,
        region="bench",
        ordinal=0,
        workers=1,
        media_address=TRANSCEIVER_HOST,
        media_port=media_port,
        internal_address=TRANSCEIVER_HOST,
        internal_port=internal,
        admin=f"{TRANSCEIVER_HOST}:{admin}",
        signaling=f"{TRANSCEIVER_HOST}:{signaling}",
        auth=Auth(mode="None"),
        keys_file=work / "keys.json",
        vips_file=work / "vips.json",
        directory_file=work / "directory.json",
        limits=CallLimits(calls_per_worker=calls),
        log_level="WARNING",
    )
    sibling = Sibling(ordinal=0, host=TRANSCEIVER_HOST, internal_port=internal, workers=1)
    region = DirectoryRegion(name="bench", index=0, transceivers=[sibling])
    _write(work / "keys.json", RootKeysFile(mint="A", keys={"A": base64.b64encode(root).decode()}))
    _write(work / "vips.json", VipsFile(regions={"bench": [Vip(address=vip[0], port=vip[1])]}))
    _write(work / "directory.json", DirectoryFile(regions=[region]))
    _write(work / "transceiver.json", config)
    control = work / "relay.sock"
    program = Path(sys.executable).parent / "voicecluster-transceiver"
    with (
        child([str(engine_binary()), "run", "--control", str(control)], core=other_core) as engine_process,
        child([str(program), "--config", str(work / "transceiver.json")], core=measured_core) as transceiver,
    ):
        engine = Engine(control)
        engine.configure(
            vip=vip,
            backbone=(RELAY_HOST, free_port(RELAY_HOST)),
            sink=(TRANSCEIVER_HOST, media_port),
            key=wire.derive_key(root, "hint", CLUSTER),
        )
        engine.close()
        _await_ready(f"http://{TRANSCEIVER_HOST}:{admin}/readyz", transceiver)
        yield Deployment(f"http://{TRANSCEIVER_HOST}:{signaling}", transceiver.pid, engine_process.pid)


def tcp_port(host: str) -> int:
    """A TCP port of `host` that nobody had a moment ago."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _write(path: Path, model: Model) -> None:
    document = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    path.chmod(0o600)


def _await_ready(url: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            sys.exit(f"voicecluster-transceiver ended with {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=1) as response:
                if response.status == 200:
                    return
        except (urllib.error.URLError, OSError):
            time.sleep(0.05)
    sys.exit(f"voicecluster-transceiver was not ready within {READY_SECONDS:.0f} s ({url})")
