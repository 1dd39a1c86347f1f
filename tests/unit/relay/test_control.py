"""Files reach the engine, what the engine says reaches health."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from voicecluster.common.atomic import write_atomic
from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.relay import RelayConfig
from voicecluster.relay import control
from voicecluster.relay.control import ControlPlane
from voicecluster.relay.engine import EngineLink


@pytest.fixture
async def plane(
    config: RelayConfig, fake_engine, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ControlPlane]:
    monkeypatch.setattr(control, "POLL_SECONDS", 0.02)
    plane = ControlPlane(config, EngineLink(fake_engine.socket))
    running = asyncio.create_task(plane.run())
    await until(lambda: not any(plane.ready().values()))
    yield plane
    running.cancel()
    await asyncio.wait([running])


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


def held_routes(fake_engine) -> list[str]:
    return [route["address"] for route in fake_engine.held["routes"]["routes"]]


async def test_the_engine_gets_configuration_routes_and_keys(plane: ControlPlane, fake_engine) -> None:
    assert fake_engine.held["configure"]["listeners"] == [
        {"name": "vip", "bind": "127.0.0.1:1", "advertise": "127.0.0.1:1"}
    ]
    assert fake_engine.held["configure"]["limits"]["flowPackets"] == 150
    assert held_routes(fake_engine) == ["127.0.0.1:40000"]
    assert list(fake_engine.held["keys"]["clusters"]) == ["7"]


async def test_changed_routes_reach_the_engine(plane: ControlPlane, fake_engine, config: RelayConfig) -> None:
    text = config.routes_file.read_text().replace("40000", "40001")
    write_atomic(config.routes_file, text)
    await fake_engine.until(lambda: held_routes(fake_engine) == ["127.0.0.1:40001"])


@pytest.mark.parametrize("content", ["", "routes: []", "routes: [{]"])
async def test_nothing_never_replaces_routes(
    plane: ControlPlane, fake_engine, config: RelayConfig, content: str
) -> None:
    write_atomic(config.routes_file, content)
    write_atomic(config.keys_file, "clusters: {'7': {}}")
    await until(lambda: plane._keys_file.error is not None)
    await until(lambda: plane._routing.source.error is not None or plane._routing.held == 1)
    assert held_routes(fake_engine) == ["127.0.0.1:40000"]
    assert not any(plane.ready().values())


async def test_a_restarted_engine_is_ready_again_by_itself(plane: ControlPlane, fake_engine) -> None:
    await fake_engine.die()
    await until(lambda: any(plane.ready().values()))
    await fake_engine.start()
    await fake_engine.until(lambda: len(fake_engine.held) == 3)
    await until(lambda: not any(plane.ready().values()))


async def test_a_hanging_engine_thread_is_not_alive(plane: ControlPlane, fake_engine) -> None:
    fake_engine.alive = False
    await until(lambda: plane.live() == {"engine": "a worker thread does not turn over"})


async def test_a_silent_engine_is_not_alive(
    plane: ControlPlane, fake_engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "SILENT_SECONDS", 0.1)
    await fake_engine.die()
    await until(lambda: "no answer" in (plane.live()["engine"] or ""))


async def test_not_ready_before_routes_were_loaded_once(config: RelayConfig, fake_engine) -> None:
    config.routes_file.unlink()
    plane = ControlPlane(config, EngineLink(fake_engine.socket))
    running = asyncio.create_task(plane.run())
    await fake_engine.until(lambda: "keys" in fake_engine.held)
    await until(lambda: "No such file" in (plane.ready().get("routes") or ""))
    running.cancel()
    await asyncio.wait([running])


async def test_a_small_first_list_does_not_shrink_what_a_running_engine_has(
    config: RelayConfig, fake_engine
) -> None:
    fake_engine.held["routes"] = {"routes": [{"address": f"127.0.0.1:{port}"} for port in range(5)]}
    plane = ControlPlane(config, EngineLink(fake_engine.socket))
    running = asyncio.create_task(plane.run())
    await fake_engine.until(lambda: "keys" in fake_engine.held)
    assert len(held_routes(fake_engine)) == 5
    await until(lambda: not any(plane.ready().values()))
    running.cancel()
    await asyncio.wait([running])


async def test_a_refused_configuration_ends_the_relay_with_the_engines_reason(
    config: RelayConfig, fake_engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "CONFIGURE_SECONDS", 0.1)
    fake_engine.refuse["configure"] = "restart needed"
    with pytest.RaisesGroup(pytest.RaisesExc(ConfigError, match="restart needed")):
        await ControlPlane(config, EngineLink(fake_engine.socket)).run()


async def test_a_port_that_becomes_free_in_time_is_no_error(config: RelayConfig, fake_engine) -> None:
    fake_engine.refuse["configure"] = "port taken"
    plane = ControlPlane(config, EngineLink(fake_engine.socket))
    running = asyncio.create_task(plane.run())
    await fake_engine.until(lambda: fake_engine.requests.count("configure") > 1)
    fake_engine.refuse.clear()
    await until(lambda: not any(plane.ready().values()))
    running.cancel()
    await asyncio.wait([running])


async def test_metrics_show_the_engines_figures_of_now(
    plane: ControlPlane, fake_engine, tmp_path: Path
) -> None:
    fake_engine.stats["workers"] = [{"worker": 0, "turns": 1, "drops": {"garbage": 7}}]
    assert b'voicecluster_relay_drops_total{reason="garbage",worker="0"} 7.0' in await plane.metrics()


async def test_a_vip_that_is_known_at_the_start_is_in_the_first_configuration(
    config: RelayConfig, fake_engine, tmp_path: Path
) -> None:
    vips = tmp_path / "vips.yaml"
    vips.write_text("regions: {eu: [{address: 203.0.113.1, port: 443}]}")
    (listener,) = config.listeners
    silent = [listener.model_copy(update={"advertise": None})]
    plane = ControlPlane(
        config.model_copy(update={"vips_file": vips, "listeners": silent}), EngineLink(fake_engine.socket)
    )
    running = asyncio.create_task(plane.run())
    await until(lambda: not any(plane.ready().values()))
    assert fake_engine.requests.count("configure") == 1
    assert fake_engine.held["configure"]["listeners"][0]["advertise"] == "203.0.113.1:443"
    write_atomic(vips, "regions: {eu: [{address: 203.0.113.2, port: 443}]}")
    await fake_engine.until(
        lambda: fake_engine.held["configure"]["listeners"][0]["advertise"] == "203.0.113.2:443"
    )
    running.cancel()
    await asyncio.wait([running])


async def test_a_relay_is_ready_with_what_the_engine_has_from_before(
    config: RelayConfig, fake_engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "POLL_SECONDS", 0.02)
    config.routes_file.unlink()
    fake_engine.held["routes"] = {"routes": [{"address": "127.0.0.1:1"}]}
    plane = ControlPlane(config, EngineLink(fake_engine.socket))
    running = asyncio.create_task(plane.run())
    await until(lambda: not any(plane.ready().values()))
    await fake_engine.die()
    await fake_engine.start()
    await fake_engine.until(lambda: "keys" in fake_engine.held)
    await until(lambda: "No such file" in (plane.ready().get("routes") or ""))
    running.cancel()
    await asyncio.wait([running])
