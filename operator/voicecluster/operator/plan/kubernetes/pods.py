"""What our pods have in common: how they are confined, placed, told who they are, and asked how they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from voicecluster.common.config.pod import ADMIN_PORT, NODE_NAME, POD_IPS, POD_NAME, POD_NAMESPACE
from voicecluster.operator.api.v1alpha1 import Region, Resources
from voicecluster.operator.kube.port import Json
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.quantity import canonical
from voicecluster.operator.plan.kubernetes.scope import Scope

CONFIG = "config"
RUN = Path("/run/voicecluster")
"""A directory of the pod's own: it outlives a container, not the pod."""
USER = 65532
STARTUP_SECONDS = 120
"""How long a program may take to start on a busy node before it is started anew."""

_GROUP_MAY_READ = 0o440


def mount(volume: str) -> Path:
    """Where pods have a volume (see `plan.placement.Mount`)."""
    return Path("/etc/voicecluster") / volume


def config_map(volume: str, name: str) -> dict[str, Json]:
    """A volume with the entries of a ConfigMap."""
    return {"name": volume, "configMap": {"name": name}}


def secret(volume: str, name: str, *, optional: bool = False) -> dict[str, Json]:
    """A volume with a Secret's entries. `optional`: pods start without it, and see it once it is there."""
    source: dict[str, Json] = {"secretName": name, "defaultMode": _GROUP_MAY_READ}
    return {"name": volume, "secret": source | ({"optional": True} if optional else {})}


def scratch(volume: str) -> dict[str, Json]:
    """An empty volume that goes with the pod."""
    return {"name": volume, "emptyDir": {"sizeLimit": "64Mi"}}


def confined(user: int) -> dict[str, Json]:
    """Security of a pod that the `restricted` Pod Security Standard admits."""
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def powerless() -> dict[str, Json]:
    """Security of a container: no capability, no way to one, nothing to write but its volumes."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def requirements(wanted: Resources, *, cpu: str, memory: str, times: int = 1) -> dict[str, Json]:
    """Requests, as asked for or `times` the default; a limit of memory only if asked for, of cores never."""
    asked = canonical(wanted.memory) if wanted.memory is not None else None
    requests = {
        "cpu": canonical(wanted.cpu) if wanted.cpu is not None else canonical(cpu, times),
        "memory": asked if asked is not None else canonical(memory, times),
    }
    return {"requests": requests, **({"limits": {"memory": asked}} if asked is not None else {})}


def port(name: str, number: int, protocol: str) -> dict[str, Json]:
    """A container's port: for the eye, it opens nothing."""
    return {"name": name, "containerPort": number, "protocol": protocol}


def container(
    scope: Scope,
    name: str,
    image: str,
    *,
    command: Sequence[str],
    volumes: Sequence[Mapping[str, Json]],
    resources: Mapping[str, Json],
    ports: Sequence[Json],
    ready_seconds: int,
    ready_failures: int,
) -> dict[str, Json]:
    """The container of one of our programs, with all `volumes` of its pod mounted where the programs look."""
    mounts: list[Json] = [
        {"name": volume["name"], "mountPath": str(mount(str(volume["name"]))), "readOnly": True}
        for volume in volumes
    ]
    writable: list[Json] = [{"name": "run", "mountPath": str(RUN)}, {"name": "tmp", "mountPath": "/tmp"}]
    found: dict[str, Json] = {
        "name": name,
        "image": image,
        "imagePullPolicy": scope.cluster.spec.images.pull_policy,
        "command": list(command),
        "env": [
            _from_pod(NODE_NAME, "spec.nodeName"),
            _from_pod(POD_IPS, "status.podIPs"),
            _from_pod(POD_NAME, "metadata.name"),
            _from_pod(POD_NAMESPACE, "metadata.namespace"),
        ],
        "resources": resources,
        "readinessProbe": _probe(
            "/readyz", period=ready_seconds, failures=ready_failures, timeout=ready_seconds
        ),
        "livenessProbe": _probe("/livez", period=10, failures=3, timeout=5),
        "startupProbe": _probe("/livez", period=1, failures=STARTUP_SECONDS, timeout=5),
        "securityContext": powerless(),
        "volumeMounts": mounts + writable,
    }
    return found | ({"ports": list(ports)} if ports else {})


def pod(
    scope: Scope,
    component: names.Component,
    region: Region | None,
    *,
    user: int,
    account: str | None,
    containers: Sequence[Json],
    volumes: Sequence[Json],
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    **spec: Json,
) -> dict[str, Json]:
    """A pod template; with no `account` its pods have no access to the API.

    Left to others: what the API defaults, and everything that admission adds.
    """
    ours = names.labels(scope.name, component, region.name if region is not None else None)
    metadata: dict[str, Json] = {"labels": ours | dict(labels or {})}
    if annotations:
        metadata["annotations"] = dict(annotations)
    content: dict[str, Json] = {
        "automountServiceAccountToken": account is not None,
        "enableServiceLinks": False,
        "securityContext": confined(user),
        **({"serviceAccountName": account} if account is not None else {}),
        **(_placed(region) if region is not None else {}),
        **spec,
        "containers": list(containers),
        "volumes": list(volumes),
    }
    if pull_secrets := scope.cluster.spec.images.pull_secrets:
        content["imagePullSecrets"] = [{"name": name} for name in pull_secrets]
    return {"metadata": metadata, "spec": content}


def _placed(region: Region) -> dict[str, Json]:
    found: dict[str, Json] = {}
    if region.node_selector:
        found["nodeSelector"] = dict(region.node_selector)
    if region.tolerations:
        found["tolerations"] = [
            toleration.model_dump(mode="json", by_alias=True, exclude_none=True)
            for toleration in region.tolerations
        ]
    return found


def _from_pod(variable: str, field: str) -> Json:
    return {"name": variable, "valueFrom": {"fieldRef": {"fieldPath": field}}}


def _probe(path: str, *, period: int, failures: int, timeout: int) -> dict[str, Json]:
    return {
        "httpGet": {"path": path, "port": ADMIN_PORT},
        "periodSeconds": period,
        "failureThreshold": failures,
        "timeoutSeconds": timeout,
    }
