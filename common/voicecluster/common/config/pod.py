"""What a program in a pod knows from the pod itself: its name, node and addresses.

One configuration file serves all pods of a workload, so it says nothing that differs between them. The plan gives
each container the downward API's facts as environment variables; `load_relay` and `load_transceiver` are the one
place that reads them. Where `POD_IPS` is not set, a file must say everything itself.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from voicecluster.common.config.model import ConfigError, join_address, load, parse
from voicecluster.common.config.relay import RelayConfig, RelayPodSettings
from voicecluster.common.config.transceiver import TransceiverConfig, TransceiverSettings

ADMIN_PORT = 8086
BACKBONE_PORT = 13479
INTERNAL_PORT = 9000
MEDIA_PORT = 40000
SIGNALING_PORT = 8080

POD_NAME, POD_NAMESPACE, POD_IPS, NODE_NAME = "POD_NAME", "POD_NAMESPACE", "POD_IPS", "NODE_NAME"


@dataclass(frozen=True, slots=True)
class Pod:
    """The downward API's facts about this pod."""

    name: str
    addresses: tuple[str, ...]
    """The first is the pod's own, of the cluster's first family."""
    node: str

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "Pod | None":
        """This pod, or None outside Kubernetes. Raises ConfigError when only some variables are set."""
        if POD_IPS not in environment:
            return None
        missing = [name for name in (POD_NAME, NODE_NAME) if not environment.get(name)]
        addresses = tuple(filter(None, environment[POD_IPS].split(",")))
        if missing or not addresses:
            wrong = (missing or [POD_IPS])[0]
            raise ConfigError(f"environment: {wrong}: empty; set it from the downward API")
        return cls(environment[POD_NAME], addresses, environment[NODE_NAME])

    @property
    def ordinal(self) -> int:
        """The number at the end of a StatefulSet's pod's name. Raises ConfigError where there is none."""
        number = re.search(r"-(\d+)$", self.name)
        if number is None:
            raise ConfigError(
                f"environment: {POD_NAME}: '{self.name}' ends with no number; use a StatefulSet"
            )
        return int(number[1])


def load_transceiver(path: Path, environment: Mapping[str, str]) -> TransceiverConfig:
    """Read a transceiver's configuration. Raises ConfigError."""
    pod = Pod.of(environment)
    if pod is None:
        return load(path, TransceiverConfig)
    settings = load(path, TransceiverSettings)
    host = pod.addresses[0]
    ours = {
        "name": pod.name,
        "ordinal": pod.ordinal,
        "mediaAddress": host,
        "mediaPort": MEDIA_PORT,
        "internalAddress": host,
        "internalPort": INTERNAL_PORT,
        "admin": join_address(host, ADMIN_PORT),
        "signaling": join_address(host, SIGNALING_PORT),
    }
    return parse(settings.model_dump(by_alias=True, mode="json") | ours, TransceiverConfig, source=str(path))


def load_relay(path: Path, environment: Mapping[str, str]) -> RelayConfig:
    """Read a relay's configuration. Raises ConfigError."""
    pod = Pod.of(environment)
    if pod is None:
        return load(path, RelayConfig)
    settings = load(path, RelayPodSettings)
    shared = settings.model_dump(by_alias=True, mode="json", exclude={"listen_port"})
    ours = {
        "name": pod.name,
        "node": pod.node,
        "listeners": [
            {"name": f"vip-{n}", "bind": join_address(address, settings.listen_port)}
            for n, address in enumerate(pod.addresses)
        ],
        "backbone": join_address(pod.addresses[0], BACKBONE_PORT),
        "admin": join_address(pod.addresses[0], ADMIN_PORT),
    }
    return parse(shared | ours, RelayConfig, source=str(path))
