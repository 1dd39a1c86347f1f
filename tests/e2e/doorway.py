"""A local port that leads to a cluster's signaling: browsers give a microphone to http://127.0.0.1, not to a VIP."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

_CHUNK_BYTES = 65_536


@contextlib.asynccontextmanager
async def doorway(url: str) -> AsyncIterator[str]:
    """Yield an http://127.0.0.1 URL of what `url` serves. Only signaling passes here; media go their own way."""
    to = urlsplit(url)
    open_pipes: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, here = await asyncio.open_connection(to.hostname, to.port or 80)
        for source, sink in ((reader, here), (there, writer)):
            task = asyncio.create_task(_pipe(source, sink), name="doorway")
            open_pipes.add(task)
            task.add_done_callback(open_pipes.discard)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}/"
    finally:
        server.close()
        for task in open_pipes:
            task.cancel()


async def _pipe(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    try:
        while chunk := await source.read(_CHUNK_BYTES):
            sink.write(chunk)
            await sink.drain()
    except OSError:
        pass  # either side is gone; the other learns it from the close below
    finally:
        sink.close()
