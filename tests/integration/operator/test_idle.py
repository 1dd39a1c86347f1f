"""A quiet cluster sees no write by the operator but to its Lease (the API server's audit log)."""

import json
from collections.abc import Callable

import pytest

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.cluster import Cluster, manifest
from tests.integration.operator.process import Operator

Operators = Callable[..., Operator]


def test_an_unchanged_resource_is_not_written_to(running: Cluster) -> None:
    mark = running.quiet()
    with pytest.raises(AssertionError, match="a write: not within"):
        until(lambda: running.writes(mark), seconds=4, what="a write")


def test_the_same_file_applied_again_makes_no_write(running: Cluster) -> None:
    mark = running.quiet()
    assert "unchanged" in running.apply(manifest("eu"))
    running.quiet()
    assert running.writes(mark) == []


def test_the_users_object_carries_nothing_of_ours(running: Cluster) -> None:
    metadata = running.resource()["metadata"]
    assert "finalizers" not in metadata
    assert "labels" not in metadata
    assert list(metadata["annotations"]) == ["kubectl.kubernetes.io/last-applied-configuration"]
    managers = {(entry["manager"], entry.get("subresource")) for entry in metadata["managedFields"]}
    assert managers == {("kubectl-client-side-apply", None), ("voicecluster.dev/operator", "status")}


def test_a_gitops_tools_labels_and_annotations_make_no_write_and_stay(running: Cluster) -> None:
    mark = running.quiet()
    patch = {
        "metadata": {
            "labels": {"argocd.argoproj.io/instance": "voice"},
            "annotations": {"kustomize.toolkit.fluxcd.io/checksum": "1"},
        }
    }
    running.apiserver.request(
        "PATCH",
        running.path("voiceclusters", "demo"),
        patch,
        media_type="application/merge-patch+json",
    )
    running.quiet()
    assert running.writes(mark) == []
    metadata = running.resource()["metadata"]
    assert metadata["labels"] == {"argocd.argoproj.io/instance": "voice"}
    assert metadata["annotations"]["kustomize.toolkit.fluxcd.io/checksum"] == "1"


def test_kubectl_diff_of_the_same_file_is_empty(running: Cluster) -> None:
    value = json.dumps(manifest("eu"))
    done = running.apiserver.try_kubectl("-n", running.namespace, "diff", "-f", "-", stdin=value)
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
