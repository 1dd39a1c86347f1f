"""Where lists of routes come from: a file (the local stack), or EndpointSlices (Kubernetes)."""

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from voicecluster.common.config.model import split_address
from voicecluster.common.config.relay import RelayConfig, RoutesFile, SliceRoutes
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.kube.watched import Object
from voicecluster.common.watched import WatchedFile
from voicecluster.relay.routes import RouteKey
from voicecluster.relay.slices import Listed, routes_of

_LOG = logging.getLogger(__name__)

OnList = Callable[[Mapping[RouteKey, str]], None]

GATHER_SECONDS = 0.05
"""Slices that change within so long of one another are read together."""


class RouteSource(Protocol):
    """Tells whole lists of routes."""

    @property
    def error(self) -> str | None:
        """One line about why the latest list may be old, None while it is not."""

    def current(self) -> Mapping[RouteKey, str] | None:
        """The list that holds now; None where nobody can say."""

    async def run(self, on_list: OnList) -> None:
        """Call `on_list` with the first list and every other one, until cancelled."""


class FileRoutes:
    """Routes from a watched file."""

    def __init__(self, file: WatchedFile[RoutesFile]) -> None:
        """Reads nothing yet."""
        self._file = file

    @property
    def error(self) -> str | None:
        return self._file.error

    def current(self) -> Mapping[RouteKey, str] | None:
        self._file.refresh()
        if self._file.error is not None or self._file.value is None:
            return None
        return listed(self._file.value)

    async def run(self, on_list: OnList) -> None:
        await self._file.run(lambda file: on_list(listed(file)))


class EndpointSlices:
    """Routes from the EndpointSlices of the transceivers' Services."""

    def __init__(self, api: KubeApi, config: SliceRoutes, *, family: int) -> None:
        """Connects to nothing yet. `family`: of the relay's internal address, 4 or 6."""
        self._api, self._config, self._family = api, config, family
        self._slices: Mapping[str, Object] | None = None
        self._changed = asyncio.Event()
        self.error: str | None = None
        self.ignored: Mapping[str, int] = {}
        """Endpoints (or whole slices) of the latest list that were no use, by reason."""

    def current(self) -> Mapping[RouteKey, str] | None:
        if self.error is not None or self._slices is None:
            return None
        return self._read(self._slices).routes

    async def run(self, on_list: OnList) -> None:
        # A fifth of a second of a start, which only this needs: what is cached is in force by then.
        from voicecluster.common.kube.follow import follow

        async with asyncio.TaskGroup() as tasks:
            path = slices_path(self._config.namespace)
            following = follow(
                self._api,
                path,
                label_selector=self._config.selector,
                on_change=self._take,
                on_error=self._fail,
            )
            tasks.create_task(following, name="endpoint-slices")
            while True:
                await self._changed.wait()
                self._changed.clear()
                assert self._slices is not None
                on_list(self._read(self._slices).routes)
                await asyncio.sleep(GATHER_SECONDS)

    def _take(self, slices: Mapping[str, Object]) -> None:
        self._slices = slices
        self._changed.set()

    def _fail(self, error: str | None) -> None:
        self.error = error

    def _read(self, slices: Mapping[str, Object]) -> Listed:
        read = routes_of(slices.values(), self._config, family=self._family)
        if read.ignored != self.ignored:
            self.ignored = read.ignored
            if read.ignored:
                _LOG.warning("endpoints without a usable route", extra={"ignored": dict(read.ignored)})
        return read


def source_of(config: RelayConfig, api: KubeApi | None) -> RouteSource:
    """The source that the configuration names. `api` is needed for EndpointSlices."""
    if config.routes_file is not None:
        return FileRoutes(WatchedFile(config.routes_file, RoutesFile))
    assert config.routes_from is not None
    assert api is not None
    family = ipaddress.ip_address(split_address(config.backbone)[0]).version
    return EndpointSlices(api, config.routes_from, family=family)


def slices_path(namespace: str) -> str:
    """Where the API server has the EndpointSlices of a namespace."""
    return f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"


def listed(file: RoutesFile) -> dict[RouteKey, str]:
    """The routes of a file by their keys."""
    return {(route.cluster, route.ordinal, route.worker): route.address for route in file.routes}
