"""The plan is exactly what the components' own configuration models read."""

import base64
import ipaddress
import os
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from voicecluster.common.config.model import load, parse, split_address
from voicecluster.common.config.relay import RelayConfig, RelayKeysFile, RoutesFile
from voicecluster.common.config.transceiver import DirectoryFile, RootKeysFile, TransceiverConfig, VipsFile
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.plan.cluster import Certificate, plan
from voicecluster.operator.plan.keys import KeyMaterial
from voicecluster.operator.plan.placement import LocalPlacement
from voicecluster.operator.plan.process import Plan
from voicecluster.wire import derive_key

from tests.unit.operator.clusters import cluster, region

EXAMPLE = Path(__file__).parents[3] / "examples" / "local.yaml"
GOLDEN = Path(__file__).parent / "golden" / "local.yaml"
ROOT = bytes(range(32))
KEYS = KeyMaterial(mint="A", roots={"A": ROOT}, api_keys={"local": "vc-secret"})
NETWORK = ipaddress.IPv4Network("127.0.1.0/24")


def example() -> VoiceCluster:
    return load(EXAMPLE, VoiceCluster)


def place(cluster: VoiceCluster) -> LocalPlacement:
    return LocalPlacement(
        cluster=cluster, state=Path("/state"), signaling_at=("127.0.0.1", 8080), internal=NETWORK
    )


def file(planned: Plan, volume: str, name: str) -> object:
    [found] = [one for one in planned.volumes if one.name == volume]
    return yaml.safe_load(found.files[name])


def as_yaml(planned: Plan) -> str:
    """The plan for human eyes: every process, then every file."""
    processes = {
        process.name: {
            "role": process.role,
            "region": process.region,
            "command": " ".join(process.command),
            "volumes": list(process.volumes),
            "ports": [
                f"{port.name} {port.address}/{port.protocol}{' shared' if port.shared else ''}"
                for port in process.ports
            ],
        }
        for process in planned.processes
    }
    volumes = {
        volume.name + (" (secret)" if volume.secret else ""): {
            name: yaml.safe_load(text) for name, text in volume.files.items()
        }
        for volume in planned.volumes
    }
    return yaml.safe_dump({"processes": processes, "volumes": volumes}, sort_keys=False, width=110)


def test_the_plan_of_the_example_is_the_golden_one() -> None:
    cluster = example()
    text = as_yaml(plan(cluster, place(cluster), KEYS))
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8"), (
        "if this is meant: UPDATE_GOLDEN=1 pytest, and read the diff"
    )


def test_the_same_input_gives_the_same_plan() -> None:
    cluster = example()
    assert plan(cluster, place(cluster), KEYS) == plan(cluster, place(cluster), KEYS)


def test_every_file_is_what_its_reader_accepts() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS)
    for process in planned.processes:
        document = file(planned, process.name, "config.yaml")
        parse(document, RelayConfig if process.role == "relay" else TransceiverConfig, source=process.name)
    parse(file(planned, "routes", "routes.yaml"), RoutesFile, source="routes")
    parse(file(planned, "hint-keys", "keys.yaml"), RelayKeysFile, source="hint-keys")
    parse(file(planned, "root-keys", "keys.yaml"), RootKeysFile, source="root-keys")
    parse(file(planned, "vips", "vips.yaml"), VipsFile, source="vips")
    parse(file(planned, "directory", "directory.yaml"), DirectoryFile, source="directory")


def test_files_are_found_where_volumes_are_mounted() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS)
    volumes = {volume.name: volume for volume in planned.volumes}
    for process in planned.processes:
        mounted = {
            f"/state/volumes/{name}/{entry}" for name in process.volumes for entry in volumes[name].files
        }
        document = file(planned, process.name, "config.yaml")
        assert isinstance(document, dict)
        wanted = {value for key, value in document.items() if key.endswith("File")}
        assert wanted | {process.command[-1]} <= mounted


def test_every_worker_has_a_route_to_the_address_its_media_port_has() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS)
    routes = parse(file(planned, "routes", "routes.yaml"), RoutesFile, source="routes").routes
    media = [
        port.address
        for process in planned.processes
        for port in process.ports
        if port.name.startswith("media-")
    ]
    assert [route.address for route in routes] == media
    assert [(route.ordinal, route.worker) for route in routes] == [
        (0, 0), (1, 0), (1024, 0), (1024, 1), (1025, 0), (1025, 1)
    ]  # fmt: skip


def test_every_process_of_a_role_has_an_internal_address_of_its_own() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS)
    hosts = {process.name: process.admin.host for process in planned.processes}
    assert hosts == {
        "eu-west-relay": "127.0.1.1",
        "eu-west-transceiver-0": "127.0.1.10",
        "eu-west-transceiver-1": "127.0.1.11",
        "us-east-relay": "127.0.1.2",
        "us-east-transceiver-1024": "127.0.1.12",
        "us-east-transceiver-1025": "127.0.1.13",
    }


def test_only_shared_ports_are_bound_twice() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS)
    own = [
        (port.protocol, port.address)
        for process in planned.processes
        for port in process.ports
        if not port.shared
    ]
    assert len(own) == len(set(own))


def test_relays_get_the_derived_key_and_never_a_root_secret() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS)
    keys = parse(file(planned, "hint-keys", "keys.yaml"), RelayKeysFile, source="hint-keys")
    assert keys.clusters == {"7": {"A": base64.b64encode(derive_key(ROOT, "hint", 7)).decode()}}
    for process in planned.processes:
        mounts_root = "root-keys" in process.volumes
        assert mounts_root == (process.role == "transceiver")


def test_api_keys_are_mounted_only_where_they_are_asked_for() -> None:
    cluster = example()
    auth = cluster.spec.signaling.auth.model_copy(update={"mode": "APIKey"})
    signaling = cluster.spec.signaling.model_copy(update={"auth": auth})
    spec = cluster.spec.model_copy(update={"signaling": signaling})
    asking = cluster.model_copy(update={"spec": spec})
    without, having = (plan(one, place(one), KEYS) for one in (cluster, asking))
    assert "api-keys" not in {volume.name for volume in without.volumes}
    [keys] = [volume for volume in having.volumes if volume.name == "api-keys"]
    assert (keys.secret, keys.files) == (True, {"local": "vc-secret"})
    config = parse(file(having, "eu-west-transceiver-0", "config.yaml"), TransceiverConfig, source="config")
    assert config.auth.api_keys_dir == Path("/state/volumes/api-keys")


def test_a_public_address_gets_a_port_per_region() -> None:
    cluster = example()
    public = replace(place(cluster), public="192.0.2.5", signaling_at=("192.0.2.5", 8080))
    planned = plan(cluster, public, KEYS)
    vips = parse(file(planned, "vips", "vips.yaml"), VipsFile, source="vips").regions
    assert [(vip.address, vip.port) for region in vips.values() for vip in region] == [
        ("192.0.2.5", 3478),
        ("192.0.2.5", 3479),
    ]
    inside = {
        split_address(port.address)[0]
        for process in planned.processes
        for port in process.ports
        if port.name != "signaling" and not port.name.startswith("vip-")
    }
    assert all(ipaddress.ip_address(host) in NETWORK for host in inside)


def test_a_certificate_makes_signaling_https() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS, certificate=Certificate("CHAIN", "KEY"))
    config = parse(file(planned, "eu-west-transceiver-0", "config.yaml"), TransceiverConfig, source="config")
    assert config.tls is not None
    assert config.tls.key_file == Path("/state/volumes/tls/tls.key")
    [tls] = [volume for volume in planned.volumes if volume.name == "tls"]
    assert tls.secret


def test_secrets_do_not_show_when_a_plan_is_printed() -> None:
    cluster = example()
    planned = plan(cluster, place(cluster), KEYS, certificate=Certificate("CHAIN", "PRIVATE"))
    for shown in (repr(planned), repr(KEYS), repr(Certificate("CHAIN", "PRIVATE"))):
        assert "PRIVATE" not in shown
        assert base64.b64encode(ROOT).decode() not in shown
        assert "vc-secret" not in shown


def test_a_resource_too_large_for_the_internal_network_is_refused() -> None:
    cluster = example()
    region = cluster.spec.regions[0]
    large = region.model_copy(update={"transceiver": region.transceiver.model_copy(update={"replicas": 300})})
    spec = cluster.spec.model_copy(update={"regions": [large]})
    cluster = cluster.model_copy(update={"spec": spec})
    with pytest.raises(ValueError, match="use fewer replicas"):
        plan(cluster, place(cluster), KEYS)


@pytest.mark.parametrize("mode", ["LoadBalancer", "HostNetwork"])
def test_a_vip_that_only_kubernetes_can_give_is_refused_with_what_to_write_instead(mode: str) -> None:
    kubernetes = region(relay={"vip": {"mode": mode}}) | {"networkPolicy": {"enabled": False}}
    wanted = cluster(kubernetes)
    with pytest.raises(ValueError, match=rf"'eu' .* {mode}.*External.*--address"):
        plan(wanted, place(wanted), KEYS)
    plan(wanted, replace(place(wanted), public="192.0.2.5"), KEYS)
