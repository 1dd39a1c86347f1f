"""The chart's own test of what it installed."""

from helm_python import Config

from tests.e2e.cluster import Cluster
from tests.e2e.conftest import RELEASE


def test_helm_test_finds_the_operator_ready(cluster: Cluster, operator: str) -> None:
    with Config(kubeconfig_path=str(cluster.kubeconfig), namespace=operator) as helm:
        helm.test(RELEASE, timeout=120)
