"""Objects and where the API has them."""

from dataclasses import dataclass

from voicecluster.operator.fields import mapping
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Kind, Object

KINDS = {(kind.api_version, kind.kind): kind for kind in vars(port).values() if isinstance(kind, Kind)}


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """Which object. `str()` is how people write it: `Service voice/demo-eu-relay`."""

    kind: str
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


def kind_of(value: Object) -> Kind:
    """The kind of an object. Raises KeyError where it is none of those that we know."""
    return KINDS[str(value["apiVersion"]), str(value["kind"])]


def ref(value: Object) -> Ref:
    """Which object this is."""
    about = metadata(value)
    namespace = about.get("namespace")
    return Ref(str(value["kind"]), str(namespace) if namespace else None, str(about["name"]))


def metadata(value: Object) -> Object:
    """An object's metadata; empty where there is none."""
    return mapping(value, "metadata")


def path(
    kind: Kind, namespace: str | None, name: str | None = None, *, subresource: str | None = None
) -> str:
    """The URL's path of one object, or of all of a kind: of a namespace, or (None) of the whole cluster."""
    root = "/api/" if "/" not in kind.api_version else "/apis/"
    parts = [root + kind.api_version]
    if kind.namespaced and namespace is not None:
        parts += ["namespaces", namespace]
    parts += [part for part in (kind.plural, name, subresource) if part]
    return "/".join(parts)
