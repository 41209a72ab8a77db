"""Test that records from three sources are matched if they are about the same reply. Each reply counts once.

The sources are log entries of the guard, human labels and nightly runs.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from monitors.records.base import Finding, Language, Severity
from monitors.records.exchanges import Exchange, Origin, Timings
from monitors.records.grades import FailureKind, JudgeLineage
from monitors.records.incidents import Redacted
from monitors.records.logs import BlockedReply, HallucinationEntry, LoggedHallucination
from monitors.records.nightly import SeenConversation
from monitors.records.operator_actions import CaseDraft, HumanLabel
from monitors.records.reconciliation import FoundReply, GuardCounts, ReconciliationCounts
from monitors.records.reviews import AnswerVerdict
from monitors.records.runs import JudgeState, Judging
from monitors.records.traffic import Conversation, SampledConversation, Turn
from tests.warehouse.sample_nights import night_report
from tests.warehouse.sample_rows import NOON, assessment
from tests.warehouse.temporary_stores import store_in
from warehouse.database.store import Store
from warehouse.journal.rows import (
    AssessmentRow,
    ConversationRow,
    DraftRow,
    HallucinationRow,
    JournalRow,
    LabelRow,
    NightlyRunRow,
    ResultRow,
)
from warehouse.queries.reconcile import NO_JUDGE_TEXT, NO_NIGHT_TEXT, count_for_reconciliation

LINEAGE = JudgeLineage(model="claude-haiku-5-5", prompt_sha256="ab" * 32, rubric_version="3")
ASKED, BLOCKED = "Is cataract covered?", "Yes, from day one."
DAY_BEFORE = NOON - timedelta(days=1)


def at(minutes: float):
    """Return a time within the night that ended at noon."""
    return NOON - timedelta(hours=6) + timedelta(minutes=minutes)


def entry(number: int, minutes: float = 0, *, asked: str | None = ASKED, tell: bool = True) -> HallucinationRow:
    reply = BlockedReply(ts=at(minutes), user_text=asked, blocked_reply=BLOCKED)
    logged = LoggedHallucination(
        target="helpdesk",
        fingerprint=f"{number:064x}",
        read_at=at(minutes) + timedelta(seconds=30),
        notify=tell,
        entry=HallucinationEntry(id=f"0-{number}-abc", log="helpdesk", generation=0, offset=number, reply=reply),
    )
    return HallucinationRow(row=logged)


def label(number: int, by: str = "asha", **said) -> LabelRow:
    return LabelRow(
        row=HumanLabel(
            id=f"{by}-{number}",
            at=NOON,
            by=by,
            target="helpdesk",
            run_id="log",
            fingerprint=f"{number:064x}",
            reason=Redacted("no source"),
            **said,
        )
    )


def draft(number: int) -> DraftRow:
    return DraftRow(
        row=CaseDraft(
            id=f"draft-{number}",
            made_at=NOON,
            by="asha",
            target="helpdesk",
            run_id="log",
            fingerprint=f"{number:064x}",
            origin=Origin.LOG,
            turns=(Redacted(ASKED),),
            bad_reply=Redacted(BLOCKED),
            language=Language.ENGLISH,
            suggested_severity=Severity.CRITICAL,
            severity_reason="it was held back",
            finding=Redacted("no source"),
        )
    )


def talk(
    name: str,
    *facts: Finding,
    minutes: float = 0,
    asked: str = "Hello?",
    replied: str = "Two years.",
    run_id: str = "night-1",
    probability: float = 0.5,
    stratum: str = "rest",
) -> list[JournalRow]:
    """Return the rows of a conversation with a judge's verdict on each reply.

    If no verdicts are given, the conversation was not sampled.
    """
    turns = tuple(Turn(user_text=asked, reply_text=replied) for _ in facts)
    sampled = None
    if turns:
        said = Conversation(id=name, origin_id=name, completed_at=at(minutes), turns=turns)
        sampled = SampledConversation(conversation=said, stratum=stratum, inclusion_probability=probability)
    rows: list[JournalRow] = [
        ConversationRow(
            row=SeenConversation(
                target="helpdesk",
                source="chats",
                run_id=run_id,
                id=name,
                completed_at=at(minutes),
                stratum=stratum,
                sampled=sampled,
            )
        )
    ]
    for number, finding in enumerate(facts, 1):
        case_id = f"{name}:{number}"
        reply = Exchange(
            run_id=run_id,
            case_id=case_id,
            origin=Origin.TRAFFIC,
            turns=(asked,) * number,
            visible_text=replied,
            asked_at=at(minutes),
            timings=Timings(total_ms=0),
        )
        failed = FailureKind.UNSUPPORTED_CLAIM if finding is Finding.NO else None
        plain = assessment(run_id, case_id, failed=failed)
        graded = plain.model_copy(update={"cluster": name, "factual_match": finding})
        rows += [ResultRow(row=reply), AssessmentRow(row=graded)]
    return rows


def night(run_id: str = "night-1", *, nights: int = 0, judged: bool = True, by: str = "judge") -> NightlyRunRow:
    judging = Judging(state=JudgeState.ON if judged else JudgeState.OFF, lineages=(LINEAGE,) if judged else ())
    report = night_report(run_id, nights=nights)
    return NightlyRunRow(row=report.model_copy(update={"judging": judging, "graded_by": by}))


def keep(store: Store, *rows: JournalRow, run_id: str = "night-1") -> None:
    store.journal.append(rows, run_id=run_id)
    store.load_pending(1)


def counted(store: Store, *, days: float = 7) -> ReconciliationCounts:
    return count_for_reconciliation(store, "helpdesk", NOON - timedelta(days=days), NOON)


@pytest.fixture
def store(tmp_path) -> Store:
    return store_in(tmp_path)


def test_entries_are_labelled_by_their_incidents_fingerprint(store):
    """A log entry has the human label of the incident with the same fingerprint.

    The label states that the entry is right, or that a review found it wrong, or that a case was drafted from it.
    If the labels of an entry contradict each other, it has no label.
    """
    keep(store, *(entry(number) for number in range(1, 8)))
    keep(
        store,
        label(1, finding_right=True),
        label(2, answer=AnswerVerdict.WRONG),
        label(4, finding_right=False),
        label(5, finding_right=False),
        label(5, "ravi", finding_right=True),
        label(6, answer=AnswerVerdict.UNSURE),
        label(99, finding_right=False),
    )
    store.journal.append_outbox([draft(3)])
    store.load_pending(1)
    assert counted(store).guard == GuardCounts(entries=7, right=3, wrong=1)


def test_two_people_on_one_entry_are_one_verdict(store):
    keep(store, entry(1), label(1, finding_right=False), label(1, "ravi", finding_right=False))
    assert counted(store).guard == GuardCounts(entries=1, wrong=1)


def test_history_and_what_lies_outside_the_time_is_not_counted(store):
    other = entry(4)
    other = HallucinationRow(row=other.row.model_copy(update={"target": "another"}))
    keep(store, entry(1), entry(2, tell=False), entry(3, minutes=60 * 7), other)
    assert counted(store).guard.entries == 1


def test_without_a_night_the_guard_is_counted_for_the_whole_time(store):
    keep(store, entry(1), entry(2, minutes=-60 * 48))
    found = counted(store)
    assert (found.guard.entries, found.since, found.until) == (2, NOON - timedelta(days=7), NOON)
    assert found.nightly.why_none == NO_NIGHT_TEXT


def test_with_nights_both_are_counted_for_the_time_that_these_cover(store):
    keep(store, entry(1), entry(2, minutes=-60 * 48), night())
    found = counted(store)
    assert (found.guard.entries, found.since, found.until) == (1, DAY_BEFORE, NOON)


def test_conversations_are_counted_by_stratum_and_reply(store):
    yes, no, ungraded = Finding.YES, Finding.NO, Finding.UNGRADED
    keep(
        store,
        *talk("fine", yes, yes),
        *talk("bad", yes, no, no),
        *talk("open", yes, ungraded),
        *talk("bad-open", ungraded, no),
        *talk("unseen"),
        *talk("risky", no, stratum="risky", probability=1),
        *talk("long-ago", no, minutes=-60 * 48),
        night(),
    )
    found = counted(store).nightly
    assert [(one.stratum, one.conversations, one.sampled, one.graded, one.failures) for one in found.strata] == [
        ("rest", 5, 4, 3, 2),
        ("risky", 1, 1, 1, 1),
    ]
    assert (found.bad_replies, found.nightly_runs, found.lineages, found.why_none) == (4, 1, (LINEAGE,), "")


def test_only_nights_of_the_newest_judge_without_a_break_are_taken(store):
    older = [night(f"night-{days}", nights=-days, by=by) for days, by in enumerate(["new", "new", "old", "new"])]
    rows = [talk(f"t{days}", Finding.NO, minutes=-60 * 24 * days, run_id=f"night-{days}") for days in range(4)]
    keep(store, *(row for each in rows for row in each), *older, run_id="nights")
    found = counted(store)
    assert (found.nightly.nightly_runs, found.runs_left_out, found.nightly.found) == (2, 2, 2)
    assert found.since == NOON - timedelta(days=2)


def test_nights_without_a_judge_tell_nothing(store):
    keep(store, *talk("a", Finding.NO), night(judged=False))
    assert counted(store).nightly.why_none == NO_JUDGE_TEXT


def test_a_reply_that_was_held_back_was_not_served(store):
    """If the guard blocked the stored reply, the user did not see this reply.

    The reply is counted as found by the guard and the judge, but not as a bad reply that was served.
    """
    keep(store, *talk("a", Finding.NO, asked=" is CATARACT  covered?", replied=BLOCKED), entry(1, 1.5), night())
    found = counted(store)
    assert (found.overlap.matched, found.overlap.same_reply, found.overlap.both) == (1, 1, 1)
    assert found.overlap.found == (FoundReply(held_back=True, inclusion_probability=0.5),)
    assert [(one.graded, one.failures) for one in found.nightly.strata] == [(1, 0)]
    assert found.nightly.bad_replies == 0


def test_the_reply_served_instead_is_another_reply(store):
    keep(store, *talk("a", Finding.NO, asked=ASKED, replied="I cannot say."), entry(1), night())
    found = counted(store)
    assert (found.overlap.matched, found.overlap.same_reply, found.overlap.both) == (1, 0, 0)
    assert found.nightly.found == 1


@pytest.mark.parametrize(
    ("minutes", "asked", "matched"),
    [(2, ASKED, 1), (-2, ASKED, 1), (2.1, ASKED, 0), (0, "Is it?", 0), (0, None, 0), (0, " ", 0)],
)
def test_an_entry_meets_the_same_words_within_two_minutes(store, minutes, asked, matched):
    keep(
        store,
        *talk("a", Finding.YES, asked=ASKED),
        *talk("b", Finding.YES, asked=""),
        entry(1, minutes, asked=asked),
        night(),
    )
    assert counted(store).overlap.matched == matched


def test_each_meets_the_nearest_and_only_one(store):
    """If log entries and conversations have the same words, each entry gets the conversation nearest in time.

    Each conversation is matched only once.
    """
    keep(
        store,
        *talk("near", Finding.NO, minutes=0, asked=ASKED, replied=BLOCKED, probability=0.1),
        *talk("far", Finding.YES, minutes=3, asked=ASKED, replied=BLOCKED),
        entry(1, 0.1),
        entry(2, 1.5),
        entry(3, 0.2),
        night(),
    )
    overlap = counted(store).overlap
    assert (overlap.matched, overlap.same_reply) == (2, 2)
    assert overlap.found == (FoundReply(held_back=True, inclusion_probability=0.1),)


def test_a_false_alarm_is_no_find_of_either(store):
    keep(
        store,
        *talk("a", Finding.NO, asked=ASKED, replied=BLOCKED),
        *talk("b", Finding.NO),
        entry(1),
        label(1, finding_right=False),
        night(),
    )
    assert counted(store).overlap.found == (FoundReply(held_back=False, inclusion_probability=0.5),)
