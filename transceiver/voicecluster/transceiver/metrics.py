"""What a worker counts, and how the parent merges what its workers show.

Each worker has a registry of its own and shows it on its internal port; the parent's `/metrics` is all of
them, each sample with a `worker` label. Names are `voicecluster_transceiver_*`, base units.
"""

import re
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

PREFIX = "voicecluster_transceiver"

_SETUP_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0)
_QUALITY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)


class Metrics:
    """The metrics of one worker."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self.calls = Gauge(f"{PREFIX}_calls", "Calls of this worker now", registry=registry)
        self.opened = Counter(
            f"{PREFIX}_calls_opened", "Calls answered, by agent", ["agent"], registry=registry
        )
        self.ended = Counter(f"{PREFIX}_calls_ended", "Calls ended, by reason", ["reason"], registry=registry)
        self.refused = Counter(
            f"{PREFIX}_offers_refused", "Offers refused, by code", ["code"], registry=registry
        )
        self.setup = Histogram(
            f"{PREFIX}_setup_seconds",
            "From the arrival of the offer to the end of each phase of the set-up",
            ["phase"],
            buckets=_SETUP_BUCKETS,
            registry=registry,
        )
        self.duration = Histogram(
            f"{PREFIX}_call_seconds",
            "Length of calls",
            buckets=(1, 10, 60, 300, 900, 1800, 3600),
            registry=registry,
        )
        self.round_trip = self._quality("round_trip_seconds", "Round trip to callers, sampled every 5 s")
        self.jitter = self._quality(
            "jitter_seconds", "Interarrival jitter of callers' audio, sampled every 5 s"
        )
        self.received = self._count("rtp_packets_received", "Audio packets of callers")
        self.lost = self._count("rtp_packets_lost", "Audio packets of callers that never came")
        self.concealed = self._count("frames_concealed", "Frames of 20 ms made up for lost packets")
        self.sent = self._count("rtp_packets_sent", "Audio packets to callers")
        self.path_switches = self._count("path_switches", "Changes of the path that a call's downlink takes")
        self.restarts = self._count("ice_restarts", "ICE restarts")
        ProcessCollector(namespace=PREFIX, registry=registry)

    def _count(self, name: str, text: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", text, registry=self.registry)

    def _quality(self, name: str, text: str) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", text, buckets=_QUALITY_BUCKETS, registry=self.registry)

    def watch_socket(self, *, ufrags: Callable[[], float], paths: Callable[[], float]) -> None:
        """Show what is registered on the media socket now."""
        Gauge(f"{PREFIX}_media_ufrags", "Ufrags answered for", registry=self.registry).set_function(ufrags)
        Gauge(f"{PREFIX}_media_paths", "Paths of all calls", registry=self.registry).set_function(paths)

    def watch_loop(self, *, tasks: Callable[[], float], missed_ticks: Callable[[], float]) -> None:
        """Show how the event loop fares."""
        Gauge(f"{PREFIX}_tasks", "Tasks of the event loop", registry=self.registry).set_function(tasks)
        Gauge(
            f"{PREFIX}_media_ticks_missed", "Media slots dropped in stalls", registry=self.registry
        ).set_function(missed_ticks)

    def count_drops(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Show datagrams that the media socket dropped, by reason, as `read` counts them."""
        self.registry.register(_Drops(read))

    def show(self) -> bytes:
        """All of it in Prometheus's text format."""
        return generate_latest(self.registry)


class _Drops(Collector):
    def __init__(self, read: Callable[[], Mapping[str, int]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        family = CounterMetricFamily(
            f"{PREFIX}_datagrams_dropped",
            "Datagrams of the media socket dropped, by reason",
            labels=["reason"],
        )
        for reason, count in self._read().items():
            family.add_metric([reason], count)
        yield family


_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{)?")


def merged(pages: Mapping[int, str]) -> str:
    """One page of metrics out of several workers': families stay together, each sample says its worker."""
    heads: dict[str, list[str]] = {}
    samples: dict[str, list[str]] = {}
    for worker, page in pages.items():
        family = ""
        for line in page.splitlines():
            if line.startswith("# "):
                _, kind, family, *_ = line.split(" ", 3)
                head = heads.setdefault(family, [])
                if kind in ("HELP", "TYPE") and len(head) < 2 and line not in head:
                    head.append(line)
            elif line:
                samples.setdefault(family, []).append(_labelled(line, worker))
    return "".join(
        f"{line}\n" for family, head in heads.items() for line in [*head, *samples.get(family, ())]
    )


def _labelled(line: str, worker: int) -> str:
    match = _SAMPLE.match(line)
    if match is None:
        return line
    rest = line[match.end() :]
    return f'{match[1]}{{worker="{worker}"' + (f",{rest}" if match[2] else f"}}{rest}")
