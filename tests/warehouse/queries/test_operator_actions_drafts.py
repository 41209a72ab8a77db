"""Test that a person decides about a draft only once, and that an answer is read together with its grade."""

from __future__ import annotations

import pytest

from monitors.records.cases import DraftOutcome
from monitors.records.exchanges import Origin
from monitors.records.operator_actions import CaseDraft
from tests.builders import NOON
from tests.warehouse.sample_rows import assessment, exchange, run_report
from tests.warehouse.temporary_stores import store_in
from warehouse.database.check import check_database
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow
from warehouse.queries.operator_actions import (
    append_draft,
    append_draft_outcomes,
    list_decided_draft_ids,
    list_waiting_drafts,
    load_graded_conversation,
)


def case_draft(draft_id: str = "click-1", **changes) -> CaseDraft:
    """Return the draft that the button "Add to gold" creates."""
    values = {
        "id": draft_id,
        "made_at": NOON,
        "by": "U123",
        "target": "demo",
        "run_id": "run-1",
        "fingerprint": "a" * 64,
        "origin": "traffic",
        "turns": ("How long is the waiting period of Suraksha Gold?",),
        "bad_reply": "36 months [Source: Suraksha Gold, clause 4.2]",
        "failure_kind": "wrong_fact",
        "language": "en",
        "suggested_severity": 2,
        "severity_reason": "the failure has severity 2: the suite gives this question severity 3",
        "finding": "expected 24 months, found 36 months",
    }
    return CaseDraft.model_validate(values | changes)


def outcome(draft_id: str = "click-1", **changes) -> DraftOutcome:
    """Return the decision about a draft whose case was added to the suite."""
    values = {
        "draft_id": draft_id,
        "at": NOON,
        "by": "asha",
        "joined": True,
        "case_id": "grown-1",
        "suite": "s.jsonl",
    }
    return DraftOutcome.model_validate(values | changes)


@pytest.fixture
def store(tmp_path):
    return store_in(tmp_path)


def test_a_draft_waits_until_it_is_decided_worst_first(store):
    for number, severity in ((1, 2), (2, 3), (3, 1)):
        append_draft(store.journal, case_draft(f"click-{number}", suggested_severity=severity))
    append_draft(store.journal, case_draft("other", target="staging"))
    store.load_pending(1)
    assert [draft.id for draft in list_waiting_drafts(store, target="demo")] == ["click-2", "click-1", "click-3"]
    append_draft_outcomes(
        store.journal, (outcome("click-2"), outcome("click-3", joined=False, case_id=None, suite=""))
    )
    store.load_pending(1)
    assert [draft.id for draft in list_waiting_drafts(store)] == ["click-1", "other"]
    assert list_decided_draft_ids(store) == {"click-2", "click-3"}


def test_the_first_decision_stays_and_a_rebuilt_warehouse_has_it(store):
    append_draft(store.journal, case_draft())
    append_draft_outcomes(store.journal, (outcome(by="asha"),))
    append_draft_outcomes(store.journal, (outcome(by="bina", joined=False, case_id=None),))
    store.load_pending(1)
    rows = store.query("select done_by, joined, case_id from draft_outcomes").rows
    assert rows == (("asha", True, "grown-1"),)
    assert check_database(store, wait_s=1).is_sound


def test_a_trace_comes_back_with_its_grade_and_target(store):
    store.journal.append(
        [ResultRow(row=exchange()), AssessmentRow(row=assessment()), RunRow(row=run_report())], run_id="run-1"
    )
    store.load_pending(1)
    found = load_graded_conversation(store, "run-1", "case-1")
    assert found is not None
    assert found.conversation.turns == exchange().turns
    assert found.conversation.answer == exchange().graded_text
    assert found.origin is Origin.PROBE
    assert found.target == run_report().target.name
    assert found.severity == int(assessment().severity)
    assert load_graded_conversation(store, "run-1", "nobody") is None
