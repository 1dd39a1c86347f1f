"""Reading and making key Secrets, without an API server."""

import base64
import json

import pytest
from voicecluster.operator.keys import (
    KeyState,
    ensure_keys,
    entries,
    new_api_key,
    new_root_keys,
    new_token,
    root_material,
)
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Exists, Kind, Object
from voicecluster.operator.status.conditions import Reason

from tests.unit.operator.world import NAMESPACE, World, child, stateful_set, voice_cluster

KEY = base64.b64encode(bytes(range(32))).decode()
KEYS_FILE = json.dumps({"mint": "A", "keys": {"A": KEY}})


class Api:
    """An API server that has a world's Secrets and some that no watch shows."""

    def __init__(self, world: World, *hidden: Object) -> None:
        self.world = world
        self.hidden = {each["metadata"]["name"]: each for each in hidden}  # type: ignore[index,call-overload]
        self.created: list[str] = []
        self.too_late = False
        """Somebody else creates each Secret just before us."""

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        return self.hidden.get(name) or self.world.get(kind, namespace, name)

    async def create(self, wanted: Object) -> Object:
        self.world.put(wanted)
        if self.too_late:
            raise Exists("there is one already")
        self.created.append(wanted["metadata"]["name"])  # type: ignore[index,call-overload]
        return wanted

    async def apply(self, wanted: Object) -> Object:
        raise AssertionError("nothing is applied")

    async def apply_status(self, wanted: Object) -> Object:
        raise AssertionError("no status is written")

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        raise AssertionError("nothing is deleted")


def secret(name: str, **content: str) -> Object:
    data = {
        key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in content.items()
    }
    return child(port.SECRETS, name, "keys", data=data)


async def looked_at(api: Api, *, may_generate: bool = True) -> KeyState:
    return await ensure_keys(api, api.world, api.world.observe(), may_generate=may_generate)


async def test_all_three_are_generated_for_a_new_cluster() -> None:
    api = Api(World(voice_cluster()))
    found = await looked_at(api)
    assert api.created == ["demo-root-keys", "demo-drain-token", "demo-api-keys"]
    assert found.generated == tuple(api.created)
    assert found.faults == ()
    assert found.ids == ("A",)
    assert found.token


async def test_a_second_look_finds_them() -> None:
    api = Api(World(voice_cluster()))
    first = await looked_at(api)
    again = await looked_at(api)
    assert again.generated == ()
    assert (again.token, again.material) == (first.token, first.material)


async def test_one_that_somebody_else_made_meanwhile_is_taken() -> None:
    api = Api(World(voice_cluster()))
    api.too_late = True
    found = await looked_at(api)
    assert found.generated == ()
    assert found.faults == ()
    assert found.ids == ("A",)


@pytest.mark.parametrize("name", ["demo-root-keys", "demo-api-keys", "demo-drain-token"])
async def test_what_pods_mount_is_not_generated_again(name: str) -> None:
    api = Api(World(voice_cluster(), stateful_set(secrets=[name])))
    (fault,) = (await looked_at(api)).faults
    assert name not in api.created
    assert fault.reason == Reason.KEYS_MISSING
    assert f"Secret {name}" in fault.message
    assert "restore it from a backup" in fault.message


async def test_root_keys_that_status_knows_are_not_generated_again() -> None:
    api = Api(World(voice_cluster(status={"keys": {"mint": "A", "ids": ["A"]}})))
    found = await looked_at(api)
    assert found.material is None
    assert "demo-root-keys" not in api.created


async def test_a_paused_cluster_gets_no_keys() -> None:
    api = Api(World(voice_cluster(paused=True)))
    found = await looked_at(api, may_generate=False)
    assert api.created == []
    assert all("unset spec.paused" in fault.message for fault in found.faults)


async def test_a_secret_without_our_label_is_asked_for() -> None:
    made = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "demo-root-keys", "namespace": NAMESPACE},
    }
    api = Api(
        World(voice_cluster()), {**made, "data": {"keys.yaml": base64.b64encode(KEYS_FILE.encode()).decode()}}
    )
    assert (await looked_at(api)).ids == ("A",)
    assert "demo-root-keys" not in api.created


@pytest.mark.parametrize(
    "text",
    [
        "",
        "][",
        "mint: A",
        json.dumps({"mint": "B", "keys": {"A": KEY}}),
        json.dumps({"mint": "A", "keys": {"A": "x"}}),
    ],
)
async def test_root_keys_that_are_none_are_told_without_their_content(text: str) -> None:
    api = Api(World(voice_cluster(), secret("demo-root-keys", keys_yaml=text)))
    found = await looked_at(api)
    (fault,) = found.faults
    assert found.material is None
    assert fault.reason == Reason.KEYS_INVALID
    assert "\n" not in fault.message
    assert KEY not in fault.message


def test_what_is_generated_can_be_read() -> None:
    material = root_material(new_root_keys())
    assert material is not None
    assert len(material.roots[material.mint]) == 32
    assert new_root_keys() != new_root_keys()
    assert len(new_token()["token"]) > 40
    assert new_api_key()["default"].startswith("vc-")


def test_entries_that_are_no_text_are_left_out() -> None:
    data = {
        "good": base64.b64encode(b"text").decode(),
        "binary": base64.b64encode(b"\xff\xfe").decode(),
        "bad": "%",
    }
    assert entries({"data": data}) == {"good": "text"}


def test_a_key_state_shows_no_secret() -> None:
    material = root_material({"keys.yaml": KEYS_FILE})
    shown = repr(KeyState(material=material, token="hunter2"))
    assert "hunter2" not in shown
    assert KEY not in shown
