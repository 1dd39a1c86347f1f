"""Everything that can be found wrong before the first process starts."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from voicecluster.cli.stack import programs
from voicecluster.cli.stack.certificate import certificate_for
from voicecluster.cli.stack.files import write_volumes
from voicecluster.cli.stack.secrets import key_material
from voicecluster.cli.state import StackDirectory, StackError, all_running
from voicecluster.common.config.model import join_address
from voicecluster.common.config.pod import BACKBONE_PORT
from voicecluster.common.ports import PortError, ensure_free
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.plan.cluster import plan
from voicecluster.operator.plan.placement import LocalPlacement
from voicecluster.operator.plan.process import Plan, Process

SIGNALING_PORT = 8080
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user said on the command line."""

    address: str | None = None
    """Serve on this address instead of the file's VIPs and 127.0.0.1."""
    signaling: tuple[str, int] | None = None
    internal: ipaddress.IPv4Network | None = None
    tls: bool = False


@dataclass(frozen=True, slots=True)
class Prepared:
    """A stack that can be started."""

    cluster: VoiceCluster
    place: LocalPlacement
    plan: Plan
    executables: tuple[Path, ...]
    """One for each process of the plan."""
    tls: bool

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"{'https' if self.tls else 'http'}://{join_address(*self.place.signaling_at)}"


def prepare(cluster: VoiceCluster, directory: StackDirectory, choices: Choices) -> Prepared:
    """Plan the stack, check that its programs are there and its ports free, and write its files.

    The caller holds the stack's lock. Raises ConfigError.
    """
    place = LocalPlacement(
        cluster=cluster,
        state=directory.root.absolute(),
        signaling_at=choices.signaling or (choices.address or LOOPBACK, SIGNALING_PORT),
        internal=choices.internal or _unused_network(),
        public=choices.address,
    )
    certificate = certificate_for(directory, place.signaling_at[0]) if choices.tls else None
    try:
        planned = plan(cluster, place, key_material(directory), certificate=certificate)
    except ValueError as error:
        raise StackError(str(error)) from None
    executables = tuple(programs.find(process.command[0]) for process in planned.processes)
    check_ports(planned.processes)
    write_volumes(planned, directory.root / "volumes")
    return Prepared(cluster, place, planned, executables, tls=choices.tls)


def check_ports(processes: Iterable[Process]) -> None:
    """Raise PortError for the first port of the plan that is taken or cannot be had, naming who needs it."""
    seen: set[tuple[str, str]] = set()
    for process in processes:
        for port in process.ports:
            if (port.protocol, port.address) in seen:
                continue  # shared by design
            seen.add((port.protocol, port.address))
            try:
                ensure_free(port.protocol, port.address)
            except PortError as error:
                raise PortError(f"{process.name} needs {port.name} {error}") from None


def _unused_network() -> ipaddress.IPv4Network:
    """The first of 127.0.1.0/24, 127.0.2.0/24, … that no other stack uses, whoever runs it."""
    used = {status.internal for _, status in all_running()}
    for network in (ipaddress.IPv4Network(f"127.0.{n}.0/24") for n in range(1, 255)):
        if str(network) not in used and _is_free(join_address(str(network[1]), BACKBONE_PORT)):
            return network
    raise StackError("every internal network is in use; end a stack with 'voicecluster down'")


def _is_free(backbone: str) -> bool:
    """Whether the first relay of a stack could have its backbone here."""
    try:
        ensure_free("udp", backbone)
    except PortError:
        return False
    return True
