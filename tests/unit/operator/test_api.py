"""What a VoiceCluster may say, and what is said to whoever gets it wrong."""

import subprocess
import sys
from typing import Any

import pytest
from voicecluster.common.config.model import ConfigError, parse
from voicecluster.operator.api.v1alpha1 import Vip, VoiceCluster, VoiceRegion

from tests.unit.operator.specs import ACCEPTED, GOOD, REFUSED, Refused, changed


def test_a_resource_that_says_only_what_it_must_gets_defaults() -> None:
    cluster = parse(GOOD, VoiceCluster, source="FILE")
    region = cluster.spec.regions[1]
    assert (region.relay.workers, region.relay.vip, region.transceiver.replicas) == (1, Vip(), None)
    assert (region.relay.vip.mode, region.relay.vip.port) == ("LoadBalancer", 3478)
    assert cluster.spec.signaling.auth.mode == "APIKey"
    assert cluster.spec.agents.default == "parrot"


def test_ordinals_start_at_1024_times_the_regions_index() -> None:
    cluster = parse(changed({"spec.regions.1.transceiver": {"replicas": 3}}), VoiceCluster, source="FILE")
    assert list(cluster.spec.regions[1].ordinals) == [1024, 1025, 1026]


def test_a_region_without_transceivers_has_no_ordinals() -> None:
    cluster = parse(changed({"spec.regions.1.transceiver": {"replicas": 0}}), VoiceCluster, source="FILE")
    assert list(cluster.spec.regions[1].ordinals) == []


def test_a_region_whose_scale_decides_begins_with_one_transceiver() -> None:
    assert list(parse(GOOD, VoiceCluster, source="FILE").spec.regions[1].ordinals) == [1024]


def test_a_number_is_a_quantity_too() -> None:
    cluster = parse(changed({"spec.regions.0.relay.resources": {"cpu": 2}}), VoiceCluster, source="FILE")
    assert cluster.spec.regions[0].relay.resources.cpu == "2"


def test_addresses_are_kept_in_the_form_that_everybody_compares() -> None:
    wanted = {"spec.regions.0.relay.vip.addresses": ["2001:DB8:0::1"]}
    cluster = parse(changed(wanted), VoiceCluster, source="FILE")
    assert cluster.spec.regions[0].relay.vip.addresses == ["2001:db8::1"]


def test_what_the_api_server_adds_to_a_resource_does_not_make_it_unreadable() -> None:
    live = changed({"metadata.resourceVersion": "5", "metadata.uid": "u", "status.fromTheFuture": {"a": 1}})
    cluster = parse(live, VoiceCluster, source="API")
    assert (cluster.metadata.uid, cluster.status.conditions) == ("u", [])


def test_a_voice_region_has_a_longer_name_than_a_cluster() -> None:
    document = {
        "apiVersion": "voicecluster.dev/v1alpha1",
        "kind": "VoiceRegion",
        "metadata": {"name": f"{'d' * 19}-{'e' * 20}"},
        "spec": {"cluster": "d" * 19, "region": "e" * 20},
    }
    assert parse(document, VoiceRegion, source="API").spec.replicas == 1


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_right_is_accepted(changes: dict[str, Any]) -> None:
    assert parse(changed(changes), VoiceCluster, source="FILE").spec.regions


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_is_wrong_is_named_by_file_field_and_remedy_in_one_line(case: Refused) -> None:
    with pytest.raises(ConfigError) as refused:
        parse(changed(case.changes), VoiceCluster, source="FILE")
    message = str(refused.value)
    source, where, remedy = message.split(": ", 2)
    wrong = case.at.replace("[", ".").replace("]", "")
    assert source == "FILE"
    assert f"{wrong}.".startswith(f"{where}."), "neither the field nor what it is in"
    assert (case.local or case.says) in remedy
    assert "\n" not in message


def test_fields_of_metadata_that_mean_nothing_to_us_are_let_through() -> None:
    assert parse(changed({"metadata.finalizers": ["x"]}), VoiceCluster, source="FILE").metadata.name == "demo"


@pytest.mark.parametrize("package", ["api.v1alpha1", "api.crds", "plan.cluster"])
def test_models_and_plan_import_no_kubernetes_client(package: str) -> None:
    script = f"import sys, voicecluster.operator.{package}\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert not {"kopf", "kubernetes"} & set(loaded.split())
