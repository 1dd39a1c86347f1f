"""What of a ConfigMap reaches the VIPs file: all that is good, and nothing else."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from voicecluster.common.config.model import ConfigError
from voicecluster.common.config.transceiver import ObjectFile, TransceiverConfig
from voicecluster.common.kube.watched import Object
from voicecluster.transceiver.vips import VipsKeeper, seed_vips

GOOD = "regions: {eu-west: [{address: 192.0.2.1, port: 3478}]}\n"
BETTER = "regions: {eu-west: [{address: 192.0.2.2, port: 3478, node: node-1}]}\n"


@pytest.fixture
def watch(tmp_path: Path) -> ObjectFile:
    """A file of ours, not there yet, and its mounted seed."""
    (tmp_path / "mounted").mkdir()
    seed = tmp_path / "mounted" / "vips.yaml"
    seed.write_text(GOOD)
    return ObjectFile(file=tmp_path / "ours.yaml", seed=seed, namespace="voice", config_map="voice-vips")


def config_with(watch: ObjectFile | None) -> TransceiverConfig:
    document = {
        "clusterId": 7,
        "region": "eu-west",
        "keysFile": "/keys",
        "vipsFile": "/vips",
        "directoryFile": "/directory",
        "name": "eu-west-0",
        "ordinal": 0,
        "mediaAddress": "127.0.105.1",
        "internalAddress": "127.0.105.1",
        "admin": "127.0.105.1:8086",
        "signaling": "127.0.105.1:8080",
    }
    return TransceiverConfig.model_validate(document).model_copy(update={"vips_watch": watch})


def objects(data: object) -> Mapping[str, Object]:
    return {"voice-vips": {"metadata": {"name": "voice-vips"}, "data": json.loads(json.dumps(data))}}


def test_the_file_begins_with_what_is_mounted(watch: ObjectFile) -> None:
    seed_vips(config_with(watch))
    assert watch.file.read_text() == GOOD


def test_a_file_that_is_there_is_newer_than_what_is_mounted(watch: ObjectFile) -> None:
    watch.file.write_text(BETTER)
    seed_vips(config_with(watch))
    assert watch.file.read_text() == BETTER


def test_a_file_that_somebody_else_writes_is_left_alone(watch: ObjectFile) -> None:
    seed_vips(config_with(None))
    assert not watch.file.exists()


@pytest.mark.parametrize("content", [None, "regions: 5"])
def test_a_mounted_file_that_is_missing_or_bad_is_an_error_that_names_it(
    watch: ObjectFile, content: str | None
) -> None:
    watch.seed.unlink()
    if content is not None:
        watch.seed.write_text(content)
    with pytest.raises(ConfigError, match=str(watch.seed)):
        seed_vips(config_with(watch))


def test_a_directory_that_cannot_be_written_is_named(watch: ObjectFile, tmp_path: Path) -> None:
    elsewhere = watch.model_copy(update={"file": tmp_path / "nowhere" / "vips.yaml"})
    with pytest.raises(ConfigError, match=r"vipsWatch\.file: .*writable"):
        seed_vips(config_with(elsewhere))


def test_what_the_config_map_says_is_written(watch: ObjectFile) -> None:
    VipsKeeper(watch).take(objects({"vips.yaml": BETTER}))
    assert watch.file.read_text() == BETTER


def test_the_same_again_writes_nothing(watch: ObjectFile) -> None:
    keeper = VipsKeeper(watch)
    keeper.take(objects({"vips.yaml": GOOD}))
    before = watch.file.stat().st_ino
    keeper.take(objects({"vips.yaml": GOOD}))
    assert watch.file.stat().st_ino == before


@pytest.mark.parametrize(
    "found",
    [
        {},
        objects({}),
        objects({"vips.yaml": ""}),
        objects({"vips.yaml": "regions: {}"}),
        objects({"vips.yaml": "regions: {eu-west: []}"}),
        objects({"vips.yaml": "regions: {eu-west: [{address: nonsense, port: 1}]}"}),
        objects({"other.yaml": BETTER}),
        objects(None),
    ],
    ids=["deleted", "no data", "no text", "no region", "no VIP", "not valid", "another entry", "null"],
)
def test_nothing_empty_or_invalid_replaces_the_file(
    watch: ObjectFile, found: Mapping[str, Object], caplog: pytest.LogCaptureFixture
) -> None:
    watch.file.write_text(GOOD)
    keeper = VipsKeeper(watch)
    keeper.take(found)
    keeper.take(found)
    assert watch.file.read_text() == GOOD
    assert [record.message for record in caplog.records] == ["VIPs refused, those before stay"]
