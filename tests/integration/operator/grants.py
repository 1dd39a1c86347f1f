"""What roles grant, and what an API server's audit log says was used of it and what was missing."""

import json
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FORBIDDEN = 403
CREATED = 201
GOING = "because it is being terminated"
"""Refused to everybody, whatever their rights: the namespace is being deleted."""


@dataclass(frozen=True, slots=True, order=True)
class Grant:
    """One verb on one resource; `resource` has its subresource, as `voiceclusters/status`."""

    group: str
    resource: str
    verb: str

    def __str__(self) -> str:
        """As `kubectl auth can-i` takes it."""
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}"


def grants(roles: Iterable[dict[str, Any]]) -> set[Grant]:
    """All that these Roles and ClusterRoles grant together."""
    return {
        Grant(group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule.get("apiGroups", [])
        for resource in rule.get("resources", [])
        for verb in rule["verbs"]
    }


def records(log: Path, *, since: int = 0) -> Iterator[dict[str, Any]]:
    """The audit log's records after its first `since` bytes; what is still being written is left out."""
    with log.open("rb") as file:
        file.seek(since)
        for line in file:
            if line.endswith(b"\n"):
                yield json.loads(line)


def account(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def user(record: dict[str, Any]) -> str:
    """Whose request it was; empty where nobody was recognised."""
    name: str = record["user"].get("username", "")
    return name


def used(audit: Iterable[dict[str, Any]], users: set[str]) -> set[Grant]:
    """What these users were allowed and did. An apply that made its object needed `create` too."""
    found = set()
    for record in audit:
        if user(record) in users and "objectRef" in record and _code(record) != FORBIDDEN:
            grant = _grant(record)
            found.add(grant)
            if grant.verb == "patch" and _code(record) == CREATED:
                found.add(Grant(grant.group, grant.resource, "create"))
    return found


def forbidden(audit: Iterable[dict[str, Any]], users: set[str], *, but: Set[Grant] = frozenset()) -> set[str]:
    """What these users asked for and were not allowed, as sentences.

    `but`: what they have, and are refused only while a test has deleted their Role.
    """
    return {
        f"{user(record)}: {_grant(record)}: {record['responseStatus'].get('message', '')}"
        for record in audit
        if user(record) in users and "objectRef" in record and _code(record) == FORBIDDEN
        if GOING not in record["responseStatus"].get("message", "") and _grant(record) not in but
    }


def _grant(record: dict[str, Any]) -> Grant:
    about = record["objectRef"]
    resource = "/".join(part for part in (about["resource"], about.get("subresource")) if part)
    return Grant(about.get("apiGroup", ""), resource, record["verb"])


def _code(record: dict[str, Any]) -> int:
    code: int = record.get("responseStatus", {}).get("code", 0)
    return code
