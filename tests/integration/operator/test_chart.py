"""The chart on a real API server, by the real Helm."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm_python import Chart, Config

from tests.integration.operator.apiserver import ApiServer

CHART = Path(__file__).parents[3] / "charts" / "voicecluster-operator"
EXAMPLES = CHART.parents[1] / "examples"
RESOURCE = "voicecluster.voicecluster.dev"
NO_DEFINITIONS: dict[str, Any] = {"crds": {"enabled": False}}
"""The API server has them already, and not from this release."""


@pytest.fixture
def helm(apiserver: ApiServer, namespace: str) -> Iterator[Config]:
    with Config(kubeconfig_path=apiserver.kubeconfig(), namespace=namespace) as config:
        yield config


def rendered(kind: str) -> list[dict[str, Any]]:
    with Chart.load(CHART) as chart:
        manifests = chart.render(NO_DEFINITIONS, name="vc")
    texts = [text for path, text in manifests.items() if not path.endswith("NOTES.txt")]
    documents = [document for text in texts for document in yaml.safe_load_all(text)]
    return [document for document in documents if document and document["kind"] == kind]


def test_it_is_installed_upgraded_and_gone_without_a_trace(
    apiserver: ApiServer, helm: Config, namespace: str
) -> None:
    kinds = (
        "deployment,service,serviceaccount,role,rolebinding,networkpolicy,pdb,clusterrole,clusterrolebinding"
    )

    def there() -> set[str]:
        label = f"app.kubernetes.io/instance=chart-{namespace}"
        return set(apiserver.kubectl("get", kinds, "-n", namespace, "-l", label, "-o", "name").split())

    name = f"chart-{namespace}"
    helm.install(CHART, name, NO_DEFINITIONS, namespace=namespace)
    installed = there()
    helm.upgrade(CHART, name, NO_DEFINITIONS | {"watchNamespaces": [namespace]}, namespace=namespace)
    upgraded = there()
    helm.uninstall(name)
    assert {each.partition("/")[0] for each in installed} == {
        "clusterrole.rbac.authorization.k8s.io",
        "clusterrolebinding.rbac.authorization.k8s.io",
        "deployment.apps",
        "networkpolicy.networking.k8s.io",
        "poddisruptionbudget.policy",
        "role.rbac.authorization.k8s.io",
        "rolebinding.rbac.authorization.k8s.io",
        "service",
        "serviceaccount",
    }
    assert not any(each.startswith("clusterrole") for each in upgraded)
    assert there() == set()


def test_its_pods_are_admitted_to_a_restricted_namespace(apiserver: ApiServer, namespace: str) -> None:
    apiserver.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    [deployment] = rendered("Deployment")
    [test] = rendered("Pod")
    operator = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "operator"}}
    for pod in (operator | {"spec": deployment["spec"]["template"]["spec"]}, test):
        pod["metadata"]["namespace"] = namespace
        done = apiserver.try_kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(pod))
        assert done.returncode == 0, done.stderr


def test_definitions_and_clusters_outlive_it_and_it_can_come_back(tmp_path: Path) -> None:
    server = ApiServer(tmp_path)
    server.start()
    try:
        with Config(kubeconfig_path=server.kubeconfig(), namespace="default") as helm:
            helm.install(CHART, "vc", namespace="default")
            server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
            server.kubectl("apply", "-f", str(EXAMPLES / "minimal.yaml"))
            helm.uninstall("vc")
            assert server.kubectl("get", "voiceclusters", "-o", "name").split() == [f"{RESOURCE}/voice"]
            helm.install(CHART, "vc", namespace="default")
            assert server.kubectl("get", "voiceclusters", "-o", "name").split() == [f"{RESOURCE}/voice"]
    finally:
        server.stop()
