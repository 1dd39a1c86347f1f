"""What a call's transport tells of itself: for the debug page and for metrics."""

from dataclasses import dataclass

from voicecluster.transceiver.ice.agent import IceAgent
from voicecluster.transceiver.ice.path import Address, PathChange


@dataclass(slots=True)
class Phases:
    """When the steps of the set-up were reached, in loop seconds; `None`: not yet."""

    answered_at: float
    first_check_at: float | None = None
    dtls_at: float | None = None


@dataclass(frozen=True, slots=True)
class TransportSnapshot:
    """One moment of a transport. Addresses are those of the path that carries the media."""

    client: Address | None
    vip: Address | None
    relay: Address | None
    rtt_ms: float | None
    validated: bool
    paths: int
    path_switches: int
    ice_restarts: int
    path_history: tuple[PathChange, ...]
    dtls_state: str
    srtp_profile: str | None
    phases: Phases
    drops: dict[str, int]

    @classmethod
    def of(
        cls, agent: IceAgent, dtls_state: str, srtp_profile: str | None, phases: Phases, drops: dict[str, int]
    ) -> "TransportSnapshot":
        """Copy what matters now."""
        path = agent.selected
        return cls(
            client=path.client if path else None,
            vip=path.vip if path else None,
            relay=path.relay if path else None,
            rtt_ms=round(path.rtt * 1000, 3) if path and path.rtt is not None else None,
            validated=path.validated if path else False,
            paths=len(agent.paths),
            path_switches=agent.switches,
            ice_restarts=agent.restarts,
            path_history=tuple(agent.history),
            dtls_state=dtls_state,
            srtp_profile=srtp_profile,
            phases=phases,
            drops=drops,
        )
