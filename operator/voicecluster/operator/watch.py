"""What kopf watches for us, and nothing else of kopf: an event's object goes to the store, its cluster to the queue.

Handlers of `on.event` write nothing: no finalizers, no annotations, no Events. They cannot fail.

kopf's lists are read by us as well, whole: so the store is complete when everything has been listed once
(`complete`), and when kopf lists again, since a watch could not be resumed, we see what has vanished meanwhile,
of which kopf tells nothing. (An index would hold back events until everything is listed, but kopf wakes every
object's task for every object then: ten seconds without a breath at a thousand pods.)

Each watch ends after a few minutes and is asked for again: that is its sign of life (`health`).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import aiohttp
import kopf
from kopf._core.engines.peering import Identity
from kubernetes.aio.client import Configuration
from voicecluster.operator.fields import items, mapping, text
from voicecluster.operator.health import Health, Watch
from voicecluster.operator.kube.access import watch_session
from voicecluster.operator.kube.kinds import path
from voicecluster.operator.kube.port import CHILDREN, CLUSTERS, ENDPOINT_SLICES, NODES, PODS, Kind, Object
from voicecluster.operator.metrics import Metrics
from voicecluster.operator.plan.kubernetes.names import CLUSTER
from voicecluster.operator.queue import Key
from voicecluster.operator.store import Objects, revision

WATCH_SECONDS = 180
"""After so long the server ends a watch and kopf asks again."""
CONNECT_SECONDS = 5.0
REQUEST_SECONDS = 60.0
"""Of a list."""
_BACKOFFS = (1, 1, 2, 3, 5, 8, *(13,) * 20)
"""Between tries of one request; after them kopf gives up, and the process ends."""
_UNLABELLED = (CLUSTERS, NODES)
_NOBODY = Identity("voicecluster-operator")
"""For kopf's peering, which is off. Left to itself, kopf asks for the user's name, and in a pod there is none."""


def watches(namespaces: Sequence[str], *, nodes: bool) -> list[Watch]:
    """All that is watched; no namespace means every one."""
    kinds = (CLUSTERS, *CHILDREN, PODS, ENDPOINT_SLICES)
    found: list[Watch] = [(kind, where) for kind in kinds for where in namespaces or (None,)]
    return [*found, (NODES, None)] if nodes else found


def selector(watch: Watch) -> str | None:
    """The label selector of a watch: of other people's objects we see VoiceClusters and nodes only."""
    return None if watch[0] in _UNLABELLED else CLUSTER


class Watcher:
    """kopf, as one coroutine. `run` once."""

    def __init__(
        self,
        configuration: Configuration,
        objects: Objects,
        health: Health,
        metrics: Metrics,
        *,
        namespaces: Sequence[str],
        nodes: bool,
        add: Callable[[Key], None],
    ) -> None:
        """`add` gets the cluster of every event."""
        self.complete = asyncio.Event()
        """Set when everything has been listed."""
        self.watches = watches(namespaces, nodes=nodes)
        self._configuration = configuration
        self._objects = objects
        self._health = health
        self._metrics = metrics
        self._namespaces = namespaces
        self._add = add
        self._paths = {path(*watch): watch for watch in self.watches}
        self._unlisted = set(self.watches)

    async def run(self, stop: asyncio.Event, *, started: Callable[[], None]) -> None:
        """Watch until `stop` is set. Raises what kopf cannot recover from.

        `started` is called when kopf has begun: it takes over the signals of the process, and who wants them
        back can have them then. When kopf ends, it cancels every task that began after it.
        """
        ours = asyncio.all_tasks()
        tasks = await kopf.spawn_tasks(
            registry=self._registry(),
            settings=self._settings(),
            standalone=True,
            identity=_NOBODY,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=stop,
        )
        started()
        await kopf.run_tasks(tasks, ignored=ours)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()

        async def login(**_: object) -> kopf.AiohttpSession:
            session = watch_session(self._configuration, answered=self._answered)
            return kopf.AiohttpSession(server=self._configuration.host, aiohttp_session=session)

        kopf.on.login(registry=registry, id="login")(login)
        for kind in dict.fromkeys(kind for kind, _ in self.watches):
            self._follow(registry, kind)
        return registry

    def _follow(self, registry: kopf.OperatorRegistry, kind: Kind) -> None:
        group, _, version = kind.api_version.rpartition("/")

        async def act(*, event: Mapping[str, Any], **_: object) -> None:
            self._metrics.watch_events.labels(kind.kind).inc()
            about: Object = event["object"]
            if event["type"] == "DELETED":
                concerned = self._objects.drop(kind, about, at=revision(about))
            else:
                concerned = self._objects.put(kind, about)
            for key in concerned:
                self._add(key)

        kopf.on.event(group=group, version=version, plural=kind.plural, registry=registry)(act)

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.persistence.diffbase_storage = _NoEssence()
        settings.scanning.disabled = True
        settings.networking.connect_timeout = CONNECT_SECONDS
        settings.networking.request_timeout = REQUEST_SECONDS
        settings.networking.error_backoffs = _BACKOFFS
        settings.watching.server_timeout = WATCH_SECONDS
        settings.watching.connect_timeout = CONNECT_SECONDS
        settings.queueing.exit_timeout = 1.0
        for kind in {kind for kind, _ in self.watches}:
            if (wanted := selector((kind, None))) is not None:
                group, _, version = kind.api_version.rpartition("/")
                settings.watching.label_selectors[group, version, kind.plural] = wanted
        return settings

    async def _answered(self, answer: aiohttp.ClientResponse) -> None:
        watch = self._paths.get(answer.url.path)
        if watch is None or answer.status != HTTPStatus.OK:
            return
        self._health.heard(watch)
        if "watch" in answer.url.query:
            return
        kind, namespace = watch
        page = mapping(await answer.json())
        values = [
            {"apiVersion": kind.api_version, "kind": kind.kind, **mapping(item)}
            for item in items(page, "items")
        ]
        for value in values:
            self._objects.put(kind, value)
        for key in self._objects.vanished(kind, namespace, values, text(page, "metadata", "resourceVersion")):
            self._add(key)
        self._unlisted.discard(watch)
        self._health.listed(watch)
        if not self._unlisted:
            self.complete.set()


class _NoEssence(kopf.DiffBaseStorage):
    """kopf's memory of what it has handled; without it, it would copy every object of every event."""

    def build(self, *, body: object, extra_fields: object = None) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, *, body: object) -> None:
        return None

    def store(self, *, body: object, patch: object, essence: object) -> None:
        return None
