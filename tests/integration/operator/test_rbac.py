"""The chart's roles are what the operator's calls need: with them alone it does all its work, and uses all of them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_python import Chart

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.grants import Grant, account, forbidden, grants, records, used

CHART = Path(__file__).parents[3] / "charts" / "voicecluster-operator"
OPERATOR = "vc-voicecluster-operator"
KINDS = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount")


class Installed:
    """The chart's roles on the API server, and the operator's process with no other rights."""

    def __init__(self, apiserver: ApiServer, namespace: str, home: Path, values: dict[str, Any]) -> None:
        self.apiserver = apiserver
        self.namespace = namespace
        self.since = apiserver.mark()
        self._home = home
        self.log = home / "operator.log"
        with Chart.load(CHART) as chart:
            manifests = chart.render({"crds": {"enabled": False}} | values, name="vc", namespace=namespace)
        found = [
            document
            for path, manifest in manifests.items()
            if not path.endswith("NOTES.txt")
            for document in yaml.safe_load_all(manifest)
            if document
        ]
        self.objects = [document for document in found if document["kind"] in KINDS]
        [deployment] = [document for document in found if document["kind"] == "Deployment"]
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        self.arguments: list[str] = container["args"]
        self.users = {account(namespace, OPERATOR)}

    @property
    def roles(self) -> list[dict[str, Any]]:
        """What the operator itself has; the others are for people."""
        bound = {
            (each["roleRef"]["kind"], each["roleRef"]["name"]) for each in self.objects if "roleRef" in each
        }
        return [each for each in self.objects if (each["kind"], each["metadata"]["name"]) in bound]

    def audit(self) -> list[dict[str, Any]]:
        return list(records(self.apiserver.audit_log, since=self.since))

    def apply(self, *objects: dict[str, Any]) -> None:
        self.apiserver.kubectl("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))

    def start(self) -> None:
        """Apply the roles and start the operator as their account."""
        self.apply(*self.objects)
        token = self.apiserver.kubectl("create", "token", OPERATOR, "-n", self.namespace).strip()
        config = yaml.safe_load(self.apiserver.kubeconfig().read_text())
        config["users"][0]["user"] = {"token": token}
        kubeconfig = self._home / "kubeconfig"
        kubeconfig.write_text(json.dumps(config))
        log = self.log.open("wb")
        self.process = subprocess.Popen(
            [
                str(Path(sys.executable).parent / "voicecluster-operator"),
                *self.arguments,
                "--admin",
                "127.0.0.1:0",
            ],
            env=os.environ
            | {"KUBECONFIG": str(kubeconfig), "POD_NAME": "op", "POD_NAMESPACE": self.namespace},
            stdout=log,
            stderr=log,
        )

    def stop(self) -> None:
        """End the operator; only then are its watches in the audit log."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


@pytest.fixture(params=["everywhere", "namespaced"])
def installed(
    request: pytest.FixtureRequest, apiserver: ApiServer, namespace: str, tmp_path: Path
) -> Iterator[Installed]:
    values: dict[str, Any] = {"hostNetwork": {"enabled": True}}
    if request.param == "namespaced":
        values = {"watchNamespaces": [namespace]}
    found = Installed(apiserver, namespace, tmp_path, values)
    found.start()
    yield found
    found.stop()
    apiserver.kubectl("delete", "clusterrole,clusterrolebinding", "-l", "app.kubernetes.io/instance=vc")


def cluster(namespace: str, regions: list[dict[str, Any]], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "voicecluster.dev/v1alpha1",
        "kind": "VoiceCluster",
        "metadata": {"name": "voice", "namespace": namespace},
        "spec": {"clusterId": 9, "regions": regions, **spec},
    }


def region(name: str, index: int, **vip: Any) -> dict[str, Any]:
    wanted = vip or {"mode": "External", "addresses": [f"203.0.113.{index + 1}"]}
    return {"name": name, "index": index, "relay": {"vip": wanted}}


def outdated_pod(namespace: str) -> dict[str, Any]:
    """A transceiver that never ran, of a template that is not the present one: to be deleted at once."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "voice-main-transceiver-0",
            "namespace": namespace,
            "labels": {
                "app.kubernetes.io/managed-by": "voicecluster-operator",
                "app.kubernetes.io/component": "transceiver",
                "controller-revision-hash": "old",
                "voicecluster.dev/cluster": "voice",
                "voicecluster.dev/region": "main",
            },
        },
        "spec": {"containers": [{"name": "transceiver", "image": "transceiver"}]},
    }


def test_with_the_charts_roles_the_operator_does_all_its_work_and_uses_every_verb(
    installed: Installed,
) -> None:
    api, namespace = installed.apiserver, installed.namespace
    everywhere = "--nodes" in installed.arguments

    def names(kinds: str) -> str:
        return api.kubectl("get", kinds, "-n", namespace, "-o", "name")

    edge = region("edge", 1, mode="HostNetwork") if everywhere else region("edge", 1)
    policy = {"networkPolicy": {"nodeCIDRs": ["192.0.2.0/24"]}} if everywhere else {}
    installed.apply(cluster(namespace, [region("main", 0), edge], **policy))
    until(lambda: "voice-edge-relay" in names("daemonset"), seconds=30, what="the relays of a new cluster")
    until(lambda: "KeysGenerated" in api.kubectl("get", "events", "-n", namespace), what="an event")

    revision = {
        "status": {"observedGeneration": 9, "replicas": 1, "updateRevision": "new", "currentRevision": "old"}
    }
    path = f"/apis/apps/v1/namespaces/{namespace}/statefulsets/voice-main-transceiver/status"
    until(lambda: "voice-main-transceiver" in names("statefulset"), what="the transceivers of a new cluster")
    api.request("PATCH", path, revision, media_type="application/merge-patch+json")
    installed.apply(outdated_pod(namespace))
    until(lambda: not names("pod"), what="deleting an outdated transceiver that never ran")

    installed.apply(
        cluster(namespace, [region("main", 0)], networkPolicy={"enabled": False}, redis={"mode": "None"})
    )
    until(lambda: not names("networkpolicy"), what="pruning NetworkPolicies")
    until(lambda: "voice-edge" not in names("voiceregion"), what="pruning a region")

    installed.stop()
    assert forbidden(installed.audit(), installed.users) == set()
    until(
        lambda: Grant("", "pods", "watch") in used(installed.audit(), installed.users), what="the audit log"
    )
    unused = grants(installed.roles) - used(installed.audit(), installed.users)
    assert sorted(map(str, unused)) == []
    ours = [line for line in installed.log.read_text().splitlines() if f'"{namespace}/' in line]
    assert [line for line in ours if "reconcile failed" in line] == []  # other tests' clusters may fail
