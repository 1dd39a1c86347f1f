"""Kubernetes' own schemas, strict: what `kubernetes_validate.validate(…, "1.34", strict=True)` reads anew each time."""

import re
from functools import cache
from typing import Any

import jsonschema
from kubernetes_validate import utils
from referencing import Registry, Resource
from voicecluster.operator.api.v1alpha1 import VoiceRegion

_VERSION = "1.34"
_SCHEMAS = f"kubernetes-json-schema/v{_VERSION}.0-local-strict"


def check(found: Any) -> None:
    """Raises an error that says where an object is not valid."""
    if found["kind"] == "VoiceRegion":
        VoiceRegion.model_validate(found)
    else:
        _validator(found["kind"], found["apiVersion"]).validate(found)


@cache
def _validator(kind: str, api_version: str) -> jsonschema.Draft202012Validator:
    group = re.sub(r"^([^./]*)(?:\.[^/]*)?/", r"\1-", api_version)
    schema = utils.schema_contents(f"{_SCHEMAS}/{kind.lower()}-{group}.json", _VERSION)
    registry: Registry[Any] = Resource.from_contents(schema) @ (_definitions() @ Registry())
    return jsonschema.Draft202012Validator(schema, registry=registry)


@cache
def _definitions() -> Resource[Any]:
    return Resource.from_contents(utils.schema_contents(f"{_SCHEMAS}/_definitions.json", _VERSION))
