"""The CRDs and the field reference: current, bounded, without defaults; every field is described."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from voicecluster.operator.api.crds import files, render, voice_cluster, voice_region
from voicecluster.operator.api.reference import Field, spec_fields
from voicecluster.operator.api.rules import VALIDATIONS
from voicecluster.operator.api.schema import Unbounded, structural
from voicecluster.operator.api.v1alpha1 import VoiceCluster, VoiceRegion

ROOT = Path(__file__).parents[3]
DEFINITIONS = [voice_cluster(), voice_region()]
LIMIT = 256 * 1024
"""Bytes of an annotation: `kubectl apply` writes the whole definition into one."""


def schema_of(definition: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """A schema and all below it, by path."""
    yield path, schema
    for name, field in schema.get("properties", {}).items():
        yield from nodes(field, f"{path}.{name}")
    for inside in ("items", "additionalProperties"):
        if inside in schema:
            yield from nodes(schema[inside], f"{path}[]")


def ours(definition: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found = nodes(schema_of(definition))
    return [(path, schema) for path, schema in found if path.startswith((".spec", ".status"))]


@pytest.mark.parametrize(("path", "text"), files().items(), ids=lambda each: getattr(each, "name", ""))
def test_generated_files_are_current(path: Path, text: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == text, "run `make crds`"


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda each: each["metadata"]["name"])
class TestDefinition:
    def test_stays_far_below_what_an_annotation_can_hold(self, definition: dict[str, Any]) -> None:
        assert len(render(definition)) < LIMIT / 2

    def test_has_no_default_that_git_does_not_know(self, definition: dict[str, Any]) -> None:
        found = {path for path, schema in ours(definition) if "default" in schema}
        assert found <= (
            {".spec.replicas"} if definition["spec"]["names"]["kind"] == "VoiceRegion" else set()
        )

    def test_lets_no_unknown_field_through(self, definition: dict[str, Any]) -> None:
        assert "preserve-unknown-fields" not in render(definition)

    def test_describes_every_field(self, definition: dict[str, Any]) -> None:
        fields = [(path, schema) for path, schema in ours(definition) if not path.endswith("[]")]
        assert [path for path, schema in fields if not schema.get("description")] == []

    def test_every_rule_tells_what_to_do_and_where(self, definition: dict[str, Any]) -> None:
        every = nodes(schema_of(definition))
        rules = [rule for _, schema in every for rule in schema.get(VALIDATIONS, ())]
        assert rules
        assert [rule for rule in rules if not rule["message"] or not rule["reason"]] == []

    def test_conditions_are_a_map_by_type(self, definition: dict[str, Any]) -> None:
        conditions = dict(ours(definition))[".status.conditions"]
        assert conditions["x-kubernetes-list-type"] == "map"
        assert conditions["x-kubernetes-list-map-keys"] == ["type"]

    def test_is_in_the_category_voice(self, definition: dict[str, Any]) -> None:
        assert definition["spec"]["names"]["categories"] == ["voice"]


def test_regions_are_a_map_by_name() -> None:
    regions = dict(ours(voice_cluster()))[".spec.regions"]
    assert (regions["x-kubernetes-list-type"], regions["x-kubernetes-list-map-keys"]) == ("map", ["name"])


def test_a_string_without_a_bound_is_refused() -> None:
    class Spec(BaseModel):
        name: str

    class Resource(BaseModel):
        spec: Spec
        status: Spec

    with pytest.raises(Unbounded, match=r"Resource\.spec\.name has no maxLength"):
        structural(Resource)


FIELDS = [*spec_fields(VoiceCluster), *spec_fields(VoiceRegion)]


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_the_reference_says_who_acts_on_a_field(field: Field) -> None:
    assert field.acts is not None


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.path)
def test_every_number_has_a_unit(field: Field) -> None:
    numeric = any(kind in repr(field.info.annotation) for kind in ("int", "float"))
    assert not numeric or field.unit is not None
