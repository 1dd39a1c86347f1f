"""The HTTP side of a call: offer and answer, restart, hang-up, and what the server tells about the call."""

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Self
from urllib.parse import quote, urljoin

import aiohttp
from voicecluster.cli.client.errors import CallError

CALLS_PATH = "/v1/realtime/calls"
Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Placed:
    """What the server answered to an offer."""

    sdp: str
    url: str
    """The call's own URL, absolute."""

    @property
    def call_id(self) -> str:
        """The last part of the URL."""
        return self.url.rsplit("/", 1)[-1]


class Signaling:
    """A client of one deployment; an async context manager. Safe to use by many calls at once."""

    def __init__(
        self, base_url: str, *, key: str | None, insecure: bool = False, timeout_seconds: float = 15.0
    ) -> None:
        """
        Args:
            base_url: where the page is, such as `http://127.0.0.1:8080`; the calls endpoint itself works too.
            key: an API key; it is sent as a bearer token and never logged.
            insecure: accept a TLS certificate that nobody vouches for.
        """
        self._calls_url = base_url if CALLS_PATH in base_url else base_url.rstrip("/") + CALLS_PATH
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._session = aiohttp.ClientSession(
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=timeout_seconds),
            # A Service places connections, not requests: with one that is kept, all calls would be one transceiver's.
            connector=aiohttp.TCPConnector(ssl=not insecure, limit=64, force_close=True),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def place(self, offer: str, *, model: str, region: str | None) -> Placed:
        """Send an offer. Raises CallError("signaling") with what the server said."""
        query = f"?model={quote(model)}" + (f"&region={quote(region)}" if region else "")
        status, text, location = await self._request(
            "POST", self._calls_url + query, offer, "application/sdp"
        )
        if status != 201:
            raise CallError("signaling", f"the server refused the call with {status}: {_message(text)}")
        if not location:
            raise CallError("signaling", "the server's 201 names no Location for the call")
        return Placed(text, urljoin(self._calls_url, location))

    async def restart(self, call_url: str, fragment: str) -> str:
        """PATCH a call with new ICE credentials; returns the server's own."""
        status, text, _ = await self._request("PATCH", call_url, fragment, "application/trickle-ice-sdpfrag")
        if status != 200:
            raise CallError(
                "signaling", f"the server refused the ICE restart with {status}: {_message(text)}"
            )
        return text

    async def hang_up(self, call_url: str) -> int:
        """End a call; returns the HTTP status (200, or 404 if it had ended)."""
        status, _, _ = await self._request("POST", call_url + "/hangup", None, None)
        return status

    async def debug(self, call_url: str) -> Json | None:
        """What the server tells about a call; None where it does not."""
        try:
            async with self._session.get(call_url + "/debug") as response:
                if response.status != 200:
                    return None
                document = await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return None
        return document if isinstance(document, dict) else None

    async def _request(
        self, method: str, url: str, body: str | None, content_type: str | None
    ) -> tuple[int, str, str]:
        headers = {"Content-Type": content_type} if content_type else {}
        try:
            async with self._session.request(method, url, data=body, headers=headers) as response:
                return (
                    response.status,
                    await response.text(errors="replace"),
                    response.headers.get("Location", ""),
                )
        except aiohttp.ClientConnectorCertificateError:
            raise CallError(
                "signaling", f"nobody vouches for the certificate of {url}; --insecure takes it anyway"
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise CallError("signaling", f"{url} cannot be reached ({error})") from None
        except TimeoutError:
            raise CallError("signaling", f"{url} did not answer in time") from None


def _message(text: str) -> str:
    """The message of an error in the Realtime API's shape, else the start of the body."""
    try:
        document = json.loads(text)
        return str(document["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return " ".join(text.split())[:200] or "(no reason given)"
