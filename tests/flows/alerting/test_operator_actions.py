"""Test the actions of users: each is executed once, shown in the message, and respected by the next run."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from flows.alerting.edits import edit_messages_after_actions
from flows.alerting.notifier import apply_waiting_actions, store_operator_action
from flows.alerting.pipeline import notify
from monitors.records.exchanges import Exchange, Origin, Timings
from monitors.records.grades import FailureKind
from monitors.records.incidents import ActionKind, ActionVia, IncidentState
from monitors.records.operator_actions import ActionEffect, OperatorAction, Silence
from tests.flows.messages import format_messages
from tests.flows.operator_actions import Clock, build_notifier, build_operator_actions
from tests.monitors.alerts.sample_observations import NIGHT, observation
from tests.servers.slack import SlackServer
from tests.servers.slack_rules import wrong_with
from warehouse.database.check import check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.journal.rows import ResultRow
from warehouse.queries.operator_actions import append_silence


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


def click(alert, kind=ActionKind.ACKNOWLEDGE, *, by="U0ASHA", message_ts=None, about=()):
    return OperatorAction(
        id=f"click-{alert.id}-{kind.value}",
        kind=kind,
        at=NIGHT,
        by=by,
        via=ActionVia.SLACK,
        alert_id=alert.id,
        fingerprints=about,
        channel="C0ALERTS" if message_ts else None,
        message_ts=message_ts,
    )


async def page(people, clock, *seen, run_id="run-1"):
    (alert,) = await notify(build_notifier(people, clock, run_id=run_id), seen or (observation(),))
    return alert


def again(run: int, **changes):
    return observation(run_id=f"run-{run}", seen_at=NIGHT + timedelta(days=run), **changes)


async def next_night(people, clock, run: int, **changes):
    clock.at = NIGHT + timedelta(days=run)
    return await notify(
        build_notifier(people, clock, run_id=f"run-{run}"),
        [again(run, **changes)],
    )


@pytest.mark.whole_only
async def test_an_acknowledged_fault_is_not_reminded_until_it_is_worse(people, clock):
    mild = {"severity": 2, "failure": FailureKind.WRONG_FACT}
    alert = await page(people, clock, observation(**mild))
    store_operator_action(people, click(alert))
    assert await next_night(people, clock, 2, **mild) == ()
    (worse,) = await next_night(people, clock, 3, **(mild | {"severity": 3}))
    assert worse.reason == "worse"
    assert next(iter(people.store.load_incidents("demo").values())).state is IncidentState.OPEN


async def test_without_anybody_s_word_it_is_reminded(people, clock):
    """If nobody acknowledges an alert, a reminder is sent two nights later."""
    await page(people, clock)
    assert [alert.reason for alert in await next_night(people, clock, 2)] == ["reminder"]


async def test_an_action_waits_in_the_journal_and_the_next_run_carries_it_out(people, clock, tmp_path, slack):
    """If the receiver dies after it stored an action in the journal, the next run executes the action."""
    alert = await page(people, clock)
    store_operator_action(people, click(alert))
    other = build_operator_actions(tmp_path, slack, clock, seed=7)
    assert await next_night(other, clock, 2) == ()
    assert apply_waiting_actions(other).done == ()
    (incident,) = other.store.load_incidents("demo").values()
    assert incident.state is IncidentState.ACKNOWLEDGED


async def test_the_same_click_twice_is_one_action(people, clock):
    alert = await page(people, clock)
    store_operator_action(people, click(alert, by="U0ASHA"))
    store_operator_action(people, click(alert, by="U0LATE"))
    (done,) = apply_waiting_actions(people).done
    store_operator_action(people, click(alert, by="U0LATE"))
    assert apply_waiting_actions(people).done == ()
    assert done.outcome.effect is ActionEffect.DONE
    assert people.store.query("select done_by from actions").rows == (("U0ASHA",),)


async def test_a_second_person_who_acknowledges_changes_nothing(people, clock):
    alert = await page(people, clock)
    store_operator_action(people, click(alert))
    store_operator_action(people, click(alert).model_copy(update={"id": "another-click", "by": "U0LATE"}))
    first, second = apply_waiting_actions(people).done
    assert (first.outcome.effect, second.outcome.effect) == (ActionEffect.DONE, ActionEffect.NOTHING_TO_DO)
    states = people.store.query("select state from incident_history order by sequence").rows
    assert states.count((IncidentState.ACKNOWLEDGED,)) == 1


async def test_the_message_shows_who_acknowledged_it_and_loses_the_button(people, clock, slack, snapshot):
    alert = await page(people, clock)
    (message,) = slack.messages
    clock.skip(minutes=14)
    store_operator_action(people, click(alert, message_ts=message.ts).model_copy(update={"at": clock()}))
    done = apply_waiting_actions(people).done
    assert (
        await edit_messages_after_actions(
            people, build_notifier(people, clock).sender, [one.outcome for one in done]
        )
        == ()
    )
    (shown,) = slack.messages
    assert shown.edits == 1
    assert format_messages([shown]) == snapshot
    assert "lookout_acknowledge" not in json.dumps(shown.blocks)
    assert wrong_with({"text": shown.text, "blocks": shown.blocks}) is None


async def test_a_false_alarm_is_a_label_and_quiet_that_ends(people, clock):
    """A false alarm is stored as a label, resolves the incident, and mutes the case for a limited time.

    If the case still fails a week later, it alerts again (fault f18).
    """
    alert = await page(people, clock)
    store_operator_action(people, click(alert, ActionKind.FALSE_ALARM))
    (done,) = apply_waiting_actions(people).done
    labels = people.store.query("select case_id, failure_kind, finding_right, done_by, run_id from labels").rows
    assert labels == (("leak-1", "pii_disclosure", False, "U0ASHA", "run-1"),)
    assert [one.state for one in done.incidents] == [IncidentState.RESOLVED]
    assert await next_night(people, clock, 2) == ()
    (alerted,) = await next_night(people, clock, 8)
    assert alerted.reason == "regressed"


async def test_f18_a_stored_silence_that_ends_while_it_still_fails_lets_one_alert_out(people, clock):
    silence = Silence(
        id="s-1",
        author="asha",
        comment="the fix is under way",
        starts_at=NIGHT,
        ends_at=NIGHT + timedelta(days=2, hours=12),
        case_id="leak-1",
    )
    append_silence(people.store.journal, silence)
    assert await notify(build_notifier(people, clock), [observation()]) == ()
    assert await next_night(people, clock, 2) == ()
    assert [alert.reason for alert in await next_night(people, clock, 3)] == ["first_seen"]
    assert await next_night(people, clock, 3) == ()


async def test_a_silence_is_made_shorter_and_never_longer(people, clock):
    values = {"id": "s-1", "author": "a", "comment": "c", "starts_at": NIGHT, "case_id": "leak-1"}
    for hours in (5, 1, 9):
        append_silence(people.store.journal, Silence(**values, ends_at=NIGHT + timedelta(hours=hours)))
    (stored,) = apply_waiting_actions(people).silences
    assert stored.ends_at == NIGHT + timedelta(hours=1)


async def test_of_several_failures_one_can_be_called_false(people, clock):
    alert = await page(people, clock, observation("leak-1"), observation("leak-2"))
    about = alert.items[1].incident.fingerprint
    store_operator_action(people, click(alert, ActionKind.FALSE_ALARM, about=(about,)))
    apply_waiting_actions(people)
    states = {one.case_id: one.state for one in people.store.load_incidents("demo").values()}
    assert states == {"leak-1": IncidentState.OPEN, "leak-2": IncidentState.RESOLVED}


@pytest.mark.whole_only
async def test_an_acknowledgement_covers_items_added_to_the_message(people, clock, slack):
    alert = await page(people, clock)
    await page(people, clock, observation("leak-2"))
    (message,) = slack.messages
    store_operator_action(people, click(alert, message_ts=message.ts))
    (done,) = apply_waiting_actions(people).done
    assert len(done.incidents) == 2
    await edit_messages_after_actions(people, build_notifier(people, clock).sender, [done.outcome])
    (shown,) = slack.messages
    assert "leak-2" in json.dumps(shown.blocks)
    assert "lookout_acknowledge" not in json.dumps(shown.blocks)


async def test_items_after_the_acknowledgement_have_a_button_again(people, clock, slack, snapshot):
    """If a new failure is added to an acknowledged message, the message has a button for it.

    The message shows which failures the acknowledgement covers.
    """
    alert = await page(people, clock)
    (message,) = slack.messages
    store_operator_action(people, click(alert, message_ts=message.ts))
    apply_waiting_actions(people)
    await page(people, clock, observation("leak-2"))
    (shown,) = slack.messages
    assert format_messages([shown]) == snapshot
    assert "lookout_acknowledge" in json.dumps(shown.blocks)


async def test_add_to_gold_makes_a_redacted_draft_and_no_case(people, clock):
    raw = Exchange(
        run_id="run-1",
        case_id="conversation-1",
        origin=Origin.TRAFFIC,
        turns=("Is my policy SRK-204417 paid?", "And whose is meera.k@mail.example?"),
        visible_text="It is paid from account 50100234417788 by meera.k@mail.example.",
        asked_at=NIGHT,
        timings=Timings(total_ms=10.0),
    )
    people.store.journal.append([ResultRow(row=raw)], run_id="run-1")
    alert = await page(people, clock, observation("conversation-1", origin=Origin.TRAFFIC, expected=None))
    store_operator_action(people, click(alert, ActionKind.ADD_TO_GOLD))
    (done,) = apply_waiting_actions(people).done
    (draft,) = done.drafts
    assert ["[account number]" in draft.turns[0], "[e-mail]" in draft.turns[1]] == [True, True]
    assert not any(text in draft.model_dump_json() for text in ("SRK-204417", "meera.k", "50100234417788"))
    assert (int(draft.suggested_severity), draft.gold, draft.cut) == (3, None, False)
    assert "personal data was disclosed" in draft.severity_reason
    assert people.store.query("select count(*) from cases").rows == ((0,),)
    assert people.store.query("select id from case_drafts").rows == ((draft.id,),)


async def test_a_draft_without_a_stored_answer_says_that_it_is_cut(people, clock):
    alert = await page(people, clock, observation("conversation-1", origin=Origin.TRAFFIC))
    store_operator_action(people, click(alert, ActionKind.ADD_TO_GOLD))
    (done,) = apply_waiting_actions(people).done
    assert [(draft.cut, draft.turns) for draft in done.drafts] == [(True, (observation().asked,))]


async def test_a_gold_case_is_not_drafted_again(people, clock):
    alert = await page(people, clock)
    store_operator_action(people, click(alert, ActionKind.ADD_TO_GOLD))
    (done,) = apply_waiting_actions(people).done
    assert (done.outcome.effect, done.drafts) == (ActionEffect.NOTHING_TO_DO, ())


async def test_a_message_of_another_installation_changes_nothing(people, clock):
    alert = await page(people, clock)
    store_operator_action(people, click(alert.model_copy(update={"id": "LK-ELSEWHERE"})))
    (done,) = apply_waiting_actions(people).done
    assert (done.outcome.effect, done.incidents) == (ActionEffect.UNKNOWN, ())


async def test_a_failure_that_the_message_does_not_show_is_not_touched(people, clock):
    alert = await page(people, clock)
    await page(people, clock, observation("leak-2"), run_id="run-5")
    strange = observation("leak-2").fingerprint
    store_operator_action(people, click(alert, about=(strange,)))
    (done,) = apply_waiting_actions(people).done
    assert done.outcome.effect is ActionEffect.UNKNOWN


@pytest.mark.whole_only
async def test_all_of_it_comes_back_from_the_journal_alone(people, clock, tmp_path):
    """A database that is rebuilt from the journal has all actions, labels, drafts, silences and incidents again."""
    alert = await page(people, clock, observation("leak-1"), observation("conversation-1", origin=Origin.TRAFFIC))
    store_operator_action(people, click(alert))
    store_operator_action(people, click(alert, ActionKind.ADD_TO_GOLD))
    store_operator_action(
        people, click(alert, ActionKind.FALSE_ALARM, about=(alert.items[0].incident.fingerprint,))
    )
    values = {"id": "s-1", "author": "a", "comment": "c", "starts_at": NIGHT, "case_id": "leak-1"}
    for hours in (1, 9):
        append_silence(people.store.journal, Silence(**values, ends_at=NIGHT + timedelta(hours=hours)))
    apply_waiting_actions(people)
    tables = ("actions", "action_outcomes", "labels", "case_drafts", "silences", "incident_history")
    before = {name: people.store.query(f"select * from {name} order by all").rows for name in tables}
    assert all(before.values())
    assert check_database(people.store, wait_s=1).is_sound
    rebuild_database(people.store, wait_s=1)
    after = {name: people.store.query(f"select * from {name} order by all").rows for name in tables}
    assert after == before
    assert apply_waiting_actions(people).done == ()


async def test_an_action_that_cannot_be_carried_out_keeps_no_page_from_people(people, clock):
    """An action that cannot be carried out stays pending, and does not block other actions or alerts."""
    alert = await page(people, clock)
    store_operator_action(people, click(alert))
    store_operator_action(people, click(alert, ActionKind.FALSE_ALARM).model_copy(update={"by": "U0LATE"}))
    broken = replace(people, settings=people.settings.model_copy(update={"false_alarm_quiet_h": float("nan")}))
    carried = apply_waiting_actions(broken)
    assert [one.outcome.effect for one in carried.done] == [ActionEffect.DONE]
    assert carried.failed == (f"click-{alert.id}-false_alarm: ValueError",)
    (alerted,) = await notify(build_notifier(broken, clock, run_id="run-2"), [observation("leak-2")])
    assert alerted.reason == "first_seen"
    assert [one.outcome.effect for one in apply_waiting_actions(people).done] == [ActionEffect.DONE]
