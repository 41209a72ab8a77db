from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from monitors.errors import WarehouseDamaged
from tests.warehouse.sample_rows import assessment, exchange
from tests.warehouse.temporary_stores import count, store_in
from warehouse.database.check import CheckProblemKind, check_database
from warehouse.journal.rows import AssessmentRow, ResultRow


def with_segments(folder, cases=3):
    store = store_in(folder)
    for number in range(cases):
        case = f"case-{number}"
        rows = [ResultRow(row=exchange(case_id=case)), AssessmentRow(row=assessment(case_id=case))]
        store.journal.append(rows, run_id="run-1")
    return store


def first_file(store) -> Path:
    return Path(store.journal.segments.format_location(store.journal.segments.list_segments()[0]))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-10])


def change_a_letter(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"Two years", b"Ten years"))


def drop_a_row(file: Path) -> None:
    """Rewrite a segment file with a valid hash, but with one row less than its header states."""
    head, body = file.read_bytes().split(b"\n", 1)
    body = body.split(b"\n", 1)[1]
    header = json.loads(head) | {"sha256": hashlib.sha256(body).hexdigest()}
    file.write_bytes(json.dumps(header).encode() + b"\n" + body)


def lose_a_field(file: Path) -> None:
    """Rewrite a segment file so that a row lacks a required field. The hash and row count of the file are valid."""
    body = file.read_bytes().split(b"\n", 1)[1].replace(b'"outcome":"exchange",', b"")
    header = json.loads(file.read_bytes().split(b"\n", 1)[0]) | {"sha256": hashlib.sha256(body).hexdigest()}
    file.write_bytes(json.dumps(header).encode() + b"\n" + body)


@pytest.mark.parametrize("damage", [cut, change_a_letter, drop_a_row, lose_a_field])
def test_a_damaged_segment_is_set_aside_and_reported_and_the_rest_loaded(tmp_path, damage):
    store = with_segments(tmp_path)
    damage(first_file(store))
    damaged = first_file(store).read_bytes()
    report = store.load_pending(1)
    assert report.segments == 2
    assert count(store, "results") == 2
    assert count(store, "grades") == 6
    (error,) = report.errors()
    assert isinstance(error, WarehouseDamaged)
    assert "was moved to" in str(error)
    assert Path(report.damaged[0].stored_at).read_bytes() == damaged
    assert store.load_pending(1).damaged == (), "reported once"
    assert [problem.kind for problem in check_database(store, wait_s=1).problems] == [CheckProblemKind.SET_ASIDE]


def test_a_segment_of_a_newer_version_waits_where_it_is(tmp_path):
    store = with_segments(tmp_path, cases=1)
    file = first_file(store)
    file.write_bytes(file.read_bytes().replace(b'"lookout_segment":1', b'"lookout_segment":9'))
    report = store.load_pending(1)
    assert (report.too_new, report.segments, report.damaged) == (1, 0, ())
    assert file.exists()


def test_loading_twice_is_loading_once(tmp_path):
    store = with_segments(tmp_path)
    assert store.load_pending(1).segments == 3
    assert store.load_pending(1).segments == 0
    assert count(store, "grades") == 9


def test_the_order_of_loading_does_not_matter(tmp_path):
    """An older segment that is loaded after a newer segment does not overwrite the newer rows."""
    store = with_segments(tmp_path, cases=1)
    early = first_file(store)
    loaded_bytes = early.read_bytes()
    early.unlink()
    rows = [
        ResultRow(row=exchange(case_id="case-0", text="the later answer")),
        AssessmentRow(row=assessment(case_id="case-0")),
    ]
    store.journal.append(rows, run_id="run-1")
    store.load_pending(1)
    early.write_bytes(loaded_bytes)
    assert store.load_pending(1).segments == 1
    assert store.query("select visible_text from results").rows == (("the later answer",),)
    assert count(store, "grades") == 3
    assert check_database(store, wait_s=1).is_sound


def test_the_check_sees_rows_that_were_changed_behind_its_back(tmp_path, snapshot):
    store = with_segments(tmp_path)
    store.load_pending(1)
    with store.database.open_for_writing(1) as connection:
        connection.execute("update grades set passed = not passed where case_id = 'case-1' and position = 0")
        connection.execute("delete from results where case_id = 'case-2'")
    problems = check_database(store, wait_s=1).problems
    assert [problem.kind for problem in problems] == [CheckProblemKind.TABLE_DIFFERS] * 2
    assert [problem.text.replace(str(tmp_path), "FOLDER") for problem in problems] == snapshot


def test_the_check_sees_segments_that_were_lost_or_replaced(tmp_path):
    store = with_segments(tmp_path)
    store.load_pending(1)
    first_file(store).unlink()
    (tmp_path / "other").mkdir()
    other = with_segments(tmp_path / "other", cases=2)
    change = first_file(other).read_bytes()
    second = first_file(store)
    header = json.loads(change.split(b"\n", 1)[0]) | {"id": second.stem}
    second.write_bytes(json.dumps(header).encode() + b"\n" + change.split(b"\n", 1)[1])
    kinds = {problem.kind for problem in check_database(store, wait_s=1).problems}
    assert {
        CheckProblemKind.SEGMENT_MISSING,
        CheckProblemKind.SEGMENT_CHANGED,
        CheckProblemKind.TABLE_DIFFERS,
    } <= kinds
