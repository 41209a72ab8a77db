"""Button presses in Slack: signed requests to a real receiver, with a local Slack server and a real warehouse."""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path

import pytest

from deployments.receivers.slack_actions import parse_slack_actions
from flows.alerting.notifier import store_operator_action
from monitors.records.exchanges import Origin
from monitors.records.incidents import IncidentState
from tests.deployments.receivers.slack_receiver import page, pressed, receiver, states
from tests.flows.operator_actions import Clock, build_notifier, build_operator_actions
from tests.monitors.alerts.sample_observations import observation
from tests.servers.slack import SlackServer
from tests.servers.slack_interaction import form_of, interaction, signed
from tests.servers.slack_rules import mentions, texts

ACKNOWLEDGE, FALSE_ALARM, TO_GOLD, MENU = (
    "lookout_acknowledge",
    "lookout_false_alarm",
    "lookout_add_to_gold",
    "lookout_one",
)


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def people(tmp_path, slack, clock):
    return build_operator_actions(tmp_path, slack, clock)


@pytest.fixture
async def door(people, clock):
    async with receiver(people, clock, build_notifier(people, clock).sender) as opened:
        yield opened


async def test_acknowledge(people, clock, slack, door, snapshot):
    await page(people, clock)
    clock.skip(minutes=14)
    answer = await door.press(interaction(slack, slack.messages[0], ACKNOWLEDGE, user="U0ASHA"))
    assert (answer.status_code, answer.content) == (200, b"")
    assert states(people) == [IncidentState.ACKNOWLEDGED]
    (shown,) = slack.messages
    assert list(texts(shown.blocks)) == snapshot
    assert mentions({"text": shown.text, "blocks": shown.blocks}) == ["<@U"]


async def test_false_alarm_is_asked_twice_and_then_labelled(people, clock, slack, door):
    await page(people, clock)
    button = next(b for block in slack.messages[0].blocks for b in block.get("elements", ()) if "confirm" in b)
    assert button["action_id"] == FALSE_ALARM
    await door.press(interaction(slack, slack.messages[0], FALSE_ALARM))
    labels = people.store.query("select finding_right, done_by from labels").rows
    assert labels == ((False, "U0ASHA"),)
    assert states(people) == [IncidentState.RESOLVED]
    assert "lookout_" not in json.dumps([b for b in slack.messages[0].blocks if b["type"] == "actions"])


async def test_add_to_gold_is_offered_for_what_a_user_asked_and_for_nothing_else(
    people, clock, slack, door, snapshot
):
    await page(people, clock, observation("conversation-1", origin=Origin.TRAFFIC))
    await door.press(interaction(slack, slack.messages[0], TO_GOLD))
    assert people.store.query("select count(*) from case_drafts").rows == ((1,),)
    assert list(texts(slack.messages[0].blocks)) == snapshot
    await page(people, clock, observation("leak-9", run_id="run-1", origin=Origin.PROBE, target="other"))
    assert TO_GOLD not in json.dumps(slack.messages[-1].blocks)


async def test_one_of_several_failures_by_its_menu(people, clock, slack, door, snapshot):
    await page(people, clock, observation("leak-1"), observation("leak-2"))
    await door.press(interaction(slack, slack.messages[0], MENU, option="False alarm", nth=1))
    assert states(people) in (
        [IncidentState.OPEN, IncidentState.RESOLVED],
        [IncidentState.RESOLVED, IncidentState.OPEN],
    )
    assert list(texts(slack.messages[0].blocks)) == snapshot


async def test_f28_the_same_press_again_is_one_action(people, clock, slack, door):
    """A repeated delivery of a button press has no effect.

    If another user presses the same button later, nothing happens either.
    """
    await page(people, clock)
    before = slack.messages[0]
    body = form_of(interaction(slack, before, ACKNOWLEDGE, user="U0FIRST"))
    headers = signed(body, clock())
    answers = [await door.post(body, headers) for _ in range(3)]
    answers.append(await door.press(interaction(slack, before, ACKNOWLEDGE, user="U0LATE")))
    assert [answer.status_code for answer in answers] == [200] * 4
    assert pressed(people) == (("acknowledge", "U0FIRST"),)
    assert "<@U0FIRST>" in json.dumps(slack.messages[0].blocks)
    assert "<@U0LATE>" not in json.dumps(slack.messages[0].blocks)


async def test_a_late_press_gets_an_ephemeral_message(people, clock, slack, door, snapshot):
    """If the incident was resolved in the meantime, nothing changes. The user who pressed sees the reason."""
    alert = await page(people, clock)
    await door.press(interaction(slack, slack.messages[0], FALSE_ALARM))
    late = slack.messages[0].blocks
    late_message = slack.messages[0].__class__(
        **(vars(slack.messages[0]) | {"blocks": [*late, _button(ACKNOWLEDGE, f"{alert.id} 1")]})
    )
    await door.press(interaction(slack, late_message, ACKNOWLEDGE, user="U0LATE"))
    (whisper,) = slack.answers.whispers
    assert whisper["text"] == snapshot
    assert states(people) == [IncidentState.RESOLVED]


def _button(action_id, value):
    text = {"type": "plain_text", "text": "x"}
    return {
        "type": "actions",
        "elements": [{"type": "button", "action_id": action_id, "value": value, "text": text}],
    }


@contextmanager
def full_disk(people):
    """Make the outbox of the journal unwritable during the ``with`` block.

    A file replaces the outbox folder, because permissions do not restrict the user root.
    """
    folder = Path(people.store.journal.segments.format_location("_outbox"))
    aside = folder.with_name("aside")
    folder.rename(aside)
    folder.write_text("in the way")
    yield
    folder.unlink()
    aside.rename(folder)


async def test_another_app_s_button_and_another_kind_of_interaction_do_nothing(people, door, clock):
    for payload in (
        {"type": "block_actions", "user": {"id": "U0ASHA"}, "actions": [{"action_id": "other", "value": "x"}]},
        {"type": "view_submission", "user": {"id": "U0ASHA"}},
    ):
        assert (await door.press(payload)).status_code == 200
    assert pressed(people) == ()


async def test_without_a_token_the_press_s_own_address_shows_it(people, clock, slack):
    await page(people, clock)
    async with receiver(people, clock, None) as door:
        await door.press(interaction(slack, slack.messages[0], ACKNOWLEDGE))
    assert "<@U0ASHA>" in json.dumps(slack.messages[0].blocks)
    assert "chat.update" not in slack.requests


async def test_when_slack_fails_the_edit_the_response_url_shows_it(people, clock, slack, door):
    await page(people, clock)
    payload = interaction(slack, slack.messages[0], ACKNOWLEDGE)
    slack.misbehave("message_not_found")
    await door.press(payload)
    assert "<@U0ASHA>" in json.dumps(slack.messages[0].blocks)


async def test_f37_an_answer_address_that_is_not_slack_s_is_never_asked(people, clock, slack):
    """A ``response_url`` that is not Slack's is never requested, even if the payload is signed."""
    await page(people, clock)
    with SlackServer() as other:
        async with receiver(people, clock, None) as door:
            for url in (
                f"{other.url}/actions/T0TEST/x",
                "http://169.254.169.254/latest/meta-data",
                "file:///etc/passwd",
                "https://hooks.slack.com.evil.example/x",
                f"{slack.url.replace('http://', 'http://user:word@')}/actions/T0/x",
                "http://[broken",
            ):
                payload = interaction(slack, slack.messages[0], ACKNOWLEDGE) | {"response_url": url}
                payload["actions"][0]["value"] += str(len(url))
                assert (await door.press(payload)).status_code == 200
        assert other.requests == []


async def test_a_press_that_cannot_be_stored_is_not_acknowledged(people, clock, slack, door):
    """A press that cannot be stored is not acknowledged, because a 200 response would be wrong.

    Slack then shows an error to the user who pressed.
    """
    await page(people, clock)
    payload = interaction(slack, slack.messages[0], ACKNOWLEDGE)
    with full_disk(people):
        assert (await door.press(payload)).status_code == 503
    assert (await door.press(payload)).status_code == 200
    assert states(people) == [IncidentState.ACKNOWLEDGED]


async def test_a_new_receiver_carries_out_and_shows_what_a_killed_one_had_stored(people, clock, slack, tmp_path):
    await page(people, clock)
    payload = interaction(slack, slack.messages[0], ACKNOWLEDGE)
    (click,) = parse_slack_actions(form_of(payload), at=clock())
    store_operator_action(
        build_operator_actions(tmp_path, slack, clock, seed=3), click.action
    )  # the receiver is killed here, before its response
    assert states(people) == [IncidentState.OPEN]
    async with receiver(
        build_operator_actions(tmp_path, slack, clock, seed=4), clock, build_notifier(people, clock).sender
    ) as door:
        await door.aftermath.wait_until_idle()
    assert states(people) == [IncidentState.ACKNOWLEDGED]
    assert "<@U0ASHA>" in json.dumps(slack.messages[0].blocks)


async def test_f90_no_file_is_ever_given_to_slack(people, clock, slack, door):
    """No file is ever uploaded to Slack, for example a screenshot, whatever is sent, edited or pressed."""
    await page(people, clock, observation("leak-1"), observation("conversation-1", origin=Origin.TRAFFIC))
    for action in (ACKNOWLEDGE, MENU):
        option = "Add to gold" if action == MENU else ""
        menus = [json.dumps(block["accessory"]) for block in slack.messages[0].blocks if "accessory" in block]
        nth = next(n for n, menu in enumerate(menus) if "gold" in menu) if action == MENU else 0
        await door.press(interaction(slack, slack.messages[0], action, option=option, nth=nth))
    assert slack.uploads.shared == []
    assert not [method for method in slack.requests if "file" in method]
