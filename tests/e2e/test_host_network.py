"""HostNetwork: the same product on the nodes' own addresses, and what is heard when a node loses its power."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.browser import driver, speech
from tests.browser.caller import Caller
from tests.browser.conftest import sound_device, utterance
from tests.e2e.callers import crowd
from tests.e2e.cluster import Cluster, Machine, within
from tests.e2e.conftest import Deploy
from tests.e2e.doorway import doorway
from tests.e2e.providers import ROOT
from tests.e2e.voice import Deployed, from_file, of_spec, own_address_towards

__all__ = ["sound_device", "utterance"]
Browser = Callable[[], AbstractAsyncContextManager[driver.Page]]
EXAMPLE = ROOT / "examples" / "host-network.yaml"
FIGURES = ROOT / "build" / "e2e" / "node-loss.json"
SECOND_ADDRESS_MS = 10_000.0
HEARD_AGAIN_SECONDS = 20.0
"""Chromium calls a pair weak after a few unanswered checks and then takes the other one."""
FIREFOX_WATCHED_SECONDS = 40.0


def node_addresses(cluster: Cluster) -> dict[str, set[str]]:
    """The internal addresses of each node."""
    return {
        node["metadata"]["name"]: {
            each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP"
        }
        for node in cluster.list("nodes", "default")
    }


@pytest.fixture(scope="module")
def permitted(cluster: Cluster, namespace: str) -> str:
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=privileged")
    return namespace


@pytest.fixture(scope="module")
def demo(deployed: Deploy, permitted: str) -> Deployed:
    """The example; gone before the test of node loss, whose relays want the same ports."""
    return deployed(from_file(EXAMPLE))


@pytest.mark.parametrize("region", ["eu-west", "us-east"])
@pytest.mark.parametrize("ip", [4, 6])
def test_a_call_comes_in_at_a_nodes_own_address(demo: Deployed, region: str, ip: int) -> None:
    call = demo.call(region=region, ip=ip)
    assert call.heard, call.error
    assert (call.region, ":" in call.vip) == (region, ip == 6)
    nodes = {pod["spec"]["nodeName"] for pod in demo.pods("relay", region)}
    addresses = node_addresses(demo.cluster)
    assert call.vip in set().union(*(addresses[node] for node in nodes))
    assert call.client == own_address_towards(call.vip)


def test_its_example_is_ready_within_a_minute(demo: Deployed) -> None:
    assert demo.ready_seconds < 60


@pytest.fixture(scope="module")
def everywhere(cluster: Cluster, deployed: Deploy, demo: Deployed) -> Deployed:
    """One region with a relay on every node and one transceiver."""
    demo.delete()
    selector = f"voicecluster.dev/cluster={demo.name}"
    within(150, lambda: not cluster.list("pods", demo.namespace, selector), "the example is gone", every=0.5)
    vip = {"mode": "HostNetwork", "nodeAddressType": "InternalIP"}
    spec: dict[str, Any] = {
        "clusterId": 42,
        "signaling": {"auth": {"mode": "None"}, "service": {"type": "NodePort"}},
        "networkPolicy": {"nodeCIDRs": ["10.89.0.0/16", "fd00:89::/64"]},
        "regions": [
            {"name": "main", "index": 0, "relay": {"vip": vip}, "transceiver": {"replicas": 1}},
        ],
    }
    return deployed(of_spec("everywhere", spec))


@asynccontextmanager
async def calling(browser: Browser, url: str, sentence: Path) -> AsyncIterator[Caller]:
    async with doorway(url) as local, browser() as page:
        caller = Caller(page, local)
        await caller.arrive(speech.wav(sentence))
        await caller.choose("model", "echo")
        await caller.start()
        yield caller


async def heard(caller: Caller) -> float:
    """Say something; the page's clock at which it comes back."""
    return await caller.first_heard(await caller.say())


async def heard_again(caller: Caller, *, seconds: float) -> float | None:
    """Speak again and again; the seconds until it comes back, None if it does not."""
    began = time.monotonic()
    while time.monotonic() - began < seconds:
        spoke = await caller.say()
        try:
            await caller.first_heard(spoke, within=2)
        except TimeoutError:
            continue
        return time.monotonic() - began
    return None


def signaling_at(voice: Deployed, node: set[str]) -> str:
    """Signaling by the node port of a node with these addresses."""
    [address] = [each for each in node if "." in each]
    return f"http://{address}:{voice.url.rpartition(':')[2].strip('/')}"


def serve_again(voice: Deployed, nodes: int) -> None:
    """Wait until each node is a VIP again, in both families."""
    within(90, lambda: len(voice.vips("main")) == 2 * nodes, "all nodes serve again", every=1)


def record(who: str, seconds: float | None) -> None:
    """Keep for how long they heard nothing, None for those who never heard anything again."""
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    rows[who] = {"heard_again_seconds": seconds, "survived": seconds is not None}
    FIGURES.write_text(json.dumps(rows, indent=2) + "\n")
    print("node lost", who, rows[who])


async def test_a_lost_node_ends_no_call_that_only_came_in_there(
    everywhere: Deployed, cluster: Cluster, machine: Machine
) -> None:
    """Our client takes the second address as Chromium does: after two checks without an answer."""
    [transceiver] = [pod["spec"]["nodeName"] for pod in everywhere.pods("transceiver")]
    addresses = node_addresses(cluster)
    lost = next(node for node in addresses if node != transceiver)
    async with crowd(signaling_at(everywhere, addresses[transceiver]), None, calls=20, seconds=20) as calls:
        await asyncio.to_thread(machine.power_off, lost)
        try:
            noticed = await calls.noticed()
        finally:
            await asyncio.to_thread(machine.power_on, lost)
    record("20 calls", noticed.server_gap_ms / 1000)
    assert noticed.ended == 0
    assert 0 < noticed.server_gap_ms < SECOND_ADDRESS_MS
    serve_again(everywhere, len(addresses))


@pytest.mark.parametrize("name", ["chromium", "firefox"])
async def test_a_browser_whose_ingress_node_loses_its_power(
    name: str, everywhere: Deployed, cluster: Cluster, machine: Machine, utterance: Path
) -> None:
    """Chromium goes on with the second address of its answer; Firefox's outcome is measured and told."""
    [transceiver] = [pod["spec"]["nodeName"] for pod in everywhere.pods("transceiver")]
    addresses = node_addresses(cluster)
    url = signaling_at(everywhere, addresses[transceiver])
    browser: Browser = {"chromium": driver.chromium, "firefox": driver.firefox}[name]
    for _ in range(8):
        async with calling(browser, url, utterance) as caller:
            await heard(caller)
            quality = await caller.quality()
            remotes = {remote.rpartition(":")[0].strip("[]") for remote in quality["remotes"]}
            named = {node for node, known in addresses.items() if known & remotes}
            assert len(named) == 2, f"an answer names two nodes: {remotes}"
            selected = re.sub(r"^.*→\s*", "", quality["pair"])
            [ingress] = [node for node in named if any(each in selected for each in addresses[node])]
            if ingress == transceiver:
                continue  # the call itself is on that node
            await asyncio.to_thread(machine.power_off, ingress)
            try:
                watched = HEARD_AGAIN_SECONDS if name == "chromium" else FIREFOX_WATCHED_SECONDS
                took = await heard_again(caller, seconds=watched)
            finally:
                await asyncio.to_thread(machine.power_on, ingress)
        record(name, took)
        if name == "chromium":
            assert took is not None, f"not heard again within {HEARD_AGAIN_SECONDS} s"
        within(
            90, lambda: len(everywhere.vips("main")) == 2 * len(addresses), "all nodes serve again", every=1
        )
        return
    pytest.fail("eight calls came in at the transceiver's own node")
