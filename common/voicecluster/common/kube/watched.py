"""A collection as lists and watch events tell it; no socket, no clock.

Feed it a whole list (`listed`), then the events of a watch that began at `resource_version` (`event`). Whatever
is missed between two events is impossible to notice here, so a watch that cannot go on from its version raises
`Expired`, and only a new list helps.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Object: TypeAlias = Mapping[str, Json]
"""A Kubernetes object as JSON."""


class Expired(Exception):
    """The server no longer knows the version we are at: list again."""


class Malformed(Exception):
    """What came is not what a list or a watch says."""


class Watched:
    """Objects of one collection in one namespace, by name."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self.objects: Mapping[str, Object] = {}
        """The whole set; a new mapping whenever it changes, never changed in place."""
        self.resource_version: str | None = None
        """Where a watch is to begin or go on; None before the first list, and after `Expired`."""

    def listed(self, items: Sequence[Json], resource_version: str) -> bool:
        """Take a whole list. Returns whether the set changed. Raises Malformed."""
        objects = {_named(item): _object(item) for item in items}
        changed = objects != self.objects
        self.objects, self.resource_version = objects, resource_version
        return changed

    def event(self, event: Json) -> bool:
        """Take one event of a watch. Returns whether the set changed. Raises Expired or Malformed."""
        event = _object(event)
        kind, item = event.get("type"), _object(event.get("object"))
        match kind:
            case "BOOKMARK":
                self.resource_version = _version(item)
                return False
            case "ADDED" | "MODIFIED" | "DELETED":
                objects = dict(self.objects)
                if kind == "DELETED":
                    objects.pop(_named(item), None)
                else:
                    objects[_named(item)] = item
                self.resource_version = _version(item)
                changed = objects != self.objects
                self.objects = objects
                return changed
            case "ERROR":
                # 410 is the usual one; after any other a list says what is true, too.
                self.resource_version = None
                raise Expired(str(item.get("message", "the server ended the watch")))
            case _:
                raise Malformed(f"an event of type {kind!r}")


def resource_version_of(document: Json) -> str:
    """The version of a list or an object. Raises Malformed."""
    return _version(_object(document))


def items_of(document: Json) -> Sequence[Json]:
    """The items of a list. Raises Malformed."""
    items = _object(document).get("items")
    if items is None:
        return ()
    if not isinstance(items, Sequence) or isinstance(items, str):
        raise Malformed("a list whose items are none")
    return items


def continue_of(document: Json) -> str | None:
    """The token of a list's next page, None after the last. Raises Malformed."""
    token = _metadata(_object(document)).get("continue")
    return token if isinstance(token, str) and token else None


def _object(value: Json) -> Object:
    if not isinstance(value, Mapping):
        raise Malformed("something that is no object")
    return value


def _metadata(item: Object) -> Object:
    return _object(item.get("metadata"))


def _named(item: Json) -> str:
    name = _metadata(_object(item)).get("name")
    if not isinstance(name, str):
        raise Malformed("an object without a name")
    return name


def _version(item: Object) -> str:
    version = _metadata(item).get("resourceVersion")
    if not isinstance(version, str):
        raise Malformed("an object without a resourceVersion")
    return version
