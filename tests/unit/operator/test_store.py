"""What the watches have seen, whatever order it comes in."""

from voicecluster.operator.kube.port import CLUSTERS, NODES, PODS, SERVICES, Kind, Object
from voicecluster.operator.queue import Key
from voicecluster.operator.store import Objects

DEMO = Key("voice", "demo")


def thing(
    name: str = "one", *, version: int = 1, uid: str = "u1", cluster: str | None = "demo", **more: object
) -> Object:
    labels = {"voicecluster.dev/cluster": cluster} if cluster else {}
    return {
        "metadata": {
            "namespace": "voice",
            "name": name,
            "uid": uid,
            "resourceVersion": str(version),
            "labels": labels,
            "managedFields": [{"manager": "somebody"}],
        },
        **more,  # type: ignore[dict-item]
    }


def seen(*values: Object, kind: Kind = SERVICES, nodes: bool = False) -> Objects:
    objects = Objects(nodes=nodes)
    for value in values:
        objects.put(kind, value)
    return objects


def version(objects: Objects, name: str = "one") -> object:
    found = objects.get(SERVICES, "voice", name)
    assert found is not None
    metadata = found["metadata"]
    assert isinstance(metadata, dict)
    return metadata["resourceVersion"]


def test_children_are_found_by_cluster_in_the_order_of_their_names() -> None:
    objects = seen(thing("b", uid="1"), thing("a", uid="2"), thing("c", uid="3", cluster="other"))
    names = [child["metadata"]["name"] for child in objects.children(SERVICES, "voice", "demo")]  # type: ignore[call-overload,index]
    assert names == ["a", "b"]


def test_a_change_concerns_the_cluster_of_the_label() -> None:
    assert Objects(nodes=False).put(SERVICES, thing()) == {DEMO}


def test_a_voicecluster_concerns_itself() -> None:
    assert Objects(nodes=False).put(CLUSTERS, thing("demo", cluster=None)) == {DEMO}


def test_a_label_that_changes_concerns_both_clusters() -> None:
    objects = seen(thing())
    assert objects.put(SERVICES, thing(version=2, cluster="other")) == {DEMO, Key("voice", "other")}
    assert objects.children(SERVICES, "voice", "demo") == []


def test_an_older_state_never_replaces_a_newer_one() -> None:
    objects = seen(thing(version=5))
    objects.put(SERVICES, thing(version=4))
    assert version(objects) == "5"


def test_versions_are_numbers_not_texts() -> None:
    objects = seen(thing(version=9))
    objects.put(SERVICES, thing(version=10))
    assert version(objects) == "10"


def test_what_is_no_news_still_concerns_its_cluster() -> None:
    """Our own write may have been the first to show what somebody else wrote just before."""
    objects = seen(thing(version=5))
    assert objects.put(SERVICES, thing(version=5)) == {DEMO}


def test_a_deleted_object_is_gone_and_concerns_its_cluster() -> None:
    objects = seen(thing())
    assert objects.drop(SERVICES, thing(), at=2) == {DEMO}
    assert objects.get(SERVICES, "voice", "one") is None
    assert objects.children(SERVICES, "voice", "demo") == []


def test_the_deletion_of_an_object_does_not_take_its_successor() -> None:
    objects = seen(thing(version=2, uid="new"))
    assert objects.drop(SERVICES, thing(uid="old"), at=3) == set()
    assert objects.get(SERVICES, "voice", "one") is not None


def test_late_news_of_a_deleted_object_does_not_bring_it_back() -> None:
    objects = seen(thing())
    objects.drop(SERVICES, thing(), at=9)
    objects.put(SERVICES, thing(version=9))
    assert objects.get(SERVICES, "voice", "one") is None


def test_an_object_that_got_its_label_back_is_known_again() -> None:
    """One that loses the label by which it is watched looks deleted to the watch."""
    objects = seen(thing())
    objects.drop(SERVICES, thing(), at=2)
    objects.put(SERVICES, thing(version=3))
    assert version(objects) == "3"


def test_a_late_deletion_does_not_take_what_came_after_it() -> None:
    objects = seen(thing(version=3))
    assert objects.drop(SERVICES, thing(), at=2) == set()
    assert version(objects) == "3"


def test_who_manages_which_field_is_not_kept() -> None:
    found = seen(thing()).get(SERVICES, "voice", "one")
    assert found is not None
    assert "managedFields" not in str(found)


def test_of_pods_only_what_is_read_is_kept() -> None:
    pod = thing(spec={"nodeName": "node1", "containers": [{"name": "a"}]}, status={"phase": "Running"})
    found = seen(pod, kind=PODS).get(PODS, "voice", "one")
    assert found is not None
    assert (found["spec"], found["status"]) == ({"nodeName": "node1"}, {"phase": "Running"})


def test_a_node_concerns_every_cluster_and_keeps_no_images() -> None:
    objects = seen(thing("demo", cluster=None), kind=CLUSTERS, nodes=True)
    node = {
        "metadata": {"name": "node1", "uid": "n", "resourceVersion": "1"},
        "status": {"addresses": [], "images": [{"names": ["big"]}]},
    }
    assert objects.put(NODES, node) == {DEMO}  # type: ignore[arg-type]
    found = objects.nodes()
    assert found is not None
    assert found[0]["status"] == {"addresses": []}


def test_nodes_that_are_not_watched_are_unknown_not_absent() -> None:
    assert Objects(nodes=False).nodes() is None


def test_what_a_list_does_not_have_has_vanished() -> None:
    objects = seen(thing("a", uid="1"), thing("b", uid="2"))
    assert objects.vanished(SERVICES, "voice", [thing("a", uid="1")], "7") == {DEMO}
    assert objects.get(SERVICES, "voice", "b") is None
    assert objects.get(SERVICES, "voice", "a") is not None


def test_what_is_newer_than_the_list_has_not_vanished() -> None:
    objects = seen(thing("a", version=9, uid="1"))
    assert objects.vanished(SERVICES, "voice", [], "7") == set()


def test_a_list_of_one_namespace_tells_nothing_about_others() -> None:
    objects = seen(thing("a", uid="1"))
    assert objects.vanished(SERVICES, "elsewhere", [], "7") == set()
    assert objects.vanished(SERVICES, None, [], "7") == {DEMO}


def test_the_store_is_behind_what_it_has_not_seen() -> None:
    objects = seen(thing("a", version=5, uid="1"))
    assert objects.is_behind(SERVICES, thing("b", uid="2"))
    assert objects.is_behind(SERVICES, thing("a", version=6, uid="1"))
    assert not objects.is_behind(SERVICES, thing("a", version=5, uid="1"))


def test_the_store_is_not_behind_what_was_deleted_meanwhile() -> None:
    objects = seen(thing("a", uid="1"))
    objects.drop(SERVICES, thing("a", uid="1"), at=9)
    assert not objects.is_behind(SERVICES, thing("a", version=9, uid="1"))
