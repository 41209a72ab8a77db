"""Test that a stopped run is resumed only by a run that asks the same questions soon after."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from flows.verify.run_folder import RESUME_WITHIN, RunStart, begin_run, build_run_id, find_run_to_resume
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


def stopped(runs, begun_as: RunStart) -> Path:
    """Begin a run and free its lock without finishing it, like a killed process. Return its folder."""
    with begin_run(runs, begun_as) as begun:
        return begun.folder


def test_a_stopped_run_is_found(tmp_path):
    folder = stopped(tmp_path, start())
    found = find_run_to_resume(tmp_path, start("run-2", started_at=NOON + timedelta(minutes=5)))
    assert found is not None
    with found:
        assert (found.start, found.folder, found.resumed) == (start(), folder, True)


def test_a_finished_run_is_left_alone(tmp_path):
    with begin_run(tmp_path, start()) as begun:
        begun.mark_finished()
    assert find_run_to_resume(tmp_path, start("run-2")) is None


def test_a_run_that_a_later_one_of_the_target_has_overtaken_is_not_taken_up(tmp_path):
    """A stopped run is not resumed after a later run of the same target, because the bot may have changed.

    A later run of another target does not matter.
    """
    stopped(tmp_path, start())
    other = TARGET.model_copy(update={"name": "other"})
    for number, (target, found) in enumerate([(other, True), (TARGET, False)], start=2):
        with begin_run(tmp_path, start(f"run-{number}", target=target, suite_sha256="b" * 64)) as begun:
            begun.mark_finished()
        taken = find_run_to_resume(tmp_path, start("run-9"))
        assert (taken is not None) is found
        if taken is not None:
            with taken:
                assert taken.start.run_id == "run-1"


def test_a_run_that_was_killed_after_its_reports_is_finished_yet(tmp_path):
    """A run that was killed after it wrote its results but before it finished is resumed, to send its alerts."""
    (stopped(tmp_path, start()) / "results.json").write_text("{}", encoding="utf-8")
    found = find_run_to_resume(tmp_path, start("run-2"))
    assert found is not None
    with found:
        pass


def test_a_run_in_use_by_another_process_is_not_taken_over(tmp_path):
    """A run can be resumed by only one process at a time, and only after the process that began it has ended."""
    with begin_run(tmp_path, start()):
        assert find_run_to_resume(tmp_path, start("run-2")) is None
    first = find_run_to_resume(tmp_path, start("run-2"))
    assert first is not None
    with first:
        assert find_run_to_resume(tmp_path, start("run-3")) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"commit": "def"},
        {"commit": None},
        {"suite_sha256": "b" * 64},
        {"target": TARGET.model_copy(update={"url": "http://127.0.0.1:1"})},
        {"started_at": NOON + RESUME_WITHIN + timedelta(seconds=1)},
        {"started_at": NOON - RESUME_WITHIN - timedelta(seconds=1)},
    ],
    ids=["other commit", "no commit", "other suite", "other page", "too late", "before it began"],
)
def test_other_questions_are_not_answered_by_old_answers(tmp_path, changes):
    stopped(tmp_path, start())
    assert find_run_to_resume(tmp_path, start("run-2", **changes)) is None


def test_the_newest_of_two_is_taken_and_a_torn_note_is_passed_over(tmp_path):
    stopped(tmp_path, start("run-1"))
    stopped(tmp_path, start("run-2"))
    (tmp_path / "run-3").mkdir()
    (tmp_path / "run-3" / "run.json").write_text('{"run_id": "run-3"', encoding="utf-8")
    found = find_run_to_resume(tmp_path, start("run-4"))
    assert found is not None
    with found:
        assert found.start.run_id == "run-2"


def test_ids_sort_by_time_and_differ_within_a_second():
    first = build_run_id("demo", NOON, b"\x00\x01\x02")
    assert first == "20260301T120000Z-demo-000102"
    assert build_run_id("demo", NOON, b"\x00\x01\x03") != first
    assert build_run_id("demo", NOON + timedelta(seconds=1), b"\x00\x00\x00") > first
    late = build_run_id("demo", NOON + timedelta(milliseconds=1), b"\x00\x00\x00")
    assert (
        build_run_id("demo", NOON, b"\xff\xff\xff")
        < late
        < build_run_id("demo", NOON + timedelta(milliseconds=999), b"\x00\x00\x00")
    )


def test_a_folder_that_cannot_be_created_is_reported(tmp_path):
    (tmp_path / "runs").write_text("", encoding="utf-8")
    with pytest.raises(WarehouseUnwritable, match="runs"):
        begin_run(tmp_path / "runs", start())
