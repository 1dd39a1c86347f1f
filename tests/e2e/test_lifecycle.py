"""What GitOps tools and people do to a VoiceCluster that is Ready: nothing is written for nothing, nothing is left."""

import json
import time
from typing import Any

import pytest

from tests.e2e.cluster import Cluster, Machine, within
from tests.e2e.conftest import Deploy
from tests.e2e.providers import ROOT
from tests.e2e.voice import Deployed, from_file

WRITES = {"create", "update", "patch", "delete", "deletecollection"}
EXAMPLE = ROOT / "examples" / "minimal.yaml"
QUIET_SECONDS = 8.0
"""So long a status that follows from what was just done may take to be written."""
KINDS = (
    "configmaps,daemonsets,networkpolicies,pods,poddisruptionbudgets,rolebindings,roles,secrets,serviceaccounts,"
    "services,statefulsets,voiceclusters,voiceregions"
)


@pytest.fixture(scope="module")
def voice(deployed: Deploy) -> Deployed:
    return deployed(from_file(EXAMPLE))


def writes(machine: Machine, operator: str, since: float) -> list[tuple[str, str, str]]:
    """What the operator's account wrote since a time (seconds since 1970), its Lease left out."""
    account = f"system:serviceaccount:{operator}:"
    found = []
    for line in machine.audit_log.read_text().splitlines():
        record: dict[str, Any] = json.loads(line)
        where = record.get("objectRef", {})
        if (
            record["user"].get("username", "").startswith(account)
            and record["verb"] in WRITES
            and where.get("resource") != "leases"
            and record["requestReceivedTimestamp"] >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))
        ):
            found.append((record["verb"], where.get("resource", ""), where.get("name", "")))
    return found


def quiet(machine: Machine, operator: str) -> float:
    """Wait until the operator has written nothing for a while; returns the time then."""
    within(
        90, lambda: not writes(machine, operator, time.time() - QUIET_SECONDS), "a quiet operator", every=1
    )
    return time.time()


def test_the_same_file_again_labels_of_a_gitops_tool_and_a_restarted_operator_cause_no_write(
    voice: Deployed, cluster: Cluster, machine: Machine, operator: str
) -> None:
    since = quiet(machine, operator)
    cluster.kubectl("apply", "-n", voice.namespace, "-f", str(EXAMPLE))
    name = f"voicecluster/{voice.name}"
    cluster.kubectl("label", name, "-n", voice.namespace, "argocd.argoproj.io/instance=apps")
    cluster.kubectl("annotate", name, "-n", voice.namespace, "argocd.argoproj.io/tracking-id=apps:demo")
    cluster.kubectl("rollout", "restart", "deployment", "-n", operator)
    cluster.kubectl("rollout", "status", "deployment", "-n", operator, "--timeout=90s")
    seen = time.time()
    within(60, lambda: leads_since(cluster, operator, seen), "a new leader", every=0.5)
    time.sleep(QUIET_SECONDS)  # that nothing comes can only be waited for
    assert writes(machine, operator, since) == []


def leads_since(cluster: Cluster, operator: str, since: float) -> bool:
    """Whether the Lease was taken or renewed after a time, by an operator that still is."""
    lease = cluster.list("leases", operator)[0]["spec"]
    pods = {pod["metadata"]["name"] for pod in cluster.list("pods", operator)}
    renewed = lease.get("renewTime", "")
    return any(
        (lease.get("holderIdentity") or "").startswith(name) for name in pods
    ) and renewed >= time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(since))


def test_kubectl_diff_of_the_applied_file_is_empty(voice: Deployed, cluster: Cluster) -> None:
    done = cluster.try_kubectl("diff", "-n", voice.namespace, "-f", str(EXAMPLE))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "kind", ["daemonset", "service", "networkpolicy", "configmap", "poddisruptionbudget"]
)
def test_a_deleted_child_is_back_within_five_seconds(voice: Deployed, cluster: Cluster, kind: str) -> None:
    children = cluster.list(kind, voice.namespace, f"voicecluster.dev/cluster={voice.name}")
    name, uid = children[0]["metadata"]["name"], children[0]["metadata"]["uid"]
    cluster.kubectl("delete", kind, name, "-n", voice.namespace, "--wait=false")

    def back() -> bool:
        done = cluster.try_kubectl("get", kind, name, "-n", voice.namespace, "-o", "json")
        return done.returncode == 0 and json.loads(done.stdout)["metadata"]["uid"] != uid

    within(5, back, f"{kind} {name}")


def test_deleting_it_while_no_operator_runs_leaves_nothing(
    voice: Deployed, cluster: Cluster, operator: str
) -> None:
    [deployment] = cluster.list("deployments", operator)
    scale = ("scale", "deployment", deployment["metadata"]["name"], "-n", operator)
    cluster.kubectl(*scale, "--replicas=0")
    try:
        within(60, lambda: not cluster.list("pods", operator), "no operator runs")
        cluster.kubectl("delete", "voicecluster", voice.name, "-n", voice.namespace)
        selector = f"voicecluster.dev/cluster={voice.name}"

        def left() -> list[str]:
            found = cluster.list(KINDS, voice.namespace, selector)
            return [f"{each['kind']}/{each['metadata']['name']}" for each in found]

        within(150, lambda: not left(), "nothing is left")
    finally:
        cluster.kubectl(*scale, f"--replicas={deployment['spec']['replicas']}")
        cluster.kubectl("rollout", "status", "deployment", "-n", operator, "--timeout=90s")
