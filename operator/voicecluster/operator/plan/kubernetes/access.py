"""What our pods may ask of the API: relays see routes and one another, transceivers one ConfigMap. No more."""

from collections.abc import Sequence
from typing import Literal

from voicecluster.operator.kube.port import ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS, Json, Object
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.scope import Scope


def access(scope: Scope) -> list[Object]:
    """ServiceAccount, Role and RoleBinding of relays and of transceivers. Ours: rules, subjects and references."""
    slices: Json = {
        "apiGroups": ["discovery.k8s.io"],
        "resources": ["endpointslices"],
        "verbs": ["list", "watch"],
    }
    vips: Json = {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "resourceNames": [names.vips(scope.name)],
        "verbs": ["list", "watch"],
    }
    return [*_granted(scope, "relay", [slices]), *_granted(scope, "transceiver", [vips])]


def _granted(scope: Scope, component: Literal["relay", "transceiver"], rules: Sequence[Json]) -> list[Object]:
    name = names.everywhere(scope.name, component)
    role: Json = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    account: Json = {"kind": "ServiceAccount", "name": name, "namespace": scope.facts.namespace}
    return [
        scope.object(SERVICE_ACCOUNTS, name, component),
        scope.object(ROLES, name, component, rules=list(rules)),
        scope.object(ROLE_BINDINGS, name, component, roleRef=role, subjects=[account]),
    ]
