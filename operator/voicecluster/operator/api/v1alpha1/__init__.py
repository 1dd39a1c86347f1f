"""voicecluster.dev/v1alpha1: `VoiceCluster`, what a user asks for, and `VoiceRegion`, generated for each region.

A field is here only when something acts on it. Unknown fields are errors, and what is refused says what to do.
The same models read the file of `voicecluster up` and make the CRDs, so defaults are applied in memory only.
"""

from voicecluster.operator.api.v1alpha1.cluster import (
    API_VERSION,
    Agents,
    ExternalRedis,
    Images,
    Metadata,
    NetworkPolicy,
    Redis,
    VoiceCluster,
    VoiceClusterSpec,
)
from voicecluster.operator.api.v1alpha1.region import (
    ORDINALS_PER_REGION,
    Region,
    Relay,
    Resources,
    Toleration,
    Transceiver,
)
from voicecluster.operator.api.v1alpha1.signaling import Signaling, SignalingAuth, SignalingService
from voicecluster.operator.api.v1alpha1.vip import Vip
from voicecluster.operator.api.v1alpha1.voiceregion import RegionMetadata, VoiceRegion, VoiceRegionSpec

__all__ = [
    "API_VERSION",
    "ORDINALS_PER_REGION",
    "Agents",
    "ExternalRedis",
    "Images",
    "Metadata",
    "NetworkPolicy",
    "Redis",
    "Region",
    "RegionMetadata",
    "Relay",
    "Resources",
    "Signaling",
    "SignalingAuth",
    "SignalingService",
    "Toleration",
    "Transceiver",
    "Vip",
    "VoiceCluster",
    "VoiceClusterSpec",
    "VoiceRegion",
    "VoiceRegionSpec",
]
