"""What callers notice when something fails or is replaced: the promises of docs/failures.md, with 20 calls running.

One cluster for all tests: a region on every node, so that its address has a relay behind each. Callers are outside
the nodes. A gap is packets missing in a row, on either way; a pause of the speaker is none. What was measured is
written to build/e2e/failures.json.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.e2e.callers import Crowd, Noticed, crowd
from tests.e2e.cluster import Cluster, Machine, Object, within
from tests.e2e.conftest import Deploy
from tests.e2e.providers import ROOT
from tests.e2e.voice import Deployed, of_spec

CALLS = 20
REPLACED_SECONDS = 40.0
"""For a pod to be there again, ready, on a busy machine."""
NEXT_CHECK_MS = 8_000.0
"""A relay that knows nothing of a flow waits for the caller's next check, 2.5 s here and in Chromium; before that the
load balancer or kube-proxy must have left the relay that is gone."""
API_DOWN_SECONDS = 60.0
FIGURES = ROOT / "build" / "e2e" / "failures.json"

_KILL = """
import os, signal, sys
for pid in filter(str.isdigit, os.listdir("/proc")):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().split(b"\\0")
    if any(word.endswith(b"/" + sys.argv[1].encode()) for word in words[:2]) and int(pid) != 1:
        os.kill(int(pid), signal.SIGKILL)
        print(pid)
"""


@pytest.fixture(scope="module")
def voice(deployed: Deploy) -> Deployed:
    regions = [
        {
            "name": "main",
            "index": 0,
            "relay": {"vip": {"mode": "LoadBalancer"}},
            "transceiver": {"replicas": 2},
        }
    ]
    signaling = {"auth": {"mode": "None"}, "service": {"type": "LoadBalancer"}}
    return deployed(of_spec("failures", {"clusterId": 40, "signaling": signaling, "regions": regions}))


@asynccontextmanager
async def calling(voice: Deployed, *, seconds: float) -> AsyncIterator[Crowd]:
    async with crowd(voice.url, voice.key, calls=CALLS, seconds=seconds) as calls:
        yield calls


def record(what: str, noticed: Noticed) -> None:
    """Keep a figure for the docs and for whoever compares runs."""
    FIGURES.parent.mkdir(parents=True, exist_ok=True)
    rows = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    rows[what] = {
        "calls": CALLS,
        "ended": noticed.ended,
        "gap_to_caller_ms": noticed.gap_ms,
        "gap_to_server_ms": noticed.server_gap_ms,
        "lost_to_callers": noticed.lost,
        "received": noticed.received,
    }
    FIGURES.write_text(json.dumps(rows, indent=2) + "\n")
    print(what, json.dumps(rows[what]))


def nobody_noticed(noticed: Noticed) -> None:
    assert (noticed.ended, noticed.lost, noticed.server_gap_ms) == (0, 0, 0.0), noticed


async def aside(work: Callable[..., Any], *arguments: str, **options: Any) -> Any:
    """Run kubectl and the like beside the calls."""
    return await asyncio.to_thread(work, *arguments, **options)


def kill(voice: Deployed, pod: Object, program: str) -> None:
    """Kill a program of a pod that is not its first process."""
    name = pod["metadata"]["name"]
    said = voice.cluster.kubectl("exec", "-n", voice.namespace, name, "--", "python3", "-c", _KILL, program)
    assert said.strip(), f"{name} runs no {program}"


def ready(pods: list[Object]) -> list[Object]:
    """Those that are ready and stay."""
    return [
        pod
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", []))
    ]


async def test_nothing_is_lost_while_nothing_happens(voice: Deployed) -> None:
    async with calling(voice, seconds=5) as calls:
        noticed = await calls.noticed()
    record("nothing happens", noticed)
    nobody_noticed(noticed)


async def test_a_killed_control_plane_is_not_noticed(voice: Deployed) -> None:
    async with calling(voice, seconds=8) as calls:
        for relay in await aside(voice.pods, "relay"):
            await aside(kill, voice, relay, "voicecluster-relay")
        noticed = await calls.noticed()
    record("control plane killed", noticed)
    nobody_noticed(noticed)


async def test_killed_and_upgraded_operators_are_not_noticed(
    voice: Deployed, cluster: Cluster, operator: str
) -> None:
    async with calling(voice, seconds=25) as calls:
        await aside(cluster.kubectl, "delete", "pods", "-n", operator, "--all", "--force", "--grace-period=0")
        await aside(cluster.kubectl, "rollout", "restart", "deployment", "-n", operator)
        await aside(cluster.kubectl, "rollout", "status", "deployment", "-n", operator, "--timeout=90s")
        noticed = await calls.noticed()
    record("operator killed, then upgraded", noticed)
    nobody_noticed(noticed)


async def test_a_killed_redis_is_not_noticed(voice: Deployed, cluster: Cluster) -> None:
    async with calling(voice, seconds=8) as calls:
        redis = f"{voice.name}-redis-0"
        await aside(
            cluster.kubectl, "delete", "pod", redis, "-n", voice.namespace, "--force", "--grace-period=0"
        )
        noticed = await calls.noticed()
    record("Redis killed", noticed)
    nobody_noticed(noticed)


async def test_an_api_server_that_is_away_for_a_minute_is_not_noticed(
    voice: Deployed, machine: Machine
) -> None:
    await aside(machine.stop_api)
    try:
        async with calling(voice, seconds=API_DOWN_SECONDS) as calls:
            noticed = await calls.noticed()
        async with calling(voice, seconds=15) as calls:
            await aside(machine.start_api)
            back = await calls.noticed()
    finally:
        await aside(machine.start_api)
    record("API server away for a minute", noticed)
    record("API server back", back)
    nobody_noticed(noticed)
    await aside(
        within, REPLACED_SECONDS, lambda: not voice.call(seconds=1).error, "new calls get through again"
    )
    # Kubernetes may take nodes for lost when it is back, as they could not report; then flows move.
    assert back.ended == 0
    assert max(back.gap_ms, back.server_gap_ms) < NEXT_CHECK_MS


async def test_a_relay_pod_that_is_killed_costs_its_callers_the_time_to_their_next_check(
    voice: Deployed, cluster: Cluster
) -> None:
    async with calling(voice, seconds=20) as calls:
        [relay, *_] = ready(await aside(voice.pods, "relay"))
        name = relay["metadata"]["name"]
        await aside(
            cluster.kubectl, "delete", "pod", name, "-n", voice.namespace, "--force", "--grace-period=0"
        )
        noticed = await calls.noticed()
    record("relay pod killed", noticed)
    await aside(
        within, REPLACED_SECONDS, lambda: not voice.call(seconds=1).error, "new calls get through again"
    )
    assert noticed.ended == 0
    assert noticed.gap_ms < NEXT_CHECK_MS
    assert noticed.server_gap_ms < NEXT_CHECK_MS


async def test_a_relay_rollout_ends_no_call_and_costs_at_most_the_time_to_the_next_check(
    voice: Deployed, cluster: Cluster
) -> None:
    relays = f"daemonset/{voice.name}-main-relay"
    async with calling(voice, seconds=240) as calls:
        patch = [
            {"op": "add", "path": "/spec/regions/0/relay/resources", "value": {"memory": "65Mi"}},
        ]
        await aside(
            cluster.kubectl,
            *("patch", "voicecluster", voice.name, "-n", voice.namespace, "--type=json"),
            *("-p", json.dumps(patch)),
        )
        before = {pod["metadata"]["name"] for pod in await aside(voice.pods, "relay")}
        await aside(
            within,
            200.0,
            lambda: not before & {pod["metadata"]["name"] for pod in ready(voice.pods("relay"))},
            "all relays replaced",
        )
        await aside(cluster.kubectl, "rollout", "status", relays, "-n", voice.namespace, "--timeout=60s")
        await calls.enough()
        noticed = await calls.noticed()
    record("relay rollout", noticed)
    assert noticed.ended == 0
    assert noticed.gap_ms < NEXT_CHECK_MS
    assert noticed.server_gap_ms < 3 * NEXT_CHECK_MS, "a caller may move once with each of three relays"


async def test_a_transceiver_pod_that_is_killed_keeps_its_id_and_answers_at_its_new_address(
    voice: Deployed,
) -> None:
    [pod, *_] = ready(await aside(voice.pods, "transceiver"))
    name, address = pod["metadata"]["name"], pod["status"]["podIP"]
    await aside(
        voice.cluster.kubectl,
        *("delete", "pod", name, "-n", voice.namespace, "--force", "--grace-period=0"),
    )

    def back() -> Object | None:
        found = [each for each in ready(voice.pods("transceiver")) if each["metadata"]["name"] == name]
        return found[0] if found and found[0]["status"]["podIP"] != address else None

    await aside(within, REPLACED_SECONDS, back, f"{name} is back with a new address")

    def called() -> bool:
        call = voice.call(seconds=1)
        assert call.heard, call.error
        return call.transceiver == name

    began = time.monotonic()
    await aside(within, 60.0, called, f"a call to {name}")  # each call goes to one of two by chance
    print(f"called {name} {time.monotonic() - began:.1f} s after it was ready")
