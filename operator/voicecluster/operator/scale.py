"""Who says how many transceivers a region has: the VoiceCluster, or whoever scales the VoiceRegion.

While the VoiceCluster says it, the number in the VoiceRegion is a field of ours. When it no longer does, to give way
to an autoscaler, applying without the field would remove it, and the region would shrink to the default. So the
number is first handed to a field manager of its own, which writes only what stands there: it stays until somebody
scales. A VoiceRegion that was deleted by hand comes back with as many as its StatefulSet has.
"""

from collections.abc import Iterable

from voicecluster.operator.fields import at, mapping, text
from voicecluster.operator.kube.apply import APPLIED, marked
from voicecluster.operator.kube.port import REGIONS, Kube, Object, Store
from voicecluster.operator.observe import Observed

SCALE_MANAGER = "voicecluster.dev/scale"


async def hand_over(kube: Kube, store: Store, observed: Observed, wanted: Iterable[Object]) -> None:
    """Keep the number of each VoiceRegion that is about to be applied without one. Raises KubeError."""
    regions = {region.name: region for region in observed.regions}
    for each in wanted:
        if each["kind"] != REGIONS.kind or at(each, "spec", "replicas") is not None:
            continue
        name, namespace = text(each, "metadata", "name"), text(each, "metadata", "namespace")
        live = store.get(REGIONS, namespace, name)
        restored = live is None and regions[name].transceivers.exists
        if restored or (live is not None and _mark(live) != _mark(marked(each))):
            # The whole of it: a manager that applies less than before takes away what only it has.
            kept: Object = {**each, "spec": {**mapping(each, "spec"), "replicas": regions[name].wish}}
            await kube.apply(kept, manager=SCALE_MANAGER)


def _mark(value: Object | None) -> str:
    return text(value, "metadata", "annotations", APPLIED)
