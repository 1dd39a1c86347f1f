"""Does a live object already say what is wanted? Then nothing is written.

Server-side apply would change nothing either, but it is a request, and a quiet cluster shall see none. Live
objects have more than was asked for: defaults, other managers' fields, status. So the question is whether the
live one is a superset, with the API's own idea of sameness:

- quantities are equal by value (`1000m` is `1`),
- lists that the API merges by a key are compared by it, and may have foreign items; all others are as long as
  wanted, item by item,
- selectors are whole: a foreign key in one would select something else,
- what is wanted empty may be absent, since the API leaves empty fields out.

A field that is no longer wanted is not seen here: the hash that `apply` keeps on each object notices that.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TypeGuard

from voicecluster.operator.kube.port import Json, Object

_MERGED = {
    "containers": ("name",),
    "initContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "volumeMounts": ("mountPath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "ownerReferences": ("uid",),
    "conditions": ("type",),
}
"""Lists with a merge key, by the name of their field; `ports` have one too, which depends on where they are."""
_CONTAINER_PORT, _SERVICE_PORT = ("containerPort", "protocol"), ("port", "protocol")
_WHOLE = frozenset(
    ("selector", "nodeSelector", "podSelector", "namespaceSelector", "labelSelector", "matchLabels")
)
_QUANTITIES = frozenset(("limits", "requests", "sizeLimit"))
_DEFAULT_PROTOCOL = "TCP"
_FACTORS = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9),
    "T": Decimal(10**12), "P": Decimal(10**15), "E": Decimal(10**18),
    "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30),
    "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip


def differs(wanted: Object, live: Object) -> list[str]:
    """The paths at which `live` is not what is wanted; empty when nothing has to be written."""
    return list(_mapping(wanted, live, ()))


Path = tuple[str, ...]


def _text(path: Path) -> str:
    return ".".join(path).replace(".[", "[")


def _value(wanted: Json, live: Json, path: Path) -> Iterator[str]:
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        yield from _mapping(wanted, live, path)
    elif _is_list(wanted) and _is_list(live):
        yield from _list(wanted, live, path)
    elif not _same(wanted, live, path):
        yield _text(path)


def _mapping(wanted: Object, live: Object, path: Path) -> Iterator[str]:
    for key, value in wanted.items():
        if key in live:
            yield from _value(value, live[key], (*path, key))
        elif not _is_empty(value):
            yield _text((*path, key))
    if path and path[-1] in _WHOLE:
        yield from (_text((*path, key)) for key in live if key not in wanted)


def _list(wanted: Sequence[Json], live: Sequence[Json], path: Path) -> Iterator[str]:
    if key := _merge_key(path):
        found = {_identity(item, key): item for item in live}
        for item in wanted:
            identity = _identity(item, key)
            here = (*path, f"[{','.join(map(str, identity))}]")
            if identity not in found:
                yield _text(here)
            else:
                yield from _value(item, found[identity], here)
    elif len(wanted) != len(live):
        yield _text(path)
    else:
        for index, (one, other) in enumerate(zip(wanted, live, strict=True)):
            yield from _value(one, other, (*path, f"[{index}]"))


def _merge_key(path: Path) -> tuple[str, ...] | None:
    if path == ("spec", "ports"):
        return _SERVICE_PORT
    if path[-1] == "ports" and "containers" in path:
        return _CONTAINER_PORT
    return _MERGED.get(path[-1])


def _identity(item: Json, key: tuple[str, ...]) -> tuple[Json, ...]:
    if not isinstance(item, Mapping):
        return (str(item),)
    return tuple(item.get(name, _DEFAULT_PROTOCOL if name == "protocol" else None) for name in key)


def _same(wanted: Json, live: Json, path: Path) -> bool:
    if type(wanted) is type(live) and wanted == live:
        return True
    if _is_empty(wanted) and _is_empty(live):
        return True
    if isinstance(wanted, bool) or isinstance(live, bool):
        return False
    if isinstance(wanted, int | float) and isinstance(live, int | float):
        return wanted == live
    if _QUANTITIES.isdisjoint(path[-2:]):
        return False
    try:
        return quantity(wanted) == quantity(live)
    except ValueError:
        return False


def quantity(value: Json) -> Decimal:
    """A Kubernetes quantity as a number: `500m` is 0.5. Raises ValueError."""
    text = str(value).strip()
    number = text.rstrip("".join(sorted({letter for unit in _FACTORS for letter in unit})))
    unit = text[len(number) :]
    try:
        return Decimal(number) * _FACTORS[unit] if unit in _FACTORS else Decimal(text)
    except InvalidOperation:
        raise ValueError(f"'{text}' is not a quantity; write one such as 500m or 1Gi") from None


def _is_list(value: Json) -> TypeGuard[Sequence[Json]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_empty(value: Json) -> bool:
    """Not False and not 0: where the API keeps those, their absence would be the API's default."""
    return value is None or value == "" or (isinstance(value, Mapping | Sequence) and not value)
