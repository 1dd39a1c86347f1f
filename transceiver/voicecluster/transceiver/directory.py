"""The cluster's transceivers as siblings reach them, by region and by ordinal."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from voicecluster.common.config.model import join_address
from voicecluster.common.config.transceiver import DirectoryFile, DirectoryRegion, Sibling, SiblingRange
from voicecluster.wire import Route

ORDINALS_PER_REGION = 1024


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
    """One loaded directory file. Immutable; replaced when the file is.

    It keeps transceivers as the file has them and makes a `Worker` where one is asked for: a whole cluster has
    64 regions of 1,024 transceivers, and every worker of each holds a directory.
    """

    def __init__(self, file: DirectoryFile) -> None:
        """Raises ValueError, in words for the file's author, when there is no region at all."""
        if not file.regions:
            raise ValueError("regions: there is none; list at least one")
        self.regions: Sequence[str] = tuple(region.name for region in file.regions)
        self.default_region = self.regions[0]
        self._ranges: Mapping[str, tuple[SiblingRange, ...]] = {
            region.name: _ranges_of(region) for region in file.regions
        }

    def workers_of(self, region: str) -> Sequence[Worker]:
        """All workers of a region, its transceivers in order; empty for an unknown region."""
        return [
            _worker(region, each, ordinal, index)
            for each in self._ranges.get(region, ())
            for ordinal in range(each.first, each.first + each.count)
            for index in range(each.workers)
        ]

    def workers_of_transceiver(self, region: str, ordinal: int) -> Sequence[Worker]:
        """All workers of one transceiver; empty where that region has no such transceiver."""
        return [
            _worker(region, each, ordinal, index)
            for each in self._ranges.get(region, ())
            if each.first <= ordinal < each.first + each.count
            for index in range(each.workers)
        ]

    def some_workers_of(self, region: str, most: int) -> Sequence[Worker]:
        """`most` different workers of a region at random, or all of them where there are fewer."""
        ranges = self._ranges.get(region, ())
        total = sum(each.count * each.workers for each in ranges)
        return [_nth(region, ranges, n) for n in random.sample(range(total), min(most, total))]

    def worker_at(self, route: Route) -> Worker | None:
        """The worker that `route` names, or None when there can be no such transceiver.

        A range is looked up to its region's last ordinal, whatever its count: a pod that was added takes calls before
        every sibling's directory counts it, and one that is none any more has no address.
        """
        for region, ranges in self._ranges.items():
            for each in ranges:
                if route.ordinal in _ordinals_of(each) and route.worker < each.workers:
                    return _worker(region, each, route.ordinal, route.worker)
        return None


def _ranges_of(region: DirectoryRegion) -> tuple[SiblingRange, ...]:
    return (*map(_alone, region.transceivers), *([region.range] if region.range is not None else []))


def _alone(sibling: Sibling) -> SiblingRange:
    """A transceiver listed by itself: a range of one, whose host needs no ordinal put in."""
    return SiblingRange.model_construct(
        first=sibling.ordinal,
        count=1,
        host=sibling.host,
        internal_port=sibling.internal_port,
        workers=sibling.workers,
    )


def _ordinals_of(siblings: SiblingRange) -> range:
    if "{ordinal}" not in siblings.host:
        return range(siblings.first, siblings.first + siblings.count)
    return range(siblings.first, (siblings.first // ORDINALS_PER_REGION + 1) * ORDINALS_PER_REGION)


def _nth(region: str, ranges: Sequence[SiblingRange], n: int) -> Worker:
    for each in ranges:
        if n < each.count * each.workers:
            return _worker(region, each, each.first + n // each.workers, n % each.workers)
        n -= each.count * each.workers
    raise IndexError(n)


def _worker(region: str, siblings: SiblingRange, ordinal: int, index: int) -> Worker:
    host = siblings.host.replace("{ordinal}", str(ordinal))
    return Worker(region, ordinal, index, host, siblings.internal_port + index)
