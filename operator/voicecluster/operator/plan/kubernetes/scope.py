"""What all builders get: the resource, the facts, and what is the same for every object."""

from collections.abc import Mapping
from dataclasses import dataclass

from voicecluster.operator.api.v1alpha1 import API_VERSION, Region, VoiceCluster
from voicecluster.operator.kube.port import Json, Kind, Object
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.facts import Facts


@dataclass(frozen=True, slots=True)
class Scope:
    """One cluster in one namespace."""

    cluster: VoiceCluster
    facts: Facts

    @property
    def name(self) -> str:
        """Of the VoiceCluster."""
        return self.cluster.metadata.name

    @property
    def hosted(self) -> bool:
        """Whether relays of some region use their nodes' addresses: to a NetworkPolicy these are not pods."""
        return any(region.relay.vip.mode == "HostNetwork" for region in self.cluster.spec.regions)

    def replicas(self, region: Region) -> int:
        """How many transceivers the region has now; as many as asked for where nothing is known yet."""
        return self.facts.replicas.get(region.name, len(region.ordinals))

    def workers(self, region: Region) -> int:
        """The most workers that a transceiver of the region has, present or to come."""
        return max(region.transceiver.workers, self.facts.workers.get(region.name, 0))

    def object(
        self,
        kind: Kind,
        name: str,
        component: names.Component,
        region: Region | None = None,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        **content: Json,
    ) -> Object:
        """An object of this cluster: owned by it, so that it goes when the VoiceCluster goes.

        Ours: name, our labels and annotations, the owner reference. Left to others: everything else in `metadata`.
        """
        ours = names.labels(self.name, component, region.name if region is not None else None)
        metadata: dict[str, Json] = {
            "name": name,
            "namespace": self.facts.namespace,
            "labels": ours | dict(labels or {}),
            "ownerReferences": [
                {
                    "apiVersion": API_VERSION,
                    "kind": "VoiceCluster",
                    "name": self.name,
                    "uid": self.facts.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        }
        if annotations:
            metadata["annotations"] = dict(annotations)
        return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}
