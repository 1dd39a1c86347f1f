"""VoiceClusters to plan, and any valid one for property tests."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st
from voicecluster.common.config.transceiver import Vip
from voicecluster.operator.api.v1alpha1 import VoiceCluster
from voicecluster.operator.plan.keys import KeyMaterial
from voicecluster.operator.plan.kubernetes.cluster import objects
from voicecluster.operator.plan.kubernetes.facts import Defaults, Facts

ROOT = bytes(range(32))
KEYS = KeyMaterial(mint="A", roots={"A": ROOT}, api_keys={"local": "vc-secret"})
DEFAULTS = Defaults(
    relay_image="example.com/voicecluster/relay:1",
    transceiver_image="example.com/voicecluster/transceiver:1",
    redis_image="docker.io/library/redis:7.4-bookworm",
    operator_namespace="voicecluster-system",
    operator_labels={"app.kubernetes.io/name": "voicecluster-operator"},
)
Found = dict[tuple[str, str], Any]
HERE = Path(__file__).parent
EXAMPLES = Path(__file__).parents[3] / "examples"
CLUSTERS = {
    path.stem: path
    for path in (
        *sorted((HERE / "resources").glob("*.yaml")),
        EXAMPLES / "host-network.yaml",
        EXAMPLES / "two-regions.yaml",
    )
}
"""What golden plans are made of: examples, and what they leave out."""


def cluster(spec: Mapping[str, Any], name: str = "demo") -> VoiceCluster:
    """A VoiceCluster of this spec; with `regions` left out there is one, `eu`, that says nothing."""
    whole = {"clusterId": 7, "regions": [{"name": "eu", "index": 0}], **spec}
    return VoiceCluster.model_validate(
        {
            "apiVersion": "voicecluster.dev/v1alpha1",
            "kind": "VoiceCluster",
            "metadata": {"name": name},
            "spec": whole,
        }
    )


def region(**fields: Any) -> dict[str, Any]:
    """A spec with one region, `eu`, with these fields."""
    return {"regions": [{"name": "eu", "index": 0, **fields}]}


def stored(name: str) -> VoiceCluster:
    """The cluster of one of `CLUSTERS`."""
    return VoiceCluster.model_validate(yaml.safe_load(CLUSTERS[name].read_text(encoding="utf-8")))


def facts(
    *,
    keys: KeyMaterial | None = KEYS,
    vips: Mapping[str, tuple[Vip, ...]] | None = None,
    replicas: Mapping[str, int] | None = None,
    workers: Mapping[str, int] | None = None,
) -> Facts:
    """Facts in the namespace `voice`."""
    return Facts(
        namespace="voice",
        uid="6f1b2c3d-0000-4000-8000-000000000000",
        defaults=DEFAULTS,
        keys=keys,
        vips=vips or {},
        replicas=replicas or {},
        workers=workers or {},
    )


def planned(wanted: VoiceCluster, known: Facts | None = None) -> Found:
    """The objects by kind and name."""
    found: list[Any] = list(objects(wanted, known or facts()))
    return {(one["kind"], one["metadata"]["name"]): one for one in found}


def template(found: Mapping[str, Any]) -> Any:
    """The pods of a workload."""
    return found["spec"]["template"]


def _labels(longest: int) -> st.SearchStrategy[str]:
    middle = st.text("a-0", max_size=longest - 2)
    return st.one_of(st.just("a" * longest), st.just("b"), middle.map(lambda text: f"c{text}1"))


_QUANTITIES = st.builds(
    "{}{}{}".format,
    st.integers(1, 2048),
    st.sampled_from(["", ".5", ".125"]),
    st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]),
)
_RESOURCES = st.fixed_dictionaries({}, optional={"cpu": _QUANTITIES, "memory": _QUANTITIES})
_PORTS = st.integers(1024, 13478)
_NETWORKS = st.lists(
    st.sampled_from(["10.0.0.0/8", "192.168.0.0/16", "fd00::/8"]), min_size=1, max_size=3, unique=True
)
_IMAGES = st.just("example.com/other:2")
_NAMES = _labels(63)
_ANNOTATIONS = st.just({"example.com/pool": "public"})


@st.composite
def _vips(draw: st.DrawFn, number: int) -> dict[str, Any]:
    mode = draw(st.sampled_from(["LoadBalancer", "HostNetwork", "External"]))
    with_service: dict[str, st.SearchStrategy[Any]] = {
        "externalTrafficPolicy": st.sampled_from(["Local", "Cluster"]),
        "ipFamilyPolicy": st.sampled_from(["SingleStack", "PreferDualStack", "RequireDualStack"]),
    }
    balanced: dict[str, st.SearchStrategy[Any]] = {
        "annotations": _ANNOTATIONS,
        "loadBalancerClass": st.just("example.com/class"),
        "sourceRanges": _NETWORKS,
        "healthCheckPort": _PORTS,
    }
    optional = {
        "LoadBalancer": with_service | balanced,
        "HostNetwork": {"nodeAddressType": st.sampled_from(["ExternalIP", "InternalIP"])},
        "External": with_service,
    }[mode]
    found = draw(st.fixed_dictionaries({"port": _PORTS}, optional=optional))
    addresses = {"addresses": [f"192.0.2.{number}", f"2001:db8::{number}"]} if mode == "External" else {}
    return {"mode": mode, **addresses, **found}


@st.composite
def _regions(draw: st.DrawFn) -> list[dict[str, Any]]:
    names = draw(st.lists(_labels(20), min_size=1, max_size=4, unique=True))
    indices = draw(st.lists(st.integers(0, 63), min_size=len(names), max_size=len(names), unique=True))
    tolerations = st.lists(
        st.sampled_from([{"operator": "Exists"}, {"key": "voice", "value": "yes", "effect": "NoSchedule"}]),
        max_size=2,
    )
    regions = []
    for number, (name, index) in enumerate(zip(names, indices, strict=True)):
        relay = st.fixed_dictionaries(
            {"vip": _vips(number + 1)}, optional={"workers": st.integers(1, 64), "resources": _RESOURCES}
        )
        transceiver = st.fixed_dictionaries(
            {},
            optional={
                "replicas": st.integers(0, 1024),
                "workers": st.integers(1, 256),
                "resources": _RESOURCES,
                "limits": st.just({"drainTimeoutSeconds": 7200.5}),
            },
        )
        region = st.fixed_dictionaries(
            {
                "name": st.just(name),
                "index": st.just(index),
                "relay": relay,
                "nodeSelector": st.just({"example.com/region": name}),
            },
            optional={"transceiver": transceiver, "tolerations": tolerations},
        )
        regions.append(draw(region))
    return regions


_AUTH: st.SearchStrategy[dict[str, str]] = st.one_of(
    st.just({"mode": "None"}), st.just({}), st.fixed_dictionaries({"apiKeysSecret": _NAMES})
)
_SERVICE = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]), "port": _PORTS}
)
_REDIS = st.one_of(
    st.fixed_dictionaries({}, optional={"resources": _RESOURCES}),
    st.just({"mode": "None"}),
    st.just({"mode": "External", "external": {"secret": "redis"}}),
)
_SPECS = st.fixed_dictionaries(
    {
        "clusterId": st.integers(1, 65535),
        "regions": _regions(),
        "networkPolicy": st.one_of(
            st.just({"enabled": False}),
            st.fixed_dictionaries({"nodeCIDRs": _NETWORKS}, optional={"metricsNamespaces": st.just(["mon"])}),
        ),
    },
    optional={
        "signaling": st.fixed_dictionaries({}, optional={"auth": _AUTH, "service": _SERVICE}),
        "redis": _REDIS,
        "images": st.fixed_dictionaries(
            {}, optional={"relay": _IMAGES, "redis": _IMAGES, "pullSecrets": st.lists(_NAMES, max_size=1)}
        ),
    },
)


@st.composite
def clusters(draw: st.DrawFn) -> VoiceCluster:
    """Any valid VoiceCluster."""
    return cluster(draw(_SPECS), draw(_labels(19)))


@st.composite
def situations(draw: st.DrawFn) -> tuple[VoiceCluster, Facts]:
    """Any valid VoiceCluster, and facts that fit it."""
    found = draw(clusters())
    names = [region.name for region in found.spec.regions]
    some = st.lists(
        st.sampled_from(
            [Vip(address="192.0.2.9", port=3478), Vip(address="2001:db8::9", port=3478, node="n1")]
        ),
        unique=True,
    )
    return found, facts(
        keys=draw(st.sampled_from([KEYS, None])),
        vips={name: tuple(draw(some)) for name in names},
        replicas={name: draw(st.integers(0, 1024)) for name in names},
        workers=draw(st.dictionaries(st.sampled_from(names), st.integers(1, 256))),
    )
