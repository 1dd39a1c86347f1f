"""A quiet cluster sees no write by the operator but to its Lease (the API server's audit log)."""

import json
from collections.abc import Callable

import pytest

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.cluster import Cluster, manifest
from tests.integration.operator.process import Operator

Operators = Callable[..., Operator]


@pytest.fixture
def cluster(apiserver: ApiServer, namespace: str, operators: Operators) -> Cluster:
    """With two regions, reconciled by a running operator."""
    cluster = Cluster(apiserver, namespace)
    cluster.apply(manifest("eu", "us"))
    operators().start()
    cluster.settled()
    return cluster


def test_an_unchanged_resource_is_not_written_to(cluster: Cluster) -> None:
    mark = cluster.quiet()
    with pytest.raises(AssertionError, match="a write: not within"):
        until(lambda: cluster.writes(mark), seconds=4, what="a write")


def test_the_same_file_applied_again_makes_no_write(cluster: Cluster) -> None:
    mark = cluster.quiet()
    assert "unchanged" in cluster.apply(manifest("eu", "us"))
    cluster.quiet()
    assert cluster.writes(mark) == []


def test_a_gitops_tools_labels_and_annotations_make_no_write_and_stay(cluster: Cluster) -> None:
    mark = cluster.quiet()
    patch = {
        "metadata": {
            "labels": {"argocd.argoproj.io/instance": "voice"},
            "annotations": {"kustomize.toolkit.fluxcd.io/checksum": "1"},
        }
    }
    cluster.apiserver.request(
        "PATCH",
        cluster.path("voiceclusters", "demo"),
        patch,
        media_type="application/merge-patch+json",
    )
    cluster.quiet()
    assert cluster.writes(mark) == []
    metadata = cluster.resource()["metadata"]
    assert metadata["labels"] == {"argocd.argoproj.io/instance": "voice"}
    assert metadata["annotations"]["kustomize.toolkit.fluxcd.io/checksum"] == "1"


def test_the_users_object_carries_nothing_of_ours(cluster: Cluster) -> None:
    metadata = cluster.resource()["metadata"]
    assert "finalizers" not in metadata
    assert "labels" not in metadata
    assert list(metadata["annotations"]) == ["kubectl.kubernetes.io/last-applied-configuration"]
    managers = {(entry["manager"], entry.get("subresource")) for entry in metadata["managedFields"]}
    assert managers == {("kubectl-client-side-apply", None), ("voicecluster.dev/operator", "status")}


def test_kubectl_diff_of_the_same_file_is_empty(cluster: Cluster) -> None:
    value = json.dumps(manifest("eu", "us"))
    done = cluster.apiserver.try_kubectl("-n", cluster.namespace, "diff", "-f", "-", stdin=value)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_restarted_operator_makes_no_write(
    apiserver: ApiServer, namespace: str, operators: Operators
) -> None:
    cluster = Cluster(apiserver, namespace)
    cluster.apply(manifest("eu", "us"))
    first = operators().start()
    cluster.settled()
    mark = cluster.quiet()
    assert first.stop() == 0
    second = operators().start()
    until(lambda: second.leads and second.ready(), what="the second operator")
    until(lambda: second.metric("voicecluster_operator_reconcile_seconds_count"), what="a reconcile")
    cluster.quiet()
    assert cluster.writes(mark) == []
