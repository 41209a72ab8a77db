"""Tests of the buttons in messages. Each message has only the buttons that suit its alert.

The buttons are within Slack's limits, and Lookout reads their values back unchanged.
"""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.alerts.slack.render import BUTTONS, MENU, parse_button_action, render_alert
from monitors.records.exchanges import Origin
from monitors.records.incidents import ActionKind, ActionVia, IncidentKind, NotifyReason, OperatorMark
from tests.monitors.alerts.hostile import hostile_text
from tests.monitors.alerts.sample_observations import (
    NIGHT,
    SETTINGS,
    alert,
    alert_with_items,
    items,
    observation,
    outage,
)
from tests.servers.slack_rules import mentions, texts, wrong_with

WITH_BUTTONS = SETTINGS.model_copy(update={"slack_buttons": True})


def blocks_of(sent):
    return json.loads(json.dumps(render_alert(sent, WITH_BUTTONS).blocks))


def offered(sent) -> list[tuple[str, str]]:
    """Return the ``action_id`` and the value of every button and menu option of a message."""
    blocks = blocks_of(sent)
    menus = [block["accessory"] for block in blocks if "accessory" in block]
    found = [(MENU, option["value"]) for menu in menus for option in menu["options"]]
    for block in blocks:
        if block["type"] == "actions":
            found += [(one["action_id"], one["value"]) for one in block["elements"]]
    return found


def mark(kind, *seen, by="U0ASHA", via=ActionVia.SLACK):
    about = tuple(one.fingerprint for one in seen)
    return OperatorMark(kind=kind, by=by, via=via, at=NIGHT + timedelta(hours=1), fingerprints=about)


def marked(sent, *marks):
    return sent.model_copy(update={"marks": marks})


def names(sent):
    return [action_id for action_id, _ in offered(sent)]


def test_a_probe_s_finding_can_be_acknowledged_or_called_false():
    assert names(alert()) == ["lookout_acknowledge", "lookout_false_alarm"]


@pytest.mark.parametrize("origin", [Origin.TRAFFIC, Origin.LOG])
def test_a_question_of_a_user_can_become_gold(origin):
    assert names(alert(observation(origin=origin)))[-1] == "lookout_add_to_gold"


def test_alerts_without_an_answer_can_only_be_acknowledged():
    assert names(alert_with_items(items(outage(IncidentKind.APP_DOWN)))) == ["lookout_acknowledge"]


def test_a_recovery_has_no_buttons():
    over = alert().model_copy(update={"reason": NotifyReason.RECOVERED})
    assert names(over) == []


@pytest.mark.parametrize(
    ("done", "left"),
    [
        (ActionKind.ACKNOWLEDGE, ["lookout_false_alarm"]),
        (ActionKind.FALSE_ALARM, []),
        (ActionKind.RESOLVE, ["lookout_false_alarm"]),
    ],
)
def test_completed_actions_are_not_offered_again(done, left):
    assert names(marked(alert(), mark(done, observation()))) == left


def test_of_several_each_has_a_menu_and_all_have_one_button():
    sent = alert(observation("a"), observation("b"))
    values = [value for action_id, value in offered(sent) if action_id == MENU]
    assert [value.split()[0] for value in values] == ["acknowledge", "false_alarm"] * 2
    assert ("lookout_acknowledge", f"{sent.id} 2") in offered(sent)


def test_the_button_for_all_stays_until_all_are_done():
    both = observation("a"), observation("b")
    assert "lookout_acknowledge" in names(marked(alert(*both), mark(ActionKind.ACKNOWLEDGE, both[0])))
    assert "lookout_acknowledge" not in names(marked(alert(*both), mark(ActionKind.ACKNOWLEDGE, *both)))


@given(st.sets(st.integers(1, 30), min_size=1), st.sampled_from(list(Origin)))
def test_every_button_is_read_back_as_what_it_says(numbers, origin):
    seen = [observation(f"case-{number}", origin=origin) for number in numbers]
    sent = alert(*seen)
    for action_id, value in offered(sent):
        press = parse_button_action(action_id, value)
        assert press is not None
        assert press.alert_id == sent.id
        assert press.kind is BUTTONS.get(action_id, press.kind)
        assert set(press.fingerprints) <= {one.fingerprint for one in seen}
        assert bool(press.fingerprints) is (action_id == MENU)


@given(st.text(max_size=200), st.sampled_from([*BUTTONS, MENU]))
def test_any_other_value_is_refused_and_another_button_is_not_ours(value, action_id):
    assert parse_button_action("another_action", value) is None
    try:
        press = parse_button_action(action_id, value)
    except ValueError:
        return
    assert press is not None
    assert value.endswith((str(press.shown), *press.fingerprints))


@given(hostile_text.filter(bool), st.lists(st.sampled_from(list(ActionKind)), max_size=30))
def test_marks_of_anybody_are_within_slacks_limits_and_ring_nobody(name, kinds):
    seen = observation()
    marks = (mark(kind, seen, by=name[:200], via=ActionVia.COMMAND) for kind in kinds)
    said = render_alert(marked(alert(seen), *marks), WITH_BUTTONS)
    sent = {"text": said.text, "blocks": json.loads(json.dumps(said.blocks))}
    assert wrong_with(sent) is None
    assert mentions(sent) == []


def test_a_slack_id_that_is_none_is_shown_as_text():
    sent = marked(alert(), mark(ActionKind.ACKNOWLEDGE, observation(), by="U0><!channel>"))
    assert mentions({"blocks": blocks_of(sent)}) == []
    assert any("*Acknowledged* by U0&gt;" in text for text in texts(blocks_of(sent)))
