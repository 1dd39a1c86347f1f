"""Scaling down and upgrading transceivers: one at a time, after their calls, and it can be called off."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.callers import crowd
from tests.e2e.cluster import Cluster, Object, within
from tests.e2e.conftest import Deploy
from tests.e2e.voice import Call, Deployed, of_spec

SECONDS = 30.0
"""For the operator and Kubernetes to do what they decided, on a busy machine."""


@pytest.fixture(scope="module")
def voice(deployed: Deploy) -> Deployed:
    regions = [{"name": "main", "index": 2, "relay": {"vip": {"mode": "LoadBalancer"}}}]
    signaling = {"auth": {"mode": "None"}, "service": {"type": "LoadBalancer"}}
    return deployed(of_spec("drains", {"clusterId": 41, "signaling": signaling, "regions": regions}))


async def aside(work: Callable[..., Any], *arguments: Any) -> Any:
    return await asyncio.to_thread(work, *arguments)


def scale(voice: Deployed, replicas: int) -> None:
    name = f"{voice.name}-main"
    voice.cluster.kubectl("scale", "voiceregion", name, "-n", voice.namespace, f"--replicas={replicas}")


def replicas(voice: Deployed) -> tuple[int, int]:
    """What the StatefulSet is told to have, and how many of it are ready."""
    name = f"{voice.name}-main-transceiver"
    found = voice.cluster.get("statefulset", name, voice.namespace)
    return found["spec"]["replicas"], found["status"].get("readyReplicas", 0)


def draining(voice: Deployed) -> list[Object]:
    found: list[Object] = voice.region("main")["status"].get("transceiver", {}).get("draining", [])
    return found


def waiting(voice: Deployed) -> list[Object]:
    """Those that drain and are known to have calls."""
    return [each for each in draining(voice) if each.get("calls")]


def reasons(voice: Deployed) -> set[str]:
    """The reasons of the region's events."""
    events = voice.cluster.list("events", voice.namespace)
    return {each["reason"] for each in events if each["involvedObject"]["name"] == f"{voice.name}-main"}


def short_call(voice: Deployed) -> Call:
    return voice.call(seconds=1)


async def test_a_scaled_down_transceiver_goes_after_its_last_call(voice: Deployed) -> None:
    await aside(scale, voice, 2)
    await aside(within, SECONDS, lambda: replicas(voice) == (2, 2), "two transceivers")
    async with crowd(voice.url, voice.key, calls=20, seconds=15) as calls:
        await aside(scale, voice, 1)
        [one] = await aside(
            within, SECONDS, lambda: waiting(voice), "status tells of the drain and its calls"
        )
        assert one["pod"] == f"{voice.name}-main-transceiver-2049"
        assert (await aside(replicas, voice))[0] == 2, "it goes after its calls"
        noticed = await calls.noticed()
    assert (noticed.ended, noticed.lost, noticed.server_gap_ms) == (0, 0, 0.0), noticed
    await aside(within, SECONDS, lambda: replicas(voice) == (1, 1), "one transceiver")
    assert {"DrainStarted", "DrainFinished"} <= await aside(reasons, voice)


async def test_new_calls_go_elsewhere_while_one_drains_and_scaling_up_again_calls_it_off(
    voice: Deployed,
) -> None:
    await aside(scale, voice, 2)
    await aside(within, SECONDS, lambda: replicas(voice) == (2, 2), "two transceivers")
    async with crowd(voice.url, voice.key, calls=20, seconds=30) as calls:
        await aside(scale, voice, 1)
        await aside(within, SECONDS, lambda: draining(voice), "status tells of the drain")
        placed = {
            call.transceiver for call in await asyncio.gather(*(aside(short_call, voice) for _ in range(3)))
        }
        assert placed == {f"{voice.name}-main-transceiver-2048"}
        await aside(scale, voice, 2)
        await aside(within, SECONDS, lambda: not draining(voice) and replicas(voice) == (2, 2), "called off")
        noticed = await calls.noticed()
    assert (noticed.ended, noticed.lost, noticed.server_gap_ms) == (0, 0, 0.0), noticed
    assert "DrainCancelled" in await aside(reasons, voice)


async def test_an_image_change_replaces_one_transceiver_at_a_time_after_its_calls(
    voice: Deployed, cluster: Cluster
) -> None:
    await aside(scale, voice, 2)
    await aside(within, SECONDS, lambda: replicas(voice) == (2, 2), "two transceivers")
    image = cluster.images.of("transceiver", upgraded=True)
    if image == cluster.images.of("transceiver"):
        pytest.skip(f"{cluster.provider} has only one tag of the images")

    def images() -> list[str]:
        return [pod["spec"]["containers"][0]["image"] for pod in voice.pods("transceiver")]

    async with crowd(voice.url, voice.key, calls=20, seconds=12) as calls:
        patch = f'{{"spec": {{"images": {{"transceiver": "{image}"}}}}}}'
        await aside(
            cluster.kubectl,
            *("patch", "voicecluster", voice.name, "-n", voice.namespace, "--type=merge", "-p", patch),
        )
        await aside(within, SECONDS, lambda: len(draining(voice)) == 1, "one drains")
        assert image not in await aside(images), "it waits for calls"
        noticed = await calls.noticed()
    assert (noticed.ended, noticed.lost, noticed.server_gap_ms) == (0, 0, 0.0), noticed
    await aside(
        within, 2 * SECONDS, lambda: images() == [image, image] and replicas(voice) == (2, 2), "both new"
    )
