"""The operator's metrics, `voicecluster_operator_*`."""

from importlib.metadata import version

from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, Histogram, ProcessCollector

PREFIX = "voicecluster_operator"
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """One process's metrics, in a registry of their own."""

    def __init__(self) -> None:
        """All at zero."""
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        build = Gauge(f"{PREFIX}_build_info", "1, with the version as label", ["version"], registry=registry)
        build.labels(version("voicecluster")).set(1)
        self.leader = Gauge(f"{PREFIX}_leader", "1 while this replica leads", registry=registry)
        self.queue_depth = Gauge(f"{PREFIX}_queue_depth", "VoiceClusters that wait", registry=registry)
        self.queue_latency = Histogram(
            f"{PREFIX}_queue_latency_seconds",
            "From the event, or the time that was set, to the start of the reconcile",
            buckets=_SECONDS,
            registry=registry,
        )
        self.retries = Counter(
            f"{PREFIX}_queue_retries", "Reconciles that failed and are tried again", registry=registry
        )
        self.reconciled = Histogram(
            f"{PREFIX}_reconcile_seconds", "Reconciles that succeeded", buckets=_SECONDS, registry=registry
        )
        self.errors = Counter(
            f"{PREFIX}_reconcile_errors",
            "Reconciles that failed, by kind of error",
            ["reason"],
            registry=registry,
        )
        self.requests = Histogram(
            f"{PREFIX}_api_request_seconds",
            "Requests to the API server, by verb, kind and status code (0: no answer)",
            ["verb", "kind", "code"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.watch_events = Counter(
            f"{PREFIX}_watch_events", "Events that the watches brought, by kind", ["kind"], registry=registry
        )
        self.watch_silence = Gauge(
            f"{PREFIX}_watch_silence_seconds",
            "Since the watch that has been silent longest last said anything",
            registry=registry,
        )
