"""A Realtime session as its client sees it: which events, in which order, with which fields."""

from typing import Any

import pytest
from voicecluster.transceiver.agents.base import (
    LiveAudio,
    ResponseFinished,
    ResponseStarted,
    SpeechStarted,
    SpeechStopped,
    SpeechSuspected,
    TurnDetection,
)

Events = list[dict[str, Any]]


def types(events: Events) -> list[str]:
    return [event["type"] for event in events]


def only(events: Events, kind: str) -> dict[str, Any]:
    (found,) = (event for event in events if event["type"] == kind)
    return found


def test_the_session_is_told_when_the_channel_opens(desk) -> None:
    (created,) = desk.events
    assert created["type"] == "session.created"
    session = created["session"]
    assert (session["type"], session["object"], session["model"]) == (
        "realtime",
        "realtime.session",
        "gpt-realtime",
    )
    assert session["audio"]["input"]["turn_detection"] == {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "create_response": True,
        "interrupt_response": True,
        "idle_timeout_ms": None,
    }


def test_before_the_channel_is_open_the_agent_hears_and_nothing_is_emitted(new_desk, puppet) -> None:
    desk = new_desk(puppet())
    desk.run(3, SpeechStarted(0))
    assert (len(desk.agent.heard), desk.events) == (3, [])


def test_event_ids_are_unique(desk) -> None:
    desk.run(1, SpeechStarted(0), SpeechStopped(500))
    desk.speaking(2)
    desk.run(5)
    ids = [event["event_id"] for event in desk.events]
    assert len(set(ids)) == len(ids) > 10


def test_a_turn_becomes_an_item_of_the_conversation(desk) -> None:
    events = desk.run(1, SpeechStarted(1200), SpeechStopped(2700))
    assert types(events) == [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
    ]
    assert (events[0]["audio_start_ms"], events[1]["audio_end_ms"]) == (1200, 2700)
    item_id = events[0]["item_id"]
    assert {events[1]["item_id"], events[2]["item_id"], events[3]["item"]["id"]} == {item_id}
    assert events[3]["item"]["role"] == "user"
    assert events[2]["previous_item_id"] is None
    assert desk.run(1, SpeechStarted(3000), SpeechStopped(4000))[2]["previous_item_id"] == item_id


def test_a_response_is_created_played_and_done(desk) -> None:
    said = desk.speaking(3)
    desk.run(3)
    assert types(desk.events[1:]) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "output_audio_buffer.started",
        "response.output_audio.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
        "output_audio_buffer.stopped",
    ]
    assert desk.played[:3] == said
    created, done = only(desk.events, "response.created"), only(desk.events, "response.done")
    assert created["response"]["status"] == "in_progress"
    assert done["response"]["status"] == "completed"
    assert done["response"]["id"] == only(desk.events, "output_audio_buffer.stopped")["response_id"]
    assert done["response"]["output"][0]["status"] == "completed"


def test_speech_is_paced_one_frame_a_tick(desk) -> None:
    said = desk.speaking(50)
    for heard in range(1, 40):
        assert desk.played == said[:heard]
        desk.run(1)


def test_new_speech_silences_the_answer_in_the_same_tick(desk) -> None:
    desk.speaking(100)
    desk.run(20)
    before = len(desk.played)
    events = desk.run(1, SpeechStarted(700))
    assert types(events)[:2] == ["input_audio_buffer.speech_started", "output_audio_buffer.cleared"]
    done = only(events, "response.done")["response"]
    assert (done["status"], done["status_details"]["reason"]) == ("cancelled", "turn_detected")
    assert done["output"][0]["status"] == "incomplete"
    desk.run(30)
    assert set(desk.played[before:]) == {bytes(960)}, "nothing but silence"
    assert len(desk.played[before:]) <= 10, "and of that only so much that a decoder ends its last sound"
    assert desk.agent.cancelled == 1


def test_a_frame_that_may_be_speech_holds_the_answer_for_a_tick(desk) -> None:
    said = desk.speaking(100)
    desk.run(3)
    desk.run(1, SpeechSuspected())
    desk.run(2)
    assert desk.played == [*said[:4], bytes(960), *said[4:6]]


def test_without_interrupt_response_the_answer_goes_on(desk) -> None:
    detection = {"type": "server_vad", "interrupt_response": False}
    desk.send({"type": "session.update", "session": {"audio": {"input": {"turn_detection": detection}}}})
    said = desk.speaking(30)
    assert types(desk.run(1, SpeechStarted(700))) == ["input_audio_buffer.speech_started"]
    desk.run(1, SpeechSuspected())
    desk.run(39)
    assert desk.played[:30] == said


def test_cancel_ends_the_response_with_its_reason(desk) -> None:
    desk.speaking(100)
    events = desk.send({"type": "response.cancel"})
    assert only(events, "response.done")["response"]["status_details"] == {
        "type": "cancelled",
        "reason": "client_cancelled",
        "error": None,
    }
    assert "output_audio_buffer.cleared" in types(events)


def test_clear_cuts_off_what_plays_and_after_cancel_is_no_error(desk) -> None:
    desk.speaking(100)
    assert "output_audio_buffer.cleared" in types(desk.send({"type": "output_audio_buffer.clear"}))
    assert desk.send({"type": "output_audio_buffer.clear"}) == []


def test_create_lets_the_agent_speak(desk) -> None:
    desk.agent.answer = [ResponseStarted(), ResponseFinished()]
    assert types(desk.send({"type": "response.create"}))[0] == "response.created"
    assert only(desk.run(1), "response.done")["response"]["status"] == "completed"
    assert "output_audio_buffer.started" not in types(desk.events), "without audio nothing starts"


def test_create_for_an_agent_with_nothing_to_say_is_an_empty_response(desk) -> None:
    events = desk.send({"type": "response.create", "response": {"instructions": "Say hello."}})
    assert types(events) == ["response.created", "response.done"]
    assert events[1]["response"]["output"] == []


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"type": "response.cancel"}, "response_cancel_not_active"),
        ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty"),
    ],
)
def test_what_cannot_be_done_now_is_an_error_with_the_events_id(
    desk, event: dict[str, str], code: str
) -> None:
    (error,) = desk.send(event | {"event_id": "mine"})
    assert (error["type"], error["error"]["code"], error["error"]["event_id"]) == ("error", code, "mine")


def test_a_second_response_is_refused_while_one_is_spoken(desk) -> None:
    desk.speaking(100)
    (error,) = desk.send({"type": "response.create"})
    assert error["error"]["code"] == "conversation_already_has_active_response"


def test_an_update_changes_what_it_names_and_keeps_the_rest(desk) -> None:
    update = {
        "audio": {"input": {"turn_detection": {"silence_duration_ms": 900}}},
        "instructions": "Be brief.",
    }
    (updated,) = desk.send({"type": "session.update", "session": update})
    assert updated["type"] == "session.updated"
    detection = updated["session"]["audio"]["input"]["turn_detection"]
    assert (detection["silence_duration_ms"], detection["prefix_padding_ms"]) == (900, 300)
    assert updated["session"]["instructions"] == "Be brief."
    assert desk.agent.configured[-1] == TurnDetection(silence_duration_ms=900)


def test_turn_detection_can_be_switched_off_and_patient(desk) -> None:
    def configured(detection: object) -> TurnDetection | None:
        desk.send({"type": "session.update", "session": {"audio": {"input": {"turn_detection": detection}}}})
        return desk.agent.configured[-1]

    assert configured(None) is None
    patient = configured({"type": "semantic_vad", "eagerness": "low"})
    assert patient is not None
    assert patient.silence_duration_ms == 1500
    assert configured({"type": "server_vad", "threshold": 0.9}) == TurnDetection(threshold=0.9)


def test_the_offers_session_is_used_and_its_faults_are_told(new_desk, puppet) -> None:
    good = new_desk(
        puppet(), {"type": "realtime", "audio": {"input": {"turn_detection": {"threshold": 0.8}}}}
    )
    assert good.agent.configured[-1] == TurnDetection(threshold=0.8)
    bad = new_desk(puppet(), {"type": "realtime", "audio": {"input": {"turn_detection": {"threshold": 8}}}})
    bad.session.opened(bad.now)
    assert types(bad.events) == ["session.created", "error"]
    assert bad.events[1]["error"]["param"] == "session.audio.input.turn_detection.threshold"


def test_without_turn_detection_the_client_commits(desk) -> None:
    desk.send({"type": "session.update", "session": {"audio": {"input": {"turn_detection": None}}}})
    desk.run(5)
    assert types(desk.send({"type": "input_audio_buffer.commit"}))[0] == "input_audio_buffer.committed"
    assert types(desk.send({"type": "input_audio_buffer.clear"})) == ["input_audio_buffer.cleared"]
    assert desk.agent.heard == []


def test_an_item_of_the_client_is_told_back(desk) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
    added, done = desk.send({"type": "conversation.item.create", "item": item})
    assert (added["type"], done["type"]) == ("conversation.item.added", "conversation.item.done")
    assert added["item"]["content"] == item["content"]
    assert added["item"]["id"]


def test_a_failing_agent_ends_its_response_and_not_the_call(desk) -> None:
    desk.speaking(100)
    desk.agent.fails = True
    events = desk.run(1)
    assert only(events, "response.done")["response"]["status"] == "failed"
    desk.agent.fails = False
    assert types(desk.run(1, SpeechStarted(0))) == ["input_audio_buffer.speech_started"]


def test_live_frames_go_straight_on_and_pile_up_no_delay(desk) -> None:
    frames = [index.to_bytes(2, "little") * 480 for index in range(1, 400)]
    for frame in frames[:10]:
        desk.run(1, LiveAudio(frame))
    assert desk.played == frames[:10]
    desk.run(1, *(LiveAudio(frame) for frame in frames[10:25]))  # a stall of the network ends
    for frame in frames[25:399]:
        desk.run(1, LiveAudio(frame))
    assert desk.played[-1] in frames[397:], "within three seconds it is live again"


def test_a_closed_session_is_silent(desk) -> None:
    desk.speaking(100)
    desk.session.close(desk.now)
    before = (len(desk.events), len(desk.played))
    desk.run(5, SpeechStarted(0))
    desk.send({"type": "response.create"})
    assert (len(desk.events), len(desk.played)) == before
