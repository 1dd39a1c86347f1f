"""NetworkPolicies hold on the cluster, over IPv4: beside each probe that must not get through stands one that must.

Over IPv6 the rules are read in the objects (tests/unit/operator/test_plan_network.py): they name pods and
namespaces, which are of both families, and nodes by networks of either.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from voicecluster.common.config.model import parse_text
from voicecluster.common.config.transceiver import RootKeysFile

from tests.e2e.cluster import Cluster, Object
from tests.e2e.conftest import RELEASE, Deploy
from tests.e2e.probes import SPP_BYTES, Checks, Pod, answer, connects, is_error_400, pods
from tests.e2e.voice import of_spec

CLUSTER_ID = 71
NAME = "policies"
MEDIA, INTERNAL, SIGNALING, ADMIN, REDIS, LISTEN = 40000, 9000, 8080, 8086, 6379, 13478


@dataclass(frozen=True, slots=True)
class Street:
    """The pods of a cluster with two regions, and those who have no business with it."""

    cluster: Cluster
    checks: Checks
    relays: tuple[Pod, Pod]
    """One of each region."""
    transceivers: tuple[Pod, Pod]
    """The first of each region."""
    redis: Pod
    operator: Pod
    tester: Pod
    """Labelled as `helm test` labels its pod."""
    stranger: Pod
    """In the cluster's own namespace."""
    foreigner: Pod
    """In another namespace."""
    monitor: Pod
    """In a namespace of `networkPolicy.metricsNamespaces`."""

    def connects(self, source: Pod, target: Pod, port: int) -> bool:
        """Whether a TCP connection comes about."""
        return connects(self.cluster, source, target, port)

    def reaches_media(self, source: Pod, region: int = 0) -> bool:
        """Whether a media port answers what a relay would send."""
        datagram = self.checks.from_relay(region * 1024)
        answered = answer(self.cluster, source, self.transceivers[region], MEDIA, datagram)
        return answered is not None and is_error_400(answered[SPP_BYTES:])

    def reaches_vip_port(self, source: Pod) -> bool:
        """Whether a check gets through a relay to its transceiver, and the answer back."""
        return is_error_400(answer(self.cluster, source, self.relays[0], LISTEN, self.checks.check(0)))


def spec(monitoring: str) -> Object:
    regions = [
        {"name": name, "index": index, "relay": {"vip": {"mode": "External", "addresses": [address]}}}
        for index, (name, address) in enumerate([("east", "203.0.113.1"), ("west", "203.0.113.2")])
    ]
    policy = {"metricsNamespaces": [monitoring]}
    return {"clusterId": CLUSTER_ID, "networkPolicy": policy, "regions": regions}


def bystander(name: str, image: str, labels: dict[str, str] | None = None) -> Object:
    """A pod that does nothing."""
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    sleep = ["python3", "-c", "import signal; signal.pause()"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {"app": name}},
        "spec": {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {"name": name, "image": image, "command": sleep, "securityContext": context},
            ],
        },
    }


@pytest.fixture(scope="module")
def others(cluster: Cluster, namespace: str) -> Iterator[tuple[str, str]]:
    """Two more namespaces."""
    names = f"{namespace}-elsewhere", f"{namespace}-monitoring"
    for name in names:
        cluster.kubectl("create", "namespace", name)
    yield names
    cluster.kubectl("delete", "namespace", *names, "--wait=false")


@pytest.fixture(scope="module")
def street(
    cluster: Cluster, operator: str, namespace: str, others: tuple[str, str], deployed: Deploy
) -> Iterator[Street]:
    """Everything here, Redis too, runs where only restricted pods may."""
    elsewhere, monitoring = others
    cluster.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    image = cluster.images.of("operator")
    tester = {
        "app.kubernetes.io/name": "voicecluster-operator-test",
        "app.kubernetes.io/instance": RELEASE,
    }
    cluster.apply(namespace, bystander("stranger", image))
    cluster.apply(elsewhere, bystander("foreigner", image))
    cluster.apply(monitoring, bystander("monitor", image))
    cluster.apply(operator, bystander("tester", image, tester))
    voice = deployed(of_spec(NAME, spec(monitoring)), seconds=150)
    idle = {"stranger": namespace, "foreigner": elsewhere, "monitor": monitoring, "tester": operator}
    for name, where in idle.items():
        cluster.wait("--for=condition=Ready", f"pod/{name}", namespace=where, seconds=60)
    keys = base64.b64decode(
        cluster.get("secret", f"{NAME}-root-keys", namespace)["data"]["keys.yaml"]
    ).decode()

    def first(component: str, region: str | None = None) -> Pod:
        return Pod.of(voice.pods(component, region)[0])

    yield Street(
        cluster=cluster,
        checks=Checks(parse_text(keys, RootKeysFile, source="keys.yaml"), CLUSTER_ID),
        relays=(first("relay", "east"), first("relay", "west")),
        transceivers=(first("transceiver", "east"), first("transceiver", "west")),
        redis=first("redis"),
        operator=pods(cluster, operator, "app.kubernetes.io/name=voicecluster-operator")[0],
        **{name: Pod.of(cluster.get("pod", name, where)) for name, where in idle.items()},
    )
    cluster.kubectl("delete", "pod", "tester", "-n", operator, "--wait=false")


def test_relays_of_any_region_reach_media_ports_and_nobody_else_does(street: Street) -> None:
    assert street.reaches_media(street.relays[0])
    assert street.reaches_media(street.relays[1])
    assert street.reaches_media(street.relays[0], region=1)
    assert not street.reaches_media(street.transceivers[1])
    assert not street.reaches_media(street.operator)
    assert not street.reaches_media(street.stranger)
    assert not street.reaches_media(street.foreigner)


def test_everybody_reaches_a_relays_vip_port(street: Street) -> None:
    assert street.reaches_vip_port(street.stranger)
    assert street.reaches_vip_port(street.foreigner)


def test_relays_and_transceivers_reach_redis_and_nobody_else_does(street: Street) -> None:
    assert street.connects(street.relays[0], street.redis, REDIS)
    assert street.connects(street.transceivers[1], street.redis, REDIS)
    assert not street.connects(street.operator, street.redis, REDIS)
    assert not street.connects(street.stranger, street.redis, REDIS)
    assert not street.connects(street.foreigner, street.redis, REDIS)


def test_only_siblings_reach_internal_ports(street: Street) -> None:
    assert street.connects(street.transceivers[1], street.transceivers[0], INTERNAL)
    assert not street.connects(street.relays[0], street.transceivers[0], INTERNAL)
    assert not street.connects(street.operator, street.transceivers[0], INTERNAL)
    assert not street.connects(street.stranger, street.transceivers[0], INTERNAL)
    assert not street.connects(street.foreigner, street.transceivers[0], INTERNAL)


def test_only_the_operator_and_monitoring_reach_the_port_that_drains(street: Street) -> None:
    assert street.connects(street.operator, street.transceivers[0], ADMIN)
    assert street.connects(street.monitor, street.transceivers[0], ADMIN)
    assert not street.connects(street.transceivers[1], street.transceivers[0], ADMIN)
    assert not street.connects(street.relays[0], street.transceivers[0], ADMIN)
    assert not street.connects(street.stranger, street.transceivers[0], ADMIN)
    assert not street.connects(street.foreigner, street.transceivers[0], ADMIN)


def test_everybody_reaches_signaling(street: Street) -> None:
    assert street.connects(street.stranger, street.transceivers[0], SIGNALING)
    assert street.connects(street.foreigner, street.transceivers[0], SIGNALING)


def test_a_relays_metrics_are_for_monitoring_only(street: Street) -> None:
    assert street.connects(street.monitor, street.relays[0], ADMIN)
    assert not street.connects(street.transceivers[0], street.relays[0], ADMIN)
    assert not street.connects(street.stranger, street.relays[0], ADMIN)


def test_the_operator_lets_in_its_own_test_and_nobody_else(street: Street) -> None:
    assert street.connects(street.tester, street.operator, ADMIN)
    assert not street.connects(street.stranger, street.operator, ADMIN)
    assert not street.connects(street.transceivers[0], street.operator, ADMIN)


def test_the_operator_goes_no_further_than_it_has_to(street: Street) -> None:
    assert street.connects(street.stranger, street.transceivers[0], SIGNALING)
    assert not street.connects(street.operator, street.transceivers[0], SIGNALING)
