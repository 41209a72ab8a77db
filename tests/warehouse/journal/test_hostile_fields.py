"""Test that SQL in any field of any row is stored as text and never executed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import ValidationError

from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_drills import drill
from tests.warehouse.sample_nights import night_report, seen
from tests.warehouse.sample_repeats import session
from tests.warehouse.sample_rows import (
    alert,
    assessment,
    deploy,
    exchange,
    incident,
    no_answer,
    receipt,
    run_report,
    suite,
)
from tests.warehouse.temporary_stores import count, store_in
from warehouse.journal.rows import (
    ANY_ROW,
    AssessmentRow,
    CaseRow,
    ConversationRow,
    DeployRow,
    DrillRow,
    NightlyRunRow,
    RepeatabilityRow,
    ResultRow,
    RunRow,
    SuiteCase,
)
from warehouse.queries.outbox import record_receipt

HOSTILE = (
    "'; drop table results; --",
    '"; delete from incident_history; /*',
    "x') on conflict do nothing; copy results to '/tmp/out'; --",
    "$1 ? :name {run} %s \\'; select 1",
    "',(select version()),'",
)
CASE = suite(1).cases[0]
ROWS = (
    ResultRow(row=exchange()),
    ResultRow(row=no_answer(case_id="case-2")),
    AssessmentRow(row=assessment()),
    RunRow(row=run_report()),
    CaseRow(row=SuiteCase(suite_sha256="a" * 64, suite_name="s", case=CASE)),
    DeployRow(row=deploy()),
    ConversationRow(row=seen(sampled_in="How long?")),
    NightlyRunRow(row=night_report()),
    DrillRow(row=drill()),
    RepeatabilityRow(row=session()),
)


def leaves(value: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the position of every text in a JSON value, as a tuple of keys and indexes.

    ``at`` is the value's own position.
    """
    match value:
        case str():
            yield at
        case dict():
            for key, inner in value.items():
                yield from leaves(inner, (*at, key))
        case list():
            for place, inner in enumerate(value):
                yield from leaves(inner, (*at, place))


def put(value: Any, at: tuple[str | int, ...], text: str) -> Any:
    """Return a copy of the JSON value with ``text`` at the position ``at``."""
    if not at:
        return text
    copied = value.copy()
    copied[at[0]] = put(value[at[0]], at[1:], text)
    return copied


def poisoned(row: Any, text: str) -> tuple[Any, int]:
    """Return ``row`` with ``text`` in every field that accepts any text. Also return the number of these fields."""
    value, fields = json.loads(row.model_dump_json()), 0
    for at in leaves(value):
        changed = put(value, at, text)
        try:
            ANY_ROW.validate_python(changed)
        except ValidationError:
            continue
        value, fields = changed, fields + 1
    return ANY_ROW.validate_python(value), fields


@pytest.mark.parametrize("text", HOSTILE)
def test_f86_sql_in_any_field_is_bound_as_a_value(tmp_path, text):
    """Rows with SQL in their fields are loaded and read back without any other effect.

    The rows are results, assessments, reports, cases, deploys and traffic.
    """
    store = store_in(tmp_path)
    tables = {
        "results": 2,
        "assessments": 1,
        "runs": 1,
        "cases": 1,
        "deploys": 1,
        "conversations": 1,
        "nightly_runs": 1,
        "drills": 1,
        "repeatability_runs": 1,
    }
    rows = [poisoned(row, text) for row in ROWS]
    assert sum(fields for _, fields in rows) >= 20
    for row, _ in rows:
        store.journal.append([row], run_id=None)
    report = store.load_pending(5)
    assert not report.errors()
    assert {table: count(store, table) for table in tables} == tables
    rows = store.query("select count(*) from results where visible_text = ?", [text]).rows
    assert rows == ((1,),)
    assert store.query("select record->>'$.turns[0].reply_text' from conversations").rows == ((text,),)
    rows = store.query("select count(*) from assessments where reason = $r", {"r": text}).rows
    assert rows == ((1,),)


@pytest.mark.parametrize("text", HOSTILE)
def test_f86_sql_in_a_message_or_an_incident_is_bound_as_a_value(tmp_path, text):
    store = store_in(tmp_path)
    known = incident().model_copy(update={"title": text, "thread": text, "channel": text, "target": "demo"})
    message = alert(about=known)
    decide(store, store.journal, "demo", lambda _: OutboxDecision(incidents=(known,), alerts=(message,)), wait_s=5)
    record_receipt(
        store,
        store.journal,
        receipt(message.id).model_copy(update={"detail": text, "channel": text, "thread": text}),
        wait_s=5,
    )
    (back,) = store.load_incidents("demo").values()
    assert (back.title, back.thread) == (text, text)
    assert store.query("select detail from receipts").rows == ((text,),)
    assert store.load_incidents(text) == {}
    assert store.find_last_report(text, text, except_run=text) is None
    assert count(store, "incident_history") == 1
