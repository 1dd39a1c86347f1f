"""Compares what the watches brought with a list, every ten minutes: nothing that was missed stays missed.

A watch can be deaf without knowing it. The lists are of metadata only; what has vanished unseen is dropped, and
what has not come after a while makes the watch a deaf one, which ends this process (`health`). At the same time
every VoiceCluster is reconciled, whether anything happened or not.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Sequence
from typing import Protocol

from voicecluster.operator.fields import text
from voicecluster.operator.health import Health, Watch
from voicecluster.operator.kube.kinds import Ref
from voicecluster.operator.kube.port import Kind, KubeError, Object
from voicecluster.operator.queue import Key
from voicecluster.operator.store import Objects

RESYNC_SECONDS = 600.0
JITTER = 0.2
GRACE_SECONDS = 15.0
"""What a list has and the watch has not brought after so long, it will not bring."""
_LOG = logging.getLogger(__name__)


class Lists(Protocol):
    """What is needed of the API server."""

    async def list_metadata(
        self, kind: Kind, namespace: str | None, *, label_selector: str | None = None
    ) -> tuple[Sequence[Object], str]:
        """The metadata of all objects of a kind, and the resource version of the list."""


class Sweeper:
    """`run` once."""

    def __init__(
        self,
        kube: Lists,
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

    async def run(self, watches: Sequence[Watch]) -> None:
        """Sweep until cancelled."""
        while True:
            await asyncio.sleep(RESYNC_SECONDS * random.uniform(1 - JITTER, 1 + JITTER))
            for watch in watches:
                try:
                    await self.sweep(watch)
                except KubeError as error:
                    _LOG.warning("cannot compare with a list", extra={"reason": str(error)})
            for key in self._objects.clusters():
                self._add(key)

    async def sweep(self, watch: Watch) -> None:
        """Compare one kind. Raises KubeError."""
        kind, namespace = watch
        listed, at = await self._kube.list_metadata(kind, namespace, label_selector=self._selector(watch))
        behind = [value for value in listed if self._objects.is_behind(kind, value)]
        if behind:
            await asyncio.sleep(GRACE_SECONDS)
            behind = [value for value in behind if self._objects.is_behind(kind, value)]
        missed = _text(kind, behind[0]) if behind else None
        if missed is not None:
            _LOG.error("a watch is deaf", extra={"kind": kind.kind, "object": missed})
        self._health.swept(watch, missed=missed)
        for key in self._objects.vanished(kind, namespace, listed, at):
            self._add(key)


def _text(kind: Kind, value: Object) -> str:
    namespace = text(value, "metadata", "namespace") or None
    return str(Ref(kind.kind, namespace, text(value, "metadata", "name")))
