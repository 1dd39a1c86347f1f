"""Names, addresses and amounts: each with its bounds and a message that says what to write."""

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from voicecluster.common.config.model import Unit
from voicecluster.operator.api.rules import Cel, Must, matches

DNS_LABEL = "[a-z]([-a-z0-9]*[a-z0-9])?"
DNS_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL_KEY = (
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
LABEL_VALUE = "([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
QUANTITY = r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?"

CLUSTER_NAME_LENGTH = 19
"""`<cluster>-<region>-transceiver` names a StatefulSet, whose limit is 52."""
NAME_MESSAGE = (
    "use at most 19 lower-case letters, digits and '-', starting with a letter and not ending with '-', such as"
    " 'demo'"
)


def is_address(text: str) -> bool:
    """Whether callers can send to it: the CEL rule of `IpAddress` in Python."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    mapped = isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped or address.scope_id)
    return not (mapped or address.is_unspecified or address.is_multicast)


def is_network(text: str) -> bool:
    """Whether it is a network without host bits: the CEL rule of `Network` in Python."""
    try:
        network = ipaddress.ip_network(text)
    except ValueError:
        return False
    mapped = isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped
    return "/" in text and not mapped


def is_origin(text: str) -> bool:
    """Whether a browser could send it as `Origin`."""
    return text == "*" or re.fullmatch(r"https?://[^/*\s]+", text) is not None


def is_quantity(text: str) -> bool:
    """Whether it is an amount above zero."""
    return re.fullmatch(QUANTITY, text) is not None and any(digit in "123456789" for digit in text)


def _text(amount: object) -> object:
    return str(amount) if isinstance(amount, int) and not isinstance(amount, bool) else amount


def _keys_are_labels(values: Mapping[str, str]) -> bool:
    return all(re.fullmatch(LABEL_KEY, key) for key in values)


ClusterName = Annotated[
    str,
    Field(min_length=1, max_length=CLUSTER_NAME_LENGTH),
    matches(DNS_LABEL, NAME_MESSAGE),
]
RegionName = Annotated[
    str,
    Field(min_length=1, max_length=20),
    matches(
        DNS_LABEL,
        "use lower-case letters, digits and '-', starting with a letter and not ending with '-', such as 'eu-west'",
    ),
]
ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    matches(
        DNS_SUBDOMAIN,
        "write the name of the object alone: lower-case letters, digits, '-' and '.', such as 'my-keys'",
    ),
]
NamespaceName = Annotated[
    str,
    Field(min_length=1, max_length=63),
    matches(
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
        "write a namespace's name: lower-case letters, digits and '-', such as 'demo'",
    ),
]
IpAddress = Annotated[
    str,
    Field(max_length=45),
    Must(
        Cel(
            "isIP(self) && !ip(self).isUnspecified() && !self.matches('^(22[4-9]|23[0-9])[.]|^[fF][fF]')",
            "write an IP address that callers reach, such as 203.0.113.5 or 2001:db8::5, without a port",
        ),
        is_address,
    ),
    AfterValidator(lambda text: str(ipaddress.ip_address(text))),
]
Network = Annotated[
    str,
    Field(max_length=49),
    Must(
        Cel(
            "isCIDR(self) && cidr(self) == cidr(self).masked()",
            "write a network whose host bits are zero, such as 10.0.0.0/16 or 2001:db8::/64",
        ),
        is_network,
    ),
    AfterValidator(lambda text: str(ipaddress.ip_network(text))),
]
Origin = Annotated[
    str,
    Field(max_length=253),
    Must(
        Cel(
            r"self == '*' || self.matches(r'^https?://[^/*\s]+$')",
            "write an origin without a path, such as https://app.example.com, or '*' for all",
        ),
        is_origin,
    ),
]
Image = Annotated[
    str,
    Field(min_length=1, max_length=512),
    matches(
        r"[A-Za-z0-9][-A-Za-z0-9._:/@]*",
        "write a whole image reference, such as registry.example.com/relay:1.2",
    ),
]
Port = Annotated[int, Field(ge=1, le=65535), Unit("port")]
Quantity = Annotated[
    str,
    BeforeValidator(_text),
    WithJsonSchema({"x-kubernetes-int-or-string": True, "maxLength": 32}),
    Must(
        Cel(
            f"type(self) == int ? int(self) > 0 : (string(self).matches(r'^(?:{QUANTITY})$')"
            " && quantity(string(self)).isGreaterThan(quantity('0')))",
            "write an amount above zero, such as 500m or 2 (cores), 256Mi or 1Gi (bytes)",
        ),
        is_quantity,
    ),
]
"""A number stands for its text, as everywhere in Kubernetes."""
LabelValue = Annotated[
    str,
    Field(max_length=63),
    matches(LABEL_VALUE, "write a label's value: letters, digits, '-', '_' and '.', such as 'eu-west'"),
]
_KEYS = Must(
    Cel(
        f"self.all(key, key.matches(r'^(?:{LABEL_KEY})$'))",
        "write keys as Kubernetes has them: an optional prefix and '/', then letters, digits, '-', '_' and '.', such as"
        " topology.kubernetes.io/region",
    ),
    _keys_are_labels,
)
NodeLabels = Annotated[dict[str, LabelValue], Field(max_length=16), _KEYS]
Annotations = Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=32), _KEYS]
