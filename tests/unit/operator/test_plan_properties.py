"""Whatever a VoiceCluster may say, its objects are valid and do not get into one another's way."""

import re
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from voicecluster.common.config.model import parse_text
from voicecluster.common.config.relay import RelayPodSettings
from voicecluster.common.config.transceiver import TransceiverSettings
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.plan.kubernetes.cluster import objects
from voicecluster.operator.plan.kubernetes.facts import Facts

from tests.unit.operator.clusters import situations
from tests.unit.operator.schema import check

Situation = tuple[VoiceCluster, Facts]

any_situation = given(situations())
few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def built(situation: Situation) -> list[Any]:
    return list(objects(*situation))


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value


@few
@any_situation
def test_any_valid_resource_makes_valid_objects(situation: Situation) -> None:
    for found in built(situation):
        check(found)


@few
@any_situation
def test_names_are_short_enough_and_no_two_objects_share_one(situation: Situation) -> None:
    found = built(situation)
    assert len({(one["kind"], one["metadata"]["name"]) for one in found}) == len(found)
    for one in found:
        name = one["metadata"]["name"]
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
        assert len(name) <= (52 if one["kind"] in {"StatefulSet", "DaemonSet"} else 63)
        for text in one["metadata"]["labels"].values():
            assert len(text) <= 63


@few
@any_situation
def test_each_pod_is_selected_by_its_own_workload_only(situation: Situation) -> None:
    workloads = [one for one in built(situation) if one["kind"] in {"StatefulSet", "DaemonSet"}]
    for workload in workloads:
        selector = workload["spec"]["selector"]["matchLabels"].items()
        assert [
            other["metadata"]["name"]
            for other in workloads
            if selector <= other["spec"]["template"]["metadata"]["labels"].items()
        ] == [workload["metadata"]["name"]]


@few
@any_situation
def test_no_two_transceivers_share_an_ordinal(situation: Situation) -> None:
    sets = [
        one["spec"] for one in built(situation) if one["kind"] == "StatefulSet" and "ordinals" in one["spec"]
    ]
    ordinals = [spec["ordinals"]["start"] + number for spec in sets for number in range(spec["replicas"])]
    assert len(set(ordinals)) == len(ordinals)


@few
@any_situation
def test_the_same_input_gives_the_same_objects_in_the_same_order(situation: Situation) -> None:
    assert repr(built(situation)) == repr(built(situation))


@few
@any_situation
def test_nothing_is_null_and_every_port_says_its_protocol(situation: Situation) -> None:
    for found in built(situation):
        assert None not in list(leaves(found))
        spec = found.get("spec", {})
        ports = list(spec.get("ports", []))
        for container in spec.get("template", {}).get("spec", {}).get("containers", []):
            ports += container.get("ports", [])
        for rule in spec.get("ingress", []):
            ports += rule["ports"]
        assert all("protocol" in port for port in ports)


@few
@any_situation
def test_every_configuration_is_what_its_program_accepts(situation: Situation) -> None:
    for found in built(situation):
        if "config.yaml" in found.get("data", {}):
            relay = found["metadata"]["name"].endswith("-relay")
            model = RelayPodSettings if relay else TransceiverSettings
            parse_text(found["data"]["config.yaml"], model, source=found["metadata"]["name"])
