"""Configuration files: what is wrong with one is said in a line that names file, field and remedy."""

import base64
from pathlib import Path

import pytest
from voicecluster.common.config.model import ConfigError, load
from voicecluster.common.config.relay import RelayConfig, RelayKeysFile, RoutesFile
from voicecluster.common.config.transceiver import RootKeysFile

RELAY = """
name: eu-0
region: eu
listeners: [{name: vip, bind: "127.0.0.1:3478", advertise: "127.0.0.1:3478"}]
backbone: 127.0.1.1:13479
routesFile: routes.yaml
keysFile: keys.yaml
admin: 127.0.1.1:8086
"""


def complaint(tmp_path: Path, text: str, model: type = RelayConfig) -> str:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(file, model)
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"{file}: ")


def test_a_good_file_has_its_defaults(tmp_path: Path) -> None:
    (tmp_path / "relay.yaml").write_text(RELAY)
    config = load(tmp_path / "relay.yaml", RelayConfig)
    assert (config.workers, config.limits.flow_packets, config.log_level) == (1, 150, "INFO")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent.yaml: \(file\): No such file"):
        load(tmp_path / "absent.yaml", RelayConfig)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("name: eu-0", "nmae: eu-0"), "name: required field is missing; add it"),
        (("region: eu", "region: eu\nextra: 1"), "extra: unknown field; remove it or check its spelling"),
        (("127.0.1.1:13479", "relay:13479"), "backbone: 'relay' is not an IP address"),
        (("127.0.1.1:13479", "0.0.0.0:13479"), "backbone: '0.0.0.0:13479' would listen on public addresses"),
        (('bind: "127.0.0.1:3478"', "bind: 3478"), "listeners.0.bind: Input should be a valid string"),
        (("region: eu", "region: eu\nlogLevel: loud"), "logLevel: 'loud' is not a log level; write one of"),
        (
            ("region: eu", "region: eu\nlimits: {flowPackets: 0}"),
            "limits.flowPackets: Input should be greater",
        ),
        (("region: eu", "region: [eu"), "line 4: not YAML"),
    ],
)
def test_a_wrong_field_is_named_with_its_remedy(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    assert complaint(tmp_path, RELAY.replace(*change)).startswith(said)


def test_two_listeners_of_one_vip_are_refused(tmp_path: Path) -> None:
    twice = RELAY.replace(
        '3478"}]', '3478"}, {name: b, bind: "127.0.0.1:3479", advertise: "127.0.0.1:3478"}]'
    )
    assert "two listeners have advertise '127.0.0.1:3478'" in complaint(tmp_path, twice)


def test_a_route_listed_twice_is_refused(tmp_path: Path) -> None:
    route = "{cluster: 7, ordinal: 0, worker: 1, address: '127.0.0.1:40001'}"
    said = complaint(tmp_path, f"routes: [{route}, {route}]", RoutesFile)
    assert said == "routes: route 7/0/1 (cluster/ordinal/worker) is listed twice; keep one"


@pytest.mark.parametrize("secret", ["c2hvcnQ=", "not base64 at all!", "A" * 44])
def test_a_bad_key_is_refused_without_repeating_it(tmp_path: Path, secret: str) -> None:
    said = complaint(tmp_path, f"clusters: {{'7': {{A: '{secret}'}}}}", RelayKeysFile)
    assert said.startswith("clusters.7.A: ")
    assert secret not in said


def test_minting_with_an_absent_key_is_refused(tmp_path: Path) -> None:
    key = base64.b64encode(bytes(32)).decode()
    said = complaint(tmp_path, f"mint: B\nkeys: {{A: {key}}}", RootKeysFile)
    assert "'mint' names key B, but the keys are: A" in said
