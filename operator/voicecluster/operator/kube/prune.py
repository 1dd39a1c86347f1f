"""Deletes what is ours and is no longer wanted.

Ours is what carries the cluster's label and is controlled by the VoiceCluster with this uid: nothing of another
owner, and nothing that a person made with our labels, is ever deleted.
"""

import logging
from collections.abc import Collection, Sequence

from voicecluster.operator.fields import items, text
from voicecluster.operator.kube.kinds import Ref, ref
from voicecluster.operator.kube.port import CHILDREN, Kind, Kube, Object, Store

_LOG = logging.getLogger(__name__)


async def prune(
    kube: Kube, store: Store, *, namespace: str, cluster: str, uid: str, keep: Collection[Ref]
) -> tuple[Ref, ...]:
    """Delete every child of the VoiceCluster that is not in `keep`, and return which.

    Args:
        uid: Of the VoiceCluster.
        keep: What is wanted, and what is generated once and never pruned.

    Raises KubeError. May be cancelled; the next call does the rest.
    """
    gone = []
    for kind, child in _children(store, namespace, cluster, uid):
        about = ref(child)
        if about in keep or text(child, "metadata", "deletionTimestamp"):
            continue
        await kube.delete(kind, namespace, about.name, uid=text(child, "metadata", "uid"))
        gone.append(about)
        _LOG.info("deleted, no longer wanted", extra={"object": str(about)})
    return tuple(gone)


def _children(store: Store, namespace: str, cluster: str, uid: str) -> Sequence[tuple[Kind, Object]]:
    return [
        (kind, child)
        for kind in CHILDREN
        for child in store.children(kind, namespace, cluster)
        if controlled_by(child, uid)
    ]


def controlled_by(child: Object, uid: str) -> bool:
    """Whether the object with this uid is the controller of `child`."""
    return any(
        text(owner, "uid") == uid and isinstance(owner, dict) and owner.get("controller") is True
        for owner in items(child, "metadata", "ownerReferences")
    )
