"""A real Kubernetes API server on loopback: etcd and kube-apiserver, with nothing else of a cluster.

No controllers run: no pods, no garbage collection, namespaces stay. Every request is in the audit log when its
answer arrives. Users are static tokens: `admin` (the tests) and others of group system:masters by name.
"""

import json
import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.operator.certificates import Certificates

USERS = ("admin", "operator", "other-operator")
_CACHE = Path.home() / ".cache" / "localcluster"
_READY_SECONDS = 60.0
_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [
        {"level": "Metadata", "resources": [{"group": "", "resources": ["secrets"]}]},
        {"level": "Metadata", "verbs": ["get", "list", "watch"]},
        {"level": "Request"},
    ],
}


class MissingAssets(Exception):
    """There is no kube-apiserver on this machine. `str()` says how to get one."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the API server's audit log has it."""

    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    body: dict[str, Any] | None
    """What was sent; None for reads and for Secrets."""

    @property
    def writes(self) -> bool:
        """Whether it was to change something."""
        return self.verb not in ("get", "list", "watch")

    def __str__(self) -> str:
        path = "/".join(part for part in (self.resource, self.namespace, self.name, self.subresource) if part)
        return f"{self.user} {self.verb} {path}: {self.code}"


def assets() -> Path:
    """The folder with etcd, kube-apiserver and kubectl. Raises MissingAssets."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    places = [Path(given)] if given else sorted(_CACHE.glob("v*"), reverse=True)
    for place in places:
        if all((place / name).exists() for name in ("etcd", "kube-apiserver", "kubectl")):
            return place
    raise MissingAssets(
        "the operator's tests need a real kube-apiserver: run `make e2e-setup`, which builds one into"
        f" {_CACHE}, or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver and kubectl"
    )


class ApiServer:
    """One API server with its etcd. `start` and `stop` once each."""

    def __init__(self, home: Path) -> None:
        """Everything it writes is under `home`."""
        self.home = home
        self._assets = assets()
        self._certificates = Certificates(home)
        self._port, self._etcd, self._etcd_peers = _free_ports(3)
        self._running: list[subprocess.Popen[bytes]] = []
        self.audit_log = home / "audit.log"
        self.url = f"https://127.0.0.1:{self._port}"
        self.ca_file = self._certificates.ca_file

    def start(self) -> None:
        """Return when it is ready. Raises AssertionError with the end of its log when it does not come up."""
        (self.home / "policy.json").write_text(json.dumps(_POLICY))
        tokens = [f'{user}-token,{user},{user},"system:masters"' for user in USERS]
        (self.home / "tokens.csv").write_text("\n".join(tokens) + "\n")
        client, peers = (f"http://127.0.0.1:{port}" for port in (self._etcd, self._etcd_peers))
        # fmt: off
        self._run("etcd", "--data-dir", str(self.home / "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
                  "--listen-client-urls", client, "--advertise-client-urls", client,
                  "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                  "--initial-cluster", f"default={peers}")
        self._run("kube-apiserver", "--etcd-servers", client,
                  "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1",
                  "--secure-port", str(self._port), "--endpoint-reconciler-type", "none",
                  "--tls-cert-file", str(self._certificates.server_certificate),
                  "--tls-private-key-file", str(self._certificates.server_key),
                  "--service-cluster-ip-range", "10.96.0.0/16,fd00:10:96::/112",
                  "--authorization-mode", "RBAC", "--token-auth-file", str(self.home / "tokens.csv"),
                  "--disable-admission-plugins", "ServiceAccount",
                  "--service-account-issuer", "https://kubernetes.default.svc",
                  "--service-account-key-file", str(self._certificates.server_key),
                  "--service-account-signing-key-file", str(self._certificates.server_key),
                  "--audit-policy-file", str(self.home / "policy.json"), "--audit-log-path", str(self.audit_log),
                  "--audit-log-mode", "blocking")
        # fmt: on
        self._wait_until_ready()

    def stop(self) -> None:
        """End both processes."""
        for process in reversed(self._running):
            process.terminate()
        for process in self._running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def kubeconfig(self, user: str = "admin", *, url: str | None = None, ca_file: Path | None = None) -> Path:
        """A kubeconfig file for one of `USERS`; `url` where it goes through a proxy."""
        file = self.home / f"{user}-{abs(hash(url))}.kubeconfig"
        cluster = {"server": url or self.url, "certificate-authority": str(ca_file or self.ca_file)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": f"{user}-token"}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        }
        file.write_text(json.dumps(config))
        return file

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints. Raises AssertionError with its complaint when it fails."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def try_kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """How kubectl ended, well or not."""
        command = [str(self._assets / "kubectl"), "--kubeconfig", str(self.kubeconfig()), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)

    def request(
        self, method: str, path: str, body: object | None = None, *, media_type: str = "application/json"
    ) -> dict[str, Any]:
        """One request as `admin`. Raises urllib.error.HTTPError."""
        request = urllib.request.Request(
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": "Bearer admin-token", "Content-Type": media_type},
        )
        context = ssl.create_default_context(cafile=self.ca_file)
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            text = answer.read()
        found: dict[str, Any] = json.loads(text) if text[:1] == b"{" else {"text": text.decode()}
        return found

    def mark(self) -> int:
        """The present end of the audit log, for `calls`."""
        return self.audit_log.stat().st_size

    def calls(self, since: int = 0, *, user: str | None = None) -> list[Call]:
        """The requests that were answered after `mark` returned `since`."""
        with self.audit_log.open("rb") as log:
            log.seek(since)
            lines = log.read().splitlines()
        found = [_call(json.loads(line)) for line in lines if line.endswith(b"}")]
        return [call for call in found if user is None or call.user == user]

    def _run(self, program: str, *arguments: str) -> None:
        with (self.home / f"{program}.log").open("wb") as log:
            self._running.append(
                subprocess.Popen([str(self._assets / program), *arguments], stdout=log, stderr=log)
            )

    def _wait_until_ready(self) -> None:
        def ready() -> bool:
            try:
                return self.request("GET", "/readyz")["text"] == "ok"
            except (OSError, urllib.error.HTTPError):
                return False

        deadline = time.monotonic() + _READY_SECONDS
        while not ready():
            dead = [process.args for process in self._running if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                end = (self.home / "kube-apiserver.log").read_text(errors="replace")[-2000:]
                self.stop()
                raise AssertionError(f"kube-apiserver did not get ready; its log ends with:\n{end}")
            time.sleep(0.1)


def until(good: Callable[[], Any], *, seconds: float = 10.0, what: str = "it", every: float = 0.05) -> Any:
    """Ask until the answer is truthy, and return it. Raises AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := good()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(every)
    return found


def _call(record: dict[str, Any]) -> Call:
    about = record.get("objectRef", {})
    return Call(
        user=record["user"].get("username", ""),
        verb=record["verb"],
        resource=about.get("resource", record["requestURI"]),
        subresource=about.get("subresource", ""),
        namespace=about.get("namespace", ""),
        name=about.get("name", ""),
        code=record.get("responseStatus", {}).get("code", 0),
        body=record.get("requestObject"),
    )


def _free_ports(count: int) -> Iterator[int]:
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in taken]
    for each in taken:
        each.close()
    return iter(ports)
