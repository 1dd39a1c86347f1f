"""The pages about Kubernetes show only what its API, our CRD, our chart and our tests know."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from helm_python import Chart
from pydantic import BaseModel
from voicecluster.operator.api.v1alpha1 import Relay, VoiceCluster
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.plan.kubernetes.cluster import objects
from voicecluster.operator.plan.kubernetes.facts import Defaults, Facts
from voicecluster.operator.status.conditions import Type

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = [DOCS / name for name in ("kubernetes.md", "clouds.md", "failures.md")]
CHART = ROOT / "charts" / "voicecluster-operator"


def blocks(page: Path, language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [text for named, text in found if named == language]


def commands() -> Iterator[list[str]]:
    for page in PAGES:
        for block in blocks(page, ""):
            for line in block.replace("\\\n", " ").splitlines():
                yield shlex.split(line)


def code(page: Path) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", page.read_text(encoding="utf-8")))


YAML_BLOCKS = [
    pytest.param(text, id=f"{page.stem}-{index}")
    for page in PAGES
    for index, text in enumerate(blocks(page, "yaml"))
]


@pytest.mark.parametrize("text", YAML_BLOCKS)
def test_every_yaml_block_is_valid(text: str) -> None:
    shown = yaml.safe_load(text)
    if shown.get("kind") == "VoiceCluster":
        assert VoiceCluster.model_validate(shown).spec.regions
    elif "vip" in shown:
        assert Relay.model_validate(shown).vip.mode == shown["vip"]["mode"]
    else:
        kubernetes_validate.validate(shown, "1.34", strict=True)


def test_the_first_cluster_is_the_minimal_example_and_has_twelve_lines() -> None:
    shown = blocks(DOCS / "kubernetes.md", "yaml")[0]
    example = (ROOT / "examples" / "minimal.yaml").read_text(encoding="utf-8")
    assert shown.splitlines() == [line for line in example.splitlines() if not line.startswith("#")]
    assert len(shown.splitlines()) <= 12


def test_every_file_and_chart_of_a_command_exists() -> None:
    paths = [word for command in commands() for word in command if word.startswith(("charts/", "examples/"))]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_secret_and_service_of_a_command_is_one_that_the_plan_makes() -> None:
    made = {
        make("voice")
        for make in (names.root_keys, names.api_keys, names.drain_token, names.hint_keys, names.signaling)
    } | {names.region("voice", "main")}
    used = {
        word.removeprefix("service/")
        for command in commands()
        for word in command
        if word.startswith(("voice-", "service/"))
    }
    assert used - {"voicecluster-system"} <= made


def test_every_condition_in_the_table_is_one_and_none_is_left_out() -> None:
    text = (DOCS / "kubernetes.md").read_text(encoding="utf-8")
    rows = set(re.findall(r"^\| `([A-Z]\w+)` \|", text, re.MULTILINE))
    only_when_true = {Type.RECONCILING, Type.STALLED, Type.PAUSED}
    assert rows == set(Type) - only_when_true
    assert only_when_true <= code(DOCS / "kubernetes.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_field_of_the_spec_named_is_one(page: Path) -> None:
    named = {text.partition(":")[0] for text in code(page) if text.startswith("spec.")}
    assert [name for name in named if not exists(name.split("[]")[0])] == []


def exists(path: str) -> bool:
    model: type[BaseModel] = VoiceCluster
    for name in path.split("."):
        found = {field.alias or key: field for key, field in model.model_fields.items()}
        if name not in found:
            return False
        if isinstance(found[name].annotation, type) and issubclass(found[name].annotation, BaseModel):
            model = found[name].annotation
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_value_of_the_chart_named_is_one(page: Path) -> None:
    with Chart.load(CHART) as chart:
        values = chart.values
    tops = tuple(f"{name}." for name in ("hostNetwork", "images", "crds", "rbac", "metrics"))
    named = {text.partition(":")[0] for text in code(page) if text.startswith((*tops, "watchNamespaces"))}
    for path in named:
        found: object = values
        for key in path.split("."):
            assert isinstance(found, dict)
            assert key in found, path
            found = found[key]


def test_every_test_named_as_the_keeper_of_a_promise_exists() -> None:
    named = {text for text in code(DOCS / "failures.md") if text.startswith("test_")}
    assert named
    assert [name for name in named if not (ROOT / "tests" / "e2e" / name).exists()] == []


def test_every_metric_named_is_one() -> None:
    named = {text for page in PAGES for text in code(page) if text.startswith("voicecluster_")}
    assert named
    for metric in named:
        _, room, name = metric.removesuffix("_total").split("_", maxsplit=2)
        module = ROOT / room / "voicecluster" / room / "metrics.py"
        assert re.search(rf'["_}}]{name}"', module.read_text(encoding="utf-8")), metric


def test_the_table_of_who_reaches_what_has_the_ports_of_the_network_policies() -> None:
    cluster = VoiceCluster.model_validate(yaml.safe_load(blocks(DOCS / "kubernetes.md", "yaml")[0]))
    defaults = Defaults(
        "relay", "transceiver", "redis", "voicecluster-system", {"app.kubernetes.io/name": "operator"}
    )
    facts = Facts(namespace="voice", uid="1", defaults=defaults, keys=None, vips={}, replicas={})
    made = {
        (policy["metadata"]["labels"][names.COMPONENT], port["port"], port["protocol"].lower())
        for policy in objects(cluster, facts)
        if policy["kind"] == "NetworkPolicy"
        for rule in policy["spec"]["ingress"]
        for port in rule["ports"]
    }
    text = (DOCS / "kubernetes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (relay|transceiver|redis) \| (?:[^|]*, )?(\d+)/(udp|tcp)", text, re.MULTILINE)
    assert {(component, int(port), protocol) for component, port, protocol in rows} == made
