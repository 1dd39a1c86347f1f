"""When a live object is as wanted, and when not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from voicecluster.operator.kube.difference import differs, quantity
from voicecluster.operator.kube.port import Json, Object


def pod_template(**container: Json) -> Object:
    return {"spec": {"template": {"spec": {"containers": [{"name": "relay", **container}]}}}}


def test_an_object_is_as_wanted_when_the_api_added_defaults_and_status() -> None:
    wanted = pod_template(image="relay:1")
    live = {
        "spec": {
            "template": {"spec": {"containers": [{"name": "relay", "image": "relay:1", "tty": False}]}},
            "replicas": 1,
        },
        "status": {"readyReplicas": 1},
    }
    assert differs(wanted, live) == []


def test_a_changed_field_is_named_by_its_path() -> None:
    path = "spec.template.spec.containers[relay].image"
    assert differs(pod_template(image="relay:2"), pod_template(image="relay:1")) == [path]


def test_a_removed_field_is_named() -> None:
    assert differs({"data": {"a": "1", "b": "2"}}, {"data": {"a": "1"}}) == ["data.b"]


@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_what_is_wanted_empty_may_be_absent(empty: Json) -> None:
    assert differs({"spec": {"subPath": empty}}, {"spec": {}}) == []


@pytest.mark.parametrize("value", [False, 0])
def test_false_and_zero_must_be_there(value: Json) -> None:
    assert differs({"spec": {"automount": value}}, {"spec": {}}) == ["spec.automount"]


@pytest.mark.parametrize(
    ("wanted", "live"), [("1000m", "1"), (1, "1"), ("0.5", "500m"), ("1024Mi", "1Gi"), ("1k", "1000")]
)
def test_quantities_are_compared_by_value(wanted: Json, live: Json) -> None:
    one, other = ({"resources": {"limits": {"cpu": each}}} for each in (wanted, live))
    assert differs(one, other) == []


def test_a_string_elsewhere_is_no_quantity() -> None:
    assert differs({"data": {"cpu": "1000m"}}, {"data": {"cpu": "1"}}) == ["data.cpu"]


def test_a_foreign_container_may_stand_beside_ours() -> None:
    live: Object = {
        "spec": {
            "template": {"spec": {"containers": [{"name": "mesh"}, {"name": "relay", "image": "relay:1"}]}}
        }
    }
    assert differs(pod_template(image="relay:1"), live) == []


def test_a_missing_container_is_named() -> None:
    live: Object = {"spec": {"template": {"spec": {"containers": [{"name": "mesh"}]}}}}
    assert differs(pod_template(), live) == ["spec.template.spec.containers[relay]"]


def test_ports_of_a_service_are_known_by_port_and_protocol() -> None:
    wanted: Object = {"spec": {"ports": [{"port": 3478, "protocol": "UDP", "targetPort": 13478}]}}
    live: Object = {
        "spec": {
            "ports": [
                {"port": 3478, "protocol": "TCP", "targetPort": 1},
                {"port": 3478, "protocol": "UDP", "targetPort": 13478, "nodePort": 30001},
            ]
        }
    }
    assert differs(wanted, live) == []


def test_ports_without_a_protocol_are_tcp() -> None:
    wanted: Object = {"spec": {"ports": [{"port": 80}]}}
    assert differs(wanted, {"spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}) == []


def test_a_foreign_rule_in_a_list_without_merge_key_is_a_difference() -> None:
    wanted: Object = {"spec": {"ingress": [{"ports": [{"port": 1}]}]}}
    live: Object = {"spec": {"ingress": [{"ports": [{"port": 1}, {"port": 2}]}]}}
    assert differs(wanted, live) == ["spec.ingress[0].ports"]


def test_a_foreign_label_may_stay_but_not_in_a_selector() -> None:
    wanted: Object = {"metadata": {"labels": {"a": "1"}}, "spec": {"selector": {"a": "1"}}}
    live: Object = {
        "metadata": {"labels": {"a": "1", "x": "1"}},
        "spec": {"selector": {"a": "1", "x": "1"}},
    }
    assert differs(wanted, live) == ["spec.selector.x"]


def test_true_is_not_one() -> None:
    assert differs({"a": True}, {"a": 1}) == ["a"]


def test_a_number_is_not_a_mapping() -> None:
    assert differs({"a": {"b": 1}}, {"a": 1}) == ["a"]


def test_what_is_no_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="'much' is not a quantity"):
        quantity("much")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=20,
)
OBJECTS = st.dictionaries(st.text(max_size=5), JSON, max_size=4)


@given(OBJECTS)
def test_every_object_is_as_itself(value: dict[str, Json]) -> None:
    assert differs(value, value) == []


@given(OBJECTS, st.text(max_size=5), JSON)
def test_more_at_the_top_is_no_difference(value: dict[str, Json], key: str, more: Json) -> None:
    assert differs(value, {key: more, **value}) == []
