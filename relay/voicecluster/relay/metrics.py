"""The relay's metrics, out of the engine's counters. All names begin with `voicecluster_relay_`."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from voicecluster.relay.stats import EngineStats, Totals

_PREFIX = "voicecluster_relay_"
_COUNTERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # counter of the engine: metric, help, labels out of (worker, label)
    "packets": ("packets", "Datagrams forwarded", ("worker", "direction")),
    "bytes": ("bytes", "Bytes forwarded, without the SPP header", ("worker", "direction")),
    "drops": ("drops", "Datagrams not forwarded", ("worker", "reason")),
    "decodes": ("decodes", "Routing hints read", ("worker", "result")),
    "send_errors": ("send_errors", "Datagrams that the kernel refused to send", ("worker", "errno")),
    "evictions": ("evictions", "Flows that ended", ("reason",)),
    "turns": (
        "worker_turns",
        "Times an engine thread came round; stands still when it hangs",
        ("worker",),
    ),
}


class RelayCollector(Collector):
    """Shows the last figures given to `update`. Counters never go back, also when the engine restarts."""

    def __init__(self) -> None:
        """Shows zeros only where the engine has counted once."""
        self._totals = Totals()
        self._stats: EngineStats | None = None
        self.held_routes = 0
        """Routes in force only because a suspicious list lacks them."""
        self.bad_files: dict[str, bool] = {}
        """By watched file (`routes`, `keys`, `vips`, `config`): whether its content now is refused."""
        self.is_following: bool | None = None
        """Whether EndpointSlices are followed; None where routes come from a file."""
        self.ignored_endpoints: Mapping[str, int] = {}
        """Endpoints (or whole slices) that name no usable route, by reason."""

    @property
    def uplink_packets(self) -> int:
        """Datagrams of callers that were forwarded; never goes back."""
        return sum(
            total
            for (counter, _, label), total in self._totals
            if (counter, label) == ("packets", "client_to_transceiver")
        )

    def update(self, stats: EngineStats, now: float) -> None:
        """Take the engine's figures of `now`, in seconds on any steady clock."""
        self._stats = stats
        self._totals.update(stats, now)

    def collect(self) -> Iterator[Metric]:
        """Called by prometheus_client at every scrape."""
        counters = {
            counter: CounterMetricFamily(_PREFIX + name, help_text, labels=labels)
            for counter, (name, help_text, labels) in _COUNTERS.items()
        }
        for (counter, worker, label), total in self._totals:
            values = {"worker": worker}
            labels = _COUNTERS[counter][2]
            counters[counter].add_metric([values.get(name, label) for name in labels], total)
        yield from counters.values()
        yield from self._gauges()

    def _gauges(self) -> Iterator[Metric]:
        flows = GaugeMetricFamily(_PREFIX + "flows", "Flows in the tables", labels=("state",))
        if self._stats is not None:
            for state, count in self._stats.flows.items():
                flows.add_metric([state], count)
            yield GaugeMetricFamily(_PREFIX + "routes", "Routes in force", value=self._stats.routes)
            yield GaugeMetricFamily(_PREFIX + "keys", "Hint keys loaded", value=self._stats.keys)
            yield GaugeMetricFamily(
                _PREFIX + "engine_uptime_seconds", "Age of the engine", value=self._stats.uptime_seconds
            )
        yield flows
        yield GaugeMetricFamily(
            _PREFIX + "routes_held", "Routes whose removal waits for a second list", value=self.held_routes
        )
        bad = GaugeMetricFamily(_PREFIX + "file_refused", "1 while a watched file is bad", labels=("file",))
        for file, is_bad in self.bad_files.items():
            bad.add_metric([file], float(is_bad))
        yield bad
        if self.is_following is not None:
            yield GaugeMetricFamily(
                _PREFIX + "routes_followed",
                "1 while EndpointSlices are followed, 0 while the API server is absent",
                value=float(self.is_following),
            )
            ignored = GaugeMetricFamily(
                _PREFIX + "endpoints_ignored", "Endpoints that name no usable route", labels=("reason",)
            )
            for reason, count in self.ignored_endpoints.items():
                ignored.add_metric([reason], count)
            yield ignored
