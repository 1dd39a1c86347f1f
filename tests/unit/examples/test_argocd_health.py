"""Argo CD's health check of a VoiceCluster, run as Argo CD runs it: Lua 5.1 with the object in `obj`."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime
from voicecluster.common.config.model import load
from voicecluster.operator.api.v1alpha1 import VoiceCluster

HEALTH = Path(__file__).parents[3] / "examples" / "gitops" / "argocd" / "health"
CASES = yaml.safe_load((HEALTH / "health_test.yaml").read_text(encoding="utf-8"))["tests"]


def health_of(document: dict[str, Any]) -> dict[str, str]:
    """What the script returns."""
    lua = LuaRuntime()
    lua.globals().obj = lua.table_from(document, recursive=True)
    return dict(lua.execute((HEALTH / "health.lua").read_text(encoding="utf-8")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: Path(case["inputPath"]).stem)
def test_health_is_told_from_conditions(case: dict[str, Any]) -> None:
    document = yaml.safe_load((HEALTH / case["inputPath"]).read_text(encoding="utf-8"))
    assert health_of(document) == case["healthStatus"]


@pytest.mark.parametrize("file", sorted(HEALTH.glob("testdata/*.yaml")), ids=lambda file: file.stem)
def test_every_input_is_a_voice_cluster_and_is_tested(file: Path) -> None:
    assert load(file, VoiceCluster).metadata.name == "demo"
    assert f"testdata/{file.name}" in [case["inputPath"] for case in CASES]


def test_the_settings_name_both_kinds() -> None:
    kustomization = yaml.safe_load((HEALTH / "kustomization.yaml").read_text(encoding="utf-8"))
    [generator] = kustomization["configMapGenerator"]
    assert [entry.rpartition("_")[2] for entry in generator["files"]] == [
        "VoiceCluster=health.lua",
        "VoiceRegion=health.lua",
    ]
