"""Asking a transceiver to drain, over its admin port. Every answer comes within two seconds, or counts as none."""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal, Protocol

import aiohttp
from pydantic import AwareDatetime, ConfigDict, ValidationError
from voicecluster.common.config.model import Model, join_address
from voicecluster.common.config.pod import ADMIN_PORT
from voicecluster.operator.drain.decide import Told
from voicecluster.operator.status.conditions import timestamp
from voicecluster.operator.workloads import Pod

log = logging.getLogger(__name__)

TIMEOUT_SECONDS = 2.0
MAX_ANSWER_BYTES = 4096
MAX_AT_ONCE = 256


class Transceivers(Protocol):
    """Transceivers' drains. None means that the pod did not answer."""

    async def ask(self, pods: Iterable[Pod], token: str) -> Mapping[str, Told | None]:
        """What each pod says, by its name: after two seconds at most, however many they are."""

    async def drain(self, pod: Pod, token: str, deadline: datetime) -> Told | None:
        """Take no new calls; calls that are left at the deadline end."""

    async def cancel(self, pod: Pod, token: str) -> Told | None:
        """Take calls again."""


class _Answer(Model):
    model_config = ConfigDict(extra="ignore")

    state: Literal["serving", "draining"]
    calls: int
    oldest_call_seconds: float | None = None
    deadline: AwareDatetime | None = None


class AdminPorts:
    """`Transceivers` over HTTP."""

    def __init__(self, port: int = ADMIN_PORT) -> None:
        """`port`: where transceivers have their admin server."""
        self._port = port
        self._session: aiohttp.ClientSession | None = None
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def ask(self, pods: Iterable[Pod], token: str) -> Mapping[str, Told | None]:
        """See `Transceivers`."""
        asked = list(pods)
        answers = await asyncio.gather(*(self._ask(pod, token) for pod in asked))
        return {pod.name: told for pod, told in zip(asked, answers, strict=True)}

    async def drain(self, pod: Pod, token: str, deadline: datetime) -> Told | None:
        """See `Transceivers`."""
        return await self._call("PUT", pod, token, {"deadline": timestamp(deadline)})

    async def cancel(self, pod: Pod, token: str) -> Told | None:
        """See `Transceivers`."""
        return await self._call("DELETE", pod, token)

    async def _ask(self, pod: Pod, token: str) -> Told | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):  # waiting for a slot counts too
                return await self._call("GET", pod, token)
        except TimeoutError:
            return None

    async def _call(
        self, method: str, pod: Pod, token: str, body: Mapping[str, str] | None = None
    ) -> Told | None:
        if not pod.address or not token:
            return None
        if self._session is None:
            self._session = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_SECONDS),
                connector=aiohttp.TCPConnector(limit=MAX_AT_ONCE, force_close=True),
            )
        url = f"http://{join_address(pod.address, self._port)}/drain"
        headers = {"Authorization": f"Bearer {token}"}
        try:
            async with (
                self._slots,
                self._session.request(method, url, headers=headers, json=body) as response,
            ):
                content = await response.content.read(MAX_ANSWER_BYTES)
                if response.status != 200:
                    log.warning("pod %s: %s /drain: status %d", pod.name, method, response.status)
                    return None
                answer = _Answer.model_validate_json(content)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            log.debug("pod %s: %s /drain: %s", pod.name, method, type(error).__name__)
            return None
        except ValidationError:
            log.warning("pod %s: %s /drain: an answer that is none of a transceiver", pod.name, method)
            return None
        return Told(answer.state == "draining", answer.calls, answer.deadline)
