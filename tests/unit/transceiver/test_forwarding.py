"""Requests that reach a worker other than the one they are for, over real HTTP between faked hosts."""

import contextlib
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer
from voicecluster.common.config.transceiver import DirectoryFile
from voicecluster.transceiver.directory import Directory
from voicecluster.transceiver.drain import DrainReport
from voicecluster.transceiver.forward import Forwarder, Reply, Unreachable
from voicecluster.transceiver.http.api import CALLS, Answered, Place
from voicecluster.transceiver.http.app import METRICS_PATH, internal_app, public_app
from voicecluster.transceiver.http.auth import InternalKeys
from voicecluster.transceiver.http.drain import DRAIN_PATH, drain_request, read_report
from voicecluster.transceiver.http.errors import ApiError
from voicecluster.transceiver.http.offer import OfferRequest
from voicecluster.wire import Route

HERE, WEST, EAST = (0, 0), (0, 1), (1024, 0)
"""Ordinal and worker: the one that is asked, its sibling in eu-west, one in us-east."""
HOST = "127.0.105.2"
SDP = {"Content-Type": "application/sdp"}


@dataclass
class Call:
    """A call of the anonymous caller."""

    key_name: str = ""
    hung_up: bool = False

    def hang_up(self) -> None:
        self.hung_up = True

    def restart_ice(self, fragment: str) -> str | None:
        return f"ours for {fragment}"

    def debug(self) -> Mapping[str, object]:
        return {"model": "echo"}


@dataclass
class Host:
    """Takes calls while it has room."""

    place: tuple[int, int]
    room: bool = True
    refusal: ApiError | None = None
    offers: list[OfferRequest] = field(default_factory=list)
    call: Call = field(default_factory=Call)
    deadline: float | None = None

    def has_room(self) -> bool:
        return self.room

    async def open(self, offer: OfferRequest, *, key_name: str) -> Answered:
        if self.refusal is not None:
            raise self.refusal
        self.offers.append(offer)
        return Answered(call_id_at(self.place), "v=0 answer")

    def find(self, call_id: str) -> Call | None:
        return self.call if call_id == call_id_at(self.place) else None

    def begin(self, deadline: float) -> None:
        self.deadline = deadline

    def cancel(self) -> None:
        self.deadline = None

    def report(self) -> DrainReport:
        return DrainReport(3, 1.5)


@dataclass
class Cluster:
    """Three workers; `client` asks the public port of the first."""

    client: "TestClient[aiohttp.web.Request, aiohttp.web.Application]"
    hosts: dict[tuple[int, int], Host]
    internal: dict[tuple[int, int], TestServer]


def call_id_at(place: tuple[int, int]) -> str:
    return f"rtc_{place[0]}_{place[1]}"


def route_of(call_id: str) -> Route | None:
    parts = call_id.split("_")
    return Route(7, int(parts[1]), int(parts[2])) if len(parts) == 3 else None


def directory_of(first_west_port: int, east_port: int) -> Directory:
    def transceiver(ordinal: int, port: int, workers: int) -> dict[str, object]:
        return {"ordinal": ordinal, "host": HOST, "internalPort": port, "workers": workers}

    west = {"name": "eu-west", "index": 0, "transceivers": [transceiver(0, first_west_port, 2)]}
    east = {"name": "us-east", "index": 1, "transceivers": [transceiver(1024, east_port, 1)]}
    return Directory(DirectoryFile.model_validate({"regions": [west, east]}))


def neighbours() -> tuple[int, int, int]:
    """Three ports in a row that are free on HOST."""
    while True:
        first = 20_000 + secrets.randbelow(10_000)
        ports = (first, first + 1, first + 2)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in ports:
                stack.enter_context(socket.socket()).bind((HOST, port))
            return ports


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    ports = dict(zip((HERE, WEST, EAST), neighbours(), strict=True))
    directory = directory_of(ports[HERE], ports[EAST])
    keys = InternalKeys("A", {"A": bytes(32)})
    hosts = {place: Host(place) for place in ports}
    async with contextlib.AsyncExitStack() as stack:
        forwarder = await stack.enter_async_context(Forwarder(lambda: keys))
        places = {
            at: Place("us-east" if at == EAST else "eu-west", *at, lambda: directory, route_of)
            for at in ports
        }
        servers = {}
        for at, port in ports.items():
            app = internal_app(
                host=hosts[at],
                place=places[at],
                forwarder=forwarder,
                keys=lambda: keys,
                metrics=lambda: b"",
                drain=hosts[at],
                sdp_bytes=lambda: 65_536,
            )
            servers[at] = TestServer(app, host=HOST, port=port)
            await servers[at].start_server()
            stack.push_async_callback(servers[at].close)
        app = public_app(
            host=hosts[HERE],
            place=places[HERE],
            forwarder=forwarder,
            api_keys=lambda: None,
            cors_origins=lambda: ["*"],
            sdp_bytes=lambda: 65_536,
        )
        client = await stack.enter_async_context(TestClient(TestServer(app)))
        yield Cluster(client, hosts, servers)


async def test_an_offer_for_another_region_is_answered_there(cluster: Cluster) -> None:
    response = await cluster.client.post(f"{CALLS}?region=us-east&model=echo", data="v=0", headers=SDP)
    assert response.status == 201
    assert response.headers["Location"] == f"{CALLS}/{call_id_at(EAST)}"
    assert await response.text() == "v=0 answer"
    assert cluster.hosts[EAST].offers == [OfferRequest("v=0", "echo", None)]


async def test_a_full_worker_hands_an_offer_to_its_sibling(cluster: Cluster) -> None:
    cluster.hosts[HERE].room = False
    response = await cluster.client.post(CALLS, data="v=0", headers=SDP)
    assert response.headers["Location"] == f"{CALLS}/{call_id_at(WEST)}"


async def test_the_admin_process_drains_a_worker_over_its_internal_port(cluster: Cluster) -> None:
    keys = InternalKeys("A", {"A": bytes(32)})
    worker = directory_of(1, cluster.internal[EAST].port or 0).worker_at(Route(7, *EAST))
    assert worker is not None
    async with Forwarder(lambda: keys) as forwarder:

        async def ask(method: str, body: bytes = b"") -> Reply:
            return await forwarder.ask(worker, method, DRAIN_PATH, key_name="", body=body)

        begun = await ask("PUT", drain_request(1_900_000_000.25))
        assert (begun.status, read_report(begun.body)) == (200, DrainReport(3, 1.5))
        assert cluster.hosts[EAST].deadline == 1_900_000_000.25
        for body in (b"", b"{}", b"[]", b'{"deadline": "x"}', b'{"deadline": NaN}'):
            assert (await ask("PUT", body)).status == 400
        assert cluster.hosts[EAST].deadline == 1_900_000_000.25
        assert (await ask("DELETE")).status == 200
        assert cluster.hosts[EAST].deadline is None


async def test_when_all_of_a_region_are_full_the_caller_is_told_to_retry(cluster: Cluster) -> None:
    cluster.hosts[HERE].room = cluster.hosts[WEST].room = False
    response = await cluster.client.post(CALLS, data="v=0", headers=SDP)
    assert response.status == 503
    assert "Retry-After" in response.headers
    assert cluster.hosts[EAST].offers == []


async def test_a_refusal_elsewhere_reaches_the_caller_as_it_is(cluster: Cluster) -> None:
    cluster.hosts[EAST].refusal = ApiError(400, "no_audio", "no audio section (line: m=audio)", param="sdp")
    response = await cluster.client.post(f"{CALLS}?region=us-east", data="v=0", headers=SDP)
    assert response.status == 400
    assert (await response.json())["error"]["code"] == "no_audio"


@pytest.mark.parametrize("owner", [HERE, WEST, EAST])
async def test_a_request_on_a_call_goes_to_its_owner(cluster: Cluster, owner: tuple[int, int]) -> None:
    call = f"{CALLS}/{call_id_at(owner)}"
    headers = {"Content-Type": "application/trickle-ice-sdpfrag"}
    restarted = await cluster.client.patch(call, data="theirs", headers=headers)
    assert (restarted.status, await restarted.text()) == (200, "ours for theirs")
    assert (await (await cluster.client.get(f"{call}/debug")).json()) == {"model": "echo"}
    assert (await cluster.client.post(f"{call}/hangup")).status == 200
    assert cluster.hosts[owner].call.hung_up


async def test_a_call_whose_owner_is_gone_is_an_unknown_call(cluster: Cluster) -> None:
    await cluster.internal[EAST].close()
    response = await cluster.client.get(f"{CALLS}/{call_id_at(EAST)}/debug")
    assert response.status == 404


def directory_of_names() -> Directory:
    pods = {
        "first": 1024,
        "count": 1,
        "host": "voice-{ordinal}.media.voice.svc",
        "internalPort": 9000,
        "workers": 1,
    }
    return Directory(
        DirectoryFile.model_validate({"regions": [{"name": "us-east", "index": 1, "range": pods}]})
    )


@pytest.mark.parametrize(
    ("failure", "gone"),
    [(socket.EAI_NONAME, True), (socket.EAI_NODATA, True), (socket.EAI_AGAIN, False)],
)
async def test_a_pod_whose_name_is_nobodys_is_gone_and_one_whose_name_server_is_silent_is_not(
    monkeypatch: pytest.MonkeyPatch, failure: int, gone: bool
) -> None:
    def no_address(*_: object, **__: object) -> None:
        raise socket.gaierror(failure, "as a resolver says it")

    monkeypatch.setattr(socket, "getaddrinfo", no_address)
    worker = directory_of_names().worker_at(Route(7, 1024, 0))
    assert worker is not None
    async with Forwarder(lambda: InternalKeys("A", {"A": bytes(32)})) as forwarder:
        with pytest.raises(Unreachable) as unreachable:
            await forwarder.ask(worker, "GET", METRICS_PATH, key_name="")
    assert unreachable.value.gone is gone


async def test_an_offer_for_a_region_whose_workers_are_gone_gets_503(cluster: Cluster) -> None:
    await cluster.internal[EAST].close()
    response = await cluster.client.post(f"{CALLS}?region=us-east", data="v=0", headers=SDP)
    assert response.status == 503


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", CALLS),
        ("GET", f"{CALLS}/rtc_1024_0/debug"),
        ("DELETE", f"{CALLS}/rtc_1024_0"),
        ("GET", METRICS_PATH),
        ("GET", DRAIN_PATH),
        ("PUT", DRAIN_PATH),
        ("DELETE", DRAIN_PATH),
    ],
)
async def test_the_internal_port_serves_nobody_without_a_signature(
    cluster: Cluster, method: str, path: str
) -> None:
    async with aiohttp.ClientSession() as stranger:
        async with stranger.request(method, cluster.internal[EAST].make_url(path), data=b"") as response:
            assert response.status == 401
    assert not cluster.hosts[EAST].call.hung_up
    assert cluster.hosts[EAST].offers == []
