"""What `up` says when everything is ready."""

import ipaddress
from collections.abc import Iterator

from voicecluster.cli.stack.prepare import Prepared
from voicecluster.cli.state import StackDirectory
from voicecluster.common.config.model import join_address


def welcome(name: str, directory: StackDirectory, prepared: Prepared, seconds: float) -> Iterator[str]:
    """The lines of it: where the page is, what there is, how to call, and what may surprise."""
    cluster, place, url = prepared.cluster, prepared.place, prepared.url
    by_key = cluster.spec.signaling.auth.mode == "APIKey"
    yield f"Stack '{name}' is ready after {seconds:.1f} s."
    yield ""
    yield f"  Page     {url}/"
    label = "Regions"
    for region in cluster.spec.regions:
        vips = ", ".join(join_address(*vip.advertise) for vip in place.vips(region))
        amount = "no transceivers"
        if region.transceiver.replicas:
            transceivers = _count(region.transceiver.replicas, "transceiver")
            amount = f"{transceivers}, {_count(region.transceiver.workers, 'worker')} each"
        yield f"  {label:<8} {region.name}: VIP {vips} (UDP), {amount}"
        label = ""
    options = f" --key-file {directory.api_key_file}" if by_key else ""
    options += " --insecure" if prepared.tls else ""
    yield f"  Call     voicecluster call {url}{options}"
    if by_key:
        yield f"  API key  in {directory.api_key_file}"
    yield f"  More     voicecluster status --name {name}; voicecluster logs --name {name} -f"
    notes = list(_notes(prepared))
    if notes:
        yield ""
        yield from notes


def _notes(prepared: Prepared) -> Iterator[str]:
    cluster, place = prepared.cluster, prepared.place
    vips = [vip.advertise[0] for region in cluster.spec.regions for vip in place.vips(region)]
    if any(_is_loopback(address) for address in vips):
        yield "Firefox ignores loopback candidates: set media.peerconnection.ice.loopback in about:config."
    off_loopback = not _is_loopback(place.signaling_at[0])
    if off_loopback and not prepared.tls:
        yield "Browsers give no microphone to plain HTTP off 127.0.0.1: start with --tls to use the page."
    if prepared.tls:
        yield "The certificate is self-signed: the browser asks once whether to trust it."
    if off_loopback and cluster.spec.signaling.auth.mode == "None":
        yield (
            f"Anybody who reaches {place.signaling_at[0]} may call: spec.signaling.auth.mode is None. "
            "Set it to APIKey to ask for a key."
        )


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
