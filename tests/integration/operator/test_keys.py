"""Key Secrets on a real API server: generated once, imported if valid, never invented."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import yaml
from voicecluster.operator.kube import port

from tests.integration.operator.apiserver import ApiServer
from tests.integration.operator.stage import Stage

KEY = base64.b64encode(bytes(range(32))).decode()


@pytest.fixture
async def stage(apiserver: ApiServer, namespace: str) -> AsyncIterator[Stage]:
    async with Stage(apiserver, namespace) as found:
        yield found


def entries(stage: Stage, name: str) -> Mapping[str, str]:
    data = stage.get(port.SECRETS, name)["data"]
    return {key: base64.b64decode(value).decode() for key, value in data.items()}


def names_of(stage: Stage) -> set[str]:
    return {each["metadata"]["name"] for each in stage.all(port.SECRETS)}


async def test_all_key_secrets_are_made_before_anything_mounts_them(stage: Stage) -> None:
    stage.cluster()
    before = stage.server.mark()
    await stage.reconcile()
    written = [
        (call.resource, call.name) for call in stage.server.calls(before, user="operator") if call.writes
    ]
    first_pods = written.index(("statefulsets", "demo-eu-transceiver"))
    for name in ("demo-root-keys", "demo-api-keys", "demo-drain-token"):
        assert written.index(("secrets", name)) < first_pods
    roots = yaml.safe_load(entries(stage, "demo-root-keys")["keys.yaml"])
    assert len(base64.b64decode(roots["keys"][roots["mint"]])) == 32
    assert len(entries(stage, "demo-api-keys")["default"]) > 32
    assert len(entries(stage, "demo-drain-token")["token"]) > 32
    assert stage.get(port.CLUSTERS, "demo")["status"]["keys"] == {"mint": "A", "ids": ["A"]}


async def test_generated_secrets_go_with_the_cluster_and_stay_otherwise(stage: Stage) -> None:
    cluster = stage.cluster()
    await stage.reconcile()
    before = {name: stage.get(port.SECRETS, name) for name in names_of(stage)}
    await stage.reconcile()
    assert {name: stage.get(port.SECRETS, name) for name in names_of(stage)} == before
    for secret in before.values():
        (owner,) = secret["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (cluster["metadata"]["uid"], True)


async def test_one_event_tells_that_keys_were_generated(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    await stage.reconcile()
    told = [each for each in stage.all(port.EVENTS) if each["reason"] == "KeysGenerated"]
    assert len(told) == 1
    assert "demo-root-keys" in told[0]["message"]


@pytest.mark.parametrize("gone", ["demo-root-keys", "demo-api-keys", "demo-drain-token"])
async def test_a_generated_secret_that_is_deleted_is_not_made_again(stage: Stage, gone: str) -> None:
    stage.cluster()
    await stage.reconcile()
    hints = entries(stage, "demo-hint-keys")
    stage.delete(port.SECRETS, gone)
    assert await stage.reconcile() == 5.0
    assert gone not in names_of(stage)
    status, reason, message = stage.condition("KeysAvailable")
    assert (status, reason) == ("False", "KeysMissing")
    assert f"Secret {gone}" in message
    assert entries(stage, "demo-hint-keys") == hints
    assert stage.get(port.CLUSTERS, "demo")["status"]["keys"]["ids"] == ["A"]


async def test_root_keys_are_not_invented_even_when_their_pods_are_gone_too(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    stage.delete(port.SECRETS, "demo-root-keys")
    stage.delete(port.STATEFUL_SETS, "demo-eu-transceiver")
    await stage.reconcile()
    assert "demo-root-keys" not in names_of(stage)


async def test_a_secret_that_is_restored_heals_the_condition(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    saved = entries(stage, "demo-root-keys")
    stage.delete(port.SECRETS, "demo-root-keys")
    await stage.reconcile()
    stage.secret("demo-root-keys", saved)
    await stage.reconcile()
    assert stage.condition("KeysAvailable")[0] == "True"


async def test_root_keys_that_the_user_made_are_taken_and_left_alone(stage: Stage) -> None:
    made = stage.secret("demo-root-keys", {"keys.yaml": json.dumps({"mint": "Z", "keys": {"Z": KEY}})})
    stage.cluster()
    await stage.reconcile()
    assert (
        stage.get(port.SECRETS, "demo-root-keys")["metadata"]["resourceVersion"]
        == made["metadata"]["resourceVersion"]
    )
    assert stage.get(port.CLUSTERS, "demo")["status"]["keys"] == {"mint": "Z", "ids": ["Z"]}
    assert list(yaml.safe_load(entries(stage, "demo-hint-keys")["keys.yaml"])["clusters"]["7"]) == ["Z"]


async def test_root_keys_that_are_not_valid_are_told_in_one_line_without_content(stage: Stage) -> None:
    stage.secret("demo-root-keys", {"keys.yaml": json.dumps({"mint": "Z", "keys": {"hunter2-secret": "Z"}})})
    stage.cluster()
    await stage.reconcile()
    status, reason, message = stage.condition("KeysAvailable")
    assert (status, reason) == ("False", "KeysInvalid")
    assert "Secret demo-root-keys" in message
    assert "\n" not in message
    assert "hunter2" not in json.dumps(stage.get(port.CLUSTERS, "demo")["status"])
    assert "demo-hint-keys" not in names_of(stage)


async def test_api_keys_of_the_user_are_not_generated(stage: Stage) -> None:
    stage.secret("callers", {"alice": "key-of-alice"})
    stage.cluster(signaling={"auth": {"apiKeysSecret": "callers"}})
    await stage.reconcile()
    assert "demo-api-keys" not in names_of(stage)
    assert stage.condition("KeysAvailable")[0] == "True"


async def test_no_secret_is_in_status_events_or_config(stage: Stage) -> None:
    stage.cluster()
    await stage.reconcile()
    secrets = [value for name in names_of(stage) for value in entries(stage, name).values()]
    words = [word for value in secrets for word in value.replace('"', " ").split() if len(word) > 20]
    kinds = (port.CLUSTERS, port.REGIONS, port.EVENTS, port.CONFIG_MAPS, port.STATEFUL_SETS, port.DAEMON_SETS)
    shown: Any = json.dumps([stage.all(kind) for kind in kinds])
    assert words
    assert [word for word in words if word in shown] == []
