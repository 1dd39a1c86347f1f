"""Processes: restart of the dead, orderly ends, what callers of lost calls are told, and nothing left."""

import asyncio
import base64
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from voicecluster.wire import binding_request, parse_stun

from tests.integration.transceiver.client import Client, ClientOpener
from tests.integration.transceiver.stack import Stack, StackWriter

RESTART_SECONDS = 2.0


def _fetch(url: str) -> str:
    with urllib.request.urlopen(url, timeout=2) as reply:
        text: str = reply.read().decode()
        return text


def _value(metrics: str, start: str) -> float:
    return sum(float(line.split()[-1]) for line in metrics.splitlines() if line.startswith(start))


async def _metrics_when_idle(stack: Stack, region: str) -> str:
    """The metrics as soon as they show no call."""
    async with asyncio.timeout(5):
        while True:
            metrics = await asyncio.to_thread(_fetch, f"{stack.admin[region]}/metrics")
            if _value(metrics, "voicecluster_transceiver_calls{") == 0:
                return metrics


async def test_a_killed_worker_takes_calls_again_within_two_seconds(stack: Stack, client: Client) -> None:
    before = set(stack.worker_pids("us-east"))
    (pid,) = before
    killed = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    while True:
        with contextlib.suppress(AssertionError, aiohttp.ClientError):
            await client.dial(region="us-east")
            break
        assert time.monotonic() - killed < RESTART_SECONDS
        await asyncio.sleep(0.02)
    assert time.monotonic() - killed < RESTART_SECONDS
    assert not before & set(stack.worker_pids("us-east"))
    await client.hear()


async def test_a_restarted_worker_answers_checks_of_lost_calls_with_a_signed_400(
    stack: Stack, client: Client
) -> None:
    await client.dial(region="us-east")
    ufrag, pwd = (
        next(line for line in client.answer.splitlines() if line.startswith(f"a={name}:")).partition(":")[2]
        for name in ("ice-ufrag", "ice-pwd")
    )
    (pid,) = stack.worker_pids("us-east")
    os.kill(pid, signal.SIGKILL)
    request = binding_request(
        bytes(12), username=f"{ufrag}:abcd", password=pwd, priority=1, ice_controlling=1
    )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as checking:
        checking.bind((stack.forwarder.vip[0], 0))
        checking.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(RESTART_SECONDS):
            while True:
                checking.sendto(request, stack.forwarder.vip)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.1):
                        answer = await loop.sock_recv(checking, 2048)
                        break
    message = parse_stun(answer)
    assert (message.cls, message.error_code) == ("error", 400)
    assert message.verify(pwd)
    assert len(answer) <= len(request)


async def test_fifty_calls_leave_no_task_no_socket_and_no_nonce_behind(stack: Stack, client: Client) -> None:
    (pid,) = stack.worker_pids("us-east")
    worker = psutil.Process(pid)
    offer = await client.offer()
    headers = {"Authorization": "Bearer test-key", "Content-Type": "application/sdp"}
    sockets = None
    for count in range(50):
        url = f"{stack.signaling}/v1/realtime/calls?region=us-east"
        async with client.http.post(url, data=offer, headers=headers) as reply:
            assert reply.status == 201
            location = reply.headers["Location"]
        async with client.http.post(f"{stack.signaling}{location}/hangup", headers=headers) as reply:
            assert reply.status == 200
        if count == 9:
            sockets = worker.num_fds()
    metrics = await _metrics_when_idle(stack, "us-east")
    assert _value(metrics, "voicecluster_transceiver_media_ufrags{") == 0
    assert _value(metrics, "voicecluster_transceiver_tasks{") < 40
    assert sockets is not None
    assert worker.num_fds() <= sockets + 4


async def test_the_parents_metrics_are_those_of_all_workers(stack: Stack) -> None:
    metrics = _fetch(f"{stack.admin['eu-west']}/metrics")
    for worker in ("0", "1"):
        assert f'voicecluster_transceiver_calls{{worker="{worker}"}}' in metrics
        assert f'voicecluster_transceiver_worker_ready{{worker="{worker}"}} 1' in metrics


async def test_logs_are_json_and_tell_a_calls_end_without_secrets(stack: Stack, client: Client) -> None:
    await client.dial(region="us-east")
    await client.hear()
    await client.ask("POST", "/hangup")
    call_id = client.location.rpartition("/")[2]
    async with asyncio.timeout(5):
        while True:
            lines = [line for line in stack.log("us-east") if line.get("call_id") == call_id]
            if any(line["message"] == "call ended" for line in lines):
                break
            await asyncio.sleep(0.02)
    assert [line["message"] for line in lines] == ["call answered", "call ended"]
    assert lines[1]["reason"] == "hangup"
    assert lines[1]["dtls_ms"] is not None
    everything = json.dumps(stack.log("us-east"))
    assert "test-key" not in everything
    assert "ice-pwd" not in everything
    pwd = next(line for line in client.answer.splitlines() if line.startswith("a=ice-pwd:"))
    assert pwd.partition(":")[2] not in everything


async def test_a_drained_transceiver_keeps_its_calls_and_tells_them(
    new_stack: StackWriter, client_of: ClientOpener
) -> None:
    stack = new_stack(limits={"drainTimeoutSeconds": 30})
    stack.start("us-east")
    stack.wait_ready("us-east")
    async with client_of(stack.signaling) as client:
        await client.dial(region="us-east")
        await client.event("session.created")
        stack.processes["us-east"].send_signal(signal.SIGTERM)
        await client.event("voicecluster.draining")
        with pytest.raises(urllib.error.HTTPError):
            _fetch(f"{stack.admin['us-east']}/readyz")
        while not client.heard.empty():
            client.heard.get_nowait()
        await client.hear()
        assert stack.processes["us-east"].poll() is None
        await client.peer.close()
        await asyncio.to_thread(stack.processes["us-east"].wait, 5)
    assert stack.processes["us-east"].returncode == 0


async def test_a_second_signal_ends_a_drain_at_once(new_stack: StackWriter, client_of: ClientOpener) -> None:
    stack = new_stack(limits={"drainTimeoutSeconds": 30})
    stack.start("us-east")
    stack.wait_ready("us-east")
    async with client_of(stack.signaling) as client:
        await client.dial(region="us-east", model="parrot")
        await client.event("session.created")
        stack.processes["us-east"].send_signal(signal.SIGTERM)
        await client.event("voicecluster.draining")
        stack.processes["us-east"].send_signal(signal.SIGTERM)
        await asyncio.to_thread(stack.processes["us-east"].wait, 3)


def test_no_worker_outlives_its_parent(new_stack: StackWriter) -> None:
    stack = new_stack()
    stack.start("eu-west")
    stack.wait_ready("eu-west")
    workers = [psutil.Process(pid) for pid in stack.worker_pids("eu-west")]
    assert sorted(" ".join(each.cmdline()).strip() for each in workers) == [
        "voicecluster-transceiver worker --index 0",
        "voicecluster-transceiver worker --index 1",
    ]
    stack.processes["eu-west"].kill()
    _, alive = psutil.wait_procs(workers, timeout=3)
    assert not alive


def _run(config: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "voicecluster.transceiver.main", "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"regoin": "x"}, ["eu-west.json", "regoin", "unknown field"]),
        ({"defaultAgent": "cuckoo"}, ["defaultAgent", "parrot"]),
        ({"keysFile": "/nowhere/keys.json"}, ["/nowhere/keys.json"]),
        ({"auth": {"mode": "APIKey"}}, ["apiKeysDir"]),
        ({"logLevel": "LOUD"}, ["LOUD"]),
        ({"drainTokenFile": "/nowhere/token"}, ["/nowhere/token", "drainTokenFile"]),
    ],
)
def test_a_bad_config_is_one_line_and_exit_code_2(
    new_stack: StackWriter, changes: dict[str, object], names: list[str]
) -> None:
    result = _run(new_stack(**changes).configs["eu-west"])
    assert result.returncode == 2
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, lines
    assert all(name in lines[0] for name in names), lines


@pytest.mark.parametrize("field", ["signaling", "internal", "media", "admin"])
def test_a_taken_port_is_named_with_its_holder(new_stack: StackWriter, field: str) -> None:
    stack = new_stack()
    config = json.loads(stack.configs["eu-west"].read_text())
    addresses = {
        "signaling": config["signaling"],
        "internal": f"{config['internalAddress']}:{config['internalPort'] + 1}",
        "media": f"{config['mediaAddress']}:{config['mediaPort'] + 1}",
        "admin": config["admin"],
    }
    host, _, port = addresses[field].rpartition(":")
    kind = socket.SOCK_DGRAM if field == "media" else socket.SOCK_STREAM
    with socket.socket(socket.AF_INET, kind) as holding:
        holding.bind((host, int(port)))
        if field != "media":
            holding.listen()
        result = _run(stack.configs["eu-west"])
    assert result.returncode == 2
    last = result.stderr.strip().splitlines()[-1]
    assert addresses[field] in last
    assert f"pid {os.getpid()}" in last


async def test_a_new_root_key_is_used_without_a_restart(
    new_stack: StackWriter, client_of: ClientOpener
) -> None:
    stack = new_stack()
    stack.start("us-east")
    stack.wait_ready("us-east")
    file = stack.directory / "keys.json"
    content = json.loads(file.read_text())
    content["keys"]["B"], content["mint"] = base64.b64encode(bytes(range(32))).decode(), "B"
    async with client_of(stack.signaling) as client:
        await client.dial(region="us-east")
        file.with_suffix(".new").write_text(json.dumps(content))
        file.with_suffix(".new").rename(file)
        headers = {"Authorization": "Bearer test-key", "Content-Type": "application/sdp"}
        url = f"{stack.signaling}/v1/realtime/calls?region=us-east"
        async with asyncio.timeout(5):
            location = ""
            while "rtc_B" not in location:
                async with client.http.post(
                    url, data=client.peer.localDescription.sdp, headers=headers
                ) as reply:
                    location = reply.headers["Location"]
        status, _ = await client.ask("GET", "/debug")
        assert status == 200, "the call of the former key is still found"


async def test_a_full_transceiver_hands_over_to_its_sibling_and_then_says_503(
    new_stack: StackWriter, client_of: ClientOpener
) -> None:
    stack = new_stack(limits={"callsPerWorker": 1})
    stack.start("eu-west")
    stack.wait_ready("eu-west")
    headers = {"Authorization": "Bearer test-key", "Content-Type": "application/sdp"}
    url = f"{stack.signaling}/v1/realtime/calls"
    async with client_of(stack.signaling) as client:
        offer = await client.offer()
        statuses = []
        for _ in range(3):
            async with client.http.post(url, data=offer, headers=headers) as reply:
                statuses.append(reply.status)
                retry = reply.headers.get("Retry-After")
    assert statuses == [201, 201, 503]
    assert retry is not None


def _self_signed(directory: Path) -> dict[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    files = {"certFile": str(directory / "cert.pem"), "keyFile": str(directory / "key.pem")}
    Path(files["certFile"]).write_bytes(certificate.public_bytes(Encoding.PEM))
    plain = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    Path(files["keyFile"]).write_bytes(plain)
    return files


async def test_the_public_port_speaks_tls_where_the_config_says_so(
    new_stack: StackWriter, tmp_path: Path
) -> None:
    stack = new_stack()
    config = json.loads(stack.configs["us-east"].read_text())
    config["tls"] = _self_signed(tmp_path)
    stack.configs["us-east"].write_text(json.dumps(config))
    stack.start("us-east")
    await asyncio.to_thread(stack.wait_ready, "us-east")
    url = stack.signaling.replace("http:", "https:") + "/v1/realtime/regions"
    async with aiohttp.ClientSession() as http, http.get(url, ssl=False) as reply:
        assert reply.status == 200


def test_unusable_tls_files_are_one_line_and_exit_code_2(new_stack: StackWriter, tmp_path: Path) -> None:
    stack = new_stack()
    config = json.loads(stack.configs["us-east"].read_text())
    config["tls"] = _self_signed(tmp_path)
    (tmp_path / "key.pem").write_text("not a key")
    stack.configs["us-east"].write_text(json.dumps(config))
    result = _run(stack.configs["us-east"])
    assert result.returncode == 2
    (line,) = result.stderr.strip().splitlines()
    assert "cert.pem: tls: " in line
