"""The chart's roles grant no more than they have to."""

from collections.abc import Callable

import pytest

Render = Callable[..., list[dict]]

NAMESPACED = {"watchNamespaces": ["blue", "green"]}
HOSTED = {"hostNetwork": {"enabled": True}}


def roles(objects: list[dict]) -> list[dict]:
    return [found for found in objects if found["kind"] in ("Role", "ClusterRole")]


def rules(objects: list[dict]) -> list[dict]:
    return [rule for role in roles(objects) for rule in role["rules"]]


def grants(objects: list[dict]) -> set[tuple[str, str, str]]:
    """(API group, resource, verb) of what the operator itself may do."""
    return {
        (group, resource, verb)
        for role in roles(objects)
        if not role["metadata"]["name"].endswith(("-edit", "-view"))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize("values", [{}, NAMESPACED, HOSTED, NAMESPACED | HOSTED])
def test_no_rule_has_a_wildcard(render: Render, values: dict[str, object]) -> None:
    for rule in rules(render(values)):
        assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


@pytest.mark.parametrize("values", [{}, HOSTED])
def test_rules_stand_in_alphabetical_order(render: Render, values: dict[str, object]) -> None:
    for role in roles(render(values)):
        keys = [(rule["apiGroups"], rule["resources"]) for rule in role["rules"]]
        assert keys == sorted(keys)
        for rule in role["rules"]:
            assert (rule["resources"], rule["verbs"]) == (sorted(rule["resources"]), sorted(rule["verbs"]))


@pytest.mark.parametrize("verb", ["bind", "escalate", "impersonate", "deletecollection"])
def test_the_operator_never_holds_more_than_it_hands_out(render: Render, verb: str) -> None:
    assert verb not in {granted for _, _, granted in grants(render(HOSTED))}


def test_a_namespaced_install_has_no_cluster_role(render: Render) -> None:
    kinds = {found["kind"] for found in render(NAMESPACED)}
    assert not kinds & {"ClusterRole", "ClusterRoleBinding"}


def test_a_namespaced_install_has_the_same_rights_in_each_of_its_namespaces(render: Render) -> None:
    objects = render(NAMESPACED)
    [blue, green, lease] = [role for role in objects if role["kind"] == "Role"]
    assert (blue["metadata"]["namespace"], green["metadata"]["namespace"]) == ("blue", "green")
    assert blue["rules"] == green["rules"]
    assert lease["metadata"]["namespace"] == "voicecluster-system"
    assert grants(objects) == grants(render())


def test_nodes_and_namespaces_are_read_only_for_host_network(render: Render) -> None:
    added = grants(render(HOSTED)) - grants(render())
    assert added == {("", "nodes", "list"), ("", "nodes", "watch"), ("", "namespaces", "get")}


def test_a_namespaced_install_with_host_network_has_a_cluster_role_for_nodes_only(render: Render) -> None:
    [role] = [found for found in render(NAMESPACED | HOSTED) if found["kind"] == "ClusterRole"]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]


def test_leases_are_written_in_the_operators_own_namespace_only(render: Render) -> None:
    [role] = [
        role for role in roles(render()) if any("leases" in rule["resources"] for rule in role["rules"])
    ]
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "voicecluster-system")


def test_every_role_is_bound_to_the_operators_account_but_those_for_people(render: Render) -> None:
    objects = render(HOSTED)
    bound = {
        (found["roleRef"]["kind"], found["roleRef"]["name"])
        for found in objects
        if found["kind"] in ("RoleBinding", "ClusterRoleBinding")
        and found["subjects"]
        == [
            {"kind": "ServiceAccount", "name": "vc-voicecluster-operator", "namespace": "voicecluster-system"}
        ]
    }
    unbound = {(role["kind"], role["metadata"]["name"]) for role in roles(objects)} - bound
    assert unbound == {
        ("ClusterRole", "vc-voicecluster-operator-edit"),
        ("ClusterRole", "vc-voicecluster-operator-view"),
    }
