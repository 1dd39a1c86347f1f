"""`objects()`: the whole of a cluster in Kubernetes."""

from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.kube.port import Object
from voicecluster.operator.plan.kubernetes.access import access
from voicecluster.operator.plan.kubernetes.facts import Facts
from voicecluster.operator.plan.kubernetes.policies import policies
from voicecluster.operator.plan.kubernetes.redis import redis_objects
from voicecluster.operator.plan.kubernetes.region import voice_region
from voicecluster.operator.plan.kubernetes.relay import relay_objects
from voicecluster.operator.plan.kubernetes.scope import Scope
from voicecluster.operator.plan.kubernetes.shared import shared_objects
from voicecluster.operator.plan.kubernetes.transceiver import transceiver_objects


def objects(cluster: VoiceCluster, facts: Facts) -> list[Object]:
    """Every object that shall exist, in the order to apply them: what is closed, known and allowed, then pods.

    Objects have no null in them, and nothing that depends on more than the arguments. What is generated once (root
    keys, API keys, drain token) is not among them.
    """
    scope = Scope(cluster, facts)
    found = [*policies(scope), *access(scope), *shared_objects(scope), *redis_objects(scope)]
    for region in cluster.spec.regions:
        found.append(voice_region(scope, region))
        found += transceiver_objects(scope, region)
        found += relay_objects(scope, region)
    return found
