"""Names of objects fit everywhere they are used, and labels tell components and regions apart."""

import pytest
from voicecluster.operator.plan.kubernetes import names

LONGEST = ("c" * 19, "r" * 20)


def test_the_longest_names_fit_what_kubernetes_makes_of_them() -> None:
    stateful_set = names.transceiver(*LONGEST)
    assert len(stateful_set) <= 52, "its pods' label controller-revision-hash is 11 longer"
    assert len(f"{stateful_set}-65535") <= 63, "a pod's name is its host name"
    assert len(names.relay(*LONGEST)) <= 52, "controller-revision-hash again"
    for service in (names.relay(*LONGEST), names.relay_pods(*LONGEST), names.media(*LONGEST)):
        assert len(service) <= 63


def test_a_selector_selects_what_bears_the_labels_and_nothing_of_another_component_or_region() -> None:
    selector = names.selector("demo", "relay", "eu").items()
    assert selector <= names.labels("demo", "relay", "eu").items()
    for labels in (
        names.labels("demo", "relay", "us"),
        names.labels("demo", "transceiver", "eu"),
        names.labels("other", "relay", "eu"),
        names.labels("demo", "relay"),
    ):
        assert not selector <= labels.items()


@pytest.mark.parametrize("region", [None, "eu"])
def test_a_selector_as_text_is_what_kubectl_takes(region: str | None) -> None:
    text = "voicecluster.dev/cluster=demo,app.kubernetes.io/component=relay"
    assert names.text(names.selector("demo", "relay", region)) == (
        text if region is None else f"{text},voicecluster.dev/region=eu"
    )
