"""The objects of a VoiceCluster: exactly these, valid to the API, readable to the programs."""

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from voicecluster.common.config.model import load
from voicecluster.common.config.pod import load_relay, load_transceiver
from voicecluster.common.config.relay import RelayKeysFile
from voicecluster.common.config.transceiver import DirectoryFile, Vip, VipsFile
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.plan.keys import hint_keys
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.facts import Facts

from tests.unit.operator.clusters import (
    CLUSTERS,
    EXAMPLES,
    KEYS,
    ROOT,
    Found,
    cluster,
    facts,
    planned,
    region,
    stored,
    template,
)
from tests.unit.operator.schema import check

GOLDEN = Path(__file__).parent / "golden"
VIPS = {
    "eu-west": (Vip(address="203.0.113.5", port=443), Vip(address="2001:db8::5", port=443)),
    "us-east": (Vip(address="198.51.100.7", port=3478, node="node2"),),
}
EVERYWHERE = {"namespace", "ownerReferences"}
POD = {"POD_NAME": "demo-eu-transceiver-5", "POD_NAMESPACE": "voice", "NODE_NAME": "node1"}


class Readable(yaml.SafeDumper):
    """Writes everything out: no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def as_yaml(wanted: VoiceCluster, known: Facts) -> str:
    """The plan for human eyes: without what all objects share, files as the YAML they contain."""
    shown = {}
    for (kind, name), found in planned(wanted, known).items():
        ours = names.labels(wanted.metadata.name, "relay")
        metadata = {
            key: {label: text for label, text in value.items() if label not in ours or key != "labels"}
            for key, value in found["metadata"].items()
            if key not in EVERYWHERE | {"name"}
        }
        content = {
            key: value for key, value in found.items() if key not in {"apiVersion", "kind", "metadata"}
        }
        if kind == "Secret":
            content["data"] = {key: base64.b64decode(text) for key, text in content["data"].items()}
        if "data" in content:
            content["data"] = {key: yaml.safe_load(text) for key, text in content["data"].items()}
        shown[f"{kind} {name}"] = {key: value for key, value in metadata.items() if value} | content
    return yaml.dump(shown, Dumper=Readable, sort_keys=False, width=110)


def in_pod(directory: Path, found: Found, kind: str, name: str) -> Path:
    """Write what a pod would find in its config volume."""
    file = directory / f"{name}.yaml"
    file.write_text(found[kind, name]["data"]["config.yaml"], encoding="utf-8")
    return file


@pytest.mark.parametrize("name", sorted(CLUSTERS))
def test_the_objects_of_a_cluster_are_the_golden_ones(name: str) -> None:
    text = as_yaml(stored(name), facts(vips=VIPS, replicas={"eu-west": 3, "us-east": 1}))
    golden = GOLDEN / f"{name}.yaml"
    if os.environ.get("UPDATE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), (
        "if this is meant: UPDATE_GOLDEN=1 pytest, and read the diff"
    )


@pytest.mark.parametrize(
    "path", [*CLUSTERS.values(), *sorted(EXAMPLES.glob("*.yaml"))], ids=lambda path: path.stem
)
def test_every_object_is_valid_to_the_strict_schema(path: Path) -> None:
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    for found in planned(VoiceCluster.model_validate(document), facts(vips=VIPS)).values():
        check(found)


def test_every_object_is_owned_and_labelled_so_that_it_goes_with_the_resource() -> None:
    for (_, name), found in planned(stored("load-balancer")).items():
        metadata = found["metadata"]
        assert metadata["namespace"] == "voice", name
        [owner] = metadata["ownerReferences"]
        assert owner == {
            "apiVersion": "voicecluster.dev/v1alpha1",
            "kind": "VoiceCluster",
            "name": "demo",
            "uid": facts().uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        assert metadata["labels"][names.CLUSTER] == "demo"
        assert metadata["labels"][names.MANAGED_BY] == names.MANAGER


def test_a_relay_in_a_pod_reads_its_configuration(tmp_path: Path) -> None:
    found = planned(cluster(region(relay={"workers": 3})))
    file = in_pod(tmp_path, found, "ConfigMap", "demo-eu-relay")
    config = load_relay(file, {**POD, "POD_IPS": "10.1.2.3,fd00::3"})
    assert [listener.bind for listener in config.listeners] == ["10.1.2.3:13478", "[fd00::3]:13478"]
    assert (config.workers, config.backbone, config.node) == (3, "10.1.2.3:13479", "node1")
    assert config.routes_from is not None
    assert config.routes_from.selector == (
        "voicecluster.dev/cluster=demo,app.kubernetes.io/component=transceiver"
    )
    assert config.leaving is not None
    pods_service = found["Service", config.leaving.service]
    assert pods_service["spec"]["selector"] == names.selector("demo", "relay", "eu")
    assert config.leaving.grace_seconds == 120
    assert template(found["DaemonSet", "demo-eu-relay"])["spec"]["terminationGracePeriodSeconds"] == 120


def test_a_transceiver_in_a_pod_reads_its_configuration(tmp_path: Path) -> None:
    found = planned(cluster(region(transceiver={"workers": 2})))
    file = in_pod(tmp_path, found, "ConfigMap", "demo-eu-transceiver")
    config = load_transceiver(file, {**POD, "POD_IPS": "10.1.2.3"})
    assert (config.name, config.ordinal, config.workers) == ("demo-eu-transceiver-5", 5, 2)
    assert config.vips_watch is not None
    assert ("ConfigMap", config.vips_watch.config_map) in found
    assert config.vips_watch.file == config.vips_file


@pytest.mark.parametrize(
    ("kind", "name"), [("DaemonSet", "demo-eu-relay"), ("StatefulSet", "demo-eu-transceiver")]
)
def test_every_file_that_a_configuration_names_is_mounted_in_the_pod(kind: str, name: str) -> None:
    found = planned(cluster({}))
    pod = template(found[kind, name])["spec"]
    [container] = pod["containers"]
    mounts = {Path(mount["mountPath"]) for mount in container["volumeMounts"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    config = json.dumps(yaml.safe_load(found["ConfigMap", name]["data"]["config.yaml"]))
    named = [Path(text) for text in config.split('"') if text.startswith("/")] + [
        Path(container["command"][-1])
    ]
    assert named
    for path in named:
        assert path in mounts or path.parent in mounts, path


def test_the_file_names_in_volumes_are_those_that_objects_have(tmp_path: Path) -> None:
    found = planned(cluster({}), facts(vips={"eu": VIPS["us-east"]}))
    for kind, name, entry in (
        ("ConfigMap", "demo-vips", "vips.yaml"),
        ("ConfigMap", "demo-directory", "directory.yaml"),
    ):
        (tmp_path / entry).write_text(found[kind, name]["data"][entry], encoding="utf-8")
    vips = load(tmp_path / "vips.yaml", VipsFile)
    assert vips.regions == {"eu": list(VIPS["us-east"])}
    [only] = load(tmp_path / "directory.yaml", DirectoryFile).regions
    assert only.range is not None
    assert only.range.host.format(ordinal=0) == "demo-eu-transceiver-0.demo-eu-media.voice.svc"


def test_relays_get_derived_keys_in_a_secret(tmp_path: Path) -> None:
    found = planned(cluster({}))
    text = base64.b64decode(found["Secret", "demo-hint-keys"]["data"]["keys.yaml"])
    (tmp_path / "keys.yaml").write_bytes(text)
    assert load(tmp_path / "keys.yaml", RelayKeysFile) == hint_keys(KEYS, 7)


def test_no_secret_is_outside_of_secrets_and_no_root_secret_anywhere() -> None:
    for (kind, _), found in planned(stored("load-balancer")).items():
        shown = json.dumps(found)
        derived = hint_keys(KEYS, 7).clusters["7"]["A"]
        for secret in (
            base64.b64encode(ROOT).decode(),
            "vc-secret",
            *([derived] if kind != "Secret" else []),
        ):
            assert secret not in shown
            assert base64.b64encode(secret.encode()).decode().rstrip("=") not in shown


def test_without_root_keys_only_what_is_derived_from_them_is_left_out() -> None:
    wanted = stored("load-balancer")
    having, missing = planned(wanted), planned(wanted, facts(keys=None))
    assert having.keys() - missing.keys() == {("Secret", "demo-hint-keys")}
    assert all(having[key] == missing[key] for key in missing)


def test_a_relay_with_its_nodes_address_listens_on_the_vips_own_port(tmp_path: Path) -> None:
    vip = {"mode": "HostNetwork", "port": 5000}
    found = planned(cluster(region(relay={"vip": vip}) | {"networkPolicy": {"nodeCIDRs": ["10.0.0.0/16"]}}))
    assert ("Service", "demo-eu-relay") not in found
    file = in_pod(tmp_path, found, "ConfigMap", "demo-eu-relay")
    config = load_relay(file, {**POD, "POD_IPS": "10.0.0.1"})
    assert [listener.bind for listener in config.listeners] == ["10.0.0.1:5000"]
    assert config.leaving is not None
    assert not config.leaving.same_node


@pytest.mark.parametrize(
    ("vip", "same_node"),
    [({}, True), ({"externalTrafficPolicy": "Cluster"}, False)],
)
def test_a_successor_is_on_the_same_node_where_the_service_is_local(
    tmp_path: Path, vip: dict[str, Any], same_node: bool
) -> None:
    file = in_pod(tmp_path, planned(cluster(region(relay={"vip": vip}))), "ConfigMap", "demo-eu-relay")
    config = load_relay(file, {**POD, "POD_IPS": "10.1.2.3"})
    assert config.leaving is not None
    assert config.leaving.same_node is same_node
