"""A relay's VIP forwards what the cluster itself has minted, and nothing else: seen from outside of the nodes.

Beside the checks that must not get through stands one that must: a transceiver answers an
authentic check for a call that it does not know with error 400.
"""

import base64
import os
import socket

import pytest
from voicecluster.common.config.model import parse_text
from voicecluster.common.config.transceiver import RootKeysFile

from tests.e2e.conftest import Deploy
from tests.e2e.probes import Checks, is_error_400
from tests.e2e.voice import Deployed, of_spec

CLUSTER_ID, NAME = 43, "hints"
ORDINAL, UNKNOWN_ORDINAL = 3 * 1024, 3 * 1024 + 1
SILENCE_SECONDS = 1.0


@pytest.fixture(scope="module")
def voice(deployed: Deploy) -> Deployed:
    regions = [
        {
            "name": "main",
            "index": 3,
            "relay": {"vip": {"mode": "LoadBalancer"}},
            "transceiver": {"replicas": 1},
        }
    ]
    return deployed(of_spec(NAME, {"clusterId": CLUSTER_ID, "regions": regions}))


@pytest.fixture(scope="module")
def own_keys(voice: Deployed) -> RootKeysFile:
    data = voice.cluster.get("secret", f"{NAME}-root-keys", voice.namespace)["data"]
    return parse_text(base64.b64decode(data["keys.yaml"]).decode(), RootKeysFile, source="keys.yaml")


def answer(voice: Deployed, check: bytes) -> bytes | None:
    """What the VIP sends back, None if nothing within a second."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.connect((next(each for each in voice.vips("main") if "." in each), 3478))
        udp.settimeout(SILENCE_SECONDS)
        udp.send(check)
        try:
            return udp.recv(2048)
        except TimeoutError:
            return None


def test_a_hint_of_the_clusters_own_gets_through(voice: Deployed, own_keys: RootKeysFile) -> None:
    assert is_error_400(answer(voice, Checks(own_keys, CLUSTER_ID).check(ORDINAL)))


def test_a_hint_for_another_cluster_goes_nowhere(voice: Deployed, own_keys: RootKeysFile) -> None:
    assert answer(voice, Checks(own_keys, CLUSTER_ID + 1).check(ORDINAL)) is None


def test_a_hint_for_an_ordinal_that_nobody_has_goes_nowhere(voice: Deployed, own_keys: RootKeysFile) -> None:
    assert answer(voice, Checks(own_keys, CLUSTER_ID).check(UNKNOWN_ORDINAL)) is None


def test_a_hint_of_a_foreign_key_goes_nowhere(voice: Deployed, own_keys: RootKeysFile) -> None:
    foreign = base64.b64encode(os.urandom(32)).decode()
    keys = RootKeysFile(mint=own_keys.mint, keys={own_keys.mint: foreign})
    assert answer(voice, Checks(keys, CLUSTER_ID).check(ORDINAL)) is None
