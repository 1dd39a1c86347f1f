"""The embedded Redis: the stock image, one pod, nothing kept. Losing it costs no call."""

from voicecluster.operator.kube.port import SERVICES, STATEFUL_SETS, Json, Object
from voicecluster.operator.plan.kubernetes import names, pods
from voicecluster.operator.plan.kubernetes.quantity import bytes_of
from voicecluster.operator.plan.kubernetes.relay import service_port
from voicecluster.operator.plan.kubernetes.scope import Scope

PORT = 6379
MEMORY = "64Mi"
_USER = 999
"""As in the stock image."""


def redis_objects(scope: Scope) -> list[Object]:
    """Service and StatefulSet; nothing where Redis is external or not wanted."""
    if scope.cluster.spec.redis.mode != "Embedded":
        return []
    return [service(scope), stateful_set(scope)]


def service(scope: Scope) -> Object:
    """The address of Redis. Ours: ports and selector. Left to others: addresses and what the API defaults."""
    spec: dict[str, Json] = {
        "selector": names.selector(scope.name, "redis"),
        "ports": [service_port("redis", PORT, PORT, "TCP")],
    }
    return scope.object(SERVICES, names.redis(scope.name), "redis", spec=spec)


def stateful_set(scope: Scope) -> Object:
    """One Redis. Ours: replicas, selector, and of the template everything we say.

    It evicts what was used least before its memory is full. Who may reach it is up to the NetworkPolicy: it has no
    password, and holds nothing but addresses of flows.
    """
    spec = scope.cluster.spec
    memory = spec.redis.resources.memory or MEMORY
    name = names.redis(scope.name)
    program: dict[str, Json] = {
        "name": "redis",
        "image": spec.images.redis or scope.facts.defaults.redis_image,
        "imagePullPolicy": spec.images.pull_policy,
        "command": ["redis-server"],
        "args": [
            *("--save", ""),
            *("--appendonly", "no"),
            *("--protected-mode", "no"),
            *("--maxmemory", str(bytes_of(memory) * 3 // 4)),
            *("--maxmemory-policy", "allkeys-lru"),
        ],
        "workingDir": "/data",
        "ports": [pods.port("redis", PORT, "TCP")],
        "resources": pods.requirements(spec.redis.resources, cpu="50m", memory=MEMORY),
        "readinessProbe": {
            "exec": {"command": ["redis-cli", "ping"]},
            "periodSeconds": 5,
            "timeoutSeconds": 2,
        },
        "securityContext": pods.powerless(),
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    template = pods.pod(
        scope, "redis", None, user=_USER, account=None, containers=[program], volumes=[pods.scratch("data")]
    )
    content: dict[str, Json] = {
        "replicas": 1,
        "serviceName": name,
        "selector": {"matchLabels": names.selector(scope.name, "redis")},
        "template": template,
    }
    return scope.object(STATEFUL_SETS, name, "redis", spec=content)
