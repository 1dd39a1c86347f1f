"""How a pod finds its API server."""

from pathlib import Path

import pytest
from voicecluster.common.config.model import ConfigError
from voicecluster.common.kube.api import KubeApi

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "ca.crt").write_text("")
    return tmp_path


def test_a_pod_finds_its_api_server(account: Path) -> None:
    api = KubeApi.in_cluster(POD, account=account)
    assert api.base_url == "https://10.96.0.1:443"
    assert api.headers() == {"Authorization": "Bearer secret"}


def test_an_ipv6_server_stands_in_brackets(account: Path) -> None:
    environ = {**POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}
    assert KubeApi.in_cluster(environ, account=account).base_url == "https://[fd00::1]:443"


def test_outside_a_pod_a_proxy_stands_in() -> None:
    api = KubeApi.in_cluster({"KUBE_API_URL": "http://127.0.0.1:8001/"})
    assert (api.base_url, api.headers()) == ("http://127.0.0.1:8001", {})


def test_outside_a_pod_the_error_says_what_to_do(account: Path) -> None:
    with pytest.raises(ConfigError, match="KUBERNETES_SERVICE_HOST: empty; run this in a pod"):
        KubeApi.in_cluster({}, account=account)


def test_a_pod_without_a_token_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="automountServiceAccountToken"):
        KubeApi.in_cluster(POD, account=tmp_path)
