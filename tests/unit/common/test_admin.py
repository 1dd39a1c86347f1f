"""The admin port: probes say why, metrics are text, a component adds routes, a taken port is an error of one line."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from http import HTTPStatus

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge
from voicecluster.common.admin import (
    BODY_BYTES,
    MAX_CONNECTIONS,
    REQUEST_BYTES,
    AdminServer,
    Answer,
    Request,
)
from voicecluster.common.config.model import ConfigError

reasons: dict[str, str | None] = {}


@pytest.fixture
async def server() -> AsyncIterator[AdminServer]:
    registry = CollectorRegistry()
    Gauge("answer", "of everything", registry=registry).set(42)
    reasons.clear()
    admin = AdminServer("127.0.0.1:0", live=dict, ready=lambda: reasons, metrics=registry)
    await admin.start()
    yield admin
    await admin.close()


async def get(server: AdminServer, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(f"http://{server.address}{path}") as response:
        return response.status, await response.text()


async def test_a_good_check_is_not_mentioned(server: AdminServer) -> None:
    reasons["routes"] = None
    assert await get(server, "/readyz") == (200, '{"ok": true, "reasons": {}}')


async def test_a_failing_check_gives_503_and_its_reason(server: AdminServer) -> None:
    reasons.update(routes="not loaded", keys=None)
    assert await get(server, "/readyz") == (503, '{"ok": false, "reasons": {"routes": "not loaded"}}')
    assert (await get(server, "/livez"))[0] == 200


async def test_metrics_come_as_text(server: AdminServer) -> None:
    status, body = await get(server, "/metrics")
    assert (status, "answer 42.0" in body) == (200, True)


async def test_a_taken_port_is_a_config_error(server: AdminServer) -> None:
    second = AdminServer(server.address, live=dict, ready=dict, metrics=CollectorRegistry())
    with pytest.raises(ConfigError, match=f"{server.address}/tcp: port taken, held by"):
        await second.start()


async def test_other_paths_and_methods_say_what_there_is(server: AdminServer) -> None:
    assert await get(server, "/") == (404, "here are /livez, /readyz and /metrics\n")
    async with aiohttp.ClientSession() as client, client.post(f"http://{server.address}/livez") as response:
        assert response.status == 405


async def test_an_endless_request_is_cut_off_and_the_next_is_served(server: AdminServer) -> None:
    host, port = server.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"GET /livez HTTP/1.1\r\nX: " + bytes(2 * REQUEST_BYTES))
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    assert (await get(server, "/livez"))[0] == 200


async def test_too_many_connections_are_refused_and_room_comes_back(server: AdminServer) -> None:
    host, port = server.address.split(":")
    idle = [await asyncio.open_connection(host, int(port)) for _ in range(MAX_CONNECTIONS)]
    with pytest.raises(aiohttp.ClientError):
        await get(server, "/livez")
    for reader, writer in idle:
        writer.write_eof()
        await reader.read()
        writer.close()
    assert (await get(server, "/livez"))[0] == 200


async def test_an_open_connection_does_not_delay_closing(server: AdminServer) -> None:
    host, port = server.address.split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    async with asyncio.timeout(1):
        await server.close()
    writer.close()


@pytest.fixture
async def extended() -> AsyncIterator[AdminServer]:
    """Has a route of its own, which says what it was asked."""

    async def echo(request: Request) -> Answer:
        text = request.headers.get("x-word", "").encode() + b" " + request.body
        return Answer(HTTPStatus.ACCEPTED, "text/plain", text, {"X-Extra": "yes"})

    routes = {("PUT", "/echo"): echo, ("DELETE", "/echo"): echo}
    admin = AdminServer("127.0.0.1:0", live=dict, ready=dict, metrics=CollectorRegistry(), routes=routes)
    await admin.start()
    yield admin
    await admin.close()


async def test_a_components_route_gets_headers_and_body_and_chooses_status_and_headers(
    extended: AdminServer,
) -> None:
    url = f"http://{extended.address}/echo"
    headers = {"X-Word": "hello"}
    async with aiohttp.ClientSession() as client, client.put(url, data=b"world", headers=headers) as response:
        assert (response.status, await response.text()) == (202, "hello world")
        assert response.headers["X-Extra"] == "yes"
    async with aiohttp.ClientSession() as client, client.delete(url) as response:
        assert await response.text() == " "


async def test_another_method_of_a_components_path_says_which_there_are(extended: AdminServer) -> None:
    assert await get(extended, "/echo") == (405, "PUT, DELETE only\n")
    assert await get(extended, "/") == (404, "here are /livez, /readyz, /metrics and /echo\n")


async def test_a_body_is_bounded_and_its_length_must_be_told(extended: AdminServer) -> None:
    host, port = extended.address.split(":")
    for header, status in (
        (f"Content-Length: {BODY_BYTES + 1}", b"413"),
        ("Content-Length: " + "9" * 5000, b"413"),
        ("Content-Length: -1", b"400"),
        ("Transfer-Encoding: chunked", b"411"),
    ):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"PUT /echo HTTP/1.1\r\n{header}\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] == status
        writer.close()


async def test_a_body_that_never_comes_is_not_waited_for_for_ever(extended: AdminServer) -> None:
    host, port = extended.address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"PUT /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nab")
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
