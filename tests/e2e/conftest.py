"""The cluster under test, with the operator that its chart installs."""

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from helm_python import Config

from tests.e2e.cluster import Cluster, Machine, Object
from tests.e2e.providers import ROOT, choose, keep
from tests.e2e.voice import Deployed, deploy

CHART = ROOT / "charts" / "voicecluster-operator"
OPERATOR_NAMESPACE, RELEASE = "voicecluster-system", "voicecluster"
_SETUP_SECONDS = 1500
"""For a test that comes first: images are built and a cluster started within its time."""

Deploy: TypeAlias = Callable[..., Deployed]


def pytest_report_header() -> list[str]:
    provider, lines = choose()
    return [f"end-to-end tests on {provider.name if provider else 'nothing'}", *lines]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name == "test_rbac.py")  # last: it reads what all others did
    for item in items:
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SETUP_SECONDS))


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A fresh cluster of three nodes in three regions, dual stack, with the images of this source."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def say(what: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{time.strftime('%H:%M:%S')} {what}", flush=True)

    provider, lines = choose()
    if provider is None:
        pytest.fail("no cluster to test on: " + "; ".join(lines), pytrace=False)
    yield provider.up(say)
    if not keep():
        provider.down()


@pytest.fixture(scope="session")
def machine(cluster: Cluster) -> Machine:
    """The machine beneath the cluster, for tests that break it."""
    if cluster.machine is None:
        pytest.skip(
            f"{cluster.provider} gives no way to power nodes off, stop the API server or read its audit log"
        )
    return cluster.machine


@pytest.fixture(scope="session")
def values(cluster: Cluster) -> dict[str, Any]:
    """Values of the chart: the images of this source, and leave to read nodes for HostNetwork."""
    images = {each: _image(cluster.images.of(each)) for each in ("operator", "relay", "transceiver")}
    return {
        "images": {"registry": "", "redis": _image(cluster.images.redis), **images},
        "hostNetwork": {"enabled": True},
    }


@pytest.fixture(scope="session")
def operator(cluster: Cluster, values: dict[str, Any]) -> str:
    """The operator, installed by Helm and ready. The name of its namespace."""
    logging.getLogger("helm").setLevel(logging.WARNING)
    with Config(kubeconfig_path=str(cluster.kubeconfig), namespace=OPERATOR_NAMESPACE) as helm:
        there = any(release["name"] == RELEASE for release in helm.list())
        if there:
            helm.upgrade(CHART, RELEASE, values, wait="watcher", timeout=120)
        else:
            helm.install(CHART, RELEASE, values, create_namespace=True, wait="watcher", timeout=120)
    return OPERATOR_NAMESPACE


@pytest.fixture(scope="module")
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of this module's own."""
    name = f"{request.module.__name__.rpartition('.')[2].replace('_', '-')}-{int(time.time())}"
    cluster.kubectl("create", "namespace", name)
    yield name
    if not keep():
        cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def deployed(cluster: Cluster, operator: str, namespace: str) -> Iterator[Deploy]:
    """`deployed(resource)` applies a VoiceCluster and waits until it is Ready; it is deleted after the module."""
    made: list[Deployed] = []

    def apply(resource: Object, **options: Any) -> Deployed:
        made.append(deploy(cluster, namespace, resource, **options))
        return made[-1]

    yield apply
    for each in made:
        if not keep():
            each.delete()


def _image(name: str) -> dict[str, str]:
    repository, _, tag = name.rpartition(":")
    return {"repository": repository, "tag": tag}
