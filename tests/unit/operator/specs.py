"""Resources that are wrong in one place, with what must be said of each; and good ones.

The models (`voicecluster up`) and the CustomResourceDefinition (a real API server) are both held to this table.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

GOOD: dict[str, Any] = {
    "apiVersion": "voicecluster.dev/v1alpha1",
    "kind": "VoiceCluster",
    "metadata": {"name": "demo"},
    "spec": {
        "clusterId": 7,
        "regions": [
            {"name": "eu", "index": 0, "relay": {"vip": {"mode": "External", "addresses": ["192.0.2.1"]}}},
            {"name": "us", "index": 1},
        ],
    },
}


def changed(changes: dict[str, Any], base: dict[str, Any] | None = None) -> dict[str, Any]:
    """`GOOD`, or `base`, with the fields at these paths (dots; numbers index lists) set, or removed for `...`."""
    document = copy.deepcopy(base or GOOD)
    for path, value in changes.items():
        *way, last = path.split(".")
        at: Any = document
        for step in way:
            at = at[int(step)] if isinstance(at, list) else at.setdefault(step, {})
        if value is ...:
            del at[last]
        elif isinstance(at, list):
            at[int(last)] = value
        else:
            at[last] = value
    return document


@dataclass(frozen=True, slots=True)
class Refused:
    """`GOOD` with changes that make it wrong."""

    name: str
    changes: dict[str, Any] = field(repr=False)
    at: str
    """The wrong field, as the API server writes paths."""
    says: str
    """What both sides say to do."""
    local: str | None = None
    """What the models say, where the API server's own words differ."""


EU, US = "spec.regions.0", "spec.regions.1"
EU_VIP, US_VIP = f"{EU}.relay.vip", f"{US}.relay.vip"
AT_EU, AT_US = "spec.regions[0]", "spec.regions[1]"
AT_EU_VIP, AT_US_VIP = f"{AT_EU}.relay.vip", f"{AT_US}.relay.vip"
ADDRESS = "write an IP address that callers reach, such as 203.0.113.5 or 2001:db8::5, without a port"
AMOUNT = "write an amount above zero, such as 500m or 2 (cores), 256Mi or 1Gi (bytes)"
NETWORK = "write a network whose host bits are zero, such as 10.0.0.0/16"
NODES = {"spec.networkPolicy.nodeCIDRs": ["10.0.0.0/16"]}
HOST = {f"{US_VIP}.mode": "HostNetwork"} | NODES
AUTH, SERVICE = "spec.signaling.auth", "spec.signaling.service"
TOLERATION = f"{EU}.tolerations"

REFUSED = [
    Refused(
        "name in capitals", {"metadata.name": "Demo"}, "metadata.name", "use at most 19 lower-case letters"
    ),
    Refused(
        "name ends with a dash",
        {"metadata.name": "demo-"},
        "metadata.name",
        "use at most 19 lower-case letters",
    ),
    Refused(
        "name with a dot", {"metadata.name": "demo.eu"}, "metadata.name", "use at most 19 lower-case letters"
    ),
    Refused("name starts with a digit", {"metadata.name": "7up"}, "metadata.name", "starting with a letter"),
    Refused("name of 20", {"metadata.name": "d" * 20}, "metadata.name", "at most 19"),
    Refused("no spec", {"spec": ...}, "spec", "Required value", "required field is missing; add it"),
    Refused(
        "no id",
        {"spec.clusterId": ...},
        "spec.clusterId",
        "Required value",
        "required field is missing; add it",
    ),
    Refused("id 0", {"spec.clusterId": 0}, "spec.clusterId", "greater than or equal to 1"),
    Refused("id 65536", {"spec.clusterId": 65536}, "spec.clusterId", "less than or equal to 65535"),
    Refused("id as text", {"spec.clusterId": "7"}, "spec.clusterId", "of type integer", "valid integer"),
    Refused("id as boolean", {"spec.clusterId": True}, "spec.clusterId", "of type integer", "valid integer"),
    Refused("misspelt at the top", {"spec.clusterID": 7}, "spec.clusterID", "unknown field"),
    Refused("misspelt in a region", {f"{EU}.relays": {}}, f"{AT_EU}.relays", "unknown field"),
    Refused("misspelt VIP field", {f"{EU_VIP}.adresses": []}, f"{AT_EU_VIP}.adresses", "unknown field"),
    Refused("no regions", {"spec.regions": []}, "spec.regions", "at least 1 item"),
    Refused(
        "same name twice",
        {f"{US}.name": "eu"},
        AT_US,
        'Duplicate value: {"name":"eu"}',
        "'eu' is there twice",
    ),
    Refused("same index twice", {f"{US}.index": 0}, "spec.regions", "give each its own (0 to 63)"),
    Refused("index 64", {f"{US}.index": 64}, f"{AT_US}.index", "less than or equal to 63"),
    Refused("region with underscore", {f"{US}.name": "us_east"}, f"{AT_US}.name", "use lower-case letters"),
    Refused(
        "region of 21", {f"{US}.name": "u" * 21}, f"{AT_US}.name", "may not be more than 20", "at most 20"
    ),
    Refused(
        "no index",
        {f"{US}.index": ...},
        f"{AT_US}.index",
        "Required value",
        "required field is missing; add it",
    ),
    Refused(
        "unknown mode",
        {f"{US_VIP}.mode": "NodePort"},
        f"{AT_US_VIP}.mode",
        'supported values: "LoadBalancer", "HostNetwork", "External"',
        "'LoadBalancer', 'HostNetwork' or 'External'",
    ),
    Refused(
        "External without addresses", {f"{US_VIP}.mode": "External"}, f"{AT_US_VIP}.addresses", "list the IP"
    ),
    Refused(
        "External, none listed",
        {f"{EU_VIP}.addresses": []},
        f"{AT_EU_VIP}.addresses",
        "list the IP addresses",
    ),
    Refused(
        "addresses of a load balancer",
        {f"{US_VIP}.addresses": ["192.0.2.9"]},
        f"{AT_US_VIP}.addresses",
        "addresses is for mode External only; remove it or change the mode",
    ),
    Refused(
        "unspecified address", {f"{EU_VIP}.addresses": ["0.0.0.0"]}, f"{AT_EU_VIP}.addresses[0]", ADDRESS
    ),
    Refused(
        "multicast address", {f"{EU_VIP}.addresses": ["224.0.0.1"]}, f"{AT_EU_VIP}.addresses[0]", ADDRESS
    ),
    Refused(
        "multicast IPv6 address", {f"{EU_VIP}.addresses": ["ff02::1"]}, f"{AT_EU_VIP}.addresses[0]", ADDRESS
    ),
    Refused(
        "address with a port", {f"{EU_VIP}.addresses": ["192.0.2.1:1"]}, f"{AT_EU_VIP}.addresses[0]", ADDRESS
    ),
    Refused(
        "address with a zone", {f"{EU_VIP}.addresses": ["fe80::1%eth0"]}, f"{AT_EU_VIP}.addresses[0]", ADDRESS
    ),
    Refused(
        "mapped address", {f"{EU_VIP}.addresses": ["::ffff:1.2.3.4"]}, f"{AT_EU_VIP}.addresses[0]", ADDRESS
    ),
    Refused(
        "host name as address", {f"{EU_VIP}.addresses": ["a.example"]}, f"{AT_EU_VIP}.addresses[0]", ADDRESS
    ),
    Refused(
        "address twice",
        {f"{EU_VIP}.addresses": ["192.0.2.9", "192.0.2.9"]},
        f"{AT_EU_VIP}.addresses[1]",
        "Duplicate value",
        "'192.0.2.9' is there twice; remove one",
    ),
    Refused(
        "VIP twice",
        {f"{US_VIP}.mode": "External", f"{US_VIP}.addresses": ["192.0.2.1"]},
        "spec.regions",
        "give each its own address or port",
    ),
    Refused("port 0", {f"{EU_VIP}.port": 0}, f"{AT_EU_VIP}.port", "greater than or equal to 1"),
    Refused("host port 443", HOST | {f"{US_VIP}.port": 443}, f"{AT_US_VIP}.port", "write 3478, for example"),
    Refused(
        "host port of relays",
        HOST | {f"{US_VIP}.port": 13479},
        f"{AT_US_VIP}.port",
        "write 3478, for example",
    ),
    Refused(
        "host network without networks",
        {f"{US_VIP}.mode": "HostNetwork"},
        "spec.networkPolicy.nodeCIDRs",
        "list the nodes' networks, such as 10.0.0.0/16, or set networkPolicy.enabled: false",
    ),
    Refused(
        "two regions of host networks",
        HOST | {EU_VIP: {"mode": "HostNetwork"}},
        "spec.regions",
        "give each such region a nodeSelector",
    ),
    *(
        Refused(
            f"{name} without a load balancer",
            {f"{EU_VIP}.{name}": value},
            f"{AT_EU_VIP}.{name}",
            f"{name} is for mode LoadBalancer only; remove it or change the mode",
        )
        for name, value in {
            "annotations": {"example.com/a": "b"},
            "healthCheckPort": 8086,
            "loadBalancerClass": "example.com/lb",
            "sourceRanges": ["192.0.2.0/24"],
        }.items()
    ),
    *(
        Refused(
            f"{name} on host networks",
            HOST | {f"{US_VIP}.{name}": value},
            f"{AT_US_VIP}.{name}",
            f"{name} is for mode LoadBalancer or External only; remove it or change the mode",
        )
        for name, value in {"externalTrafficPolicy": "Local", "ipFamilyPolicy": "SingleStack"}.items()
    ),
    Refused(
        "node addresses of a load balancer",
        {f"{US_VIP}.nodeAddressType": "InternalIP"},
        f"{AT_US_VIP}.nodeAddressType",
        "nodeAddressType is for mode HostNetwork only",
    ),
    Refused(
        "host bits", {f"{US_VIP}.sourceRanges": ["10.0.0.1/16"]}, f"{AT_US_VIP}.sourceRanges[0]", NETWORK
    ),
    Refused("no prefix", {f"{US_VIP}.sourceRanges": ["10.0.0.0"]}, f"{AT_US_VIP}.sourceRanges[0]", NETWORK),
    Refused(
        "no network", {"spec.networkPolicy.nodeCIDRs": ["nodes"]}, "spec.networkPolicy.nodeCIDRs[0]", NETWORK
    ),
    Refused(
        "annotation key", {f"{US_VIP}.annotations": {"a b": "c"}}, f"{AT_US_VIP}.annotations", "write keys as"
    ),
    Refused(
        "label key",
        {f"{EU}.nodeSelector": {"/region": "eu"}},
        f"{AT_EU}.nodeSelector",
        "write keys as Kubernetes",
    ),
    Refused(
        "label value",
        {f"{EU}.nodeSelector": {"region": "eu west"}},
        f"{AT_EU}.nodeSelector[region]",
        "write a label's value",
    ),
    Refused(
        "toleration of nothing",
        {TOLERATION: [{}]},
        f"{AT_EU}.tolerations[0].key",
        "or operator: Exists to tolerate",
    ),
    Refused(
        "toleration with a value",
        {TOLERATION: [{"key": "a", "operator": "Exists", "value": "b"}]},
        f"{AT_EU}.tolerations[0].value",
        "remove it or write operator: Equal",
    ),
    Refused(
        "toleration for a while",
        {TOLERATION: [{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 5}]},
        f"{AT_EU}.tolerations[0].tolerationSeconds",
        "remove it or change the effect",
    ),
    Refused("no amount", {f"{EU}.relay.resources": {"cpu": "lots"}}, f"{AT_EU}.relay.resources.cpu", AMOUNT),
    Refused("amount 0", {f"{EU}.relay.resources": {"cpu": 0}}, f"{AT_EU}.relay.resources.cpu", AMOUNT),
    Refused(
        "amount 0 as text", {f"{EU}.relay.resources": {"cpu": "0.0"}}, f"{AT_EU}.relay.resources.cpu", AMOUNT
    ),
    Refused(
        "negative amount",
        {f"{EU}.relay.resources": {"memory": "-1Gi"}},
        f"{AT_EU}.relay.resources.memory",
        AMOUNT,
    ),
    Refused(
        "a limit of 0",
        {f"{EU}.relay.limits": {"flowPackets": 0}},
        f"{AT_EU}.relay.limits.flowPackets",
        "greater than or equal to 1",
    ),
    Refused(
        "no idle time",
        {f"{EU}.relay.limits": {"idleSeconds": 0}},
        f"{AT_EU}.relay.limits.idleSeconds",
        "greater than 0",
    ),
    Refused(
        "1025 transceivers",
        {f"{EU}.transceiver": {"replicas": 1025}},
        f"{AT_EU}.transceiver.replicas",
        "less than or equal to 1024",
    ),
    Refused(
        "workers in words",
        {f"{EU}.transceiver": {"workers": "two"}},
        f"{AT_EU}.transceiver.workers",
        "of type integer",
        "valid integer",
    ),
    Refused(
        "unknown ICE mode",
        {f"{EU}.transceiver": {"iceMode": "Half"}},
        f"{AT_EU}.transceiver.iceMode",
        'supported values: "Lite", "Full"',
        "'Lite' or 'Full'",
    ),
    Refused(
        "unknown auth",
        {f"{AUTH}.mode": "Basic"},
        f"{AUTH}.mode",
        'supported values: "APIKey", "None"',
        "'APIKey' or 'None'",
    ),
    Refused(
        "keys for nobody",
        {AUTH: {"mode": "None", "apiKeysSecret": "keys"}},
        f"{AUTH}.apiKeysSecret",
        "apiKeysSecret is for mode APIKey only; remove it or change the mode",
    ),
    Refused(
        "Secret of another namespace",
        {f"{AUTH}.apiKeysSecret": "a/b"},
        f"{AUTH}.apiKeysSecret",
        "write the name of the",
    ),
    Refused(
        "origin with a path",
        {"spec.signaling.corsOrigins": ["https://a.example/"]},
        "spec.signaling.corsOrigins[0]",
        "write an origin without a path",
    ),
    Refused(
        "class without load balancer",
        {f"{SERVICE}.loadBalancerClass": "example.com/lb"},
        f"{SERVICE}.loadBalancerClass",
        "loadBalancerClass is for type LoadBalancer only; remove it or change the type",
    ),
    Refused(
        "unknown agent",
        {"spec.agents.default": "pirate"},
        "spec.agents.default",
        'supported values: "parrot", "echo"',
        "'parrot' or 'echo'",
    ),
    Refused(
        "External Redis nowhere",
        {"spec.redis.mode": "External"},
        "spec.redis.external",
        "name the Secret that has your Redis' url",
    ),
    Refused(
        "Redis of nobody",
        {"spec.redis.external": {"secret": "redis"}},
        "spec.redis.external",
        "external is for mode External only; remove it or change the mode",
    ),
    Refused(
        "resources of your Redis",
        {"spec.redis": {"mode": "None", "resources": {}}},
        "spec.redis.resources",
        "resources is for mode Embedded only; remove it or change the mode",
    ),
    Refused(
        "image with a space",
        {"spec.images.relay": "relay: 1"},
        "spec.images.relay",
        "write a whole image reference",
    ),
    Refused(
        "namespace pattern",
        {"spec.networkPolicy.metricsNamespaces": ["mon*"]},
        "spec.networkPolicy.metricsNamespaces[0]",
        "write a namespace's name",
    ),
    Refused(
        "log level",
        {"spec.logLevel": "LOUD"},
        "spec.logLevel",
        'supported values: "DEBUG"',
        "'DEBUG', 'INFO'",
    ),
]

ACCEPTED: dict[str, dict[str, Any]] = {
    "only what it must": {},
    "a region alone": {"spec.regions": [{"name": "eu", "index": 63}]},
    "the longest names": {"metadata.name": "d" * 19, f"{US}.name": "u" * 20},
    "the last id": {"spec.clusterId": 65535},
    "no transceivers": {f"{US}.transceiver": {"replicas": 0}},
    "as the scale says": {f"{US}.transceiver": {"replicas": None}},
    "both families": {f"{EU_VIP}.addresses": ["192.0.2.1", "2001:db8::1"]},
    "one address, two ports": {
        f"{US_VIP}.mode": "External",
        f"{US_VIP}.addresses": ["192.0.2.1"],
        f"{US_VIP}.port": 443,
    },
    "all that load balancers have": {
        US_VIP: {
            "mode": "LoadBalancer",
            "port": 443,
            "annotations": {"service.example.com/ip": "192.0.2.7"},
            "externalTrafficPolicy": "Cluster",
            "healthCheckPort": 8086,
            "ipFamilyPolicy": "RequireDualStack",
            "loadBalancerClass": "example.com/lb",
            "sourceRanges": ["192.0.2.0/24", "2001:db8::/32"],
        }
    },
    "host network": HOST | {f"{US_VIP}.nodeAddressType": "InternalIP"},
    "host network without policies": {f"{US_VIP}.mode": "HostNetwork", "spec.networkPolicy.enabled": False},
    "two regions of host networks on their own nodes": {
        f"{EU}.relay.vip": {"mode": "HostNetwork"},
        f"{EU}.nodeSelector": {"topology.kubernetes.io/region": "eu"},
        f"{US}.nodeSelector": {"topology.kubernetes.io/region": "us"},
    }
    | HOST,
    "tolerations": {
        TOLERATION: [
            {"operator": "Exists"},
            {"key": "voice", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 5},
        ]
    },
    "amounts": {
        f"{EU}.relay.resources": {"cpu": 1, "memory": "1.5Gi"},
        f"{EU}.transceiver.resources": {"cpu": "500m"},
    },
    "keys of the user": {f"{AUTH}.apiKeysSecret": "my.keys"},
    "some origins": {"spec.signaling.corsOrigins": ["https://a.example", "http://localhost:8080"]},
    "signaling for the world": {
        SERVICE: {"type": "LoadBalancer", "loadBalancerClass": "example.com/lb", "port": 443}
    },
    "a Redis of the user": {"spec.redis": {"mode": "External", "external": {"secret": "redis"}}},
    "images": {
        "spec.images": {"relay": "registry.example.com:5000/relay@sha256:" + "0" * 64, "pullSecrets": ["a"]}
    },
}
