"""What kopf watches for us, and nothing else of kopf: `index` to know an object, `on.event` to enqueue its cluster.

Such handlers write nothing: no finalizers, no annotations, no Events. An index makes kopf hold back the events until
every kind has been listed once, so the store is complete before the first reconcile. Nothing is kept in the
indices themselves; the handlers put objects into our store, and cannot fail.

Each watch ends after a few minutes and is asked for again: that is its sign of life (`health`).
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import kopf
from kopf._core.engines.peering import Identity
from kubernetes.aio.client import Configuration
from voicecluster.operator.fields import text
from voicecluster.operator.health import Health, Watch
from voicecluster.operator.kube.access import watch_session
from voicecluster.operator.kube.kinds import path
from voicecluster.operator.kube.port import CHILDREN, CLUSTERS, ENDPOINT_SLICES, NODES, PODS, Kind, Object
from voicecluster.operator.metrics import Metrics
from voicecluster.operator.plan.kubernetes.names import CLUSTER
from voicecluster.operator.queue import Key
from voicecluster.operator.store import Objects

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
_LOG = logging.getLogger(__name__)


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
        relisted: Callable[[Watch], None],
    ) -> None:
        """`add` gets the cluster of every event, `relisted` every watch whose objects kopf lists again."""
        self.watches = watches(namespaces, nodes=nodes)
        self._configuration = configuration
        self._objects = objects
        self._health = health
        self._metrics = metrics
        self._namespaces = namespaces
        self._add = add
        self._relisted = relisted
        self._paths = {path(*watch): watch for watch in self.watches}
        self._listed: set[Watch] = set()
        self._concerned: dict[str, set[Key]] = {}
        """By uid: whose business an object is that is known but not yet acted upon."""

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

        async def know(*, body: Mapping[str, Any], **_: object) -> None:
            about = dict(body)
            self._concerned[text(about, "metadata", "uid")] = self._objects.put(kind, about)

        async def act(*, event: Mapping[str, Any], **_: object) -> None:
            self._metrics.watch_events.labels(kind.kind).inc()
            about: Object = event["object"]
            uid, name = text(about, "metadata", "uid"), text(about, "metadata", "name")
            concerned = self._concerned.pop(uid, set())
            if event["type"] == "DELETED":
                where = text(about, "metadata", "namespace") or None
                concerned |= self._objects.drop(kind, where, name, uid=uid)
            for key in concerned:
                self._add(key)

        plural = kind.plural
        kopf.index(group=group, version=version, plural=plural, registry=registry, id=f"know-{plural}")(know)
        kopf.on.event(group=group, version=version, plural=plural, registry=registry, id=f"act-{plural}")(act)

    def _settings(self) -> kopf.OperatorSettings:
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
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

    def _answered(self, request: aiohttp.ClientRequest, status: int) -> None:
        watch = self._paths.get(urlsplit(str(request.url)).path)
        if watch is None or status >= 400:
            return
        lists = "watch" not in request.url.query
        self._health.heard(watch, listed=lists)
        if lists and watch in self._listed:
            self._relisted(watch)
        elif lists:
            self._listed.add(watch)
