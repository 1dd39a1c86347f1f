"""VoiceClusters on the cluster under test, and calls to them from outside of its nodes."""

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.e2e.cluster import Cluster, Object

API_VERSION = "voicecluster.dev/v1alpha1"
READY_SECONDS = 60.0
"""The promise: from `kubectl apply` of an example until Ready."""
_CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Call:
    """A call as the caller reports it, after its end."""

    heard: bool
    """Whether audio came back: that is what a call is for."""
    error: str
    region: str
    transceiver: str
    relay: str
    """Address of the relay that the transceiver last heard through."""
    vip: str
    client: str
    """The caller's address as the transceiver saw it, without the port."""
    lost: int

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> "Call":
        """Read what `voicecluster call --json` printed."""
        debug = report.get("debug") or {}
        return cls(
            heard=report["ok"],
            error=report.get("error") or "",
            region=debug.get("region", ""),
            transceiver=debug.get("transceiver", ""),
            relay=host_of(debug.get("relay")),
            vip=host_of(debug.get("vip")),
            client=host_of(debug.get("client")),
            lost=report.get("lost") or 0,
        )


@dataclass(frozen=True, slots=True)
class Deployed:
    """A VoiceCluster that has been Ready."""

    cluster: Cluster
    namespace: str
    name: str
    ready_seconds: float
    """From `kubectl apply` until Ready."""
    url: str
    """Where callers signal to."""
    key: str | None = field(repr=False)
    """An API key; None where none is needed."""

    def resource(self) -> Object:
        """The VoiceCluster of now."""
        return self.cluster.get("voicecluster", self.name, self.namespace)

    def condition(self, kind: str) -> Object | None:
        """A condition of now, None while there is none of this type."""
        conditions = self.resource().get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == kind), None)

    def region(self, name: str) -> Object:
        """The VoiceRegion of now."""
        return self.cluster.get("voiceregion", f"{self.name}-{name}", self.namespace)

    def vips(self, region: str) -> list[str]:
        """The addresses that status gives for a region."""
        regions = self.resource()["status"]["regions"]
        return [vip["address"] for each in regions if each["name"] == region for vip in each["vips"]]

    def pods(self, component: str, region: str | None = None) -> list[Object]:
        """Its pods of a component, by name; those that are being deleted too."""
        selector = f"voicecluster.dev/cluster={self.name},app.kubernetes.io/component={component}"
        if region is not None:
            selector += f",voicecluster.dev/region={region}"
        return self.cluster.list("pods", self.namespace, selector)

    def call(self, *, region: str | None = None, ip: int = 4, seconds: float = 4.0) -> Call:
        """Call the echo from outside of the nodes and hang up."""
        # fmt: off
        command = [
            sys.executable, "-m", "voicecluster.cli.main", "call", self.url, "--json", "--ip", str(ip),
            "--seconds", str(seconds), *(["--region", region] if region else []),
        ]
        # fmt: on
        environment = os.environ | ({"VOICECLUSTER_API_KEY": self.key} if self.key is not None else {})
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_CALL_SECONDS, check=False
        )
        assert done.stdout, f"no report; it said: {done.stderr}"
        return Call.of(json.loads(done.stdout))

    def delete(self) -> None:
        """Delete it and wait until nothing of it is left but what is going."""
        gone = ("--wait=true", "--ignore-not-found")
        self.cluster.kubectl("delete", "voicecluster", self.name, "-n", self.namespace, *gone)


def from_file(file: Path) -> Object:
    """The VoiceCluster of an example file."""
    found = [each for each in yaml.safe_load_all(file.read_text()) if each["kind"] == "VoiceCluster"]
    [resource] = found
    return dict(resource)


def of_spec(name: str, spec: Mapping[str, Any]) -> Object:
    """A VoiceCluster with this spec."""
    return {"apiVersion": API_VERSION, "kind": "VoiceCluster", "metadata": {"name": name}, "spec": dict(spec)}


def deploy(cluster: Cluster, namespace: str, resource: Object, *, seconds: float = READY_SECONDS) -> Deployed:
    """Apply a VoiceCluster and wait until it is Ready. Raises AssertionError with its conditions if it takes longer."""
    name = resource["metadata"]["name"]
    cluster.apply(namespace, resource)
    ready = f"voicecluster/{name}"
    try:
        took = cluster.wait("--for=condition=Ready", ready, namespace=namespace, seconds=seconds)
    except AssertionError as error:
        status = cluster.get("voicecluster", name, namespace).get("status", {})
        pods = cluster.kubectl("get", "pods", "-n", namespace, "-o", "wide")
        raise AssertionError(f"{error}\n{yaml.safe_dump(status.get('conditions'))}\n{pods}") from None
    urls = cluster.get("voicecluster", name, namespace)["status"]["signaling"]["urls"]
    by_key = resource["spec"].get("signaling", {}).get("auth", {}).get("mode", "APIKey") == "APIKey"
    return Deployed(
        cluster, namespace, name, took, urls[0], _api_key(cluster, namespace, name) if by_key else None
    )


def own_address_towards(address: str) -> str:
    """This machine's address on the way to another: the true address of a caller here."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as udp:
        udp.connect((address, 9))
        own: str = udp.getsockname()[0]
        return own


def host_of(address: str | None) -> str:
    """The host of `IP:PORT` or `[IPv6]:PORT`; empty for none."""
    return urlsplit(f"//{address}").hostname or "" if address else ""


def _api_key(cluster: Cluster, namespace: str, name: str) -> str:
    data = cluster.get("secret", f"{name}-api-keys", namespace)["data"]
    return base64.b64decode(next(iter(data.values()))).decode()
