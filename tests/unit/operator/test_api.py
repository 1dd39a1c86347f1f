"""What a VoiceCluster may say, and what is said to whoever gets it wrong."""

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from voicecluster.common.config.model import ConfigError, load, parse
from voicecluster.operator.api.v1alpha1 import VoiceCluster

EXAMPLE = Path(__file__).parents[3] / "examples" / "local.yaml"

GOOD: dict[str, Any] = {
    "apiVersion": "voicecluster.dev/v1alpha1",
    "kind": "VoiceCluster",
    "metadata": {"name": "demo"},
    "spec": {
        "clusterId": 7,
        "regions": [
            {"name": "eu", "index": 0, "relay": {"vip": {"mode": "External", "addresses": ["192.0.2.1"]}}},
            {"name": "us", "index": 1, "relay": {"vip": {"mode": "External", "addresses": ["192.0.2.2"]}}},
        ],
    },
}


def document(path: str, value: object) -> dict[str, Any]:
    """`GOOD` with the field at `path` (dots; numbers index lists) set to `value`."""
    changed = copy.deepcopy(GOOD)
    *way, last = path.split(".")
    at: Any = changed
    for step in way:
        at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
    at[int(last) if isinstance(at, list) else last] = value
    return changed


def test_a_resource_that_says_only_what_it_must_gets_defaults() -> None:
    cluster = parse(GOOD, VoiceCluster, source="FILE")
    region = cluster.spec.regions[1]
    assert (region.relay.workers, region.relay.vip.port, region.transceiver.replicas) == (1, 3478, 1)
    assert cluster.spec.signaling.auth.mode == "APIKey"
    assert cluster.spec.agents.default == "parrot"


def test_ordinals_start_at_1024_times_the_regions_index() -> None:
    cluster = parse(document("spec.regions.1.transceiver", {"replicas": 3}), VoiceCluster, source="FILE")
    assert list(cluster.spec.regions[1].ordinals) == [1024, 1025, 1026]


def test_a_region_without_transceivers_is_allowed() -> None:
    cluster = parse(document("spec.regions.1.transceiver", {"replicas": 0}), VoiceCluster, source="FILE")
    assert list(cluster.spec.regions[1].ordinals) == []


def test_the_example_is_valid() -> None:
    cluster = load(EXAMPLE, VoiceCluster)
    assert [region.name for region in cluster.spec.regions] == ["eu-west", "us-east"]


VIP_0 = "spec.regions.0.relay.vip"
REFUSED = [
    ("apiVersion", "v1", "apiVersion", "voicecluster.dev/v1alpha1"),
    ("kind", "Pod", "kind", "VoiceCluster"),
    ("metadata.name", "Demo", "metadata.name", "use lower-case letters"),
    ("metadata.name", "demo-", "metadata.name", "use lower-case letters"),
    ("metadata.nam", "demo", "metadata.nam", "check its spelling"),
    ("spec.clusterId", 0, "spec.clusterId", "greater than or equal to 1"),
    ("spec.clusterId", 65536, "spec.clusterId", "less than or equal to 65535"),
    ("spec.clusterID", 7, "spec.clusterID", "check its spelling"),
    ("spec.regions", [], "spec.regions", "at least 1 item"),
    ("spec.regions.1.name", "eu", "spec.regions", "give each its own name"),
    ("spec.regions.1.index", 0, "spec.regions", "give each its own index"),
    ("spec.regions.1.index", 64, "spec.regions.1.index", "less than or equal to 63"),
    ("spec.regions.1.name", "eu_west", "spec.regions.1.name", "use lower-case letters"),
    ("spec.regions.0.relay", {}, f"{VIP_0}", "required field is missing; add it"),
    (f"{VIP_0}.mode", "LoadBalancer", f"{VIP_0}.mode", "'External'"),
    (f"{VIP_0}.addresses", [], f"{VIP_0}.addresses", "at least 1 item"),
    (f"{VIP_0}.addresses", ["0.0.0.0"], f"{VIP_0}.addresses.0", "write the address that callers reach"),
    (f"{VIP_0}.addresses", ["192.0.2.1:3478"], f"{VIP_0}.addresses.0", "without a port"),
    (f"{VIP_0}.addresses", ["192.0.2.9", "192.0.2.9"], f"{VIP_0}.addresses", "remove one"),
    (f"{VIP_0}.addresses", ["192.0.2.2"], "spec.regions", "give each its own address or port"),
    (f"{VIP_0}.port", 0, f"{VIP_0}.port", "greater than or equal to 1"),
    (
        "spec.regions.0.relay.limits",
        {"flowPackets": 0},
        "spec.regions.0.relay.limits.flowPackets",
        "equal to 1",
    ),
    (
        "spec.regions.0.transceiver",
        {"replicas": 1025},
        "spec.regions.0.transceiver.replicas",
        "equal to 1024",
    ),
    ("spec.regions.0.transceiver", {"workers": "two"}, "spec.regions.0.transceiver.workers", "valid integer"),
    ("spec.signaling.auth.mode", "Basic", "spec.signaling.auth.mode", "'APIKey' or 'None'"),
    ("spec.agents.default", "pirate", "spec.agents.default", "'parrot' or 'echo'"),
    ("spec", None, "spec", "must be a mapping of fields"),
]


@pytest.mark.parametrize(("path", "value", "where", "remedy"), REFUSED)
def test_what_is_wrong_is_named_by_file_field_and_remedy_in_one_line(
    path: str, value: object, where: str, remedy: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(document(path, value), VoiceCluster, source="FILE")
    message = str(refused.value)
    assert message.startswith(f"FILE: {where}: ")
    assert remedy in message
    assert "\n" not in message


@pytest.mark.parametrize("package", ["api.v1alpha1", "plan.cluster"])
def test_models_and_plan_import_no_kubernetes_client(package: str) -> None:
    script = f"import sys, voicecluster.operator.{package}\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert not {"kopf", "kubernetes"} & set(loaded.split())
