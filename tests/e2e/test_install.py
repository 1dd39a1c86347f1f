"""A platform engineer's first ten minutes: Helm, `kubectl apply`, a call to each region over each IP version."""

import pytest

from tests.e2e.cluster import Object, within
from tests.e2e.conftest import Deploy
from tests.e2e.providers import ROOT
from tests.e2e.voice import READY_SECONDS, Deployed, from_file, own_address_towards

EXAMPLE = ROOT / "examples" / "two-regions.yaml"
REGIONS = ("eu-west", "us-east")
STOP_SECONDS = 30
"""Far less than the hour that calls have to end."""


@pytest.fixture(scope="module")
def demo(deployed: Deploy) -> Deployed:
    return deployed(from_file(EXAMPLE))


def test_it_is_ready_within_a_minute(demo: Deployed) -> None:
    assert demo.ready_seconds < READY_SECONDS


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("ip", [4, 6])
def test_a_call_from_outside_hears_audio_through_its_own_regions_pods(
    demo: Deployed, region: str, ip: int
) -> None:
    call = demo.call(region=region, ip=ip)
    assert call.heard, call.error
    assert call.region == region
    assert call.vip in demo.vips(region)
    assert (":" in call.vip) == (ip == 6)
    assert call.transceiver in [pod["metadata"]["name"] for pod in demo.pods("transceiver", region)]
    assert call.relay in [pod["status"]["podIP"] for pod in demo.pods("relay", region)]
    assert call.client == own_address_towards(call.vip)


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("component", ["relay", "transceiver"])
def test_pods_of_a_region_run_on_its_nodes(demo: Deployed, region: str, component: str) -> None:
    nodes = demo.cluster.list("nodes", "default", f"topology.kubernetes.io/region={region}")
    there = {node["metadata"]["name"] for node in nodes}
    assert {pod["spec"]["nodeName"] for pod in demo.pods(component, region)} <= there


def test_a_transceiver_that_is_told_to_stop_while_it_starts_is_gone_at_once(demo: Deployed) -> None:
    before = demo.pods("transceiver", "us-east")[0]["metadata"]

    def starts() -> list[Object]:
        """The next pod of this name, as soon as its program runs."""
        return [
            pod
            for pod in demo.pods("transceiver", "us-east")
            if pod["metadata"]["name"] == before["name"]
            and pod["metadata"]["uid"] != before["uid"]
            and pod["status"]["phase"] == "Running"
        ]

    delete = ("delete", "pod", before["name"], "-n", demo.namespace)
    demo.cluster.kubectl(*delete, "--wait=false")
    within(STOP_SECONDS, starts, "the next one")
    demo.cluster.kubectl(*delete, f"--timeout={STOP_SECONDS}s")
