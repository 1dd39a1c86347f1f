"""Names and labels of the objects of a cluster. Nobody else puts them together."""

from collections.abc import Mapping
from typing import Literal

DOMAIN = "voicecluster.dev"
CLUSTER, REGION = f"{DOMAIN}/cluster", f"{DOMAIN}/region"
"""Labels of every object of ours, the second of those of one region: the VoiceCluster's name, the region's."""
WORKERS = f"{DOMAIN}/workers"
"""Label of a region's media Service, and so of its EndpointSlices: workers of each transceiver. On a pod: its own."""
LISTEN_PORT = f"{DOMAIN}/listen-port"
"""Annotation of relays in HostNetwork mode: a change of it is a change of the pod."""
MANAGED_BY, MANAGER = "app.kubernetes.io/managed-by", "voicecluster-operator"
COMPONENT = "app.kubernetes.io/component"

Everywhere = Literal["relay", "transceiver", "redis"]
Component = Literal[Everywhere, "signaling", "keys", "config", "region"]


def labels(cluster: str, component: Component, region: str | None = None) -> dict[str, str]:
    """The labels of an object and, where it has some, of its pods."""
    found = {
        "app.kubernetes.io/name": "voicecluster",
        "app.kubernetes.io/instance": cluster,
        COMPONENT: component,
        "app.kubernetes.io/part-of": "voicecluster",
        MANAGED_BY: MANAGER,
        CLUSTER: cluster,
    }
    return found if region is None else found | {REGION: region}


def selector(cluster: str, component: Component, region: str | None = None) -> dict[str, str]:
    """What selects the pods of a component: never changes, since selectors cannot."""
    found = {CLUSTER: cluster, COMPONENT: component}
    return found if region is None else found | {REGION: region}


def text(labels: Mapping[str, str]) -> str:
    """A selector as kubectl and the API take it."""
    return ",".join(f"{key}={value}" for key, value in labels.items())


def everywhere(cluster: str, component: Everywhere) -> str:
    """ServiceAccount, Role, RoleBinding and NetworkPolicy of a component's pods in all regions."""
    return f"{cluster}-{component}"


def relay(cluster: str, region: str) -> str:
    """DaemonSet, VIP Service and ConfigMap of a region's relays."""
    return f"{cluster}-{region}-relay"


def relay_pods(cluster: str, region: str) -> str:
    """Headless Service of a region's relays: they see their successors in its slices, whatever the VIP's mode."""
    return f"{cluster}-{region}-relays"


def transceiver(cluster: str, region: str) -> str:
    """StatefulSet, PodDisruptionBudget and ConfigMap of a region's transceivers."""
    return f"{cluster}-{region}-transceiver"


def media(cluster: str, region: str) -> str:
    """Headless Service of a region's transceivers, ready or not: routes and sibling names come from it."""
    return f"{cluster}-{region}-media"


def region(cluster: str, region: str) -> str:
    """VoiceRegion."""
    return f"{cluster}-{region}"


def signaling(cluster: str) -> str:
    """Service of all ready transceivers."""
    return f"{cluster}-signaling"


def redis(cluster: str) -> str:
    """StatefulSet and Service of the embedded Redis."""
    return f"{cluster}-redis"


def root_keys(cluster: str) -> str:
    """Secret with `keys.yaml`, a RootKeysFile. Generated once."""
    return f"{cluster}-root-keys"


def hint_keys(cluster: str) -> str:
    """Secret with `keys.yaml`, a RelayKeysFile, derived from the root keys."""
    return f"{cluster}-hint-keys"


def api_keys(cluster: str) -> str:
    """Secret with one entry per API key. Generated once, unless the user names one."""
    return f"{cluster}-api-keys"


def drain_token(cluster: str) -> str:
    """Secret with `token`: what the operator shows to drain a transceiver. Generated once."""
    return f"{cluster}-drain-token"


def vips(cluster: str) -> str:
    """ConfigMap with `vips.yaml`, a VipsFile."""
    return f"{cluster}-vips"


def directory(cluster: str) -> str:
    """ConfigMap with `directory.yaml`, a DirectoryFile."""
    return f"{cluster}-directory"
