"""The documentation names only what exists."""

import re
from pathlib import Path

import pytest
from voicecluster.common.config.model import load
from voicecluster.common.config.relay import RelayLimits
from voicecluster.operator.api.v1alpha1 import VoiceCluster

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_linked_file_exists(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_target_named_is_one(page: Path) -> None:
    targets = set(
        re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"`make ([a-z0-9-]+)", page.read_text(encoding="utf-8"))) <= targets


def test_every_relay_limit_is_documented_with_its_default() -> None:
    text = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    table = [[cell.strip() for cell in row.split("|")] for row in text.splitlines()]
    rows = {cells[1]: cells[3] for cells in table if len(cells) == 5}
    documented = {}
    for names, defaults in rows.items():
        fields = re.findall(r"`(\w+)`", names)
        if len(fields) == len(values := defaults.split(", ")):
            documented |= dict(zip(fields, values, strict=True))
    wanted = {name: str(int(value)) for name, value in _limits().items()}
    assert {name: documented.get(name) for name in wanted} == wanted


def _limits() -> dict[str, float]:
    limits: dict[str, float] = RelayLimits().model_dump(by_alias=True)
    return limits


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_is_valid(file: Path) -> None:
    assert load(file, VoiceCluster).spec.regions
