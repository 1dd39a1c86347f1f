"""What the operator was started with: options, and what Kubernetes tells a pod about itself."""

import re
import secrets
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from voicecluster.common.config.model import ConfigError, split_address
from voicecluster.operator.plan.kubernetes.facts import Defaults

OPERATOR_LABELS: Mapping[str, str] = MappingProxyType({"app.kubernetes.io/name": "voicecluster-operator"})
"""Of the operator's own pods, however the chart's release is named: NetworkPolicies let them reach admin ports."""
LEASE = "voicecluster-operator"
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be chosen, checked."""

    namespaces: tuple[str, ...]
    """Where VoiceClusters are served; empty means everywhere."""
    nodes: bool
    """Whether nodes may be read: relays in HostNetwork mode need their addresses."""
    defaults: Defaults
    lease_namespace: str
    identity: str
    """Of this process: the holder of the Lease."""
    admin: str
    """Where /livez, /readyz and /metrics are, `IP:PORT`."""
    workers: int
    """VoiceClusters reconciled at once. More are faster after a start and load the API server more."""


def settings(
    *,
    namespaces: Sequence[str],
    nodes: bool,
    images: tuple[str, str, str],
    admin: str,
    workers: int,
    environ: Mapping[str, str],
) -> Settings:
    """Check and complete what was given. Raises ConfigError.

    Args:
        images: Of relays, transceivers and Redis, where a VoiceCluster names none.
        environ: POD_NAMESPACE says where the Lease is, POD_NAME who holds it.
    """
    for namespace in namespaces:
        if not _NAMESPACE.fullmatch(namespace):
            raise ConfigError(f"--namespace: '{namespace}' is no namespace; patterns are not supported")
    split_address(admin)
    own = environ.get("POD_NAMESPACE", "")
    if not own:
        raise ConfigError(
            "POD_NAMESPACE is not set; in a pod take it from metadata.namespace, elsewhere name the namespace"
            " for the operator's Lease"
        )
    relay, transceiver, redis = images
    name = environ.get("POD_NAME") or socket.gethostname()
    return Settings(
        namespaces=tuple(dict.fromkeys(namespaces)),
        nodes=nodes,
        defaults=Defaults(
            relay_image=relay,
            transceiver_image=transceiver,
            redis_image=redis,
            operator_namespace=own,
            operator_labels=OPERATOR_LABELS,
        ),
        lease_namespace=own,
        identity=f"{name}_{secrets.token_hex(4)}",
        admin=admin,
        workers=workers,
    )
