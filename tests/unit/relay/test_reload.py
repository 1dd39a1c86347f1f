"""A configuration that changes under a running relay."""

import asyncio
import json
from pathlib import Path

import pytest
from voicecluster.common.atomic import write_atomic
from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.relay import RelayConfig, RelayLimits
from voicecluster.relay.reload import ConfigFile, taken_over

POD = {"POD_NAME": "relay-x", "POD_IPS": "10.0.0.1,fd00::1", "NODE_NAME": "n1", "POD_NAMESPACE": "ns"}


def write(path: Path, config: RelayConfig, **changes: object) -> None:
    document = config.model_dump(by_alias=True, mode="json") | changes
    write_atomic(path, json.dumps(document))


def test_limits_and_log_level_take_effect(config: RelayConfig) -> None:
    wanted = config.model_copy(update={"limits": RelayLimits(flow_packets=9), "log_level": "DEBUG"})
    assert taken_over(config, wanted) == (wanted, ())


def test_another_vip_takes_effect_and_another_socket_does_not(config: RelayConfig) -> None:
    (listener,) = config.listeners
    vip = listener.model_copy(update={"advertise": "203.0.113.1:1"})
    wanted = config.model_copy(update={"listeners": [vip]})
    assert taken_over(config, wanted) == (wanted, ())
    moved = config.model_copy(update={"listeners": [vip.model_copy(update={"bind": "127.0.0.1:9"})]})
    assert taken_over(config, moved) == (config, ("listeners",))


def test_what_needs_a_restart_is_named_and_the_rest_taken(config: RelayConfig) -> None:
    wanted = config.model_copy(update={"workers": 3, "backbone": "127.0.0.1:9", "log_level": "ERROR"})
    running, restart_for = taken_over(config, wanted)
    assert (running.workers, running.log_level) == (1, "ERROR")
    assert set(restart_for) == {"workers", "backbone"}


async def test_a_changed_file_is_told_and_a_bad_one_is_not(config: RelayConfig, tmp_path: Path) -> None:
    path = tmp_path / "relay.yaml"
    write(path, config)
    file = ConfigFile(path, {})
    assert file.load() == config
    told: asyncio.Queue[RelayConfig] = asyncio.Queue()
    running = asyncio.create_task(file.run(told.put_nowait))
    write(path, config, workers="many")
    async with asyncio.timeout(5):
        while file.error is None:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        write(path, config, logLevel="ERROR")
        assert (await told.get()).log_level == "ERROR"
    running.cancel()
    await asyncio.wait([running])


def test_in_a_pod_the_file_is_what_all_relays_share(config: RelayConfig, tmp_path: Path) -> None:
    path = tmp_path / "relay.yaml"
    shared = {"region": "eu", "routesFile": "r", "keysFile": "k", "listenPort": 13478}
    path.write_text(json.dumps(shared))
    read = ConfigFile(path, POD).load()
    assert (read.name, read.node, read.backbone) == ("relay-x", "n1", "10.0.0.1:13479")
    assert [listener.bind for listener in read.listeners] == ["10.0.0.1:13478", "[fd00::1]:13478"]
    with pytest.raises(ConfigError, match="name: required field is missing"):
        ConfigFile(path, {}).load()
