"""What lists and events make of a collection."""

import pytest
from voicecluster.common.kube.watched import Expired, Malformed, Watched

from tests.unit.common.kube.server import thing


@pytest.fixture
def watched() -> Watched:
    watched = Watched()
    watched.listed([thing("a", 1), thing("b", 2)], "2")
    return watched


def event(kind: str, item: object) -> dict[str, object]:
    return {"type": kind, "object": item}


def test_a_list_is_the_whole_set(watched: Watched) -> None:
    assert watched.listed([thing("c", 3)], "3")
    assert list(watched.objects) == ["c"]


def test_an_equal_list_changes_nothing_but_the_version(watched: Watched) -> None:
    assert not watched.listed([thing("a", 1), thing("b", 2)], "9")
    assert watched.resource_version == "9"


def test_events_add_change_and_remove(watched: Watched) -> None:
    assert watched.event(event("ADDED", thing("c", 3)))
    assert watched.event(event("MODIFIED", thing("a", 4, x="1")))
    assert watched.event(event("DELETED", thing("b", 5)))
    assert watched.objects == {"a": thing("a", 4, x="1"), "c": thing("c", 3)}
    assert watched.resource_version == "5"


def test_a_set_once_given_out_never_changes(watched: Watched) -> None:
    before = watched.objects
    watched.event(event("DELETED", thing("b", 5)))
    assert set(before) == {"a", "b"}


def test_a_bookmark_moves_only_the_version(watched: Watched) -> None:
    assert not watched.event(event("BOOKMARK", {"metadata": {"resourceVersion": "7"}}))
    assert watched.resource_version == "7"


def test_the_removal_of_what_was_not_there_changes_nothing(watched: Watched) -> None:
    assert not watched.event(event("DELETED", thing("z", 3)))


def test_an_error_keeps_the_set_and_forgets_the_version(watched: Watched) -> None:
    with pytest.raises(Expired, match="too old"):
        watched.event(event("ERROR", {"code": 410, "message": "too old resource version"}))
    assert (set(watched.objects), watched.resource_version) == ({"a", "b"}, None)


@pytest.mark.parametrize(
    "nonsense",
    [
        None,
        [],
        "ADDED",
        {},
        event("ADDED", None),
        event("ADDED", {"metadata": {"name": "x"}}),
        event("ADDED", {"metadata": {"resourceVersion": "9"}}),
        event("RENAMED", thing("a", 9)),
    ],
)
def test_nonsense_is_refused_and_the_set_kept(watched: Watched, nonsense: object) -> None:
    with pytest.raises(Malformed):
        watched.event(nonsense)  # type: ignore[arg-type]
    assert set(watched.objects) == {"a", "b"}
