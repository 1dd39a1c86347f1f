"""A Kubernetes cluster as the tests use it: kubectl, and what only some clusters let be done to them."""

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

Object: TypeAlias = dict[str, Any]
"""One Kubernetes object."""


class Machine(Protocol):
    """The machine beneath the cluster, where it is ours."""

    audit_log: Path
    """The API server's."""

    def power_off(self, node: str) -> None:
        """Like a power cut: its processes and its network are gone at once."""

    def power_on(self, node: str) -> None:
        """Returns when the node is Ready."""

    def stop_api(self) -> None:
        """Stop the API server; all else goes on."""

    def start_api(self) -> None:
        """Returns when it answers."""


@dataclass(frozen=True, slots=True)
class Images:
    """The images that were made of this source: `prefix` + component + `:` + tag."""

    prefix: str
    tag: str
    next_tag: str
    """Names the same images: what an upgrade changes to."""
    redis: str

    def of(self, component: str, *, upgraded: bool = False) -> str:
        return f"{self.prefix}{component}:{self.next_tag if upgraded else self.tag}"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that runs, with the images of this source on it or within its reach."""

    provider: str
    kubeconfig: Path
    kubectl_program: Path
    images: Images
    machine: Machine | None = None

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints. Raises AssertionError with its message if it fails."""
        done = self.try_kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr.strip()}"
        return done.stdout

    def try_kubectl(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Like `kubectl`, but failing is a result."""
        environment = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        return subprocess.run(
            [str(self.kubectl_program), *arguments],
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    def get(self, kind: str, name: str, namespace: str) -> Object:
        """One object. Raises AssertionError if it does not exist."""
        found: Object = json.loads(self.kubectl("get", kind, name, "-n", namespace, "-o", "json"))
        return found

    def list(self, kind: str, namespace: str, selector: str = "") -> list[Object]:
        """The objects of a kind in a namespace, by name."""
        found = json.loads(self.kubectl("get", kind, "-n", namespace, "-l", selector, "-o", "json"))
        items: list[Object] = found["items"]
        return items

    def apply(self, namespace: str, *objects: Object) -> None:
        """`kubectl apply` of these objects in a namespace."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        self.kubectl("apply", "-n", namespace, "-f", "-", stdin=text)

    def wait(self, *arguments: str, namespace: str, seconds: float) -> float:
        """`kubectl wait`. Returns the seconds that it took; raises AssertionError if it takes longer."""
        began = time.monotonic()
        self.kubectl("wait", "-n", namespace, f"--timeout={seconds}s", *arguments)
        return time.monotonic() - began


def within(seconds: float, good: Callable[[], Any], what: str, *, every: float = 0.1) -> Any:
    """Ask until the answer is truthy, and return it. Raises AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := good()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(every)
    return found
