"""The real Helm, in this process, renders the operator's chart."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias, cast

import pytest
import yaml
from helm_python import Chart, _native

CHART = Path(__file__).parents[3] / "charts" / "voicecluster-operator"

Object: TypeAlias = dict[str, object]
Values: TypeAlias = Mapping[str, object]
Render: TypeAlias = Callable[..., list[Object]]


@pytest.fixture(scope="session")
def chart() -> Iterator[Chart]:
    with Chart.load(CHART) as chart:
        yield chart


@pytest.fixture(scope="session")
def render(chart: Chart) -> Render:
    """Render the chart; notes are left out. What is given back is shared: do not change it.

    `apis`: what the cluster has beside Kubernetes' own kinds (`helm template --api-versions`).
    """

    known: dict[str, list[Object]] = {}

    def rendered(values: Values | None = None, *, apis: tuple[str, ...] = ()) -> list[Object]:
        key = json.dumps([values, apis])
        if key not in known:
            known[key] = fresh(values, apis)
        return known[key]

    def fresh(values: Values | None, apis: tuple[str, ...]) -> list[Object]:
        options = {
            "name": "vc",
            "namespace": "voicecluster-system",
            "kube_version": "v1.34.0",
            "api_versions": list(apis),
        }
        # `Chart.render` does not hand on `api_versions`, the library beneath it takes them.
        text = _native.call_string("helm_render", chart._raw(), json.dumps(values or {}), json.dumps(options))
        manifests: dict[str, str] = json.loads(text)
        return [
            cast(Object, document)
            for path, manifest in sorted(manifests.items())
            if not path.endswith("NOTES.txt")
            for document in yaml.load_all(manifest, Loader=yaml.CSafeLoader)
            if document is not None
        ]

    return rendered
