"""A voice echo as people write it with stock aiortc: the yardstick of `make bench-transceiver`.

stock.py PORT [--no-level]: the second form switches the audio level off that aiortc computes for every frame
it sends (684 µs of Python each), which is the first thing that anybody who profiles it does.
"""

import argparse
import asyncio

import aioice.ice
import aiortc.rtcrtpsender
from aiohttp import web
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription

calls: dict[str, RTCPeerConnection] = {}


async def offer(request: web.Request) -> web.Response:
    """Answer an offer and send back what comes, decoded and encoded again."""
    connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))

    @connection.on("track")
    def _(track: MediaStreamTrack) -> None:
        connection.addTrack(track)

    await connection.setRemoteDescription(RTCSessionDescription(sdp=await request.text(), type="offer"))
    await connection.setLocalDescription(await connection.createAnswer())
    call = f"rtc_{id(connection):x}"
    calls[call] = connection
    return web.Response(
        status=201,
        text=connection.localDescription.sdp,
        content_type="application/sdp",
        headers={"Location": f"/v1/realtime/calls/{call}"},
    )


async def hang_up(request: web.Request) -> web.Response:
    """End a call."""
    connection = calls.pop(request.match_info["call"], None)
    if connection is not None:
        await connection.close()
    return web.Response(status=200 if connection is not None else 404)


async def serve(port: int) -> None:
    """Run until killed; says `ready` when it listens."""
    app = web.Application()
    app.router.add_post("/v1/realtime/calls", offer)
    app.router.add_post("/v1/realtime/calls/{call}/hangup", hang_up)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print("ready", flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Parse and serve."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("port", type=int)
    options.add_argument("--no-level", action="store_true")
    parsed = options.parse_args()
    # aioice itself would leave loopback out.
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: ["127.0.0.1"]
    if parsed.no_level:
        if not hasattr(aiortc.rtp, "compute_audio_level_dbov"):
            raise SystemExit(
                "this aiortc computes no audio level under the name known; the row would be wrong"
            )
        aiortc.rtp.compute_audio_level_dbov = lambda frame: -30
    asyncio.run(serve(parsed.port))


if __name__ == "__main__":
    main()
