from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from monitors.records.base import Blame
from monitors.records.exchanges import Attempt, Evidence, Exchange, Origin, WirePayload
from monitors.records.incidents import Alert, Incident
from monitors.records.operator_actions import CaseDraft, HumanLabel
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_rows import (
    NOON,
    alert,
    assessment,
    exchange,
    incident,
    list_unsent_alerts,
    no_answer,
    run_report,
)
from tests.warehouse.temporary_stores import bare_store_in, count, store_in
from warehouse.database.check import check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import compact_segments, remove_personal_data
from warehouse.database.store import Store
from warehouse.journal.rows import AssessmentRow, DraftRow, LabelRow, ResultRow, RunRow

KEY = b"0123456789abcdef"
LATER = NOON + timedelta(days=1)
SECRET = "Asha Rao, 42 Hill Road"


def talk(case_id: str, run_id: str = "night-1", *, text: str = SECRET) -> Exchange:
    """Return a conversation of live traffic with personal data in every field that can contain it."""
    return exchange(run_id, case_id, text=text).model_copy(
        update={
            "origin": Origin.TRAFFIC,
            "turns": (f"I am {text}",),
            "earlier_answers": (text,),
            "wire": WirePayload(url="http://127.0.0.1/chat", text=text, citations=(text,), app_latency_ms=5),
            "evidence": Evidence(screenshot=f"{text}.png", console_errors=(text,)),
            "failed_attempts": (Attempt(started_at=NOON, blame=Blame.APP, reason="answer_timeout", detail=text),),
        }
    )


@pytest.fixture
def store(tmp_path) -> Store:
    store = store_in(tmp_path)
    for run_id in ("night-1", "night-2"):
        rows = [ResultRow(row=talk("user-asha", run_id)), AssessmentRow(row=assessment(run_id, "user-asha"))]
        store.journal.append(rows, run_id=run_id)
    store.journal.append([ResultRow(row=exchange("probe-1", "case-1", text=SECRET))], run_id="probe-1")
    store.journal.append([ResultRow(row=no_answer("probe-1", "case-2"))], run_id="probe-1")
    store.journal.append([RunRow(row=run_report("probe-1"))], run_id="probe-1")
    store.load_pending(1)
    return store


def all_text(store: Store) -> str:
    tables = ("results", "assessments", "grades", "runs")
    found = "".join(str(store.query(f"select * from {table}").rows) for table in tables)
    for parquet in (store.database.file.parent / "journal").rglob("*.parquet"):
        found += str(duckdb.sql(f"select * from '{parquet}'").fetchall())
    for segment in (store.database.file.parent / "journal").rglob("*.jsonl"):
        found += segment.read_text("utf-8")
    return found


def test_personal_data_is_gone_from_tables_and_journal_and_the_figures_stay(store):
    assert SECRET in all_text(store)
    before = store.query("select total_ms, app_latency_ms, failed_attempts, outcome from results order by all").rows
    report = remove_personal_data(store, before=LATER, key=KEY, wait_s=1)
    assert (report.archives, report.segments) == (1, 5)
    assert SECRET not in all_text(store)
    assert "user-asha" not in all_text(store)
    after = store.query("select total_ms, app_latency_ms, failed_attempts, outcome from results order by all").rows
    assert after == before
    assert count(store, "grades") == 6
    assert check_database(store, wait_s=1).is_sound
    assert store.find_report("probe-1") == run_report("probe-1")


def test_a_pseudonym_is_the_same_everywhere_and_gold_cases_keep_their_ids(store):
    remove_personal_data(store, before=LATER, key=KEY, wait_s=1)
    found = store.query(
        "select distinct r.case_id from results r join assessments a using (run_id, case_id) where r.origin = 'traffic'"
    ).rows
    assert len(found) == 1
    assert str(found[0][0]).startswith("p-")
    probes = store.query("select case_id from results where origin = 'probe' order by case_id").rows
    assert probes == (("case-1",), ("case-2",))


def records_about(case_id: str) -> tuple[Incident, Alert, HumanLabel, CaseDraft]:
    """Return an incident about live traffic, its message, a person's action on it, and the case drafted from it."""
    fault = incident().model_copy(update={"case_id": case_id, "last_run_id": "night-1"})
    message = alert("alert-1", about=fault)
    item = message.items[0]
    seen = item.observation.model_copy(update={"case_id": case_id, "run_id": "night-1"})
    message = message.model_copy(
        update={"run_id": "night-1", "items": (item.model_copy(update={"observation": seen}),)}
    )
    said = {"by": "ann", "target": "helpdesk", "run_id": "night-1", "fingerprint": fault.fingerprint}
    label = HumanLabel.model_validate(
        said | {"id": "label-1", "at": NOON, "case_id": case_id, "finding_right": True, "reason": "it was shown"}
    )
    draft = CaseDraft.model_validate(
        said
        | {
            "id": "draft-1",
            "made_at": NOON,
            "source_id": case_id,
            "origin": "traffic",
            "turns": ["What is [name]?"],
        }
        | {"language": "en", "suggested_severity": 3, "severity_reason": "disclosed", "finding": "it was shown"}
    )
    return fault, message, label, draft


def test_alerts_and_labels_of_a_real_conversation_carry_its_pseudonym(store):
    fault, message, label, draft = records_about("user-asha")
    decided = OutboxDecision(incidents=(fault,), alerts=(message,))
    decide(store, store.journal, "helpdesk", lambda _: decided, wait_s=1)
    store.journal.append_outbox([LabelRow(row=label), DraftRow(row=draft)])
    store.load_pending(1)
    remove_personal_data(store, before=LATER, key=KEY, wait_s=1)
    tables = ("incident_history", "alerts", "labels", "case_drafts", "results", "assessments")
    held = "".join(str(store.query(f"select * from {table}").rows) for table in tables) + all_text(store)
    assert "user-asha" not in held
    found = store.query("select distinct case_id from labels join assessments using (run_id, case_id)").rows
    assert len(found) == 1, "labels still meet the answers that they are about"
    (sent,) = list_unsent_alerts(store)
    assert sent.items[0].incident.case_id == sent.items[0].observation.case_id == found[0][0]
    assert check_database(store, wait_s=1).is_sound


def test_aging_again_changes_nothing_and_a_rebuild_brings_nothing_back(store):
    remove_personal_data(store, before=LATER, key=KEY, wait_s=1)
    before = store.query("select * from results order by all").rows
    assert remove_personal_data(store, before=LATER, key=KEY, wait_s=1).archives == 0
    rebuild_database(store, wait_s=1)
    rows = store.query("select * from results order by all").rows
    assert rows == before
    assert SECRET not in all_text(store)


def test_aged_rows_can_still_be_read_as_records(store):
    remove_personal_data(store, before=LATER, key=KEY, wait_s=1)
    parquet = next((store.database.file.parent / "journal" / "_archive").glob("*.parquet"))
    rows = duckdb.sql(f"select row_json from '{parquet}' where table_name = 'results'").fetchall()
    kinds = {ResultRow.model_validate_json(f'{{"table":"results","row":{row[0]}}}').row.outcome for row in rows}
    assert kinds == {"exchange", "no_answer"}


def test_an_archive_without_personal_data_is_not_lost_when_it_is_aged(tmp_path):
    """If an archive contains no personal data, the deletion by age replaces it with a new file and loses no row."""
    store = store_in(tmp_path)
    decided = OutboxDecision(incidents=(incident(),), alerts=(alert(),))
    decide(store, store.journal, "helpdesk", lambda _: decided, wait_s=1)
    assert remove_personal_data(store, before=LATER, key=KEY, wait_s=1).segments == 1
    assert remove_personal_data(store, before=LATER, key=KEY, wait_s=1).segments == 0
    assert check_database(store, wait_s=1).is_sound
    rebuild_database(store, wait_s=1)
    assert list_unsent_alerts(store) == (alert(),)


def test_recent_data_stays(store):
    assert remove_personal_data(store, before=NOON, key=KEY, wait_s=1).archives == 0
    assert SECRET in all_text(store)


def test_killed_between_journal_and_tables_the_next_load_finishes(store):
    """If a kill leaves a redacted archive and old rows in the tables, the next load finishes the deletion."""
    folder = store.database.file.parent
    compact_segments(store, before=LATER, wait_s=1, unfinished=True)
    before = store.database.file.read_bytes()
    old = {file: file.read_bytes() for file in (folder / "journal" / "_archive").iterdir()}
    remove_personal_data(store, before=LATER, key=KEY, wait_s=1)
    store.database.file.write_bytes(before)
    for file, data in old.items():
        Path(file).write_bytes(data)
    again = bare_store_in(folder, seed=7)
    assert check_database(again, wait_s=1).is_sound, "the old archive counts until the new one is loaded"
    again.load_pending(1)
    assert check_database(again, wait_s=1).is_sound
    compact_segments(again, before=LATER, wait_s=1)
    assert SECRET not in all_text(again)
    assert check_database(again, wait_s=1).is_sound


def test_a_short_key_is_refused(store):
    with pytest.raises(ValueError, match="16 bytes"):
        remove_personal_data(store, before=LATER, key=b"short", wait_s=1)
