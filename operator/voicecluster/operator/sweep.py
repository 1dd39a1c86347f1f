"""Compares what the watches brought with a list, now and then: nothing that was missed stays missed.

kopf lists anew when a watch cannot be resumed, and does not tell what vanished meanwhile; a watch can also be deaf
without knowing it. So each kind is listed (metadata only) every ten minutes, and after each list of kopf's own.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence

from voicecluster.operator.fields import text
from voicecluster.operator.health import Health, Watch
from voicecluster.operator.kube.client import KubeClient
from voicecluster.operator.kube.kinds import Ref
from voicecluster.operator.kube.port import KubeError, Object
from voicecluster.operator.queue import Key
from voicecluster.operator.store import Objects, version

RESYNC_SECONDS = 600.0
JITTER = 0.2
GRACE_SECONDS = 15.0
"""What a list has and the watch has not brought after so long, it will not bring."""
RETRY_SECONDS = 5.0
_LOG = logging.getLogger(__name__)


class Sweeper:
    """`run` once; `relisted` from anywhere in the loop."""

    def __init__(
        self,
        kube: KubeClient,
        objects: Objects,
        health: Health,
        *,
        add: Callable[[Key], None],
        selector: Callable[[Watch], str | None],
    ) -> None:
        """`selector`: the label selector of a watch."""
        self._kube = kube
        self._objects = objects
        self._health = health
        self._add = add
        self._selector = selector
        self._due: set[Watch] = set()
        self._poked = asyncio.Event()

    def relisted(self, watch: Watch) -> None:
        """kopf has listed this again: what vanished before is to be found."""
        self._due.add(watch)
        self._poked.set()

    async def run(self, watches: Sequence[Watch]) -> None:
        """Sweep until cancelled."""
        loop = asyncio.get_running_loop()
        resync = loop.time() + _some(RESYNC_SECONDS)
        while True:
            try:
                async with asyncio.timeout_at(resync):
                    await self._poked.wait()
            except TimeoutError:
                resync = loop.time() + _some(RESYNC_SECONDS)
                self._due.update(watches)
                for key in self._objects.clusters():
                    self._add(key)
            self._poked.clear()
            due, self._due = self._due, set()
            await self._sweep_all(due)

    async def _sweep_all(self, due: Iterable[Watch]) -> None:
        for watch in due:
            try:
                await self._sweep(watch)
            except KubeError as error:
                _LOG.warning("cannot compare with a list", extra={"reason": str(error)})
                asyncio.get_running_loop().call_later(RETRY_SECONDS, self.relisted, watch)

    async def _sweep(self, watch: Watch) -> None:
        kind, namespace = watch
        listed, at = await self._kube.list_metadata(kind, namespace, label_selector=self._selector(watch))
        for value in vanished(self._objects.of_kind(kind, namespace), listed, at):
            name, where = text(value, "metadata", "name"), text(value, "metadata", "namespace")
            _LOG.info("had vanished unseen", extra={"object": str(Ref(kind.kind, where or None, name))})
            for key in self._objects.drop(kind, where or None, name, uid=text(value, "metadata", "uid")):
                self._add(key)
        missed = self._unseen(watch, listed)
        if missed is not None:
            await asyncio.sleep(GRACE_SECONDS)
            missed = self._unseen(watch, listed)
        if missed is not None:
            _LOG.error("a watch is deaf", extra={"kind": kind.kind, "object": missed})
        self._health.swept(watch, missed=missed)

    def _unseen(self, watch: Watch, listed: Iterable[Object]) -> str | None:
        """The first object of the list of which the watch has brought neither this state nor a later one."""
        kind, _ = watch
        for value in listed:
            name, where = text(value, "metadata", "name"), text(value, "metadata", "namespace")
            if self._objects.is_behind(kind, value):
                return str(Ref(kind.kind, where or None, name))
        return None


def vanished(known: Iterable[Object], listed: Iterable[Object], at: str) -> list[Object]:
    """Those known that a list of resource version `at` does not have, and that are older than it."""
    there = {text(value, "metadata", "uid") for value in listed}
    return [
        value
        for value in known
        if text(value, "metadata", "uid") not in there and at.isdigit() and version(value) <= int(at)
    ]


def _some(seconds: float) -> float:
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)
