"""The example files: valid, and what they say they are."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft4Validator
from voicecluster.common.config.model import load
from voicecluster.operator.api.crds import voice_cluster
from voicecluster.operator.api.v1alpha1 import VoiceCluster

EXAMPLES = Path(__file__).parents[3] / "examples"
CLUSTERS = sorted(EXAMPLES.glob("*.yaml"))


def strict(schema: Any) -> Any:
    """A structural schema as JSON Schema has it, with fields that it does not name forbidden."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: strict(value) for key, value in schema.items()}
    return found | {"additionalProperties": False} if "properties" in schema and "type" in schema else found


def documents(file: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", CLUSTERS, ids=lambda file: file.name)
def test_every_cluster_is_valid_by_the_models(file: Path) -> None:
    assert load(file, VoiceCluster).spec.regions


@pytest.mark.parametrize("file", CLUSTERS, ids=lambda file: file.name)
def test_every_cluster_is_valid_by_the_crds_schema(file: Path) -> None:
    schema = strict(voice_cluster()["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    [document] = documents(file)
    assert [error.message for error in Draft4Validator(schema).iter_errors(document)] == []


def test_the_minimal_one_has_twelve_lines() -> None:
    assert len((EXAMPLES / "minimal.yaml").read_text(encoding="utf-8").splitlines()) == 12


def test_two_regions_are_behind_load_balancers_on_their_own_nodes() -> None:
    cluster = load(EXAMPLES / "two-regions.yaml", VoiceCluster)
    assert [region.relay.vip.mode for region in cluster.spec.regions] == ["LoadBalancer"] * 2
    places = [region.node_selector["topology.kubernetes.io/region"] for region in cluster.spec.regions]
    assert places == ["eu-west", "us-east"]
    assert (cluster.spec.signaling.auth.mode, cluster.spec.signaling.service.type) == (
        "APIKey",
        "LoadBalancer",
    )


def test_nobody_is_let_in_without_a_key_but_on_this_machine() -> None:
    clusters = {file.name: load(file, VoiceCluster) for file in CLUSTERS}
    assert [name for name, cluster in clusters.items() if cluster.spec.signaling.auth.mode == "None"] == [
        "local.yaml"
    ]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("gitops/**/*.yaml")), ids=lambda file: file.name)
def test_every_gitops_file_is_yaml_and_has_no_object_twice(file: Path) -> None:
    objects = [document for document in documents(file) if "metadata" in document]
    names = [(each["kind"], each["metadata"]["name"]) for each in objects]
    assert len(set(names)) == len(names)


def test_flux_waits_for_conditions() -> None:
    [kustomization] = [
        each for each in documents(EXAMPLES / "gitops/flux/clusters.yaml") if each["kind"] == "Kustomization"
    ]
    assert kustomization["spec"]["wait"] is True


@pytest.mark.parametrize("file", ["argocd/applications.yaml", "flux/operator.yaml"])
def test_gitops_tools_install_the_chart_that_is_here(file: str) -> None:
    text = (EXAMPLES / "gitops" / file).read_text(encoding="utf-8")
    [path] = {line.split()[-1] for line in text.splitlines() if line.split()[-1].startswith("charts/")}
    assert (EXAMPLES.parent / path / "Chart.yaml").exists()
