"""What a plan is made of: volumes and the processes that mount them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import yaml
from pydantic import BaseModel
from voicecluster.common.config.model import Model, join_address

M = TypeVar("M", bound=Model)
Role = Literal["relay", "transceiver"]
Protocol = Literal["udp", "tcp"]


@dataclass(frozen=True, slots=True)
class Volume:
    """A directory of files, as a ConfigMap or, if `secret`, a Secret will be."""

    name: str
    files: Mapping[str, str] = field(repr=False)
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Port:
    """A socket that a process binds. `shared`: other processes of the plan bind it too, with SO_REUSEPORT."""

    name: str
    protocol: Protocol
    host: str
    port: int
    shared: bool = False

    @property
    def address(self) -> str:
        """`IP:PORT` or `[IPv6]:PORT`."""
        return join_address(self.host, self.port)


@dataclass(frozen=True, slots=True)
class Process:
    """One pod of the plan. `command[0]` is the name of an executable of this distribution."""

    name: str
    role: Role
    region: str
    command: tuple[str, ...]
    volumes: tuple[str, ...]
    """Names of the volumes it mounts, each at `Placement.mount(name)`."""
    ports: tuple[Port, ...]
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def admin(self) -> Port:
        """The port of health and metrics."""
        return next(port for port in self.ports if port.name == "admin")


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that has to exist: by region as the resource lists them, each region's relay first."""

    volumes: tuple[Volume, ...]
    processes: tuple[Process, ...]


def completed(settings: Model, model: type[M], **own: object) -> M:
    """A configuration of `settings`, which pods share, and of what is the process's `own`."""
    shared = {name: getattr(settings, name) for name in type(settings).model_fields}
    return model.model_validate(shared | own)


def render(document: BaseModel) -> str:
    """The text of a configuration file: YAML in the model's own order, as the component's `load` reads it.

    Defaults are written too, so that a file says everything its reader acts on.
    """
    content = document.model_dump(mode="json", by_alias=True, exclude_none=True)
    return str(yaml.dump(content, Dumper=_DUMPER, sort_keys=False, default_flow_style=False, width=110))


_DUMPER: type[yaml.SafeDumper] | type[yaml.CSafeDumper] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
"""libyaml's where it is built in: several times as fast for a cluster of many regions."""
