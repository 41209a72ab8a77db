"""A stopped run is found again, but only by a run that asks the same questions soon after."""

from __future__ import annotations

from datetime import timedelta

import pytest

from flows.run_folder import RESUME_WITHIN, RunStart, begin, new_run_id, unfinished
from monitors.errors import WarehouseUnwritable
from tests.builders import NOON, TARGET


def start(run_id: str = "run-1", **changes) -> RunStart:
    values = {
        "run_id": run_id,
        "target": TARGET,
        "suite_sha256": "a" * 64,
        "commit": "abc",
        "started_at": NOON,
    }
    return RunStart.model_validate(values | changes)


def test_a_stopped_run_is_found(tmp_path):
    begin(tmp_path, start())
    assert unfinished(tmp_path, start("run-2", started_at=NOON + timedelta(minutes=5))) == start()


def test_a_finished_run_is_left_alone(tmp_path):
    (begin(tmp_path, start()) / "results.json").write_text("{}", encoding="utf-8")
    assert unfinished(tmp_path, start("run-2")) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"commit": "def"},
        {"commit": None},
        {"suite_sha256": "b" * 64},
        {"target": TARGET.model_copy(update={"url": "http://127.0.0.1:1"})},
        {"started_at": NOON + RESUME_WITHIN + timedelta(seconds=1)},
    ],
    ids=["other commit", "no commit", "other suite", "other page", "too late"],
)
def test_other_questions_are_not_answered_by_old_answers(tmp_path, changes):
    begin(tmp_path, start())
    assert unfinished(tmp_path, start("run-2", **changes)) is None


def test_the_newest_of_two_is_taken_and_a_torn_note_is_passed_over(tmp_path):
    begin(tmp_path, start("run-1"))
    begin(tmp_path, start("run-2"))
    (tmp_path / "run-3").mkdir()
    (tmp_path / "run-3" / "run.json").write_text('{"run_id": "run-3"', encoding="utf-8")
    found = unfinished(tmp_path, start("run-4"))
    assert found is not None
    assert found.run_id == "run-2"


def test_ids_sort_by_time_and_differ_within_a_second():
    first = new_run_id("demo", NOON, b"\x00\x01\x02")
    assert first == "20260301T120000Z-demo-000102"
    assert new_run_id("demo", NOON, b"\x00\x01\x03") != first
    assert new_run_id("demo", NOON + timedelta(seconds=1), b"\x00") > first


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "runs").write_text("", encoding="utf-8")
    with pytest.raises(WarehouseUnwritable, match="runs"):
        begin(tmp_path / "runs", start())
