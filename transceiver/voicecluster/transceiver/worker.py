"""One worker: a media socket, the shared public HTTP port, an internal port of its own.

It ends when it is told to (SIGTERM: when its calls have ended; SIGINT, or a second signal: at once), and with
its parent whatever happens to that.
"""

import asyncio
import gc
import logging
import os
import signal
import socket as socket_module
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import uvloop
from aiohttp import web
from voicecluster.common.config.model import ConfigError, join_address, split_address
from voicecluster.common.config.transceiver import Tls, TransceiverConfig
from voicecluster.common.logs import setup_logs
from voicecluster.common.ports import listen_tcp, taken
from voicecluster.common.program import exit_on_config_error
from voicecluster.transceiver.call import WorkerParts
from voicecluster.transceiver.calls import Calls
from voicecluster.transceiver.clock import MediaClock
from voicecluster.transceiver.drain import Cordon
from voicecluster.transceiver.dtls.identity import DtlsIdentity
from voicecluster.transceiver.files import Files
from voicecluster.transceiver.forward import Forwarder
from voicecluster.transceiver.http.api import Place
from voicecluster.transceiver.http.app import internal_app, public_app
from voicecluster.transceiver.ice.mux import MediaSocket
from voicecluster.transceiver.keys import Keyring
from voicecluster.transceiver.metrics import Metrics
from voicecluster.transceiver.notes import Birth
from voicecluster.transceiver.settings import ConfigFile
from voicecluster.wire import Route

log = logging.getLogger(__name__)

GC_THRESHOLDS = (20_000, 50, 100_000)
"""A collection of the oldest generation stops media for tens of ms with Python's own thresholds."""

GOODBYE_SECONDS = 1.5
HTTP_SHUTDOWN_SECONDS = 0.5

Notify = Callable[[str], None]
"""Takes `ready` and `draining`; the parent reads them."""


def tls_context(tls: Tls | None) -> ssl.SSLContext | None:
    """The public port's TLS, or None for plain HTTP. Raises ConfigError for unusable files."""
    if tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.cert_file, tls.key_file)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"{tls.cert_file}: tls: {reason}; give a PEM chain and its private key") from None
    return context


class Stop:
    """The two wishes of whoever ends a worker: `drain`, then `now`.

    The first signal's kind decides where to begin.
    """

    def __init__(self) -> None:
        self.drain = asyncio.Event()
        self.now = asyncio.Event()

    def listen(self, loop: asyncio.AbstractEventLoop) -> None:
        """SIGTERM drains; SIGINT, or SIGTERM again, ends at once."""
        loop.add_signal_handler(signal.SIGTERM, self._terminate)
        loop.add_signal_handler(signal.SIGINT, self.at_once)

    def _terminate(self) -> None:
        if self.drain.is_set():
            self.at_once()
        self.drain.set()

    def at_once(self) -> None:
        """End now, calls or not."""
        self.drain.set()
        self.now.set()


def run_worker(source: ConfigFile, index: int, birth: Birth) -> None:
    """Be worker `index` in a process of its own. Ends by SystemExit 2 when a file or a port cannot be used."""
    config = birth.config

    async def run() -> None:
        stop = Stop()
        stop.listen(asyncio.get_running_loop())
        files = Files(config, source)
        await serve(files, index, stop=stop, notify=notify, cordoned_until=birth.cordoned_until)

    def notify(state: str) -> None:
        os.write(birth.report, f"{index} {state}\n".encode())

    setup_logs(
        config.log_level, fields={"transceiver": config.name, "region": config.region, "worker": index}
    )
    with exit_on_config_error():
        uvloop.run(run())


async def serve(
    files: Files, index: int, *, stop: Stop, notify: Notify, cordoned_until: float | None
) -> None:
    """Be worker `index` until `stop`. Raises ConfigError when a file or a port cannot be used."""
    loop = asyncio.get_running_loop()
    config = files.config
    metrics = Metrics()
    route = Route(config.cluster_id, config.ordinal, index)
    async with AsyncExitStack() as stack:
        public = listen_tcp(config.signaling, reuse_port=True)
        stack.callback(public.close)
        internal = listen_tcp(join_address(config.internal_address, config.internal_port + index))
        stack.callback(internal.close)
        socket = _media_socket(loop, config, index)
        stack.callback(socket.close)

        def use(keyring: Keyring) -> None:
            socket.unknown = keyring.unknown_calls(route, now=loop.time())

        use(files.keyring)
        files.on_keys = use
        metrics.count_drops(lambda: socket.counters.drops)
        metrics.watch_socket(ufrags=lambda: socket.ufrag_count, paths=lambda: socket.path_count)
        clock = MediaClock(loop)
        metrics.watch_loop(
            tasks=lambda: len(asyncio.all_tasks(loop)), missed_ticks=lambda: clock.missed_ticks
        )
        forwarder = await stack.enter_async_context(Forwarder(lambda: files.keyring.internal))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        watching = tasks.create_task(files.watch(), name="watch files")
        stack.callback(watching.cancel)
        parts = WorkerParts(
            name=config.name,
            region=config.region,
            ordinal=config.ordinal,
            worker=index,
            socket=socket,
            identity=DtlsIdentity(),
            clock=clock,
            metrics=metrics,
        )
        calls = Calls(parts, files, cluster=config.cluster_id, group=tasks)
        cordon = Cordon(calls, loop=loop)
        stack.callback(cordon.close)
        if cordoned_until is not None:
            cordon.begin(cordoned_until)
        place = Place(
            region=config.region,
            ordinal=config.ordinal,
            worker=index,
            directory=lambda: files.directory,
            route_of_call=lambda call_id: files.keyring.route_of_call(call_id),
        )
        siblings = internal_app(
            host=calls,
            place=place,
            forwarder=forwarder,
            keys=lambda: files.keyring.internal,
            metrics=metrics.show,
            drain=cordon,
            sdp_bytes=lambda: files.config.limits.sdp_bytes,
        )
        everyone = public_app(
            host=calls,
            place=place,
            forwarder=forwarder,
            api_keys=lambda: files.api_keys,
            cors_origins=lambda: files.config.cors_origins,
            sdp_bytes=lambda: files.config.limits.sdp_bytes,
        )
        await stack.enter_async_context(_served(siblings, internal, None))
        await stack.enter_async_context(_served(everyone, public, tls_context(config.tls)))
        gc.set_threshold(*GC_THRESHOLDS)
        gc.freeze()
        log.info(
            "worker ready", extra={"signaling": config.signaling, "media": join_address(*socket.address)}
        )
        notify("ready")

        await stop.drain.wait()
        notify("draining")
        files.refresh_config()
        seconds = files.config.limits.drain_timeout_seconds
        if cordon.deadline is not None:
            seconds = min(seconds, max(0.0, cordon.deadline - time.time()))
        await _drain(calls, stop, seconds)
    log.info("worker ended")


async def _drain(calls: Calls, stop: Stop, seconds: float) -> None:
    """Take no more calls, tell the callers, wait for them, and end the rest.

    The public port is served to the end: who still comes, because not everybody has heard that this pod goes, is
    passed on to siblings.
    """
    calls.ending = True
    until = asyncio.get_running_loop().time() + seconds
    for call in calls:
        call.announce_drain(until)
    if calls:
        log.info("draining", extra={"calls": len(calls), "seconds": seconds})
        ended = asyncio.create_task(calls.wait_idle(), name="wait until idle")
        hurried = asyncio.create_task(stop.now.wait(), name="wait for hurry")
        await asyncio.wait({ended, hurried}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (ended, hurried):
            task.cancel()
        calls.end_all("shutdown")
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await calls.wait_idle()
        except TimeoutError:
            log.warning("calls did not end in time", extra={"calls": len(calls)})


@asynccontextmanager
async def _served(
    app: web.Application, listening: socket_module.socket, tls: ssl.SSLContext | None
) -> AsyncIterator[None]:
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=HTTP_SHUTDOWN_SECONDS)
    await runner.setup()
    site = web.SockSite(runner, listening, ssl_context=tls)
    try:
        await site.start()
        yield
    finally:
        await runner.cleanup()


def _media_socket(loop: asyncio.AbstractEventLoop, config: TransceiverConfig, index: int) -> MediaSocket:
    address = join_address(config.media_address, config.media_port + index)
    try:
        return MediaSocket(loop, split_address(address))
    except OSError:
        raise taken("udp", address) from None
