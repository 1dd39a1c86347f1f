"""What a worker's metrics show, and how the parent puts workers together."""

from prometheus_client.parser import text_string_to_metric_families
from voicecluster.transceiver.metrics import Metrics, merged


def test_samples_of_all_workers_are_merged_by_family_with_a_worker_label() -> None:
    first, second = Metrics(), Metrics()
    first.calls.set(3)
    second.calls.set(4)
    second.ended.labels("hangup").inc()
    text = merged({0: first.show().decode(), 1: second.show().decode()})
    families = {family.name: family for family in text_string_to_metric_families(text)}
    calls = families["voicecluster_transceiver_calls"]
    assert {sample.labels["worker"]: sample.value for sample in calls.samples} == {"0": 3.0, "1": 4.0}
    ended = families["voicecluster_transceiver_calls_ended"]
    totals = [sample for sample in ended.samples if sample.name.endswith("_total")]
    assert [(sample.labels, sample.value) for sample in totals] == [
        ({"worker": "1", "reason": "hangup"}, 1.0)
    ]
    assert text.count("# TYPE voicecluster_transceiver_calls gauge") == 1


def test_datagrams_dropped_are_shown_by_reason() -> None:
    metrics = Metrics()
    metrics.count_drops(lambda: {"not_spp": 5})
    assert 'voicecluster_transceiver_datagrams_dropped_total{reason="not_spp"} 5.0' in metrics.show().decode()
