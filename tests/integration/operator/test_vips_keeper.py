"""A transceiver follows its one ConfigMap on a real API server, with no right but to list and watch that one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from voicecluster.common.config.transceiver import ObjectFile
from voicecluster.common.kube.api import KubeApi
from voicecluster.transceiver.vips import VipsKeeper

from tests.integration.operator.apiserver import ApiServer

SECONDS = 5.0
"""In which a changed VIP has to be in use."""


def vips(address: str) -> str:
    return f"regions: {{eu: [{{address: {address}, port: 3478}}]}}\n"


def put(apiserver: ApiServer, namespace: str, name: str, text: str) -> None:
    """Create the ConfigMap, or change it."""
    path = f"/api/v1/namespaces/{namespace}/configmaps/{name}?fieldManager=test&force=true"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"vips.yaml": text}}
    apiserver.request("PATCH", path, body, media_type="application/apply-patch+yaml")


@pytest.fixture
def api(apiserver: ApiServer, namespace: str, tmp_path: Path) -> KubeApi:
    """What a pod has whose account has the Role that the plan gives to transceivers."""
    apiserver.kubectl("-n", namespace, "create", "serviceaccount", "voice-transceiver")
    role = ("--verb=list,watch", "--resource=configmaps", "--resource-name=voice-vips")
    apiserver.kubectl("-n", namespace, "create", "role", "voice-transceiver", *role)
    account = f"--serviceaccount={namespace}:voice-transceiver"
    bound = ("rolebinding", "voice-transceiver", "--role=voice-transceiver", account)
    apiserver.kubectl("-n", namespace, "create", *bound)
    token = tmp_path / "token"
    token.write_text(apiserver.kubectl("-n", namespace, "create", "token", "voice-transceiver"))
    return KubeApi(apiserver.url, token, apiserver.ca_file)


@pytest.fixture
async def kept(namespace: str, api: KubeApi, tmp_path: Path) -> AsyncIterator[Path]:
    """The file that a running keeper keeps."""
    seed = tmp_path / "vips.yaml"
    watch = ObjectFile(file=tmp_path / "kept.yaml", seed=seed, namespace=namespace, config_map="voice-vips")
    running = asyncio.create_task(VipsKeeper(watch).run(api))
    yield watch.file
    running.cancel()
    await asyncio.wait([running])


async def until_kept(file: Path, text: str) -> None:
    async with asyncio.timeout(SECONDS):
        while True:
            if await asyncio.to_thread(file.exists) and await asyncio.to_thread(file.read_text) == text:
                return
            await asyncio.sleep(0.02)


async def test_a_changed_config_map_is_kept_within_seconds_with_list_and_watch_of_that_one_alone(
    apiserver: ApiServer, namespace: str, kept: Path
) -> None:
    since = apiserver.mark()
    await asyncio.to_thread(put, apiserver, namespace, "other-vips", vips("192.0.2.99"))
    for address in ("192.0.2.1", "192.0.2.2"):
        await asyncio.to_thread(put, apiserver, namespace, "voice-vips", vips(address))
        await until_kept(kept, vips(address))
    calls = apiserver.calls(since, user=f"system:serviceaccount:{namespace}:voice-transceiver")
    assert [(call.verb, call.resource, call.name, call.code) for call in calls if call.verb != "watch"] == [
        ("list", "configmaps", "voice-vips", 200)
    ]
