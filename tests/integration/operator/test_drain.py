"""Scale-down and update of transceivers on a real API server, with admin ports that are really asked.

The tests play StatefulSet controller and kubelet: what they do by hand is said in each.
"""

import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiohttp import web
from voicecluster.operator.kube import port

from tests.integration.operator.apiserver import ApiServer
from tests.integration.operator.stage import Stage, region

STATEFUL_SET = "demo-eu-transceiver"


class Admin:
    """The admin ports of three transceivers, 127.0.1.1 to 127.0.1.3, one port."""

    def __init__(self) -> None:
        self.calls = dict.fromkeys(range(3), 0)
        self.draining: dict[int, str] = {}
        """Deadlines by ordinal."""
        self.tokens: set[str] = set()
        self.port = 0
        self._runner: web.AppRunner | None = None

    @staticmethod
    def address(ordinal: int) -> str:
        return f"127.0.1.{ordinal + 1}"

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/drain", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        for ordinal in self.calls:
            site = web.TCPSite(self._runner, self.address(ordinal), self.port)
            await site.start()
            self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.tokens.add(request.headers.get("Authorization", ""))
        assert request.transport is not None
        ordinal = int(request.transport.get_extra_info("sockname")[0].rpartition(".")[2]) - 1
        if request.method == "PUT":
            self.draining[ordinal] = (await request.json())["deadline"]
        if request.method == "DELETE":
            self.draining.pop(ordinal, None)
        deadline = self.draining.get(ordinal)
        state = "draining" if deadline else "serving"
        calls = self.calls[ordinal]
        oldest = 1.5 if calls else None
        return web.json_response(
            {"state": state, "calls": calls, "oldestCallSeconds": oldest, "deadline": deadline}
        )


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    found = Admin()
    await found.start()
    yield found
    await found.stop()


@pytest.fixture
async def stage(apiserver: ApiServer, namespace: str, admin: Admin) -> AsyncIterator[Stage]:
    async with Stage(apiserver, namespace, admin_port=admin.port) as found:
        yield found


async def three(stage: Stage, replicas: int = 3) -> None:
    """A region with three ready transceivers; `replicas` as the spec says it."""
    stage.cluster(region(transceiver={"replicas": replicas, "limits": {"drainTimeoutSeconds": 600}}))
    await stage.reconcile()
    for ordinal in range(3):
        serve(stage, ordinal)
    stage.works()
    stage.redis_works()
    await stage.reconcile()


def serve(stage: Stage, ordinal: int, revision: str = "new") -> None:
    address = Admin.address(ordinal)
    stage.pod(
        f"{STATEFUL_SET}-{ordinal}", "transceiver", podIP=address, podIPs=[{"ip": address}], revision=revision
    )


def unready(stage: Stage, ordinal: int) -> None:
    status = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    stage.patch(port.PODS, f"{STATEFUL_SET}-{ordinal}", status, subresource="status")


def ask(stage: Stage, replicas: int) -> None:
    regions = [region(transceiver={"replicas": replicas, "limits": {"drainTimeoutSeconds": 600}})]
    stage.change(regions=regions)


def replicas(stage: Stage) -> int:
    return int(stage.get(port.STATEFUL_SETS, STATEFUL_SET)["spec"]["replicas"])


def draining(stage: Stage) -> Any:
    return stage.get(port.REGIONS, "demo-eu")["status"]["transceiver"]["draining"]


def events(stage: Stage) -> set[str]:
    told = [each for each in stage.all(port.EVENTS) if each["involvedObject"]["kind"] == "VoiceRegion"]
    reasons = [each["reason"] for each in told if each["reason"].startswith("Drain")]
    assert len(reasons) == len(set(reasons))
    return set(reasons)


async def test_a_scale_down_drains_the_highest_and_lowers_replicas_after_the_calls(
    stage: Stage, admin: Admin
) -> None:
    await three(stage)
    admin.calls[2] = 4
    ask(stage, 2)
    before = datetime.now(UTC)
    assert await stage.reconcile() == 2.0
    assert list(admin.draining) == [2]
    left = datetime.fromisoformat(admin.draining[2]) - before
    assert timedelta(seconds=590) < left < timedelta(seconds=620)
    assert replicas(stage) == 3
    (entry,) = draining(stage)
    assert (entry["pod"], entry["reason"], entry["calls"]) == (f"{STATEFUL_SET}-2", "ScaleDown", 4)
    status, reason, message = stage.condition("Reconciling")
    assert (status, reason) == ("True", "Draining")
    assert f"{STATEFUL_SET}-2" in message
    admin.calls[2] = 0
    await stage.reconcile()
    assert replicas(stage) == 2
    assert draining(stage) == []
    assert events(stage) == {"DrainStarted", "DrainFinished"}


async def test_the_token_shown_is_that_of_the_secret(stage: Stage, admin: Admin) -> None:
    await three(stage)
    ask(stage, 2)
    await stage.reconcile()
    token = base64.b64decode(stage.get(port.SECRETS, "demo-drain-token")["data"]["token"]).decode()
    assert admin.tokens == {f"Bearer {token}"}


async def test_the_scale_subresource_decides_where_the_spec_says_nothing(stage: Stage, admin: Admin) -> None:
    stage.cluster(region())
    await stage.reconcile()
    assert replicas(stage) == 1
    scale = {"spec": {"replicas": 3}}
    stage.patch(port.REGIONS, "demo-eu", scale, subresource="scale")
    await stage.reconcile()
    assert replicas(stage) == 3
    selector = stage.get(port.REGIONS, "demo-eu")["status"]["selector"]
    for ordinal in range(3):
        serve(stage, ordinal)
    assert (
        len(
            stage.server.request(
                "GET", f"/api/v1/namespaces/{stage.namespace}/pods?labelSelector={selector}"
            )["items"]
        )
        == 3
    )
    admin.calls[2] = 1
    stage.patch(port.REGIONS, "demo-eu", {"spec": {"replicas": 1}}, subresource="scale")
    await stage.reconcile()
    assert (replicas(stage), list(admin.draining)) == (3, [2])


async def test_a_scale_up_during_the_drain_cancels_it(stage: Stage, admin: Admin) -> None:
    await three(stage)
    admin.calls[2] = 4
    ask(stage, 2)
    await stage.reconcile()
    unready(stage, 2)
    ask(stage, 3)
    await stage.reconcile()
    assert admin.draining == {}
    assert draining(stage) == []
    assert replicas(stage) == 3
    assert events(stage) == {"DrainStarted", "DrainCancelled"}


async def test_outdated_transceivers_are_replaced_one_at_a_time_after_their_calls(
    stage: Stage, admin: Admin
) -> None:
    await three(stage)
    old = {"status": {"updateRevision": "newer", "updatedReplicas": 0}}
    stage.patch(port.STATEFUL_SETS, STATEFUL_SET, old, subresource="status")
    admin.calls = dict.fromkeys(range(3), 1)
    await stage.reconcile()
    assert list(admin.draining) == [2]
    await stage.reconcile()
    assert list(admin.draining) == [2]
    admin.calls[2] = 0
    await stage.reconcile()
    assert f"{STATEFUL_SET}-2" not in {each["metadata"]["name"] for each in alive(stage)}
    await stage.reconcile()
    assert list(admin.draining) == [2], "the next one waits for the new pod"
    stage.delete(port.PODS, f"{STATEFUL_SET}-2")
    del admin.draining[2]
    serve(stage, 2, revision="newer")
    await stage.reconcile()
    assert list(admin.draining) == [1]
    assert draining(stage)[0]["reason"] == "Outdated"
    assert replicas(stage) == 3


async def test_a_reconcile_that_nothing_changed_for_writes_nothing_during_a_drain(
    stage: Stage, admin: Admin
) -> None:
    await three(stage)
    admin.calls[2] = 4
    ask(stage, 2)
    await stage.reconcile()
    before = stage.server.mark()
    await stage.reconcile()
    assert [str(call) for call in stage.server.calls(before, user="operator") if call.writes] == []


async def test_nothing_drains_while_the_region_is_paused(stage: Stage, admin: Admin) -> None:
    await three(stage)
    stage.change(regions=[{**region(transceiver={"replicas": 1}), "paused": True}])
    await stage.reconcile()
    assert admin.draining == {}
    assert replicas(stage) == 3


def alive(stage: Stage) -> Any:
    return [each for each in stage.all(port.PODS) if "deletionTimestamp" not in each["metadata"]]


async def test_replicas_that_are_taken_out_of_the_spec_stay_until_somebody_scales(
    stage: Stage, admin: Admin
) -> None:
    await three(stage)
    stage.change(regions=[region()])
    await stage.reconcile()
    assert stage.get(port.REGIONS, "demo-eu")["spec"]["replicas"] == 3
    stage.patch(port.REGIONS, "demo-eu", {"spec": {"replicas": 2}}, subresource="scale")
    await stage.reconcile()
    assert stage.get(port.REGIONS, "demo-eu")["spec"]["replicas"] == 2
    assert list(admin.draining) == [2]


async def test_a_voice_region_that_is_deleted_by_hand_comes_back_with_its_number(
    stage: Stage, admin: Admin
) -> None:
    await three(stage)
    stage.change(regions=[region()])
    await stage.reconcile()
    stage.delete(port.REGIONS, "demo-eu")
    await stage.reconcile()
    await stage.reconcile()
    assert stage.get(port.REGIONS, "demo-eu")["spec"]["replicas"] == 3
    assert (replicas(stage), admin.draining) == (3, {})
