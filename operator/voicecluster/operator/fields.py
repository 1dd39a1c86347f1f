"""Reading fields of objects as the API server gave them: what is absent, or of another type, reads as empty."""

from collections.abc import Mapping, Sequence

from voicecluster.operator.kube.port import Json, Object


def at(value: Json, *path: str) -> Json:
    """What stands at `path`, None where there is nothing."""
    for name in path:
        if type(value) is not dict and not isinstance(value, Mapping):  # the first alone is what is fast
            return None
        value = value.get(name)
    return value


def text(value: Json, *path: str) -> str:
    """A string, empty if it is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def number(value: Json, *path: str) -> int:
    """An integer, 0 if it is none."""
    found = at(value, *path)
    return found if isinstance(found, int) else 0


def items(value: Json, *path: str) -> Sequence[Json]:
    """A list, empty if it is none."""
    found = at(value, *path)
    return found if isinstance(found, Sequence) and not isinstance(found, str) else ()


def mapping(value: Json, *path: str) -> Object:
    """A mapping, empty if it is none."""
    found = at(value, *path)
    return found if isinstance(found, Mapping) else {}


def texts(value: Json, *path: str) -> dict[str, str]:
    """The strings of a mapping."""
    return {key: found for key, found in mapping(value, *path).items() if isinstance(found, str)}


def is_true(conditions: Sequence[Json], kind: str) -> bool:
    """Whether the condition of this type has status True."""
    return any(text(each, "type") == kind and text(each, "status") == "True" for each in conditions)
