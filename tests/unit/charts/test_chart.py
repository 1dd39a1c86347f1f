"""The chart renders what Kubernetes accepts, whatever its values, and refuses values it does not know."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from helm_python import Chart, HelmValuesError, lint
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.main import main
from voicecluster.operator.settings import OPERATOR_LABELS

ROOT = Path(__file__).parents[3]
CHART = ROOT / "charts" / "voicecluster-operator"
MONITORING = "monitoring.coreos.com/v1"
CRD = "CustomResourceDefinition"

Render = Callable[..., list[dict]]

VALUES: dict[str, dict[str, object]] = {
    "defaults": {},
    "one-replica": {"replicas": 1, "logLevel": "DEBUG"},
    "namespaced": {"watchNamespaces": ["blue", "green"]},
    "host-network": {"hostNetwork": {"enabled": True}},
    "namespaced-host-network": {"watchNamespaces": ["blue"], "hostNetwork": {"enabled": True}},
    "no-extras": {
        "crds": {"enabled": False},
        "networkPolicy": {"enabled": False},
        "podDisruptionBudget": {"enabled": False},
        "rbac": {"aggregate": False},
    },
    "digests": {
        "images": {
            "registry": "mirror.example.com/voice/",
            "pullPolicy": "Always",
            "pullSecrets": ["pull"],
            "operator": {"digest": f"sha256:{'a' * 64}"},
            "relay": {"repository": "relay", "tag": "1.2.3"},
        }
    },
    "placement": {
        "fullnameOverride": "voice",
        "commonLabels": {"team": "voice"},
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "podAnnotations": {"example.com/a": "b"},
        "priorityClassName": "system-cluster-critical",
        "resources": {"limits": {"cpu": 1, "memory": "1Gi"}},
        "serviceAccount": {"name": "voice", "annotations": {"example.com/role": "r"}},
        "tolerations": [{"key": "voice", "operator": "Exists", "effect": "NoSchedule"}],
    },
    "monitored": {
        "metrics": {
            "serviceMonitor": {"enabled": True, "interval": "15s", "labels": {"release": "prometheus"}}
        },
        "networkPolicy": {"metricsNamespaces": ["monitoring"], "redisPorts": [6379, 6380]},
    },
}


@pytest.fixture(params=VALUES.values(), ids=VALUES.keys())
def values(request: pytest.FixtureRequest) -> dict[str, object]:
    found: dict[str, object] = request.param
    return found


def named(objects: list[dict], kind: str) -> list[dict]:
    return [found for found in objects if found["kind"] == kind]


def one(objects: list[dict], kind: str) -> dict:
    [found] = named(objects, kind)
    return found


def container(objects: list[dict]) -> dict:
    [found] = one(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    return found


def test_helm_finds_nothing_to_say_about_it(values: dict[str, object]) -> None:
    report = lint(CHART, values, strict=True, kube_version="v1.34.0")
    said = [message["error"] for message in report["messages"] if message["error"] != "icon is recommended"]
    assert (said, report["errors"]) == ([], [])


def test_every_object_passes_strict_validation(render: Render, values: dict[str, object]) -> None:
    for found in render(values):
        kubernetes_validate.validate(found, "1.34", strict=True)


def test_every_object_has_its_own_name(render: Render, values: dict[str, object]) -> None:
    keys = [
        (found["kind"], found["metadata"].get("namespace"), found["metadata"]["name"])
        for found in render(values)
    ]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize(
    ("values", "where", "what"),
    [
        ({"replica": 3}, "at ''", "'replica'"),
        ({"images": {"operator": {"tga": "x"}}}, "at '/images/operator'", "'tga'"),
        ({"networkPolicy": {"enable": False}}, "at '/networkPolicy'", "'enable'"),
        ({"tolerations": [{"keys": "a"}]}, "at '/tolerations/0'", "'keys'"),
        ({"resources": {"limit": {}}}, "at '/resources'", "'limit'"),
        ({"replicas": "two"}, "at '/replicas'", "want integer"),
        ({"logLevel": "info"}, "at '/logLevel'", "'ERROR', 'WARNING', 'INFO', 'DEBUG'"),
        (
            {"images": {"relay": {"digest": "sha256:abc"}}},
            "at '/images/relay/digest'",
            "does not match pattern",
        ),
        ({"watchNamespaces": ["Blue"]}, "at '/watchNamespaces/0'", "does not match pattern"),
    ],
)
def test_a_value_it_does_not_know_is_refused_with_its_path(
    chart: Chart, values: dict[str, object], where: str, what: str
) -> None:
    with pytest.raises(HelmValuesError) as refused:
        chart.render(values, name="vc")
    assert where in str(refused.value)
    assert what in str(refused.value)


def test_the_schema_leaves_no_object_open(chart: Chart) -> None:
    def open_objects(schema: object, path: str) -> list[str]:
        if isinstance(schema, list):
            return [
                name for index, item in enumerate(schema) for name in open_objects(item, f"{path}/{index}")
            ]
        if not isinstance(schema, Mapping):
            return []
        found = [path] if schema.get("type") == "object" and "additionalProperties" not in schema else []
        return found + [name for key, item in schema.items() for name in open_objects(item, f"{path}/{key}")]

    assert open_objects(chart.schema, "") == ["/properties/global"]


def test_every_value_is_in_the_schema_and_the_other_way_round(chart: Chart) -> None:
    def leaves(schema: Mapping, values: Mapping, path: str) -> list[str]:
        if "$ref" in schema:
            schema = chart.schema["definitions"][schema["$ref"].rpartition("/")[2]]
        properties = schema.get("properties")
        if properties is None or (not values and path.endswith(("requests", "limits"))):
            return []
        names = set(properties) - {"global"} if path == "" else set(properties)
        if path in ("/resources/requests", "/resources/limits"):
            names &= set(values)
        wrong = [f"{path}/{name}" for name in names ^ set(values)]
        return wrong + [
            name
            for key in names & set(values)
            for name in leaves(properties[key], values[key], f"{path}/{key}")
        ]

    assert leaves(chart.schema, chart.values, "") == []


def test_its_crds_are_those_of_the_repository(render: Render) -> None:
    def stripped(crd: dict) -> dict:
        metadata = {
            key: value for key, value in crd["metadata"].items() if key not in ("annotations", "labels")
        }
        return crd | {"metadata": metadata}

    wanted = [
        yaml.safe_load(file.read_text(encoding="utf-8")) for file in sorted((ROOT / "crds").glob("*.yaml"))
    ]
    assert wanted
    assert [stripped(crd) for crd in named(render(), CRD)] == [stripped(crd) for crd in wanted]


def test_its_crds_outlive_it(render: Render) -> None:
    kept = [crd["metadata"]["annotations"]["helm.sh/resource-policy"] for crd in named(render(), CRD)]
    assert set(kept) == {"keep"}


def test_a_package_of_it_has_the_crds(chart: Chart, tmp_path: Path) -> None:
    with Chart.load(chart.save(tmp_path)) as packaged:
        assert (
            packaged.render(name="vc")["voicecluster-operator/templates/crds.yaml"].count("kind: " + CRD) == 2
        )


def test_without_crds_the_notes_say_where_they_are(chart: Chart) -> None:
    notes = chart.render({"crds": {"enabled": False}}, name="vc")["voicecluster-operator/templates/NOTES.txt"]
    assert "kubectl apply --server-side -f crds/" in notes


def test_the_notes_next_command_makes_the_minimal_example(chart: Chart) -> None:
    notes = chart.render(name="vc")["voicecluster-operator/templates/NOTES.txt"]
    [block] = re.findall(r"<<'YAML'\n(.*?)\n  YAML", notes, re.DOTALL)
    shown = yaml.safe_load(block)
    assert VoiceCluster.model_validate(shown)
    assert shown == yaml.safe_load((ROOT / "examples" / "minimal.yaml").read_text(encoding="utf-8"))


def test_the_operator_is_told_its_images_and_namespaces(render: Render) -> None:
    arguments = container(render(VALUES["namespaced"]))["args"]
    assert [text for text in arguments if text.startswith("--namespace=")] == [
        "--namespace=blue",
        "--namespace=green",
    ]
    assert "--relay-image=docker.io/voicecluster/relay:0.1.0" in arguments
    assert "--redis-image=docker.io/library/redis:7.4-bookworm" in arguments
    assert "--nodes" not in arguments


def test_every_argument_is_an_option_of_the_operator(render: Render, values: dict[str, object]) -> None:
    with main.make_context("voicecluster-operator", list(container(render(values))["args"])) as context:
        assert context.params["nodes"] == bool(values.get("hostNetwork"))


def test_its_pods_are_those_that_network_policies_know_as_the_operator(
    render: Render, values: dict[str, object]
) -> None:
    labels = one(render(values), "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert OPERATOR_LABELS.items() <= labels.items()


def test_a_digest_wins_over_the_tag_and_the_registry_stands_before_our_images_only(render: Render) -> None:
    found = container(render(VALUES["digests"]))
    assert found["image"] == f"mirror.example.com/voice/voicecluster/operator@sha256:{'a' * 64}"
    assert "--relay-image=mirror.example.com/voice/relay:1.2.3" in found["args"]
    assert "--redis-image=docker.io/library/redis:7.4-bookworm" in found["args"]


def test_the_pods_fit_the_restricted_pod_security_standard(render: Render, values: dict[str, object]) -> None:
    objects = render(values)
    for spec in (one(objects, "Deployment")["spec"]["template"]["spec"], one(objects, "Pod")["spec"]):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(spec)
        for pod_container in spec["containers"]:
            context = pod_container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["readOnlyRootFilesystem"] is True
            assert context["capabilities"] == {"drop": ["ALL"]}


def test_one_replica_has_no_disruption_budget_since_it_would_block_every_node_drain(render: Render) -> None:
    assert named(render(VALUES["one-replica"]), "PodDisruptionBudget") == []
    assert one(render(), "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1


def test_a_service_monitor_comes_only_where_the_cluster_knows_it(render: Render) -> None:
    asked = VALUES["monitored"]
    assert named(render(asked), "ServiceMonitor") == []
    assert named(render(apis=(MONITORING,)), "ServiceMonitor") == []
    monitor = one(render(asked, apis=(MONITORING,)), "ServiceMonitor")
    service = one(render(asked), "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["metadata"]["labels"]["release"] == "prometheus"


def test_the_network_policy_lets_in_health_and_metrics_only(
    render: Render, values: dict[str, object]
) -> None:
    for policy in named(render(values), "NetworkPolicy"):
        assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
        ports = [port for rule in policy["spec"]["ingress"] for port in rule["ports"]]
        assert ports == [{"port": 8086, "protocol": "TCP"}]
        assert all(rule["from"] for rule in policy["spec"]["ingress"])


def test_everything_of_the_release_carries_the_common_labels(render: Render) -> None:
    objects = [found for found in render(VALUES["placement"]) if found["kind"] != "Pod"]
    assert [found["kind"] for found in objects if found["metadata"]["labels"].get("team") != "voice"] == []


def test_the_gitops_examples_install_this_chart_with_values_it_knows(chart: Chart) -> None:
    charts = []
    for file in sorted((ROOT / "examples" / "gitops").glob("*/*.yaml")):
        for found in yaml.safe_load_all(file.read_text(encoding="utf-8")):
            if found["kind"] == "HelmRelease":
                charts.append(found["spec"]["chart"]["spec"]["chart"])
                chart.validate_schema(found["spec"].get("values", {}))
            elif found["kind"] == "Application" and found["spec"]["source"]["path"].startswith("charts/"):
                charts.append(found["spec"]["source"]["path"])
                chart.validate_schema(found["spec"]["source"].get("helm", {}).get("valuesObject", {}))
    assert charts == ["charts/voicecluster-operator"] * 2
