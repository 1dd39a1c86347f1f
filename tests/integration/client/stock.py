"""A stock aiortc server behind a little HTTP endpoint: a WebRTC peer that shares no code with ours."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aioice.ice
from aiohttp import web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
CALLS = web.AppKey("calls", dict[str, RTCPeerConnection])


@asynccontextmanager
async def stock_server(*, key: str | None = None) -> AsyncIterator[tuple[str, dict[str, RTCPeerConnection]]]:
    """Serve echo calls on loopback; gives the URL and the open peer connections by call id."""
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [
        "127.0.0.1"
    ]  # aioice leaves loopback out otherwise
    app = web.Application()
    app[CALLS] = calls = {}
    app.router.add_post("/v1/realtime/calls", _guarded(_offer, key))
    app.router.add_post("/v1/realtime/calls/{call}/hangup", _guarded(_hang_up, key))
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    try:
        yield f"http://{host}:{port}", calls
    finally:
        for connection in list(calls.values()):
            await connection.close()
        await runner.cleanup()


def _guarded(handler: Handler, key: str | None) -> Handler:
    async def guarded(request: web.Request) -> web.StreamResponse:
        if key is not None and request.headers.get("Authorization") != f"Bearer {key}":
            return web.json_response({"error": {"message": "wrong API key"}}, status=401)
        return await handler(request)

    return guarded


async def _offer(request: web.Request) -> web.Response:
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))

    @connection.on("track")
    def _(track: MediaStreamTrack) -> None:
        connection.addTrack(track)

    await connection.setRemoteDescription(RTCSessionDescription(sdp=await request.text(), type="offer"))
    await connection.setLocalDescription(await connection.createAnswer())
    calls = request.app[CALLS]
    call = f"stock-{len(calls)}"
    calls[call] = connection
    return web.Response(
        status=201,
        text=connection.localDescription.sdp,
        content_type="application/sdp",
        headers={"Location": f"/v1/realtime/calls/{call}"},
    )


async def _hang_up(request: web.Request) -> web.Response:
    connection = request.app[CALLS].pop(request.match_info["call"], None)
    if connection is None:
        return web.Response(status=404)
    await connection.close()
    return web.Response(status=200)
