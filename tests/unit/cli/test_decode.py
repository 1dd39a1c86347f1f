"""Whose call is it: told from a ufrag or a call id, with the keys of relays or of transceivers."""

import base64
from pathlib import Path

import pytest
import yaml
from voicecluster.cli.decode import decode, openers_of_file, sentence
from voicecluster.cli.state import RegionStatus, StackError, StackStatus
from voicecluster.wire import CallKey, HintKey, Route, derive_key

ROOT = bytes(range(32))
ROUTE = Route(cluster=40000, ordinal=1026, worker=3)
UFRAG = HintKey("A", derive_key(ROOT, "hint", 40000)).mint(ROUTE, 5)
CALL_ID = CallKey("A", derive_key(ROOT, "call", 40000)).mint(ROUTE, 5)
STACK = StackStatus(
    name="local",
    pid=1,
    cluster_id=40000,
    url="",
    internal="",
    regions=[RegionStatus(name="us-east", index=1, vips=[])],
    processes=[],
    ready=True,
)


def text(key: bytes) -> str:
    return base64.b64encode(key).decode()


@pytest.fixture
def root_keys(tmp_path: Path) -> Path:
    path = tmp_path / "root.yaml"
    path.write_text(yaml.safe_dump({"mint": "B", "keys": {"B": text(bytes(32)), "A": text(ROOT)}}))
    return path


@pytest.fixture
def hint_keys(tmp_path: Path) -> Path:
    keys = {
        "7": {"A": text(derive_key(ROOT, "hint", 7))},
        "40000": {"A": text(derive_key(ROOT, "hint", 40000))},
    }
    path = tmp_path / "hint.yaml"
    path.write_text(yaml.safe_dump({"clusters": keys}))
    return path


@pytest.mark.parametrize("hint", [UFRAG, CALL_ID])
def test_root_keys_open_ufrags_and_call_ids_of_any_cluster(root_keys: Path, hint: str) -> None:
    found = decode(hint, openers_of_file(root_keys, hint), None)
    assert (found.cluster, found.region_index, found.ordinal, found.worker) == (40000, 1, 1026, 3)
    assert found.region is None


def test_hint_keys_open_ufrags(hint_keys: Path) -> None:
    found = decode(UFRAG, openers_of_file(hint_keys, UFRAG), None)
    assert (found.cluster, found.ordinal, found.worker) == (40000, 1026, 3)


def test_hint_keys_cannot_open_call_ids_and_the_remedy_is_told(hint_keys: Path) -> None:
    with pytest.raises(StackError, match="give the root keys file"):
        openers_of_file(hint_keys, CALL_ID)


def test_a_running_stack_of_the_same_cluster_names_the_region(root_keys: Path) -> None:
    found = decode(UFRAG, openers_of_file(root_keys, UFRAG), STACK)
    assert (found.region, found.transceiver) == ("us-east", "us-east-transceiver-1026")
    assert sentence(found) == "ufrag of key A: cluster 40000, region 1 (us-east), transceiver 1026, worker 3"


@pytest.mark.parametrize("hint", ["", "A", "rtc_x", UFRAG + "a", "no such ufrag"])
def test_what_is_no_hint_is_refused_as_such(root_keys: Path, hint: str) -> None:
    with pytest.raises(StackError, match="neither a ufrag of ours"):
        decode(hint, openers_of_file(root_keys, hint), None)


def test_a_hint_made_with_another_key_is_refused_with_what_to_give(root_keys: Path) -> None:
    other = HintKey("A", derive_key(bytes(range(1, 33)), "hint", 7)).mint(Route(7, 0, 0), 5)
    with pytest.raises(StackError, match="give the keys it was made with"):
        decode(other, openers_of_file(root_keys, other), None)
