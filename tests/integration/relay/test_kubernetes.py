"""A relay in Kubernetes, with the API server that it follows: routes, VIPs, configuration."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from voicecluster.common.atomic import write_atomic

from tests.integration.relay.harness import RelayProcess, Scene
from tests.integration.relay.parties import CLUSTER, Caller, Transceiver, eventually, udp_socket
from tests.unit.common.kube.server import FakeApiServer

SLICES = "/apis/discovery.k8s.io/v1/namespaces/ns/endpointslices"
MEDIA = {"app": "media", "voicecluster.dev/workers": "1"}
MEDIA_PORT = 40000
IN_FORCE_SECONDS = 1.0


@pytest.fixture
async def api() -> AsyncIterator[FakeApiServer]:
    api = FakeApiServer(SLICES)
    await api.start()
    yield api
    await api.stop()


async def publish(api: FakeApiServer, *transceivers: Transceiver, name: str = "media") -> None:
    """Put a slice with these transceivers' addresses of now."""
    endpoints = [
        {
            "hostname": f"eu-transceiver-{transceiver.route.ordinal}",
            "addresses": [transceiver.address.partition(":")[0]],
            "conditions": {"ready": True, "serving": True, "terminating": False},
        }
        for transceiver in transceivers
    ]
    await api.put(name, MEDIA, addressType="IPv4", endpoints=endpoints)


def pod(scene: Scene, ordinal: int, host: str) -> Transceiver:
    """A transceiver on the port that pods use; it has no route but by a slice."""
    return scene.add(Transceiver(udp_socket((host, MEDIA_PORT)), ordinal), routed=False)


async def start(scene: Scene, api: FakeApiServer, tmp_path: Path, **settings: object) -> RelayProcess:
    routes_from = {
        "namespace": "ns",
        "selector": "app=media",
        "clusterId": CLUSTER,
        "cacheFile": str(tmp_path / "routes-cache.yaml"),
    }
    return await scene.relay(
        settings={"routesFile": None, "routesFrom": routes_from, **settings},
        environment={"KUBE_API_URL": api.url},
    )


async def in_call(relay: RelayProcess, scene: Scene, owner: Transceiver) -> Caller:
    caller = scene.caller(relay.vips[0], owner)
    await caller.check()
    return caller


async def test_a_pods_new_address_is_used_within_a_second_of_the_slices_change(
    scene: Scene, api: FakeApiServer, tmp_path: Path
) -> None:
    await publish(api, before := pod(scene, 3, "127.0.103.1"))
    relay = await start(scene, api, tmp_path)
    caller = await in_call(relay, scene, before)
    after = pod(scene, 3, "127.0.103.2")
    await publish(api, after)
    changed = time.monotonic()
    while not after.checks[caller.address]:
        await caller.check(within_seconds=5)
        assert time.monotonic() - changed < IN_FORCE_SECONDS
    assert await caller.settled() == 0


async def test_an_ordinal_that_no_slice_names_goes_nowhere(
    scene: Scene, api: FakeApiServer, tmp_path: Path
) -> None:
    await publish(api, pod(scene, 3, "127.0.103.1"))
    unlisted = pod(scene, 4, "127.0.103.2")
    relay = await start(scene, api, tmp_path)
    caller = scene.caller(relay.vips[0], unlisted)
    with pytest.raises(TimeoutError):
        await caller.check(within_seconds=0.5)
    assert relay.metric("decodes_total", result="unknown_route") > 0
    assert not unlisted.checks


async def test_an_emptied_api_server_takes_no_routes_away(
    scene: Scene, api: FakeApiServer, tmp_path: Path
) -> None:
    await publish(api, owner := pod(scene, 3, "127.0.103.1"), pod(scene, 4, "127.0.103.2"))
    relay = await start(scene, api, tmp_path)
    caller = await in_call(relay, scene, owner)
    await api.remove("media")
    await eventually(lambda: relay.metric("routes_held") == 2)
    assert relay.is_ready()
    await caller.talk(0.5)
    assert await caller.settled() == 0


async def test_an_absent_api_server_costs_a_call_nothing(
    scene: Scene, api: FakeApiServer, tmp_path: Path
) -> None:
    await publish(api, owner := pod(scene, 3, "127.0.103.1"))
    relay = await start(scene, api, tmp_path)
    caller = await in_call(relay, scene, owner)
    await api.stop()
    await eventually(lambda: relay.metric("routes_followed") == 0, 15)
    assert relay.is_ready()
    await caller.talk(0.5)
    assert await caller.settled() == 0
    await api.start()
    await publish(api, owner, pod(scene, 4, "127.0.103.2"))
    await eventually(lambda: relay.metric("routes") == 2, 15)


async def test_a_relay_that_starts_while_the_api_server_is_absent_has_its_last_routes(
    scene: Scene, api: FakeApiServer, tmp_path: Path
) -> None:
    await publish(api, owner := pod(scene, 3, "127.0.103.1"))
    first = await start(scene, api, tmp_path)
    await eventually((tmp_path / "routes-cache.yaml").exists)
    await first.stop()
    await api.stop()
    second = await start(scene, api, tmp_path)
    await in_call(second, scene, owner)
    await api.start()
    await publish(api, owner, pod(scene, 4, "127.0.103.2"))
    await eventually(lambda: second.metric("routes") == 2, 15)


async def test_a_relay_without_api_server_or_cache_is_not_ready_and_says_why(
    scene: Scene, api: FakeApiServer, tmp_path: Path
) -> None:
    await api.stop()
    with pytest.raises(AssertionError, match="no answer from the API server"):
        await start(scene, api, tmp_path)


async def test_a_killed_control_plane_is_ready_again_without_the_api_server(
    scene: Scene, api: FakeApiServer, tmp_path: Path
) -> None:
    await publish(api, pod(scene, 3, "127.0.103.1"))
    relay = await start(scene, api, tmp_path)
    await api.stop()
    (tmp_path / "routes-cache.yaml").unlink()
    dead = relay.kill("control")
    await eventually(lambda: (child := relay.child("control")) and child.pid != dead and relay.is_ready(), 10)


async def test_a_vip_that_changes_is_told_to_the_owner_and_the_call_goes_on(
    scene: Scene, tmp_path: Path
) -> None:
    owner = scene.transceiver(0)
    vips = tmp_path / "vips.yaml"

    def publish_vip(address: str) -> None:
        vip = {"address": address, "port": 443}
        write_atomic(vips, json.dumps({"regions": {"here": [vip]}}))

    publish_vip("203.0.113.1")
    relay = await scene.relay(settings={"vipsFile": str(vips)}, advertises=False)
    caller = await in_call(relay, scene, owner)
    await caller.talk(0.2)
    assert {arrived.vip for arrived in owner.media} == {("203.0.113.1", 443)}
    publish_vip("198.51.100.1")
    await caller.talk(1.0)
    assert await caller.settled() == 0
    assert owner.media[-1].vip == ("198.51.100.1", 443)
    owner.send(caller.address, ("203.0.113.1", 443), late := b"\x80 sent to the VIP before")
    await eventually(lambda: late in caller.received)


async def test_changed_limits_take_effect_and_changed_workers_wait(scene: Scene) -> None:
    owner = scene.transceiver(0)
    relay = await scene.relay()
    caller = await in_call(relay, scene, owner)
    relay.configure(limits={"flowPackets": 1, "flowBurst": 1}, workers=3)
    await eventually(lambda: "changes wait for a restart of this relay" in relay.log())
    await caller.talk(0.5)
    await eventually(lambda: relay.drops("flow_rate") > 0)
    assert relay.is_ready()
