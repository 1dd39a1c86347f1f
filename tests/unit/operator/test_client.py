"""Paths, and what an answer that is none means."""

from collections.abc import Mapping

import pytest
from voicecluster.operator.kube.client import refusal
from voicecluster.operator.kube.kinds import Ref, kind_of, path
from voicecluster.operator.kube.port import (
    CLUSTERS,
    NODES,
    SECRETS,
    SERVICES,
    Conflict,
    Exists,
    KubeError,
    NotFound,
    Object,
    Refused,
    Unavailable,
)

ABOUT = Ref("Service", "voice", "demo")


def error(code: int, status: Object | None = None, headers: Mapping[str, str] | None = None) -> KubeError:
    return refusal("apply", SERVICES, ABOUT, code, status or {}, headers or {})


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", Exists),
        (409, "Conflict", Conflict),
        (400, "BadRequest", Refused),
        (403, "Forbidden", Refused),
        (413, "RequestEntityTooLarge", Refused),
        (422, "Invalid", Refused),
        (401, "Unauthorized", Unavailable),
        (429, "TooManyRequests", Unavailable),
        (500, "InternalError", Unavailable),
        (503, "ServiceUnavailable", Unavailable),
        (504, "Timeout", Unavailable),
    ],
)
def test_each_status_says_what_the_caller_can_do(code: int, reason: str, kind: type[KubeError]) -> None:
    assert type(error(code, {"reason": reason})) is kind


def test_the_message_names_verb_object_code_and_cause_in_one_line() -> None:
    found = error(422, {"reason": "Invalid", "message": "spec.ports:\nRequired value"})
    assert str(found) == "apply Service voice/demo: 422 Invalid: spec.ports: Required value"


def test_what_the_api_says_about_a_secret_is_not_repeated() -> None:
    cause = {"field": "data[keys.yaml]", "message": 'Invalid value: "c2VjcmV0"'}
    status: Object = {
        "reason": "Invalid",
        "message": 'Secret "demo" is invalid: data: Invalid value: "c2VjcmV0"',
        "details": {"causes": [cause]},
    }
    found = refusal("apply", SECRETS, Ref("Secret", "voice", "demo"), 422, status, {})
    assert str(found) == "apply Secret voice/demo: 422 Invalid: data[keys.yaml]"


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        ({}, {"Retry-After": "7"}, 7.0),
        ({"details": {"retryAfterSeconds": 3}}, {}, 3.0),
        ({}, {"Retry-After": "Wed, 01 Jan 2030 00:00:00 GMT"}, None),
        ({}, {"Retry-After": "-1"}, 0.0),
        ({}, {}, None),
    ],
)
def test_how_long_the_server_wants_to_be_left_alone(
    status: Object, headers: Mapping[str, str], seconds: float | None
) -> None:
    found = error(429, status, headers)
    assert isinstance(found, Unavailable)
    assert found.retry_seconds == seconds


def test_paths_are_those_of_the_api() -> None:
    assert path(SERVICES, "voice", "demo") == "/api/v1/namespaces/voice/services/demo"
    assert path(SERVICES, None) == "/api/v1/services"
    assert path(NODES, None, "node1") == "/api/v1/nodes/node1"
    assert (
        path(CLUSTERS, "voice", "demo", subresource="status")
        == "/apis/voicecluster.dev/v1alpha1/namespaces/voice/voiceclusters/demo/status"
    )


def test_the_kind_of_an_object_is_found_by_its_names() -> None:
    assert kind_of({"apiVersion": "v1", "kind": "Secret"}) == SECRETS
