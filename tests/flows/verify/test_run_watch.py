"""Test the state and progress of an unfinished run, which are read from its files without disturbing the run."""

from __future__ import annotations

import fcntl
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from flows.data_folder import open_store_in
from flows.verify.run_folder import ALIVE_FILE, RunStart, begin_run, find_run_to_resume
from flows.verify.run_watch import LISTED_FOR, RunState, RunWatch
from monitors.records.base import Blame, Severity
from monitors.records.grades import CaseOutcome, FailureKind
from tests.builders import NOON, TARGET
from tests.warehouse.sample_rows import assessment, exchange, no_answer
from warehouse.journal.rows import AssessmentRow, ResultRow

AT = NOON
RUN = f"{AT:%Y%m%dT%H%M%SZ}-demo-abcdef"


def start(run_id: str = RUN, **changes) -> RunStart:
    values = {"run_id": run_id, "target": TARGET, "suite_sha256": "a" * 64, "commit": None, "started_at": AT}
    return RunStart.model_validate(values | {"planned": 5} | changes)


@pytest.fixture
def data(tmp_path):
    """Return a data folder with an empty folder for runs, and the journal of the data folder."""
    (tmp_path / "runs").mkdir()
    return tmp_path, open_store_in(tmp_path).journal


def watch_of(data) -> RunWatch:
    folder, journal = data
    return RunWatch(folder / "runs", journal)


def add(data, case_id: str, *, failed: FailureKind | None = None, **changes) -> None:
    """Store one result of the run, as a run does."""
    said = assessment(RUN, case_id, failed=failed).model_copy(update=changes)
    asked = exchange(RUN, case_id) if said.outcome is not CaseOutcome.NO_ANSWER else no_answer(RUN, case_id)
    data[1].append((ResultRow(row=asked), AssessmentRow(row=said)), run_id=RUN)


def test_a_run_is_going_on_then_stopped_and_its_results_stay(data):
    """A run is in progress as long as its process lives. After that, it is stopped.

    The results are counted while the run is in progress, and after it has stopped.
    """
    folder, _ = data
    with begin_run(folder / "runs", start()):
        add(data, "a")
        add(data, "b", failed=FailureKind.WRONG_FACT)
        (run,) = watch_of(data).list_recent_unfinished_runs(AT)
        assert (run.state, run.result_count, run.planned, run.failed) == (RunState.GOING_ON, 2, 5, 1)
    (run,) = watch_of(data).list_recent_unfinished_runs(AT)
    assert (run.state, run.result_count, run.graded) == (RunState.STOPPED, 2, 2)
    assert [(one.case_id, one.asked) for one in run.severe] == [("b", exchange(RUN, "b").turns[-1])]


@pytest.mark.parametrize(
    ("changes", "is_severe"),
    [
        ({"failed": FailureKind.WRONG_FACT}, True),
        ({"failed": FailureKind.WRONG_FACT, "severity": Severity.MAJOR}, False),
        ({}, False),
        ({"outcome": CaseOutcome.NO_ANSWER, "severity": Severity.CRITICAL, "blame": Blame.APP}, True),
        ({"outcome": CaseOutcome.NO_ANSWER, "severity": Severity.CRITICAL, "blame": Blame.MONITOR}, False),
    ],
    ids=["wrong", "less severe", "correct", "silent app", "fault of the monitor"],
)
def test_severe_failures_are_those_of_the_app(data, changes, is_severe):
    """Only failures of severity 3 that are the application's fault count as severe."""
    with begin_run(data[0] / "runs", start()):
        add(data, "a", **changes)
        (run,) = watch_of(data).list_recent_unfinished_runs(AT)
    assert bool(run.severe) is is_severe


def test_of_a_case_that_was_asked_again_the_later_result_counts(data):
    """If a case was asked again, its later result replaces the first, even if the first was already read."""
    with begin_run(data[0] / "runs", start()):
        watch = watch_of(data)
        add(data, "a", failed=FailureKind.WRONG_FACT)
        assert watch.load_progress(RUN).failed == 1
        add(data, "a")
        again = watch.load_progress(RUN)
    assert (again.result_count, again.failed, again.severe) == (1, 0, ())


def test_a_finished_run_is_not_listed_and_can_be_asked_about(data):
    """A finished run is not listed as unfinished, but its progress can still be loaded by its id."""
    with begin_run(data[0] / "runs", start()) as held:
        add(data, "a")
        held.mark_finished()
    watch = watch_of(data)
    assert watch.list_recent_unfinished_runs(AT) == ()
    assert watch.load_progress(RUN).state is RunState.DONE


def test_old_runs_are_not_listed_and_strange_ones_are_none(data):
    """A run that is too old to be resumed is not listed.

    An id that is not the name of a run folder returns no progress.
    """
    begin_run(data[0] / "runs", start()).__exit__(None, None, None)
    (data[0] / "run.json").write_text(start().model_dump_json())
    watch = watch_of(data)
    assert watch.list_recent_unfinished_runs(AT + LISTED_FOR + timedelta(minutes=1)) == ()
    assert [watch.load_progress(name) for name in ("..", "../runs", f"../runs/{RUN}", "nobody")] == [None] * 4


def test_a_damaged_segment_hides_no_other(data):
    """If one segment of the journal is damaged, the results in the other segments are still counted."""
    with begin_run(data[0] / "runs", start()):
        add(data, "a")
        (segment,) = (data[0] / "journal" / RUN).iterdir()
        segment.write_bytes(segment.read_bytes()[:-9])
        add(data, "b")
        assert watch_of(data).load_progress(RUN).result_count == 1


def test_a_watcher_does_not_take_over_a_run(data, monkeypatch):
    """Reading the state of a run does not take the lock that is needed to resume the run.

    Another process that starts at the same moment can resume the run.
    """
    runs, asked = data[0] / "runs", []
    begin_run(runs, start()).__exit__(None, None, None)
    plain = fcntl.flock

    def noted(file, how: int) -> None:
        asked.append(Path(file.name).name)
        plain(file, how)

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", noted)
        assert watch_of(data).load_progress(RUN).state is RunState.STOPPED
    assert asked == [ALIVE_FILE]
    with (runs / RUN / ALIVE_FILE).open() as question, ThreadPoolExecutor() as pool:
        fcntl.flock(question, fcntl.LOCK_SH)
        wanted = pool.submit(find_run_to_resume, runs, start("another"))
        fcntl.flock(question, fcntl.LOCK_UN)
        with wanted.result(60) as found:
            assert found.start.run_id == RUN
