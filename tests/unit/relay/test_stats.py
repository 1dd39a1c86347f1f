"""Totals never go back, whatever the engine does."""

from prometheus_client import CollectorRegistry, generate_latest
from voicecluster.relay.metrics import RelayCollector
from voicecluster.relay.stats import EngineStats, Totals


def stats(packets: int, *, uptime: float, worker: int = 0) -> EngineStats:
    return EngineStats.model_validate(
        {
            "workers": [
                {
                    "worker": worker,
                    "turns": 9,
                    "packets": {"client_to_transceiver": packets},
                    "drops": {"unknown_flow": 2},
                    "sendErrors": {"ECONNREFUSED": 1},
                }
            ],
            "flows": {"confirmed": 5},
            "evictions": {"idle": 3},
            "routes": 4,
            "keys": 1,
            "uptimeSeconds": uptime,
        }
    )


def packets(totals: Totals) -> int:
    return dict(totals)["packets", "0", "client_to_transceiver"]


def test_a_growing_counter_is_shown_as_it_is() -> None:
    totals = Totals()
    totals.update(stats(10, uptime=5), 5.0)
    totals.update(stats(25, uptime=6), 6.0)
    assert packets(totals) == 25


def test_a_restarted_engine_is_counted_on_top() -> None:
    totals = Totals()
    totals.update(stats(10, uptime=5), 5.0)
    totals.update(stats(3, uptime=0.5), 7.0)
    totals.update(stats(4, uptime=1.5), 8.0)
    assert packets(totals) == 14


def test_a_restart_is_seen_although_the_counter_is_larger() -> None:
    totals = Totals()
    totals.update(stats(10, uptime=1), 1.0)
    totals.update(stats(11, uptime=2), 9.0)
    assert packets(totals) == 21


def test_a_late_reply_is_no_restart() -> None:
    totals = Totals()
    totals.update(stats(10, uptime=5), 5.0)
    totals.update(stats(12, uptime=5.2), 5.9)
    assert packets(totals) == 12


def test_a_worker_that_is_gone_keeps_its_total() -> None:
    totals = Totals()
    totals.update(stats(10, uptime=5, worker=1), 5.0)
    totals.update(stats(3, uptime=0.5, worker=0), 7.0)
    assert dict(totals)["packets", "1", "client_to_transceiver"] == 10


def test_the_metrics_carry_names_and_labels_of_the_contract() -> None:
    collector = RelayCollector()
    collector.update(stats(10, uptime=5), 5.0)
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    for line in (
        'voicecluster_relay_packets_total{direction="client_to_transceiver",worker="0"} 10.0',
        'voicecluster_relay_drops_total{reason="unknown_flow",worker="0"} 2.0',
        'voicecluster_relay_send_errors_total{errno="ECONNREFUSED",worker="0"} 1.0',
        'voicecluster_relay_evictions_total{reason="idle"} 3.0',
        'voicecluster_relay_flows{state="confirmed"} 5.0',
        'voicecluster_relay_worker_turns_total{worker="0"} 9.0',
        "voicecluster_relay_routes 4.0",
    ):
        assert line in text.splitlines()
