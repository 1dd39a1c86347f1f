"""The cluster's transceivers as siblings reach them, by region and by ordinal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voicecluster.common.config.model import join_address
from voicecluster.common.config.transceiver import DirectoryFile
from voicecluster.wire import Route


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker's internal port."""

    region: str
    ordinal: int
    index: int
    host: str
    port: int

    @property
    def base_url(self) -> str:
        return f"http://{join_address(self.host, self.port)}"


class Directory:
    """One loaded directory file. Immutable; replaced when the file is."""

    def __init__(self, file: DirectoryFile) -> None:
        """Raises ValueError, in words for the file's author, when there is no region at all."""
        if not file.regions:
            raise ValueError("regions: there is none; list at least one")
        self.regions: Sequence[str] = tuple(region.name for region in file.regions)
        self.default_region = self.regions[0]
        self._by_region: Mapping[str, tuple[Worker, ...]] = {
            region.name: tuple(
                Worker(region.name, sibling.ordinal, index, sibling.host, sibling.internal_port + index)
                for sibling in region.transceivers
                for index in range(sibling.workers)
            )
            for region in file.regions
        }
        self._by_route = {
            (worker.ordinal, worker.index): worker
            for workers in self._by_region.values()
            for worker in workers
        }

    def workers_of(self, region: str) -> Sequence[Worker]:
        """All workers of a region, its transceivers in order; empty for an unknown region."""
        return self._by_region.get(region, ())

    def worker_at(self, route: Route) -> Worker | None:
        """The worker that `route` names, or None when there is no such transceiver (any more)."""
        return self._by_route.get((route.ordinal, route.worker))
