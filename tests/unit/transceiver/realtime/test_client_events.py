"""What clients may send, and what they are told when it is wrong. The session goes on after all of it."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from voicecluster.transceiver.realtime import client_events


def refusal(desk, text: str) -> dict[str, Any]:
    (event,) = desk.send(text)
    assert event["type"] == "error"
    assert desk.send({"type": "session.update", "session": {}})[0]["type"] == "session.updated"
    error: dict[str, Any] = event["error"]
    return error


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '"x"', "5", "null", "\x00", "[" * 10_000, "NaN", '{"a": NaN}'[:9]]
)
def test_what_is_no_json_object_is_refused(desk, text: str) -> None:
    assert refusal(desk, text)["code"] == "invalid_json"


@pytest.mark.parametrize("value", ["NaN", "1e999", '"\\ud800"', "[" * 400 + "]" * 400, "9" * 5000])
def test_what_other_parsers_could_not_read_back_is_refused(desk, value: str) -> None:
    text = '{"type": "session.update", "session": {"tool_choice": ' + value + "}}"
    assert refusal(desk, text)["code"] == "invalid_json"


def test_an_event_needs_a_type(desk) -> None:
    error = refusal(desk, '{"event_id": "e1"}')
    assert (error["code"], error["param"], error["event_id"]) == ("missing_required_parameter", "type", "e1")


def test_an_unknown_type_is_refused_with_the_known_ones(desk) -> None:
    error = refusal(desk, '{"type": "session.explode", "event_id": "e1"}')
    assert (error["type"], error["param"], error["event_id"]) == ("invalid_request_error", "type", "e1")
    assert "session.update" in error["message"]


@pytest.mark.parametrize(
    ("session", "param", "code"),
    [
        (
            {"audio": {"input": {"turn_detection": {"threshold": 2}}}},
            "audio.input.turn_detection.threshold",
            "invalid_value",
        ),
        (
            {"audio": {"input": {"turn_detection": {"type": "psychic"}}}},
            "audio.input.turn_detection",
            "invalid_value",
        ),
        (
            {"audio": {"input": {"turn_detection": {"silence": 5}}}},
            "audio.input.turn_detection.silence",
            "unknown_parameter",
        ),
        ({"audio": 5}, "audio", "invalid_value"),
        ({"voice": "alloy"}, "voice", "unknown_parameter"),
        ({"type": "transcription"}, "type", "invalid_value"),
    ],
)
def test_a_bad_field_is_named_and_changes_nothing(desk, session: object, param: str, code: str) -> None:
    before = desk.agent.configured[-1]
    error = refusal(desk, json.dumps({"type": "session.update", "event_id": "e7", "session": session}))
    assert (error["param"], error["code"], error["event_id"]) == (f"session.{param}", code, "e7")
    assert desk.agent.configured[-1] == before


def test_an_update_without_a_session_is_refused(desk) -> None:
    assert refusal(desk, '{"type": "session.update"}')["param"] == "session"


def test_an_event_beyond_64_kib_is_refused(desk) -> None:
    text = json.dumps({"type": "session.update", "session": {"instructions": "x" * 66_000}})
    assert refusal(desk, text)["code"] == "event_too_large"
    small = json.dumps(
        {"type": "session.update", "session": {"instructions": "é" * 20_000}}, ensure_ascii=False
    )
    assert desk.send(small)[0]["type"] == "session.updated"


def test_a_flood_of_events_gets_one_error_and_then_is_dropped(desk) -> None:
    answers = [event for _ in range(1000) for event in desk.send({"type": "session.update", "session": {}})]
    assert len(answers) == 201
    assert answers[-1]["error"]["code"] == "rate_limit_exceeded"
    desk.now += 1.0
    assert desk.send({"type": "session.update", "session": {}})[0]["type"] == "session.updated"


def test_what_stock_clients_say_of_tools_and_voices_is_kept(desk) -> None:
    session = {
        "type": "realtime",
        "model": "gpt-realtime",
        "instructions": "Be kind.",
        "output_modalities": ["audio"],
        "audio": {
            "input": {
                "format": {"type": "audio/pcm", "rate": 24000},
                "transcription": {"model": "gpt-4o-mini-transcribe"},
                "noise_reduction": {"type": "near_field"},
                "turn_detection": {"type": "semantic_vad"},
            },
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "marin", "speed": 1.1},
        },
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}],
        "tool_choice": "auto",
        "tracing": None,
        "max_output_tokens": 1000,
    }
    (updated,) = desk.send({"type": "session.update", "session": session})
    assert updated["type"] == "session.updated", updated
    assert updated["session"]["audio"]["output"]["voice"] == "marin"
    assert updated["session"]["tools"] == session["tools"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from([*client_events._EVENTS, "x"])


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(kind=KINDS, fields=st.dictionaries(st.sampled_from(["session", "item", "response", "event_id"]), JSON))
def test_no_client_event_raises(desk, kind: str, fields: dict[str, object]) -> None:
    desk.now += 1.0
    desk.send(json.dumps({"type": kind, **fields}))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(max_size=40))
def test_no_text_raises(desk, text: str) -> None:
    desk.now += 1.0
    desk.send(text)
