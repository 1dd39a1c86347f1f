"""Asks a process whether it is ready."""

import asyncio


async def is_ready(host: str, port: int, *, timeout_seconds: float = 1.0) -> bool:
    """True when `GET /readyz` answers 200 in time. Never raises but CancelledError."""
    try:
        async with asyncio.timeout(timeout_seconds):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET /readyz HTTP/1.1\r\nHost: local\r\nConnection: close\r\n\r\n")
                status_line = await reader.readline()
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False
    return status_line.split(b" ")[1:2] == [b"200"]
