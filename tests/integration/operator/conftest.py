"""A real API server for all tests of the session, and a namespace for each."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.operator.apiserver import ApiServer, MissingAssets, until
from tests.integration.operator.cluster import Cluster, manifest
from tests.integration.operator.process import Operator
from tests.integration.operator.proxy import Proxy

ROOT = Path(__file__).parents[3]
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """With our CustomResourceDefinitions."""
    try:
        server = ApiServer(tmp_path_factory.mktemp("apiserver"))
    except MissingAssets as missing:
        pytest.fail(str(missing), pytrace=False)
    server.start()
    server.kubectl("apply", "--server-side", "-f", str(ROOT / "crds"))
    server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
    until(lambda: server.request("GET", "/api/v1/namespaces/default"), what="namespace default")
    listed = ("get", "voiceclusters,voiceregions", "--all-namespaces")  # 429 while their storage starts
    until(lambda: server.try_kubectl(*listed).returncode == 0, what="listing our kinds")
    yield server
    server.stop()


@pytest.fixture
def namespace(apiserver: ApiServer) -> str:
    """A new, empty namespace. It stays: nothing here could delete what is in it."""
    return _namespace(apiserver)


def _namespace(apiserver: ApiServer) -> str:
    name = f"test-{next(_NUMBERS)}"
    apiserver.kubectl("create", "namespace", name)
    return name


@pytest.fixture(scope="module")
def running(apiserver: ApiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A VoiceCluster, and the operator that looks after it, for all tests of a module. Leave it as it was."""
    cluster = Cluster(apiserver, _namespace(apiserver))
    cluster.apply(manifest("eu"))
    home = tmp_path_factory.mktemp("operator")
    operator = Operator(apiserver, home, namespace=cluster.namespace, lease_namespace=cluster.namespace)
    operator.start()
    cluster.settled()
    yield cluster
    operator.kill()


@pytest.fixture
def operators(apiserver: ApiServer, namespace: str, tmp_path: Path) -> Iterator[Callable[..., Operator]]:
    """Makes operators for the test's namespace, each with the Lease of that namespace; ends them all."""
    made: list[Operator] = []

    def make(name: str = "operator", **more: Any) -> Operator:
        more = {"namespace": namespace, "lease_namespace": namespace} | more
        made.append(Operator(apiserver, tmp_path, name=name, **more))
        return made[-1]

    yield make
    for operator in made:
        operator.kill()


@pytest.fixture
def proxy(apiserver: ApiServer) -> Iterator[Proxy]:
    """Between an operator and the API server."""
    between = Proxy(apiserver)
    between.start()
    yield between
    between.stop()
