"""A real API server refuses what is wrong when it is applied, names the field and says what to write instead."""

import json
import urllib.error
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from voicecluster.operator.api.v1alpha1 import VoiceCluster

from tests.integration.operator.apiserver import ApiServer
from tests.unit.operator.clusters import clusters
from tests.unit.operator.specs import ACCEPTED, GOOD, REFUSED, Refused, changed

EXAMPLES = Path(__file__).parents[3] / "examples"
EU, US = "spec.regions.0", "spec.regions.1"
BALANCED = {f"{US}.relay": {"vip": {"loadBalancerClass": "example.com/a"}}}


def apply(apiserver: ApiServer, namespace: str, document: dict[str, Any]) -> str:
    """What kubectl complains of; empty where it was accepted."""
    arguments = ["apply", "--namespace", namespace, "-f", "-"]
    done = apiserver.try_kubectl(*arguments, stdin=json.dumps(document))
    assert (done.returncode == 0) == (done.stderr == ""), done.stderr
    return done.stderr


def complaint_about(apiserver: ApiServer, document: dict[str, Any]) -> str:
    """What the API server complains of when it is asked like kubectl asks it (strictly), without keeping anything."""
    path = "/apis/voicecluster.dev/v1alpha1/namespaces/default/voiceclusters"
    try:
        apiserver.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", document)
    except urllib.error.HTTPError as refused:
        message: str = json.load(refused)["message"]
        return message
    return ""


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_what_is_wrong_is_refused_with_field_and_remedy(apiserver: ApiServer, case: Refused) -> None:
    complaint = complaint_about(apiserver, changed(case.changes))
    assert case.at in complaint
    assert case.says in complaint


@pytest.mark.parametrize("changes", ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_right_is_accepted(apiserver: ApiServer, changes: dict[str, Any]) -> None:
    assert complaint_about(apiserver, changed(changes)) == ""


def test_kubectl_shows_field_and_remedy_of_all_that_is_wrong(apiserver: ApiServer, namespace: str) -> None:
    wrong = {
        f"{EU}.relay.vip.addresses": ["voice.example.com"],
        f"{US}.relay": {"vip": {"mode": "HostNetwork"}},
    }
    complaint = apply(apiserver, namespace, changed(wrong))
    assert "spec.regions[0].relay.vip.addresses[0]: Invalid value" in complaint
    assert "write an IP address that callers reach" in complaint
    assert "spec.networkPolicy.nodeCIDRs: Required value" in complaint


def test_kubectl_refuses_a_misspelt_field_by_its_path(apiserver: ApiServer, namespace: str) -> None:
    complaint = apply(apiserver, namespace, changed({f"{US}.transciever": {"replicas": 2}}))
    assert 'unknown field "spec.regions[1].transciever"' in complaint


@settings(max_examples=20, deadline=None)
@given(clusters())
def test_whatever_the_models_accept_the_api_server_accepts(
    apiserver: ApiServer, wanted: VoiceCluster
) -> None:
    document = wanted.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert complaint_about(apiserver, document) == ""


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_is_accepted(apiserver: ApiServer, file: Path) -> None:
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert complaint_about(apiserver, document) == ""


def test_argo_cds_settings_are_made_of_the_health_check(apiserver: ApiServer) -> None:
    folder = EXAMPLES / "gitops" / "argocd" / "health"
    settings = yaml.safe_load(apiserver.kubectl("kustomize", str(folder)))
    assert settings["metadata"] == {"name": "argocd-cm", "namespace": "argocd"}
    script = (folder / "health.lua").read_text(encoding="utf-8")
    assert settings["data"]["resource.customizations.health.voicecluster.dev_VoiceCluster"] == script


def test_nothing_is_added_to_what_was_applied(apiserver: ApiServer, namespace: str) -> None:
    assert apply(apiserver, namespace, GOOD) == ""
    path = f"/apis/voicecluster.dev/v1alpha1/namespaces/{namespace}/voiceclusters/demo"
    assert apiserver.request("GET", path)["spec"] == GOOD["spec"]


FORBIDDEN = [
    ({}, {"spec.clusterId": 8}, "spec.clusterId", "write the old one, or make another VoiceCluster"),
    ({}, {f"{US}.index": 5}, "spec.regions[1].index", "write the old one, or add a region of another name"),
    (
        BALANCED,
        {f"{US}.relay": {"vip": {"loadBalancerClass": "example.com/b"}}},
        "spec.regions[1].relay.vip.loadBalancerClass",
        "write the old one, or add a region of another name",
    ),
    (BALANCED, {}, "spec.regions[1].relay.vip.loadBalancerClass", "loadBalancerClass cannot change"),
    ({}, BALANCED, "spec.regions[1].relay.vip.loadBalancerClass", "loadBalancerClass cannot change"),
    (
        {"spec.signaling.service": {"type": "LoadBalancer", "loadBalancerClass": "example.com/a"}},
        {"spec.signaling.service": {"type": "LoadBalancer", "loadBalancerClass": "example.com/b"}},
        "spec.signaling.service.loadBalancerClass",
        "write the old one, or another type first",
    ),
]


@pytest.mark.parametrize(("before", "after", "at", "says"), FORBIDDEN)
def test_what_never_changes_is_kept_with_field_and_remedy(
    apiserver: ApiServer, namespace: str, before: dict[str, Any], after: dict[str, Any], at: str, says: str
) -> None:
    assert apply(apiserver, namespace, changed(before)) == ""
    complaint = apply(apiserver, namespace, changed(after))
    assert at in complaint
    assert says in complaint


ALLOWED = [
    ({}, {f"{US}.transceiver": {"replicas": 3}}),
    ({}, {"spec.regions": GOOD["spec"]["regions"][:1]}),
    ({}, {"spec.regions": GOOD["spec"]["regions"][::-1]}),
    ({}, {US: {"name": "asia", "index": 1}}),
    (BALANCED, {f"{US}.relay": {"vip": {"mode": "External", "addresses": ["192.0.2.2"]}}}),
    ({"spec.redis.mode": "None"}, {}),
]


@pytest.mark.parametrize(("before", "after"), ALLOWED)
def test_what_may_change_does(
    apiserver: ApiServer, namespace: str, before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert apply(apiserver, namespace, changed(before)) == ""
    assert apply(apiserver, namespace, changed(after)) == ""


def test_a_voice_region_is_always_of_the_same_region(apiserver: ApiServer, namespace: str) -> None:
    document = region("eu")
    assert apply(apiserver, namespace, document) == ""
    complaint = apply(apiserver, namespace, changed({"spec.region": "us"}, document))
    assert "spec.region: Forbidden" in complaint
    assert "edit the VoiceCluster instead" in complaint


def test_a_voice_region_is_scaled_like_a_deployment(apiserver: ApiServer, namespace: str) -> None:
    assert apply(apiserver, namespace, region("eu")) == ""
    apiserver.kubectl("scale", "--namespace", namespace, "--replicas=3", "vr/demo-eu")
    found = apiserver.kubectl(
        "get", "--namespace", namespace, "vr/demo-eu", "-o", "jsonpath={.spec.replicas}"
    )
    assert found == "3"


def test_an_autoscaler_sees_one_transceiver_where_nobody_says_a_number(
    apiserver: ApiServer, namespace: str
) -> None:
    assert apply(apiserver, namespace, region("eu")) == ""
    path = f"/apis/voicecluster.dev/v1alpha1/namespaces/{namespace}/voiceregions/demo-eu/scale"
    assert apiserver.request("GET", path)["spec"] == {"replicas": 1}


def test_a_scale_beyond_1024_is_refused(apiserver: ApiServer, namespace: str) -> None:
    assert apply(apiserver, namespace, region("eu")) == ""
    done = apiserver.try_kubectl("scale", "--namespace", namespace, "--replicas=1025", "vr/demo-eu")
    assert done.returncode == 1
    assert "spec.replicas in body should be less than or equal to 1024" in done.stderr


def test_short_names_and_the_category_find_both_kinds(apiserver: ApiServer, namespace: str) -> None:
    assert apply(apiserver, namespace, GOOD) == ""
    assert apply(apiserver, namespace, region("eu")) == ""
    found = apiserver.kubectl("get", "voice", "--namespace", namespace, "-o", "name").split()
    assert found == ["voicecluster.voicecluster.dev/demo", "voiceregion.voicecluster.dev/demo-eu"]
    assert apiserver.kubectl("get", "vcl", "--namespace", namespace, "-o", "name").split() == found[:1]


def test_the_columns_of_a_cluster_answer_whether_it_is_fine(apiserver: ApiServer, namespace: str) -> None:
    assert apply(apiserver, namespace, GOOD) == ""
    status = {
        "summary": {"regions": "2/2", "relays": "6/6", "transceivers": "2/2"},
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "AllReady",
                "message": "",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            }
        ],
    }
    path = f"/apis/voicecluster.dev/v1alpha1/namespaces/{namespace}/voiceclusters/demo/status"
    apiserver.request("PATCH", path, {"status": status}, media_type="application/merge-patch+json")
    head, row = (
        line.split() for line in apiserver.kubectl("get", "vcl", "--namespace", namespace).splitlines()
    )
    assert head == ["NAME", "READY", "REGIONS", "RELAYS", "TRANSCEIVERS", "AGE"]
    assert row[:5] == ["demo", "True", "2/2", "6/6", "2/2"]


def test_kubectl_explains_fields(apiserver: ApiServer) -> None:
    assert "number in every ufrag" in apiserver.kubectl("explain", "vcl.spec.regions.index")


def region(name: str) -> dict[str, Any]:
    """A VoiceRegion of the cluster `demo`."""
    return {
        "apiVersion": "voicecluster.dev/v1alpha1",
        "kind": "VoiceRegion",
        "metadata": {"name": f"demo-{name}"},
        "spec": {"cluster": "demo", "region": name},
    }
