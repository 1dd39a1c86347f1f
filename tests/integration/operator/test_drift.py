"""Whatever happens to a child, it is right again within five seconds; what others own stays."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.integration.operator.apiserver import ApiServer, until
from tests.integration.operator.cluster import GENERATED, KINDS, Cluster, essence, manifest
from tests.integration.operator.process import Operator

SECONDS = 5.0
MERGE = "application/merge-patch+json"


@pytest.fixture
def cluster(running: Cluster) -> Iterator[Cluster]:
    """As it should be, before and after the test."""
    running.quiet()
    yield running
    running.apply(manifest("eu"))
    running.settled()


def test_every_deleted_child_is_there_again(cluster: Cluster) -> None:
    before = cluster.children()
    assert {plural for plural, _ in before} == set(KINDS), "every kind of child is tried"
    deletable = [key for key in before if key[1] not in GENERATED]
    for plural, name in deletable:
        cluster.apiserver.request("DELETE", cluster.path(plural, name))
    deleted = time.monotonic()
    wanted = essence(before)

    def healed() -> bool:
        after = cluster.children()
        new = all(
            key in after and after[key]["metadata"]["uid"] != before[key]["metadata"]["uid"]
            for key in deletable
        )
        return new and essence(after) == wanted

    until(healed, seconds=SECONDS - (time.monotonic() - deleted), what="all children")


EDITS = {
    "configmaps": ("demo-vips", {"data": {"vips.yaml": "wrong"}}),
    "secrets": ("demo-hint-keys", {"data": {"keys.yaml": "d3Jvbmc="}}),
    "serviceaccounts": ("demo-relay", {"automountServiceAccountToken": None}),
    "services": ("demo-eu-media", {"spec": {"publishNotReadyAddresses": False}}),
    "daemonsets": ("demo-eu-relay", {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 1}}}}),
    "statefulsets": ("demo-eu-transceiver", {"spec": {"replicas": 5}}),
    "networkpolicies": ("demo-redis", {"spec": {"ingress": [{}]}}),
    "poddisruptionbudgets": ("demo-eu-transceiver", {"spec": {"maxUnavailable": 9}}),
    "roles": ("demo-relay", {"rules": []}),
    "rolebindings": ("demo-relay", {"subjects": []}),
    "voiceregions": ("demo-eu", {"spec": {"region": "us"}}),
}
"""One edit of each kind of child that would hurt."""


def test_every_edited_child_is_as_it_was(cluster: Cluster) -> None:
    assert set(EDITS) == set(KINDS), "every kind of child is tried"
    wanted, refused = essence(cluster.children()), []
    for plural, (name, edit) in EDITS.items():
        try:
            cluster.apiserver.request("PATCH", cluster.path(plural, name), edit, media_type=MERGE)
        except OSError:
            refused.append(plural)
    assert set(refused) <= {"voiceregions"}, "only the region may have rules of its own against that"

    def wrong() -> list[tuple[str, str]]:
        return [key for key, value in essence(cluster.children()).items() if value != wanted.get(key)]

    try:
        until(lambda: not wrong(), seconds=SECONDS, what="all children as before")
    except AssertionError:
        pytest.fail(f"not as before: {wrong()}")


def test_a_label_that_was_taken_away_comes_back(cluster: Cluster) -> None:
    path = cluster.path("services", "demo-signaling")
    patch = {"metadata": {"labels": {"voicecluster.dev/cluster": None}}}
    cluster.apiserver.request("PATCH", path, patch, media_type=MERGE)
    until(
        lambda: cluster.get("services", "demo-signaling")["metadata"]["labels"].get(
            "voicecluster.dev/cluster"
        ),
        seconds=SECONDS,
        what="the label",
    )


def test_a_foreign_selector_key_is_removed(cluster: Cluster) -> None:
    path = cluster.path("services", "demo-signaling")
    cluster.apiserver.request("PATCH", path, {"spec": {"selector": {"x": "y"}}}, media_type=MERGE)
    until(
        lambda: "x" not in cluster.get("services", "demo-signaling")["spec"]["selector"],
        seconds=SECONDS,
        what="the selector",
    )


def test_foreign_fields_stay_while_ours_are_made_right(cluster: Cluster) -> None:
    path = cluster.path("services", "demo-signaling")
    foreign = {
        "metadata": {"labels": {"team": "voice"}, "annotations": {"example.com/note": "kept"}},
        "spec": {"sessionAffinity": "ClientIP"},
    }
    cluster.apiserver.request("PATCH", path, foreign, media_type=MERGE)
    cluster.apiserver.request("PATCH", path, {"spec": {"selector": {"x": "y"}}}, media_type=MERGE)
    until(
        lambda: "x" not in cluster.get("services", "demo-signaling")["spec"]["selector"],
        seconds=SECONDS,
        what="the selector",
    )
    found = cluster.get("services", "demo-signaling")
    assert found["metadata"]["labels"]["team"] == "voice"
    assert found["metadata"]["annotations"]["example.com/note"] == "kept"
    assert found["spec"]["sessionAffinity"] == "ClientIP"


def test_a_field_that_is_no_longer_wanted_is_removed(cluster: Cluster) -> None:
    with_annotation = manifest("eu")
    with_annotation["spec"]["signaling"] = {"service": {"annotations": {"example.com/lb": "1"}}}
    cluster.apply(with_annotation)

    def annotated() -> bool:
        return "example.com/lb" in cluster.get("services", "demo-signaling")["metadata"]["annotations"]

    until(annotated, seconds=SECONDS, what="the annotation")
    cluster.apply(manifest("eu"))
    until(lambda: not annotated(), seconds=SECONDS, what="the annotation's end")


def test_what_is_no_longer_wanted_is_deleted(cluster: Cluster) -> None:
    cluster.apply(manifest("eu", redis={"mode": "None"}))
    until(
        lambda: not [key for key in cluster.children() if key[1] == "demo-redis"],
        seconds=SECONDS,
        what="the end of Redis",
    )


def test_an_object_of_somebody_else_with_our_labels_is_not_deleted(cluster: Cluster) -> None:
    labels = {
        "voicecluster.dev/cluster": "demo",
        "app.kubernetes.io/managed-by": "voicecluster-operator",
    }
    metadata = {"name": "mine", "labels": labels}
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    cluster.apiserver.request("POST", cluster.path("configmaps"), body)
    cluster.quiet()
    assert cluster.get("configmaps", "mine")["metadata"]["name"] == "mine"
    cluster.apiserver.request("DELETE", cluster.path("configmaps", "mine"))


def test_every_child_is_owned_by_the_cluster_and_nothing_blocks_its_deletion(cluster: Cluster) -> None:
    uid = cluster.resource()["metadata"]["uid"]
    owner = {
        "apiVersion": "voicecluster.dev/v1alpha1",
        "kind": "VoiceCluster",
        "name": "demo",
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for key, child in cluster.children().items():
        assert child["metadata"].get("ownerReferences") == [owner], key
        assert "finalizers" not in child["metadata"], key


def test_nothing_is_made_of_a_cluster_that_is_being_deleted(
    apiserver: ApiServer, namespace: str, operators: Callable[..., Operator]
) -> None:
    cluster = Cluster(apiserver, namespace)
    cluster.apply(manifest("eu"))
    operators().start()
    cluster.settled()
    apiserver.request("DELETE", cluster.path("voiceclusters", "demo"))
    mark = cluster.quiet()
    apiserver.request("DELETE", cluster.path("services", "demo-signaling"))
    cluster.quiet()
    assert cluster.writes(mark) == []
