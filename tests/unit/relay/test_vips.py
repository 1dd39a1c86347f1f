"""Which VIP a listener advertises."""

from voicecluster.common.config.model import parse
from voicecluster.common.config.relay import RelayConfig
from voicecluster.common.config.transceiver import VipsFile
from voicecluster.relay.vips import advertised

V4 = {"address": "203.0.113.1", "port": 443}
V6 = {"address": "2001:db8::1", "port": 443}


def listening(config: RelayConfig, *listeners: dict[str, str], node: str | None = None) -> RelayConfig:
    document = config.model_dump(by_alias=True, mode="json")
    named = [{"name": f"vip-{n}", **listener} for n, listener in enumerate(listeners)]
    return parse(document | {"listeners": named, "node": node}, RelayConfig, source="test")


def vips(*entries: dict[str, object], region: str = "eu") -> VipsFile:
    return parse({"regions": {region: list(entries)}}, VipsFile, source="test")


def test_listeners_take_the_vip_of_their_family(config: RelayConfig) -> None:
    config = listening(config, {"bind": "10.0.0.1:13478"}, {"bind": "[fd00::1]:13478"})
    assert advertised(config, vips(V6, V4)) == ["203.0.113.1:443", "[2001:db8::1]:443"]


def test_what_a_listener_says_itself_holds(config: RelayConfig) -> None:
    config = listening(config, {"bind": "10.0.0.1:1", "advertise": "198.51.100.1:1"})
    assert advertised(config, vips(V4)) == ["198.51.100.1:1"]


def test_unknown_vips_leave_each_listener_its_own_address(config: RelayConfig) -> None:
    config = listening(config, {"bind": "10.0.0.1:1"}, {"bind": "[fd00::1]:1"})
    assert advertised(config, None) == ["10.0.0.1:1", "[fd00::1]:1"]
    assert advertised(config, vips(V4, region="us")) == ["10.0.0.1:1", "[fd00::1]:1"]


def test_a_vip_of_another_node_or_over_tcp_is_not_ours(config: RelayConfig) -> None:
    config = listening(config, {"bind": "10.0.0.1:1"}, node="n1")
    others = [{**V4, "node": "n2"}, {**V4, "protocol": "tcp"}]
    assert advertised(config, vips(*others)) == ["10.0.0.1:1"]
    ours = {"address": "203.0.113.7", "port": 3478, "node": "n1"}
    assert advertised(config, vips(*others, ours)) == ["203.0.113.7:3478"]


def test_two_listeners_never_advertise_one_vip(config: RelayConfig) -> None:
    config = listening(config, {"bind": "10.0.0.1:1"}, {"bind": "10.0.0.2:1"})
    second = {"address": "203.0.113.2", "port": 443}
    assert advertised(config, vips(V4)) == ["203.0.113.1:443", "10.0.0.2:1"]
    assert advertised(config, vips(V4, second)) == ["203.0.113.1:443", "203.0.113.2:443"]


def test_a_vip_that_vanishes_is_advertised_on(config: RelayConfig) -> None:
    config = listening(config, {"bind": "10.0.0.1:1"})
    assert advertised(config, vips(), ["203.0.113.1:443"]) == ["203.0.113.1:443"]


def test_a_vip_that_changes_is_taken_at_once(config: RelayConfig) -> None:
    config = listening(config, {"bind": "10.0.0.1:1"})
    assert advertised(config, vips(V4), ["198.51.100.9:443"]) == ["203.0.113.1:443"]
