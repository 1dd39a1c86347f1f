"""One replica from start to end: probes, the Lease, then watches, queue and sweep until it is to stop.

The end has an order, and a deadline for each step: nothing new is begun, what is being reconciled is cut off (the
next leader goes on from there), kopf's watches end, and only then is the Lease given back.
"""

import asyncio
import logging
import signal
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from importlib.metadata import version

from voicecluster.common.admin import AdminServer
from voicecluster.common.config.model import ConfigError
from voicecluster.operator.apart import Apart
from voicecluster.operator.drain.admin import AdminPorts
from voicecluster.operator.health import Health
from voicecluster.operator.kube.access import access
from voicecluster.operator.kube.client import KubeClient
from voicecluster.operator.kube.kinds import kind_of
from voicecluster.operator.kube.port import CHILDREN, CLUSTERS, REGIONS, Kind, KubeError, NotFound, Object
from voicecluster.operator.lease import Leadership, LeaseLost
from voicecluster.operator.metrics import Metrics
from voicecluster.operator.queue import WorkQueue
from voicecluster.operator.reconcile import Reconciler
from voicecluster.operator.redis import RedisCheck
from voicecluster.operator.resolve import Resolver
from voicecluster.operator.settings import LEASE, Settings
from voicecluster.operator.store import Objects
from voicecluster.operator.sweep import Sweeper
from voicecluster.operator.watch import Watcher, selector

CUT_OFF_SECONDS = 2.0
"""For what is being reconciled, to notice that it is cancelled."""
KOPF_SECONDS = 4.0
"""For kopf, to end its watches."""
DEFINITION_SECONDS = 5.0
"""Between looks for missing CustomResourceDefinitions."""
_LOG = logging.getLogger(__name__)


async def serve(settings: Settings) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code; raises ConfigError when it cannot start."""
    logging.getLogger("kopf").setLevel(max(logging.getLogger().level, logging.WARNING))
    stopping = asyncio.Event()
    _on_signals(stopping)
    async with AsyncExitStack() as ends:
        replica = await _start(settings, ends)
        try:
            if await _unless(stopping, replica.apart.run(replica.leadership.acquire())):
                ends.push_async_callback(_given_back, replica)
                await replica.lead(stopping)
        except ConfigError:
            raise
        except LeaseLost as lost:
            _LOG.error("lost the Lease", extra={"reason": str(lost)})
            return 1
        except Exception as error:  # what ends kopf ends us: started again, we read everything anew
            _LOG.error("cannot go on", extra={"error": type(error).__name__, "reason": str(error)})
            return 1
    _LOG.info("stopped")
    return 0


async def _start(settings: Settings, ends: AsyncExitStack) -> "_Replica":
    configuration = await access()
    objects, metrics, health = Objects(nodes=settings.nodes), Metrics(), Health()

    def wrote(value: Object) -> None:
        kind = kind_of(value)
        if kind == CLUSTERS or kind in CHILDREN:
            objects.put(kind, value)

    def observe(verb: str, kind: Kind, status: int | None, seconds: float) -> None:
        metrics.requests.labels(verb, kind.kind, status or 0).observe(seconds)
        if status is not None:
            health.answered()

    kube = KubeClient(configuration, wrote=wrote, observe=observe)
    ends.push_async_callback(kube.close)
    metrics.watch_silence.set_function(health.silence)
    admin = AdminServer(settings.admin, live=health.live, ready=health.ready, metrics=metrics.registry)
    await admin.start()
    ends.push_async_callback(admin.close)
    ports = AdminPorts()
    ends.push_async_callback(ports.close)
    reconciler = Reconciler(
        kube,
        objects,
        settings.defaults,
        transceivers=ports,
        redis=RedisCheck(kube, time.monotonic),
        resolver=Resolver(time.monotonic),
    )
    queue = WorkQueue(reconciler.reconcile, metrics, workers=settings.workers)
    sweeper = Sweeper(kube, objects, health, add=queue.add, selector=selector)
    watcher = Watcher(
        configuration,
        objects,
        health,
        metrics,
        namespaces=settings.namespaces,
        nodes=settings.nodes,
        add=queue.add,
    )
    apart = Apart("lease")
    apart.start()
    ends.callback(apart.close)
    lease_kube = KubeClient(configuration, observe=observe)
    ends.push_async_callback(_closed, apart, lease_kube)
    leadership = Leadership(
        lease_kube, namespace=settings.lease_namespace, name=LEASE, identity=settings.identity
    )
    _LOG.info("started", extra={"admin": admin.address, "version": version("voicecluster")})
    return _Replica(settings, kube, metrics, health, queue, sweeper, watcher, leadership, apart)


class _Replica:
    """The parts of one process, put together."""

    def __init__(
        self,
        settings: Settings,
        kube: KubeClient,
        metrics: Metrics,
        health: Health,
        queue: WorkQueue,
        sweeper: Sweeper,
        watcher: Watcher,
        leadership: Leadership,
        apart: Apart,
    ) -> None:
        self.leadership = leadership
        self.apart = apart
        self._settings = settings
        self._kube = kube
        self._metrics = metrics
        self._health = health
        self._queue = queue
        self._sweeper = sweeper
        self._watcher = watcher

    async def lead(self, stopping: asyncio.Event) -> None:
        """Work until `stopping` is set. Raises LeaseLost, and what kopf cannot recover from."""
        self._metrics.leader.set(1)
        end_watches = asyncio.Event()
        stop = asyncio.create_task(stopping.wait(), name="stop")
        hold = asyncio.create_task(self.apart.run(self.leadership.hold()), name="hold the Lease")
        work = asyncio.create_task(self._reconcile(), name="queue")
        sweep = asyncio.create_task(self._sweeper.run(self._watcher.watches), name="sweep")
        watch = asyncio.create_task(self._watch(stopping, end_watches), name="watch")
        try:
            done, _ = await asyncio.wait(
                (stop, hold, work, sweep, watch), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            self._metrics.leader.set(0)
            await _end(stop, hold, work, sweep, within=CUT_OFF_SECONDS)
            end_watches.set()
            await asyncio.wait((watch,), timeout=KOPF_SECONDS)
            await _end(watch, within=CUT_OFF_SECONDS)
        for task in done:
            await task

    async def _watch(self, stopping: asyncio.Event, end: asyncio.Event) -> None:
        while (missing := await self._missing()) is not None:
            self._health.waits_for(missing)
            _LOG.warning("cannot watch yet", extra={"reason": missing})
            await asyncio.sleep(DEFINITION_SECONDS)
        self._health.starts_watching(self._watcher.watches)
        await self._watcher.run(end, started=lambda: _on_signals(stopping))

    async def _reconcile(self) -> None:
        await self._watcher.complete.wait()  # what is not known yet would be taken for missing
        await self._queue.run()

    async def _missing(self) -> str | None:
        """What stands in the way of watching: kopf would wait for it, and say nothing."""
        for kind in (CLUSTERS, REGIONS):
            for namespace in self._settings.namespaces or (None,):
                try:
                    await self._kube.list_metadata(kind, namespace)
                except NotFound:
                    return (
                        f"CustomResourceDefinition {kind.plural}.voicecluster.dev is missing; install the chart"
                        " with crds.enabled, or apply the files of crds/"
                    )
                except KubeError as error:
                    return str(error)
        return None


async def _closed(apart: Apart, kube: KubeClient) -> None:
    await apart.run(kube.close())


async def _given_back(replica: _Replica) -> None:
    await replica.apart.run(replica.leadership.release())


async def _unless(stopping: asyncio.Event, coroutine: Coroutine[None, None, None]) -> bool:
    """Await it and return True; False if `stopping` is set before it is done."""
    stop = asyncio.create_task(stopping.wait())
    task = asyncio.create_task(coroutine)
    await asyncio.wait((stop, task), return_when=asyncio.FIRST_COMPLETED)
    finished = task.done()
    await _end(stop, task, within=CUT_OFF_SECONDS)
    if finished:
        await task
    return finished


async def _end(*tasks: "asyncio.Task[object]", within: float) -> None:
    """Cancel, and wait for a while: a task that does not end ends with the process."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks, timeout=within)


def _on_signals(stopping: asyncio.Event) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
