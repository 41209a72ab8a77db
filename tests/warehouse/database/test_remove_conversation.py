"""Test that the personal data of one conversation can be deleted at once, everywhere.

Other conversations stay until their retention ends.
"""

from __future__ import annotations

import pytest

from tests.warehouse.database.test_retention import records_about, talk
from tests.warehouse.database.test_retention_texts import KEY, LATER, all_text, blocked
from tests.warehouse.decisions import OutboxDecision, decide
from tests.warehouse.sample_nights import night_report, seen
from tests.warehouse.sample_rows import assessment
from tests.warehouse.temporary_stores import bare_store_in, store_in
from warehouse.database.check import check_database
from warehouse.database.rebuild import rebuild_database
from warehouse.database.retention import (
    ConversationReport,
    compact_segments,
    remove_conversation_data,
    remove_personal_data,
)
from warehouse.database.store import Store
from warehouse.journal.rows import (
    AssessmentRow,
    ConversationRow,
    DraftRow,
    HallucinationRow,
    LabelRow,
    NightlyRunRow,
    ResultRow,
)

WANTED, OTHER = "Chitra Das, 9 Sea Street", "Bela Sen, 7 Lake View"
TABLES = ("results", "assessments", "conversations", "incident_history", "alerts", "labels", "case_drafts")


@pytest.fixture
def store(tmp_path) -> Store:
    """Return a store with a night of traffic: conversations of two users, and decisions about the first user's."""
    store = store_in(tmp_path)
    answers = [talk("talk-1:1", text=WANTED), talk("talk-1:2", text=WANTED), talk("talk-10:1", text=OTHER)]
    rows = [ResultRow(row=answer) for answer in answers]
    graded = [AssessmentRow(row=assessment("night-1", answer.case_id)) for answer in answers]
    talks = [ConversationRow(row=seen(f"talk-{n}", sampled_in=text)) for n, text in ((1, WANTED), (10, OTHER))]
    store.journal.append([*rows, *graded, *talks, NightlyRunRow(row=night_report())], run_id="night-1")
    store.journal.append([HallucinationRow(row=blocked())], run_id=None)
    fault, message, label, draft = records_about("talk-1:1")
    decided = OutboxDecision(incidents=(fault,), alerts=(message,))
    decide(store, store.journal, "helpdesk", lambda _: decided, wait_s=1)
    store.journal.append_outbox([LabelRow(row=label), DraftRow(row=draft)])
    store.load_pending(1)
    return store


def remove(store: Store, conversation: str = "talk-1") -> ConversationReport:
    return remove_conversation_data(store, conversation, case_ids=f"{conversation}:", key=KEY, wait_s=1)


def read_tables(store: Store) -> dict[str, object]:
    return {table: store.query(f"select * from {table} order by all").rows for table in TABLES}


def read_everything(store: Store) -> str:
    return f"{all_text(store)}{read_tables(store)}"


@pytest.mark.parametrize("is_archived", [False, True])
def test_one_person_s_texts_and_ids_are_gone_and_the_other_s_stay(store, is_archived):
    if is_archived:
        compact_segments(store, before=LATER, wait_s=1, unfinished=True)
    figures = "select total_ms, outcome, origin from results order by all"
    before = store.query(figures).rows
    report = remove(store)
    assert report.run_ids == ("night-1",)
    text = read_everything(store)
    assert (WANTED in text, "talk-1:" in text, OTHER in text) == (False, False, True)
    assert [str(row[0]) for row in store.query("select case_id from results order by 1").rows][2:] == ["talk-10:1"]
    ages = store.query("select id, record is null from conversations order by id").rows
    assert ages == (("talk-1", True), ("talk-10", False))
    texts = store.query("select visible_text from results order by 1").rows
    assert texts == (("",), ("",), (OTHER,))
    assert store.query(figures).rows == before
    assert check_database(store, wait_s=1).is_sound
    tables = read_tables(store)
    rebuild_database(store, wait_s=1)
    assert read_tables(store) == tables


def test_again_or_for_an_unknown_id_nothing_changes(store):
    assert remove(store).archives > 0
    before = read_everything(store)
    for conversation in ("talk-1", "talk-99", "talk", "talk.1"):
        assert remove(store, conversation).archives == 0
    assert read_everything(store) == before


def test_the_others_still_age(store):
    """After one conversation was removed, other conversations are still deleted when their retention ends.

    The removal replaces the archive, so these conversations are then in a new archive.
    """
    remove(store)
    assert remove_personal_data(store, before=LATER, key=KEY, wait_s=1).archives > 0
    assert OTHER not in read_everything(store)
    assert remove_personal_data(store, before=LATER, key=KEY, wait_s=1).archives == 0
    assert remove(store, "talk-10").archives == 0
    assert check_database(store, wait_s=1).is_sound


def test_a_pseudonym_is_the_one_that_aging_gives(store, tmp_path):
    remove(store)
    ids = "select distinct case_id from results where visible_text = '' and case_id like 'p-%' order by 1"
    once = store.query(ids).rows
    remove_personal_data(store, before=LATER, key=KEY, wait_s=1)
    assert set(once) < set(store.query(ids).rows)
    assert len(once) == 2


def test_a_log_entry_that_names_the_conversation_is_emptied(store):
    line = blocked(2)
    named = type(line).model_validate_json(
        line.model_dump_json().replace('"session":"', '"talk":"talk-1","session":"')
    )
    store.journal.append([HallucinationRow(row=named)], run_id=None)
    store.load_pending(1)
    remove(store)
    rows = store.query("select id, user_text from hallucinations order by id").rows
    assert [bool(text) for _, text in rows] == [True, False]


def test_killed_between_journal_and_tables_the_next_load_finishes(store):
    before = store.database.file.read_bytes()
    remove(store)
    store.database.file.write_bytes(before)
    again = bare_store_in(store.database.file.parent, seed=7)
    again.load_pending(1)
    assert again.query("select count(*) from results where visible_text = ''").rows == ((2,),)
    assert check_database(again, wait_s=1).is_sound


def test_a_short_key_is_refused(store):
    with pytest.raises(ValueError, match="16 bytes"):
        remove_conversation_data(store, "talk-1", case_ids="talk-1:", key=b"short", wait_s=1)
    assert WANTED in read_everything(store)
