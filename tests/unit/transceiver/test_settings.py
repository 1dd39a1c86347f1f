"""What a new configuration file changes while the program runs, and what it cannot."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.transceiver import TransceiverConfig, TransceiverSettings
from voicecluster.transceiver.main import main
from voicecluster.transceiver.settings import ConfigFile, changed, check

POD = {"POD_NAME": "voice-eu-1025", "POD_IPS": "10.1.2.3,fd00::3", "NODE_NAME": "node-1"}
SHARED: dict[str, object] = {
    "clusterId": 7,
    "region": "eu-west",
    "keysFile": "/keys",
    "vipsFile": "/vips",
    "directoryFile": "/directory",
    "auth": {"mode": "None"},
}
OWN: dict[str, object] = {
    "name": "eu-west-0",
    "ordinal": 0,
    "mediaAddress": "127.0.105.1",
    "internalAddress": "127.0.105.1",
    "admin": "127.0.105.1:8086",
    "signaling": "127.0.105.1:8080",
}


def running() -> TransceiverConfig:
    return TransceiverConfig.model_validate(SHARED | OWN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("auth", {"mode": "APIKey", "apiKeysDir": "/api-keys"}),
        ("corsOrigins", ["https://example.com"]),
        ("defaultAgent", "echo"),
        ("iceMode", "Full"),
        ("limits", {"callsPerWorker": 3}),
        ("logLevel", "DEBUG"),
        ("media", {"bitrate": 24_000}),
    ],
)
def test_what_new_calls_can_be_given_is_taken_from_the_file(field: str, value: object) -> None:
    file = TransceiverConfig.model_validate(SHARED | OWN | {field: value})
    config, waiting = changed(running(), file)
    assert config == file
    assert waiting == ()


@pytest.mark.parametrize(
    ("field", "value"),
    [("workers", 4), ("internalPort", 9100), ("signaling", "127.0.105.1:80"), ("keysFile", "/others")],
)
def test_what_processes_and_sockets_were_made_of_waits_for_a_restart(field: str, value: object) -> None:
    file = TransceiverConfig.model_validate(SHARED | OWN | {field: value, "iceMode": "Full"})
    config, waiting = changed(running(), file)
    assert config == running().model_copy(update={"ice_mode": "Full"})
    assert waiting == (field,)


def test_a_pods_own_facts_are_nothing_that_its_shared_file_changes() -> None:
    file = TransceiverSettings.model_validate(SHARED)
    assert changed(running(), file) == (running(), ())


def test_in_a_pod_name_ordinal_and_addresses_are_the_pods(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(SHARED))
    config = ConfigFile(tmp_path / "config.yaml", POD).load()
    assert (config.name, config.ordinal) == ("voice-eu-1025", 1025)
    assert (config.media_address, config.media_port) == ("10.1.2.3", 40000)
    assert (config.internal_address, config.internal_port) == ("10.1.2.3", 9000)
    assert (config.admin, config.signaling) == ("10.1.2.3:8086", "10.1.2.3:8080")


def test_a_pods_newest_file_changes_what_it_may_and_keeps_the_pods_facts(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(SHARED))
    source = ConfigFile(file, POD)
    before = source.load()
    file.write_text(json.dumps(SHARED | {"defaultAgent": "echo", "workers": 9}))
    assert source.newest(before) == before.model_copy(update={"default_agent": "echo"})


@pytest.mark.parametrize("content", ["regoin: x", "{", json.dumps(SHARED | {"defaultAgent": "cuckoo"})])
def test_a_bad_newest_file_is_an_error_that_names_it_or_the_field(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(json.dumps(SHARED))
    source = ConfigFile(file, POD)
    before = source.load()
    file.write_text(content)
    with pytest.raises(ConfigError, match=r"config\.yaml|defaultAgent"):
        source.newest(before)


def test_a_vips_file_that_is_not_the_one_that_is_kept_is_an_error() -> None:
    watch = {"file": "/elsewhere", "seed": "/seed", "namespace": "voice", "configMap": "voice-vips"}
    with pytest.raises(ConfigError, match=r"vipsWatch\.file: not the vipsFile"):
        check(TransceiverConfig.model_validate(SHARED | OWN | {"vipsWatch": watch}))


def test_help_says_what_a_pod_takes_from_its_environment_and_what_a_running_one_takes_from_its_file() -> None:
    said = re.sub(r"\s+", " ", CliRunner().invoke(main, ["--help"]).output)
    assert "POD_NAME, POD_IPS and NODE_NAME" in said
    assert "FILE is re-read when it changes" in said
    assert "/drain for who has the token" in said
