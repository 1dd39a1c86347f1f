"""What the operator asks of an API server: eight verbs, and what its watches have seen.

Errors, all `KubeError`s, decide what the caller does:

    KubeError
    ├── NotFound      404: it is not there
    ├── Exists        409 on create: somebody was first
    ├── Conflict      409 otherwise: read again
    ├── Refused       400, 403, 413, 422: asking again does not help; the message says what is wrong
    └── Unavailable   429, 5xx, no answer in time, no connection: ask again, after `retry_seconds`
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Object: TypeAlias = Mapping[str, Json]
"""A Kubernetes object as JSON."""


FIELD_MANAGER = "voicecluster.dev/operator"
"""Whose the fields are that we write."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of object and where the API has it."""

    api_version: str
    kind: str
    plural: str
    namespaced: bool = True


CLUSTERS = Kind("voicecluster.dev/v1alpha1", "VoiceCluster", "voiceclusters")
REGIONS = Kind("voicecluster.dev/v1alpha1", "VoiceRegion", "voiceregions")
CONFIG_MAPS = Kind("v1", "ConfigMap", "configmaps")
DAEMON_SETS = Kind("apps/v1", "DaemonSet", "daemonsets")
ENDPOINT_SLICES = Kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
EVENTS = Kind("v1", "Event", "events")
LEASES = Kind("coordination.k8s.io/v1", "Lease", "leases")
NAMESPACES = Kind("v1", "Namespace", "namespaces", namespaced=False)
NETWORK_POLICIES = Kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies")
NODES = Kind("v1", "Node", "nodes", namespaced=False)
PODS = Kind("v1", "Pod", "pods")
POD_DISRUPTION_BUDGETS = Kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets")
ROLE_BINDINGS = Kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings")
ROLES = Kind("rbac.authorization.k8s.io/v1", "Role", "roles")
SECRETS = Kind("v1", "Secret", "secrets")
SERVICE_ACCOUNTS = Kind("v1", "ServiceAccount", "serviceaccounts")
SERVICES = Kind("v1", "Service", "services")
STATEFUL_SETS = Kind("apps/v1", "StatefulSet", "statefulsets")

CHILDREN = (
    CONFIG_MAPS,
    DAEMON_SETS,
    NETWORK_POLICIES,
    POD_DISRUPTION_BUDGETS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
    REGIONS,
)
"""What a plan may contain: applied, watched and pruned."""


class KubeError(Exception):
    """The API server did not do it. `str()` is one line without secrets."""


class NotFound(KubeError):
    """There is no such object."""


class Exists(KubeError):
    """There is one already."""


class Conflict(KubeError):
    """It changed meanwhile."""


class Refused(KubeError):
    """It will not be done, however often one asks."""


class Unavailable(KubeError):
    """It may be done later."""

    def __init__(self, message: str, *, retry_seconds: float | None = None) -> None:
        """`retry_seconds`: what the server asked for (Retry-After)."""
        super().__init__(message)
        self.retry_seconds = retry_seconds


class Kube(Protocol):
    """The verbs. Each may raise KubeError; cancelling one leaves its effect unknown, which reconciling heals."""

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """The object as it is now, None if there is none."""

    async def apply(self, wanted: Object, *, manager: str = FIELD_MANAGER) -> Object:
        """Server-side apply, forced, as this field manager; returns what is there now."""

    async def create(self, wanted: Object) -> Object:
        """Raises Exists where there is one, and changes nothing then."""

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """Delete the object if it still is the one with this uid; gone already is fine."""

    async def apply_status(self, wanted: Object) -> Object:
        """Server-side apply of the status subresource: `wanted` has identity and status only."""


class Store(Protocol):
    """What the watches have seen: complete since start, maybe a moment late. Objects are not to be changed."""

    def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """One object, None if there is none."""

    def children(self, kind: Kind, namespace: str, cluster: str) -> Sequence[Object]:
        """The objects of a VoiceCluster, by its label, ordered by name. Also for PODS and ENDPOINT_SLICES."""

    def nodes(self) -> Sequence[Object] | None:
        """All nodes, ordered by name; None where the operator may not read them."""
