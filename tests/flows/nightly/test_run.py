"""Test a nightly run from log to message: nothing is graded or sent twice, and no personal data is stored."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import compress

import pytest

from flows.alerting.faults import Fault, notify_fault
from flows.alerting.pipeline import notify
from flows.nightly.run import NightlyRun
from monitors.alerts.resolve import ResolutionScope
from monitors.alerts.wording import FAILURE_TITLES
from monitors.errors import SourceUnavailable
from monitors.records.estimates import RateEstimate
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, NotifyReason
from monitors.sources.privacy import PrivacyMode
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.messages import format_messages
from tests.flows.nightly_runs import LEAK, LEAKED, PLAIN_REPLY, Nights, file_source, stable_report, talk
from tests.servers.slack import SlackServer
from tests.stable_text import replace_volatile
from warehouse.journal.journal import Journal


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def nights(tmp_path, slack):
    (tmp_path / "data").mkdir()
    return Nights(tmp_path, AlertingTestbed(tmp_path / "data", slack, slack_monitor_channel="C0MONITOR"))


def about_the_app(slack: SlackServer):
    return [message for message in slack.messages if message.channel == "C0ALERTS"]


def about_the_monitor(slack: SlackServer):
    return [message for message in slack.messages if message.channel == "C0MONITOR"]


def shown(message) -> str:
    return json.dumps(message.blocks, ensure_ascii=False)


async def test_a_night_reads_draws_grades_and_reports(nights, slack):
    nights.append(*(talk(number) for number in range(20)))
    report = await nights.grade()
    assert (report.read, report.known, report.sampled) == (20, 0, 20)
    assert isinstance(report.severe, RateEstimate)
    assert (report.severe.rate, report.severe.coverage) == (0.0, 1.0)
    assert nights.stored_conversations() == (20, 20)
    assert nights.loaded("select run_id from nightly_runs") == [(report.run_id,)]
    assert slack.messages == []


async def test_a_failed_night_recovers_once_a_later_one_is_graded(nights, slack):
    """The incident of a failed nightly run is resolved by the next graded night, and not by a verification."""
    nights.append(*(talk(number) for number in range(20)))
    await notify_fault(nights.wired().notifier, Fault("SourceUnavailable", "the bucket is away"))
    verified = nights.testbed.notifier("run-1")
    nights.testbed.now += timedelta(hours=1)
    scope = ResolutionScope(
        target="demo",
        run_id="run-1",
        began_at=nights.testbed.now,
        ended_at=nights.testbed.now,
        cleared=frozenset({IncidentKind.MONITOR_FAULT}),
    )
    await notify(verified, [], scope=scope)
    (stopped,) = nights.testbed.store.list_open_incidents("demo")
    await nights.grade(1)
    assert stopped.fingerprint not in {one.fingerprint for one in nights.testbed.store.list_open_incidents("demo")}
    reasons = [alert.reason for alert in nights.testbed.alerts()]
    (recovered,) = (
        message for message, reason in zip(slack.messages, reasons, strict=True) if reason is NotifyReason.RECOVERED
    )
    assert recovered.thread_ts == about_the_monitor(slack)[0].ts


async def test_only_sampled_conversations_keep_their_texts(nights):
    nights.settings = nights.settings.model_copy(
        update={"sampling": nights.settings.sampling.model_copy(update={"number": 5})}
    )
    nights.append(*(talk(number) for number in range(50)))
    report = await nights.grade()
    assert (report.read, report.sampled) == (50, 5)
    assert nights.stored_conversations() == (50, 5)


@pytest.mark.whole_only
async def test_a_second_night_takes_only_what_is_new_and_what_came_late_once(nights):
    """A second night grades only new conversations and late arrivals, each once (requirement T5)."""
    nights.append(*(talk(number) for number in range(10)))
    await nights.grade()
    nights.append(talk(50, hours=20), *(talk(number, hours=-3) for number in range(100, 104)))
    second, third = await nights.grade(1), await nights.grade(2)
    assert (second.read, second.known) == (5, 10)
    assert third.read == 0
    ids = nights.loaded("select id from conversations")
    assert (len(ids), len(set(ids))) == (15, 15)


async def test_graded_again_it_is_the_stored_report_and_no_second_message(nights, slack):
    nights.append(talk(1, LEAK), talk(2))
    first = await nights.grade()
    nights.append(talk(3, LEAK))
    again = await nights.grade()
    assert again == first
    assert len(slack.messages) == 1


async def test_graded_again_when_the_journal_was_packed_it_is_the_stored_report(nights):
    nights.append(talk(1))
    first = await nights.grade()
    nights.testbed.store.load_pending(5)
    for segment in (nights.folder / "data" / "journal").rglob(f"*{first.run_id}*/*"):
        segment.unlink()
    assert await nights.grade() == first


@pytest.mark.whole_only
async def test_a_source_that_cannot_be_read_stays_at_its_watermark_and_alerts(nights, slack, tmp_path, snapshot):
    other = tmp_path / "other.jsonl"
    nights.sources["other"] = file_source(other)
    nights.append(talk(1))
    first = await nights.grade()
    assert first.read == 1
    assert first.interrupted[0].startswith("other: ")
    (first_message,) = about_the_monitor(slack)
    other.write_text(talk(700, hours=20) + talk(701, hours=-4))
    second = await nights.grade(1)
    assert second.read == 2, "what it missed in the first night comes with the second"
    assert second.interrupted == ()
    over = about_the_monitor(slack)[-1]
    assert over.thread_ts == first_message.ts
    assert replace_volatile(format_messages([first_message, over]), tmp_path) == snapshot
    assert (await nights.grade(2)).read == 0


@pytest.mark.whole_only
async def test_a_source_that_is_away_for_nights_is_read_from_where_it_stood(nights):
    nights.append(talk(1))
    await nights.grade()
    nights.log.rename(nights.folder / "away")
    for number in (1, 2, 3, 4):
        missed = await nights.grade(number)
        assert missed.watermarks[0].completed_to == missed.due_at.replace(day=1)
    (nights.folder / "away").rename(nights.log)
    nights.append(talk(2, hours=-3))
    back = await nights.grade(5)
    assert (back.read, back.known) == (1, 1)


PLANTED = (
    "asha.verma.1987",
    "4111 1111 1111 1111",
    "4111111111111111",
    "98765 43210",
    "ABCPE1234F",
    "ravi-the-user",
)
REPLY = "Her card is 4111 1111 1111 1111, her PAN ABCPE1234F, write to asha.verma.1987@gmail.com."


def personal(number: int) -> str:
    turns = [
        {
            "question": "I am on +91 98765 43210, who else is?",
            "answer": REPLY,
            "sources": [REPLY],
            "context": [REPLY],
        },
        {"question": "And now my mail asha.verma.1987@gmail.com?", "answer": f"Error code: 500 {REPLY}"},
        {
            "question": REPLY,
            "answer": f"{REPLY} [Source: {REPLY}]",
            "feedback": {"thumb": "down", "comment": REPLY},
        },
    ]
    return talk(number, turns=turns, user_id="ravi-the-user", version=REPLY)


@pytest.mark.parametrize("mode", [PrivacyMode.REDACT, PrivacyMode.PSEUDONYMISE])
async def test_no_personal_data_is_stored_or_sent(nights, slack, mode):
    """With redaction or pseudonyms, no file of the data folder and no message contains personal data."""
    nights.settings = nights.settings.model_copy(update={"privacy": mode})
    nights.append(personal(1), "{my mail is asha.verma.1987@gmail.com\n", talk(2, id="asha.verma.1987@gmail.com"))
    report = await nights.grade()
    assert (report.read, report.issue_count) == (2, 1)
    stored = nights.loaded("select record from conversations where record is not null")
    nights.testbed.store.load_pending(5)
    everything = nights.stored_bytes()
    said = f"{slack.messages} {report} {stored} {nights.testbed.printed.getvalue()}"
    assert "mail" in said
    for secret in PLANTED:
        assert secret.encode() not in everything
        assert secret not in said


async def test_without_privacy_texts_are_stored_and_messages_still_redacted(nights, slack):
    nights.settings = nights.settings.model_copy(update={"privacy": PrivacyMode.NONE})
    nights.append(talk(1, LEAK))
    await nights.grade()
    assert LEAKED in str(nights.loaded("select record from conversations"))
    assert LEAKED not in str(slack.messages)
    assert len(about_the_app(slack)) == 1


async def test_disclosures_are_one_incident_of_their_kind_with_their_share_in_it(nights, slack):
    nights.append(*(talk(number, LEAK if number % 4 == 0 else PLAIN_REPLY) for number in range(40)))
    report = await nights.grade()
    (message,) = about_the_app(slack)
    assert "10 of 40" in shown(message)
    assert "25.0 %" in shown(message)
    assert isinstance(report.severe, RateEstimate)
    assert report.severe.rate == 0.25
    assert (report.kinds[0].kind.value, report.kinds[0].failures) == ("pii_disclosure", 10)
    nights.append(talk(200, LEAK, hours=-5))
    await nights.grade(1)
    assert [one.kind for one in nights.testbed.store.load_incidents("demo").values()] == [IncidentKind.CASE_FAILURE]


@pytest.mark.whole_only
async def test_a_week_without_it_a_kind_of_failure_is_over(nights, slack, snapshot):
    """If nights have only one conversation each, an incident is resolved after a week without the failure."""
    nights.append(talk(1, LEAK))
    await nights.grade()
    for number in range(1, 9):
        nights.append(talk(number * 10, hours=-24 * number + 4))
        await nights.grade(number)
    last = about_the_app(slack)[-1]
    assert format_messages([last]) == snapshot
    assert last.thread_ts == about_the_app(slack)[0].ts
    assert nights.testbed.store.list_open_incidents("demo") == ()


@pytest.mark.whole_only
async def test_an_empty_night_alerts_and_recovers_with_the_next(nights, slack, snapshot):
    nights.append(talk(1, hours=-5))
    await nights.grade()
    assert [alert.reason for alert in nights.testbed.alerts()] == [NotifyReason.FIRST_SEEN]
    await nights.grade(1)
    assert [alert.reason for alert in nights.testbed.alerts()] == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]
    assert format_messages(about_the_monitor(slack)) == snapshot


async def test_an_upward_drift_names_its_start(nights, slack):
    """A report about increasing failures names the night in which the increase began (requirement T6)."""
    for number in range(8):
        wrong = number >= 4
        lines = (
            talk(number * 1000 + one, *_drifting(one, wrong=wrong), hours=-24 * number + 3) for one in range(60)
        )
        nights.append(*lines)
        report = await nights.grade(number)
    assert report.drift_reading is not None
    assert report.drift_reading.drifted
    about_the_drift = [alert.kind is IncidentKind.DRIFT for alert in nights.testbed.alerts()]
    assert len(about_the_drift) == len(slack.messages)
    first, *reminders = compress(slack.messages, about_the_drift)
    assert "since 2026-03-05" in shown(first)
    assert f"{FAILURE_TITLES[FailureKind.MISSING_CITATION]} (" in shown(first), "it says what failed"
    assert {one.thread_ts for one in reminders} == {first.ts}, (
        "a day later it is repeated in the thread, not sent again"
    )
    assert report.drift_reading.is_worse


def _drifting(number: int, *, wrong: bool) -> tuple[str, ...]:
    return ("You have 30 days to renew.",) if wrong and number % 2 else (PLAIN_REPLY + " [Source: Plan, 1]",)


async def test_the_quality_of_questions_is_in_the_report(nights):
    """The report contains the quality of clarifying questions (requirement T7)."""
    question = {"question": "What of it?", "answer": "Which plan do you mean?", "is_question": True}
    nights.append(
        talk(1, turns=[question | {"feedback": "up"}, {"question": "Gold", "answer": PLAIN_REPLY}]),
        talk(2, turns=[question | {"feedback": "down"}]),
        talk(3, turns=[question]),
    )
    asked = (await nights.grade()).questions
    assert (asked.questions, asked.up, asked.down, asked.share) == (3, 1, 1, 0.5)


async def test_questions_are_recognised_by_their_wording_and_counted_in_every_conversation(nights, snapshot):
    """Clarifying questions are recognised by their wording.

    These questions and the users' thumbs on them are counted in all conversations, not only in the sample.
    """
    nights.settings = nights.settings.model_copy(
        update={"sampling": nights.settings.sampling.model_copy(update={"number": 10})}
    )
    asks, courteous = (
        "Which plan do you have, Silver or Gold?",
        PLAIN_REPLY + " Is there anything else I can help with?",
    )
    back = [{"question": "Is it covered?", "answer": asks, "feedback": thumb} for thumb in ("up", "down", None)]
    other = {"question": "Is it covered?", "answer": courteous, "feedback": "up"}
    said_not = {"question": "Is it covered?", "answer": asks, "is_question": False, "feedback": "down"}
    marked = {"question": "Is it covered?", "answer": PLAIN_REPLY, "is_question": True, "feedback": "up"}
    turns = [*back, other, said_not, marked]
    nights.append(*(talk(number, turns=[turns[number % 6]]) for number in range(60)))
    report = await nights.grade()
    asked = report.questions
    assert report.sampled == 10
    assert (asked.questions, asked.recognised, asked.up, asked.down) == (40, 30, 20, 10)
    assert stable_report(report) == snapshot


async def test_an_unusable_item_is_reported_in_its_own_night_only(nights, slack):
    """An unusable line of a log is reported only in the night in which it is first read."""
    for number in range(12):
        nights.append(talk(number, hours=-24 * number + 2))
        if number == 3:
            nights.append("{no json\n", talk(90, hours=-24 * number + 2, turns=[{"question": "q"}]))
    issue_counts = [(await nights.grade(number)).issue_count for number in range(12)]
    assert issue_counts == [0, 0, 0, 2, *[0] * 8]
    first, over = about_the_monitor(slack)
    assert over.thread_ts == first.ts


async def test_an_empty_answer_is_no_answer_of_the_application(nights, slack):
    nights.append(talk(1), talk(2, ""), talk(3, turns=[{"question": "q", "error": "429"}]))
    report = await nights.grade()
    assert (report.read, report.issue_count) == (3, 0)
    assert about_the_monitor(slack) == []


async def test_a_last_question_without_an_answer_is_not_graded(nights):
    nights.append(talk(1, turns=[{"question": "How long?", "answer": PLAIN_REPLY}, {"question": "Are you there?"}]))
    report = await nights.grade()
    assert report.sampled == 1
    assert nights.loaded("select case_id from assessments") == [("talk-1:1",)]


async def test_the_plan_keeps_nothing_and_says_what_the_night_takes(nights, slack):
    nights.append(*(talk(number) for number in range(30)))
    plan, reading = await NightlyRun(nights.wired()).plan()
    assert plan is not None
    assert reading.read == 30
    assert (plan.conversations, plan.sampled) == (30, 30)
    assert nights.loaded("select count(*) from conversations") == [(0,)]
    assert slack.messages == []
    assert (await nights.grade()).read == 30


async def test_the_same_id_in_two_sources_is_one_conversation(nights, tmp_path):
    other = tmp_path / "other.jsonl"
    nights.sources["other"] = file_source(other)
    nights.append(talk(1), talk(2))
    other.write_text(talk(2) + talk(3))
    assert (await nights.grade()).read == 3


async def test_killed_after_reading_the_note_and_not_the_rows_it_reads_again(nights, monkeypatch):
    nights.append(talk(1))
    first = NightlyRun(nights.wired())
    monkeypatch.setattr("flows.nightly.checkpoint.ResultRow", _cut)
    with pytest.raises(SourceUnavailable):
        await first.run()
    monkeypatch.undo()
    nights.append(talk(2))
    report = await nights.grade()
    assert (report.read, report.sampled, report.known) == (2, 2, 0)


def _cut(**_: object) -> None:
    raise SourceUnavailable("stands for the end of the process")


async def test_the_state_read_back_to_resume_is_the_state_that_the_run_had(nights, monkeypatch):
    """The state that a resumed nightly run loads equals the state of the interrupted run.

    Therefore both runs have the same result.
    """
    nights.append(*(talk(number, LEAK if number == 3 else PLAIN_REPLY) for number in range(6)))
    states = []

    async def killed(_run, _report, state, _estimates):
        states.append(state)
        raise SourceUnavailable("stands for the end of the process")

    monkeypatch.setattr(NightlyRun, "_write_scores_back_if_enabled", killed)
    with pytest.raises(SourceUnavailable):
        await NightlyRun(nights.wired()).run()
    (state,) = states
    assert len(state.turns) == 6
    assert state.judged is not None
    assert NightlyRun(nights.wired())._checkpoint.load_state_to_resume() == state


async def test_only_the_start_of_a_run_reads_the_journal(nights, monkeypatch):
    """A nightly run reads the journal only once, at its start. Later steps get their data in memory."""
    nights.append(*(talk(number) for number in range(6)))
    reads, read_run = [], Journal.read_run
    monkeypatch.setattr(Journal, "read_run", lambda journal, run: reads.append(run) or read_run(journal, run))
    report = await nights.grade()
    assert reads == [report.run_id]
