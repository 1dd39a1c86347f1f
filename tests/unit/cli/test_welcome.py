"""What `up` says when everything is ready."""

import ipaddress
from pathlib import Path

from voicecluster.cli.stack.prepare import Prepared
from voicecluster.cli.stack.welcome import welcome
from voicecluster.cli.state import StackDirectory
from voicecluster.common.config.model import load
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.plan.placement import LocalPlacement
from voicecluster.operator.plan.process import Plan

EXAMPLE = Path(__file__).parents[3] / "examples" / "local.yaml"
DIRECTORY = StackDirectory(Path("/state/local"))


def said(*, auth: str = "None", address: str | None = None, tls: bool = False) -> str:
    document = load(EXAMPLE, VoiceCluster).model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["signaling"]["auth"]["mode"] = auth
    cluster = VoiceCluster.model_validate(document)
    place = LocalPlacement(
        cluster=cluster,
        state=DIRECTORY.root,
        signaling_at=(address or "127.0.0.1", 8080),
        internal=ipaddress.IPv4Network("127.0.1.0/24"),
        public=address,
    )
    prepared = Prepared(cluster, place, Plan((), ()), (), tls=tls)
    return "\n".join(welcome("local", DIRECTORY, prepared, 1.94))


def test_on_loopback_it_tells_the_page_the_regions_the_call_and_firefoxs_setting() -> None:
    text = said()
    for part in (
        "ready after 1.9 s",
        "Page     http://127.0.0.1:8080/",
        "eu-west: VIP 127.0.0.1:3478 (UDP), 2 transceivers, 1 worker each",
        "us-east: VIP 127.0.0.2:3478 (UDP), 2 transceivers, 2 workers each",
        "voicecluster call http://127.0.0.1:8080\n",
        "media.peerconnection.ice.loopback",
    ):
        assert part in text
    assert "microphone" not in text


def test_off_loopback_without_tls_it_says_that_browsers_give_no_microphone() -> None:
    text = said(address="192.0.2.5")
    assert "Browsers give no microphone to plain HTTP" in text
    assert "VIP 192.0.2.5:3479" in text
    assert "Anybody who reaches 192.0.2.5 may call" in text
    assert "loopback" not in text


def test_with_tls_it_says_that_the_certificate_is_self_signed_and_how_to_call_nevertheless() -> None:
    text = said(address="192.0.2.5", tls=True)
    assert "self-signed" in text
    assert "voicecluster call https://192.0.2.5:8080 --insecure" in text
    assert "microphone" not in text


def test_where_a_key_is_asked_for_it_names_the_file_and_never_the_key() -> None:
    text = said(auth="APIKey", address="192.0.2.5")
    assert "--key-file /state/local/secrets/api-keys/local" in text
    assert "Anybody" not in text
