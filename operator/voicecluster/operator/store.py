"""What the watches have seen, in memory: the `Store` port, and the way in for watches and for our own writes.

An object is never replaced by an older state of itself: the answer to our own write and the watch's event of an
earlier one may come in either order. An object that has gone stays away, whatever older comes late about it; what is
newer brings it back, for it may have lost the label by which it is watched, and got it again.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from voicecluster.operator.fields import mapping, text
from voicecluster.operator.kube.client import without_managed_fields
from voicecluster.operator.kube.port import CLUSTERS, NODES, PODS, Kind, Object
from voicecluster.operator.plan.kubernetes.names import CLUSTER
from voicecluster.operator.queue import Key

_REMEMBERED_GONE = 4096
"""Objects that have gone, whose older news are ignored; they come late by seconds."""
_Name = tuple[str, str]


class Objects:
    """Every object by kind, namespace and name. Implements `port.Store`."""

    def __init__(self, *, nodes: bool) -> None:
        """`nodes`: whether the operator watches them."""
        self._watches_nodes = nodes
        self._by_kind: dict[Kind, dict[_Name, Object]] = defaultdict(dict)
        self._by_cluster: dict[tuple[Kind, str, str], dict[str, Object]] = defaultdict(dict)
        self._gone: OrderedDict[str, int] = OrderedDict()
        """At which version, by uid."""

    def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """See `Store.get`."""
        return self._by_kind[kind].get((namespace or "", name))

    def children(self, kind: Kind, namespace: str, cluster: str) -> Sequence[Object]:
        """See `Store.children`."""
        found = self._by_cluster.get((kind, namespace, cluster), {})
        return [found[name] for name in sorted(found)]

    def nodes(self) -> Sequence[Object] | None:
        """See `Store.nodes`."""
        if not self._watches_nodes:
            return None
        found = self._by_kind[NODES]
        return [found[name] for name in sorted(found)]

    def clusters(self) -> Iterator[Key]:
        """Every VoiceCluster."""
        return (Key(*name) for name in list(self._by_kind[CLUSTERS]))

    def put(self, kind: Kind, value: Object) -> set[Key]:
        """Take note of an object's state. Returns whose business that is.

        That is told even of what is no news: the answer to our own write may have been the first to show what
        somebody else had written just before.
        """
        uid, name = text(value, "metadata", "uid"), _name(value)
        before = self._by_kind[kind].get(name)
        if revision(value) <= self._gone.get(uid, -1) or revision(value) <= revision(before):
            return self._concerned(kind, before)
        kept = without_managed_fields(_trimmed(kind, value))
        self._by_kind[kind][name] = kept
        concerned = self._concerned(kind, before)
        if before is not None:
            self._unfile(kind, before)
        if (key := self._key(kind, kept)) is not None:
            self._by_cluster[kind, key.namespace, key.name][name[1]] = kept
        return concerned | self._concerned(kind, kept)

    def drop(self, kind: Kind, value: Object, *, at: int) -> set[Key]:
        """This object has gone, at version `at`. Returns whose business that is."""
        uid, name = text(value, "metadata", "uid"), _name(value)
        self._gone[uid] = max(at, self._gone.pop(uid, 0))
        if len(self._gone) > _REMEMBERED_GONE:
            self._gone.popitem(last=False)
        before = self._by_kind[kind].get(name)
        if before is None or text(before, "metadata", "uid") != uid or revision(before) > at:
            return set()
        del self._by_kind[kind][name]
        self._unfile(kind, before)
        return self._concerned(kind, before)

    def vanished(self, kind: Kind, namespace: str | None, listed: Iterable[Object], at: str) -> set[Key]:
        """Drop what a list of resource version `at` does not have, unless it is newer. Returns whose it was."""
        there = {text(value, "metadata", "uid") for value in listed}
        concerned = set[Key]()
        for known in self.of_kind(kind, namespace):
            if at.isdigit() and revision(known) <= int(at) and text(known, "metadata", "uid") not in there:
                concerned |= self.drop(kind, known, at=int(at))
        return concerned

    def is_behind(self, kind: Kind, value: Object) -> bool:
        """Whether this state is news. What was deleted meanwhile is none."""
        uid, known = text(value, "metadata", "uid"), self._by_kind[kind].get(_name(value))
        if revision(value) <= self._gone.get(uid, -1):
            return False
        return known is None or (text(known, "metadata", "uid") == uid and revision(known) < revision(value))

    def of_kind(self, kind: Kind, namespace: str | None) -> Sequence[Object]:
        """All objects of a kind, in one namespace or (None) in all."""
        return [
            value
            for (where, _), value in self._by_kind[kind].items()
            if namespace is None or where == namespace
        ]

    def _concerned(self, kind: Kind, value: Object | None) -> set[Key]:
        if kind == NODES:
            return set(self.clusters())
        key = self._key(kind, value) if value is not None else None
        return {key} if key is not None else set()

    def _unfile(self, kind: Kind, value: Object) -> None:
        if (key := self._key(kind, value)) is None:
            return
        place = (kind, key.namespace, key.name)
        self._by_cluster[place].pop(_name(value)[1], None)
        if not self._by_cluster[place]:
            del self._by_cluster[place]

    def _key(self, kind: Kind, value: Object) -> Key | None:
        namespace, name = _name(value)
        cluster = name if kind == CLUSTERS else text(value, "metadata", "labels", CLUSTER)
        return Key(namespace, cluster) if namespace and cluster else None


def revision(value: Object | None) -> int:
    """How new a state is, among those of one kind; -1 for none. That of etcd, which only grows."""
    found = text(value, "metadata", "resourceVersion")
    return int(found) if found.isdigit() else -1


def _name(value: Object) -> _Name:
    return text(value, "metadata", "namespace"), text(value, "metadata", "name")


def _trimmed(kind: Kind, value: Object) -> Object:
    """Of what is not ours, and there may be thousands of, only what anybody here reads."""
    if kind == PODS:
        return {**value, "spec": {"nodeName": text(value, "spec", "nodeName")}}
    if kind == NODES:
        status = mapping(value, "status")
        return {**value, "status": {key: status[key] for key in ("addresses", "conditions") if key in status}}
    return value
