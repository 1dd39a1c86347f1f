"""The VoiceRegion: where a region is scaled, and where its status and events are."""

from voicecluster.operator.api.v1alpha1 import Region
from voicecluster.operator.kube.port import REGIONS, Json, Object
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.scope import Scope


def voice_region(scope: Scope, region: Region) -> Object:
    """One region. Ours: `spec.cluster` and `spec.region`; `spec.replicas` only where the VoiceCluster says it.

    Left to others otherwise: `kubectl scale` and autoscalers write it, and absent it means 1.
    """
    spec: dict[str, Json] = {"cluster": scope.name, "region": region.name}
    if region.transceiver.replicas is not None:
        spec["replicas"] = region.transceiver.replicas
    return scope.object(REGIONS, names.region(scope.name, region.name), "region", region, spec=spec)
