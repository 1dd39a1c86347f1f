"""What a keyring makes of root secrets."""

import base64

from voicecluster.common.config.transceiver import RootKeysFile
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
