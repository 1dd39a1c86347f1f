"""What a keyring makes of root secrets, a directory of siblings, and an answer of VIPs."""

import base64

import pytest
from voicecluster.common.config.transceiver import DirectoryFile, RootKeysFile, Vip
from voicecluster.transceiver.calls import candidates_of
from voicecluster.transceiver.directory import Directory
from voicecluster.transceiver.keys import Keyring
from voicecluster.wire import Route

SECRET = base64.b64encode(bytes(range(32))).decode()
OTHER = base64.b64encode(bytes(32)).decode()
ROUTE = Route(7, 1025, 3)


def keyring(mint: str = "A", cluster: int = 7, **keys: str) -> Keyring:
    return Keyring(RootKeysFile(mint=mint, keys=keys or {"A": SECRET}), cluster)


def test_a_call_id_leads_back_to_its_route_after_the_key_to_mint_with_has_changed() -> None:
    before = keyring()
    after = keyring("B", A=SECRET, B=OTHER)
    call_id = before.call_id(ROUTE, 5)
    assert call_id.startswith("rtc_A")
    assert after.route_of_call(call_id) == ROUTE
    assert after.call_id(ROUTE, 5).startswith("rtc_B")


def test_a_call_id_of_a_retired_key_another_cluster_or_nobody_leads_nowhere() -> None:
    call_id = keyring().call_id(ROUTE, 5)
    assert keyring("B", B=OTHER).route_of_call(call_id) is None
    assert keyring(cluster=8).route_of_call(call_id) is None
    assert keyring().route_of_call("rtc_A" + "a" * 26) is None
    assert keyring().route_of_call("") is None


def test_the_password_is_a_function_of_the_ufrag() -> None:
    ufrag, pwd = keyring().credentials(ROUTE, 5)
    assert keyring().credentials(ROUTE, 5) == (ufrag, pwd)
    assert len(ufrag) == 23
    assert len(pwd) == 32


def test_a_directory_tells_where_each_worker_listens() -> None:
    sibling = {"ordinal": 1025, "host": "10.0.0.9", "internalPort": 9000, "workers": 4}
    west = {"name": "eu-west", "index": 0, "transceivers": []}
    east = {"name": "us-east", "index": 1, "transceivers": [sibling]}
    directory = Directory(DirectoryFile.model_validate({"regions": [west, east]}))
    assert directory.default_region == "eu-west"
    worker = directory.worker_at(ROUTE)
    assert worker is not None
    assert worker.base_url == "http://10.0.0.9:9003"
    assert directory.worker_at(Route(7, 1025, 4)) is None
    assert [each.index for each in directory.workers_of("us-east")] == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="list at least one"):
        Directory(DirectoryFile(regions=[]))


def test_an_answer_names_one_udp_vip_of_each_family_the_ipv6_one_first() -> None:
    vips = [
        Vip(address="192.0.2.1", port=3478),
        Vip(address="192.0.2.2", port=3478),
        Vip(address="2001:db8::1", port=3478),
        Vip(address="192.0.2.1", port=443, protocol="tcp"),
    ]
    chosen = candidates_of(vips)
    assert [":" in each.address for each in chosen] == [True, False]
    assert all(each.protocol == "udp" for each in chosen)
    assert candidates_of([]) == []
