"""What `GET …/debug` shows of a call."""

from dataclasses import asdict
from typing import Protocol

from voicecluster.common.config.model import join_address
from voicecluster.transceiver.dtls.snapshot import TransportSnapshot
from voicecluster.transceiver.ice.path import Address
from voicecluster.transceiver.phases import Phases
from voicecluster.transceiver.rtp.stats import RtpStats


class Named(Protocol):
    """Where a call lives."""

    @property
    def name(self) -> str: ...
    @property
    def region(self) -> str: ...
    @property
    def ordinal(self) -> int: ...
    @property
    def worker(self) -> int: ...


class Described(Protocol):
    """The call's own part of the picture."""

    call_id: str
    phases: Phases

    @property
    def model(self) -> str: ...
    @property
    def agent(self) -> str: ...


def describe(place: Named, call: Described, transport: TransportSnapshot, rtp: RtpStats) -> dict[str, object]:
    """One JSON object; addresses are `IP:PORT`, None while there is no path. No secret, no SDP."""
    return {
        "call_id": call.call_id,
        "region": place.region,
        "transceiver": place.name,
        "ordinal": place.ordinal,
        "worker": place.worker,
        "model": call.model,
        "agent": call.agent,
        "state": transport.dtls_state,
        "client": _shown(transport.client),
        "vip": _shown(transport.vip),
        "relay": _shown(transport.relay),
        "rtt_ms": transport.rtt_ms,
        "path_history": [
            {
                "client": _shown(change.client),
                "vip": _shown(change.vip),
                "relay": _shown(change.relay),
                "at_seconds": round(change.at - call.phases.start, 3),
                "reason": change.reason,
            }
            for change in transport.path_history
        ],
        "ice_restarts": transport.ice_restarts,
        "phases": call.phases.milliseconds(),
        "rtp": asdict(rtp),
    }


def _shown(address: Address | None) -> str | None:
    return None if address is None else join_address(*address)
