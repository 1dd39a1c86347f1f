"""Structural OpenAPI v3 schemas, as CustomResourceDefinitions want them, out of our models.

pydantic's JSON Schema has references, `anyOf` with null, exclusive bounds as numbers, titles and defaults. Here
everything stands in its place, an optional field is simply not required, and there are no defaults: a default inside
a list item would make GitOps tools see a difference for ever, so all are applied in memory. Every list, string and
map is bounded; without bounds the API server refuses CEL rules as too costly.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

Schema: TypeAlias = dict[str, Any]
"""JSON Schema is a recursive mapping of anything."""

COPIED = (
    "description",
    "enum",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "pattern",
    "type",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-validations",
)
INT32 = 2**31 - 1


class Unbounded(Exception):
    """A field has no bound. `str()` names it."""


def structural(resource: type[BaseModel]) -> Schema:
    """The schema of a resource's spec and status; the rest is Kubernetes' own.

    Raises Unbounded naming the field that has no `max_length`.
    """
    whole = resource.model_json_schema(by_alias=True, mode="validation")
    ours = {name: whole["properties"][name] for name in ("spec", "status")}
    whole |= {"properties": ours, "required": ["spec"]}
    return _structural(whole, whole.get("$defs", {}), resource.__name__)


def _structural(schema: Schema, definitions: Mapping[str, Schema], path: str) -> Schema:
    schema = _in_place(schema, definitions)
    found = {key: schema[key] for key in COPIED if key in schema}
    if "const" in schema:
        found["enum"] = [schema["const"]]
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if exclusive in schema:
            found |= {bound: schema[exclusive], exclusive: True}
    match schema.get("type"):
        case "object" if "properties" in schema:
            names = schema["properties"]
            found["properties"] = {
                name: _structural(field, definitions, f"{path}.{name}") for name, field in names.items()
            }
            if "required" in schema:
                found["required"] = schema["required"]
        case "object":
            found["additionalProperties"] = _structural(
                schema["additionalProperties"], definitions, f"{path}.*"
            )
            _require(found, "maxProperties", path)
        case "array":
            found["items"] = _structural(schema["items"], definitions, f"{path}[]")
            _require(found, "maxItems", path)
        case "integer":
            found["format"] = "int32" if schema.get("maximum", INT32) <= INT32 else "int64"
        case "string" if "enum" not in found:
            _require(found, "maxLength", path)
    return found


def _in_place(schema: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """`schema` without references and alternatives; what stands at the field itself wins."""
    outer = {key: value for key, value in schema.items() if key not in ("$ref", "allOf", "anyOf")}
    if "$ref" in schema:
        return _in_place(definitions[schema["$ref"].rpartition("/")[2]], definitions) | outer
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
    if len(choices) == 1:
        return _in_place(choices[0], definitions) | outer
    assert not choices, f"a CRD cannot have alternatives: {schema}"
    return schema


def _require(schema: Schema, bound: str, path: str) -> None:
    if bound not in schema:
        raise Unbounded(f"{path} has no {bound}: give it a max_length")
