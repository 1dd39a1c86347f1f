"""The transceivers of a region: the pods that own calls, and how relays and siblings find them."""

import math

from voicecluster.common.config.pod import ADMIN_PORT, MEDIA_PORT, SIGNALING_PORT
from voicecluster.common.config.transceiver import ObjectFile
from voicecluster.operator.api.v1alpha1 import ORDINALS_PER_REGION, Region
from voicecluster.operator.kube.port import (
    CONFIG_MAPS,
    POD_DISRUPTION_BUDGETS,
    SERVICES,
    STATEFUL_SETS,
    Json,
    Object,
)
from voicecluster.operator.plan.kubernetes import names, pods
from voicecluster.operator.plan.kubernetes.relay import service_port
from voicecluster.operator.plan.kubernetes.scope import Scope
from voicecluster.operator.plan.process import render
from voicecluster.operator.plan.relay import CONFIG, VIPS
from voicecluster.operator.plan.transceiver import API_KEYS, DIRECTORY, ROOT_KEYS, transceiver_settings

DRAIN_TOKEN = "drain-token"
GRACE_SECONDS = 3600
"""The least that Kubernetes gives a transceiver to end; it ends by itself, after the drain timeout at the latest."""
SECONDS_TO_END = 15
"""What a transceiver needs beyond its drain timeout to end what is left."""


def transceiver_objects(scope: Scope, region: Region) -> list[Object]:
    """Everything of the region's transceivers, also where there are none yet: they can be scaled up."""
    return [
        config(scope, region),
        media_service(scope, region),
        disruption_budget(scope, region),
        stateful_set(scope, region),
    ]


def config(scope: Scope, region: Region) -> Object:
    """The transceivers' configuration. Ours: `data`. They re-read it; no pod changes with it."""
    settings = transceiver_settings(
        scope.cluster,
        region,
        pods.mount,
        drain_token=pods.mount(DRAIN_TOKEN) / "token",
        tls=False,
        vips_watch=ObjectFile(
            file=pods.RUN / "vips.yaml",
            seed=pods.mount(VIPS) / "vips.yaml",
            namespace=scope.facts.namespace,
            config_map=names.vips(scope.name),
        ),
    )
    name = names.transceiver(scope.name, region.name)
    return scope.object(CONFIG_MAPS, name, "transceiver", region, data={CONFIG: render(settings)})


def stateful_set(scope: Scope, region: Region) -> Object:
    """The region's transceivers. A pod's ordinal is part of every ufrag it mints.

    Ours: replicas, ordinals, policies, and of the template everything we say. Left to others: what the API defaults.
    Pods are replaced by the operator alone (OnDelete), after their calls. Of the configuration, the template depends
    on workers and on drain timeouts over an hour only; the API keys' Secret is mounted whether asked for or not.
    """
    spec = region.transceiver
    name = names.transceiver(scope.name, region.name)
    selector = names.selector(scope.name, "transceiver", region.name)
    auth = scope.cluster.spec.signaling.auth
    volumes = (
        pods.config_map(pods.CONFIG, name),
        pods.secret(ROOT_KEYS, names.root_keys(scope.name)),
        pods.secret(API_KEYS, auth.api_keys_secret or names.api_keys(scope.name), optional=True),
        pods.secret(DRAIN_TOKEN, names.drain_token(scope.name)),
        pods.config_map(VIPS, names.vips(scope.name)),
        pods.config_map(DIRECTORY, names.directory(scope.name)),
    )
    program = pods.container(
        scope,
        "transceiver",
        scope.cluster.spec.images.transceiver or scope.facts.defaults.transceiver_image,
        command=("voicecluster-transceiver", "--config", str(pods.mount(pods.CONFIG) / CONFIG)),
        volumes=volumes,
        resources=pods.requirements(spec.resources, cpu="250m", memory="256Mi", times=spec.workers),
        ports=(
            pods.port("media", MEDIA_PORT, "UDP"),
            pods.port("signaling", SIGNALING_PORT, "TCP"),
            pods.port("admin", ADMIN_PORT, "TCP"),
        ),
        ready_seconds=2,
        ready_failures=2,
    )
    template = pods.pod(
        scope,
        "transceiver",
        region,
        user=pods.USER,
        account=names.everywhere(scope.name, "transceiver"),
        containers=[program],
        volumes=[*volumes, pods.scratch("run"), pods.scratch("tmp")],
        annotations={
            "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            "karpenter.sh/do-not-disrupt": "true",
        },
        labels={names.WORKERS: str(spec.workers)},
        # As process 1 of its own it would not hear a SIGTERM that comes before it listens, and would stay for the whole
        # grace period; the kernel spares process 1 what it has no handler for.
        shareProcessNamespace=True,
        terminationGracePeriodSeconds=_grace_seconds(region),
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": selector},
            }
        ],
    )
    content: dict[str, Json] = {
        "replicas": scope.replicas(region),
        "ordinals": {"start": region.index * ORDINALS_PER_REGION},
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "serviceName": names.media(scope.name, region.name),
        "selector": {"matchLabels": selector},
        "template": template,
    }
    return scope.object(STATEFUL_SETS, name, "transceiver", region, spec=content)


def media_service(scope: Scope, region: Region) -> Object:
    """The region's transceivers by their own addresses, ready or not: a draining one still has calls.

    Ours: everything but what the API defaults. Its label WORKERS goes to its EndpointSlices: relays have a route for
    each worker, and lose none while a transceiver with more of them is present.
    """
    spec: dict[str, Json] = {
        "clusterIP": "None",
        "ipFamilyPolicy": "SingleStack",
        "publishNotReadyAddresses": True,
        "selector": names.selector(scope.name, "transceiver", region.name),
        "ports": [service_port("media", MEDIA_PORT, MEDIA_PORT, "UDP")],
    }
    labels = {names.WORKERS: str(scope.workers(region))}
    name = names.media(scope.name, region.name)
    return scope.object(SERVICES, name, "transceiver", region, labels=labels, spec=spec)


def disruption_budget(scope: Scope, region: Region) -> Object:
    """One transceiver of the region at a time may be evicted, and any that is not healthy. Ours: all of it."""
    spec: dict[str, Json] = {
        "maxUnavailable": 1,
        "unhealthyPodEvictionPolicy": "AlwaysAllow",
        "selector": {"matchLabels": names.selector(scope.name, "transceiver", region.name)},
    }
    name = names.transceiver(scope.name, region.name)
    return scope.object(POD_DISRUPTION_BUDGETS, name, "transceiver", region, spec=spec)


def _grace_seconds(region: Region) -> int:
    return max(GRACE_SECONDS, math.ceil(region.transceiver.limits.drain_timeout_seconds)) + SECONDS_TO_END
