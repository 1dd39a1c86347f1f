"""The real `voicecluster-operator` as a process of its own, against a real API server."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.integration.operator.apiserver import ApiServer, until

_NUMBERS = itertools.count(1)
PROGRAM = Path(sys.executable).with_name("voicecluster-operator")
LEASE_NAMESPACE = "operator-system"


class Operator:
    """One replica. `start` and `stop` (or `kill`) once each; a restart is another one."""

    def __init__(
        self,
        apiserver: ApiServer,
        home: Path,
        *,
        namespace: str,
        user: str = "operator",
        url: str | None = None,
        lease_namespace: str = LEASE_NAMESPACE,
        name: str = "operator",
        options: tuple[str, ...] = (),
    ) -> None:
        """`url`: where it finds the API server, if that is not the server itself."""
        self._log = home / f"{name}-{next(_NUMBERS)}.log"
        self._environ = os.environ | {
            "KUBECONFIG": str(apiserver.kubeconfig(user, url=url)),
            "POD_NAMESPACE": lease_namespace,
            "POD_NAME": name,
        }
        # fmt: off
        self._command = [
            str(PROGRAM), "--namespace", namespace, "--admin", "127.0.0.1:0",
            "--relay-image", "registry.test/relay:1", "--transceiver-image", "registry.test/transceiver:1", *options,
        ]
        # fmt: on
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Operator":
        """Return when its probes answer."""
        self.launch()
        until(self._admin, seconds=20, what="the operator's start")
        return self

    def launch(self) -> None:
        """Start it, and wait for nothing."""
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(self._command, env=self._environ, stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether the process has not ended."""
        return self._process is not None and self._process.poll() is None

    def stop(self, *, seconds: float = 10.0) -> int:
        """SIGTERM. Returns the exit code; raises TimeoutExpired when it does not end in time."""
        assert self._process is not None
        if self.runs:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def wait(self, seconds: float) -> int:
        """Its exit code, when it ends by itself."""
        assert self._process is not None
        return self._process.wait(seconds)

    def lines(self) -> list[dict[str, Any]]:
        """Its log."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]

    def log(self) -> str:
        """Its log as text."""
        return self._log.read_text()

    @property
    def leads(self) -> bool:
        """Whether it is the leader."""
        return self.metric("voicecluster_operator_leader") == 1.0

    def ready(self) -> bool:
        """What /readyz says."""
        return self._get("/readyz")[0] == 200

    def health(self, path: str) -> dict[str, Any]:
        """What a probe answers."""
        found: dict[str, Any] = json.loads(self._get(path)[1])
        return found

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        text = self._get("/metrics")[1]
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))

    def reconciled(self) -> bool:
        """Whether it got through a whole reconcile; also to be asked while it starts, or is being killed."""
        try:
            return self.metric("voicecluster_operator_reconcile_seconds_count") > 0
        except (OSError, AssertionError):
            return False

    def peak_bytes(self) -> int:
        """The most memory that it has had."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", status)
        assert found is not None
        return int(found[1]) * 1024

    def _admin(self) -> str | None:
        assert self.runs, f"the operator ended: {self.log()[-2000:]}"
        started = [line for line in self.lines() if line["message"] == "started"]
        return started[-1]["admin"] if started else None

    def _get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://{self._admin()}{path}", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
