"""Test that the table of `make bench` has a row for each figure, even a missing one, in the requirements' order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.__main__ import run_bench
from tests.bench.measurements import Figure
from tests.bench.run_one_bench import CRASHED
from tests.bench.summary import BENCHES, HEAD, BenchRun, build_summary, count_failures

ROOT = Path(__file__).parents[2]
BENCH_FOLDER = ROOT / "tests" / "bench"


def figure(id_: str = "P3", **changed: object) -> Figure:
    given = {"id": id_, "what": "one reply", "unit": "ms", "values": (3.0, 1.0, 2.0), "goal": 2.0}
    return Figure.model_validate(given | changed)


def ran(name: str = "bench_grading", *figures: Figure, **changed: object) -> BenchRun:
    given = {"name": name, "ids": BENCHES[name], "code": 0, "took_s": 90.0, "load": 0.2, "figures": figures}
    return BenchRun.model_validate(given | changed)


def rows(*runs: BenchRun) -> list[dict[str, str]]:
    """Build the table for ``runs``, and return each row as a dictionary from column heading to cell."""
    lines = [line for line in build_summary(runs, budget_min=40) if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").replace("\\|", "/").split("|")] for line in lines]
    assert cells[0] == list(HEAD)
    return [dict(zip(HEAD, row, strict=True)) for row in cells[2:]]


def test_every_bench_of_the_folder_is_run_and_declares_what_it_reports():
    assert set(BENCHES) == {path.stem for path in BENCH_FOLDER.glob("bench_*.py")}
    assert {f"P{number}" for number in range(1, 13)} <= {one for ids in BENCHES.values() for one in ids}


def test_a_row_says_goal_median_baseline_ratio_spread_load_and_whether_the_goal_is_met(snapshot):
    paired = figure(baseline="digits, ms", baselines=(1.5, 1.0, 4.0), note="idle")
    assert rows(ran("bench_grading", paired)) == snapshot


@pytest.mark.parametrize(
    ("changed", "goal", "result"),
    [
        ({"goal": None}, "", "no goal"),
        ({"goal": 1.5}, "≤ 1.5 ms", "**missed**"),
        ({"worst": True}, "worst ≤ 2 ms", "**missed**"),
        ({"better": "higher", "goal": 1000, "values": (1234.5,)}, "≥ 1,000 ms", "met"),
        ({"baseline": "b", "baselines": (1.0, 1.0, 1.0), "of": "ratio"}, "ratio ≤ 2", "met"),
    ],
)
def test_a_goal_is_written_as_it_is_held(changed, goal, result):
    (row,) = rows(ran("bench_grading", figure(**changed)))
    assert (row["goal"], row["result"]) == (goal, result)


def test_missed_mutants_show_their_note_and_are_counted(snapshot):
    runs = [ran("bench_grading", figure(goal=1.0, note="regular expressions"), code=1)]
    assert rows(*runs)[0]["note"] == "regular expressions"
    assert build_summary(runs, budget_min=40)[-1] == snapshot
    assert count_failures(runs) == 1


def test_rows_stand_in_the_order_of_the_requirements_and_the_others_behind_them():
    runs = [
        ran("bench_dataset", figure("dataset")),
        ran("bench_night", figure("P10")),
        ran("bench_run", figure("P12"), figure("P5"), figure("P2")),
        ran("bench_grading", figure("P3", what="first"), figure("P3", what="second")),
    ]
    assert [row["id"] for row in rows(*runs)] == ["P2", "P3", "P3", "P5", "P10", "P12", "dataset"]
    assert [row["what"] for row in rows(*runs)][1:3] == ["first", "second"]
    assert count_failures(runs) == 0


@pytest.mark.parametrize("code", [CRASHED, -9, 1])
def test_a_bench_that_crashed_is_named_with_its_id_and_its_code(code):
    run = ran("bench_grading", code=code)
    (row,) = rows(run)
    assert (row["id"], row["what"]) == ("P3", f"`bench_grading` ended with code {code}: no figures")
    assert row["result"] == "**broke**"
    assert count_failures([run]) == 1


def test_a_bench_that_crashed_after_some_figures_shows_them_and_is_named(snapshot):
    some = ran("bench_run", figure("P5"), figure("P12"), code=CRASHED)
    first, *others = rows(some)
    assert (first["id"], [row["what"] for row in others]) == ("P2", ["one reply"] * 2)
    assert first["what"] == snapshot
    late = ran("bench_grading", figure(goal=1.0), code=CRASHED)
    assert "figures may be missing" in rows(late)[1]["what"]


def test_a_goal_that_was_missed_explains_exit_code_1():
    run = ran("bench_grading", figure(goal=1.0), code=1)
    assert [row["result"] for row in rows(run)] == ["**missed**"]


def test_a_figure_that_was_not_reported_has_a_row():
    run = ran("bench_run", figure("P2"), figure("P12"))
    assert [(row["id"], row["result"]) for row in rows(run)] == [
        ("P2", "met"),
        ("P5", "**missing**"),
        ("P12", "met"),
    ]
    assert build_summary([run], budget_min=40)[-1].endswith("missing: 1.")
    assert count_failures([run]) == 1
    silent = ran("bench_patterns")
    assert [(row["id"], row["result"]) for row in rows(silent)] == [("bench_patterns", "**missing**")]


def test_a_bench_that_was_stopped_says_so_and_how_long_each_took_is_printed(snapshot):
    runs = [ran("bench_night", code=-2, stopped=True, took_s=600.0), ran("bench_grading", figure())]
    assert "10 min" in rows(*runs)[1]["what"]
    assert build_summary(runs, budget_min=40) == snapshot


def test_a_bar_in_a_text_does_not_end_its_cell():
    (row,) = rows(ran("bench_grading", figure(what="p50 | p99")))
    assert row["what"] == "p50 / p99"


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """Return a function that runs the given source code as a benchmark with the name ``planted``."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setitem(BENCHES, "planted", ("P3",))

    def run(source: str, most_s: float) -> BenchRun:
        (tmp_path / "planted.py").write_text(source, "utf-8")
        return run_bench("planted", tmp_path, most_s, module="planted")

    return run


REPORTS = (
    "from tests.bench.measurements import Figure, report\n"
    "report(Figure(id='P3', what='x', unit='ms', values=(1.0,), goal=2.0))\n"
)


@pytest.mark.parametrize(
    ("ending", "code", "failed"),
    [
        ("", 0, False),
        ("raise SystemExit(1)", 1, True),
        ("raise ValueError", CRASHED, True),
        ("raise SystemExit('no')", CRASHED, True),
    ],
)
def test_a_bench_runs_in_a_process_whose_end_differs_from_a_missed_goal(planted, ending, code, failed):
    run = planted(REPORTS + ending, 120)
    assert (run.code, run.failed, run.stopped) == (code, failed, False)
    assert [one.id for one in run.figures] == ["P3"]


def test_a_bench_that_takes_too_long_is_stopped(planted):
    run = planted("import threading\nthreading.Event().wait()\n", 0)
    assert run.stopped
    assert run.failed
    assert run.code != 0


def test_an_unknown_bench_is_refused_with_those_there_are(snapshot):
    said = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--only", "speed"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert [name for name in BENCHES if name.removeprefix("bench_") not in said.stderr] == []
    assert said.stderr == snapshot


def test_a_table_of_some_benches_is_not_written_over_one_of_all():
    said = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--only", "help", "--write", "docs/performance.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 2
    assert "leave --only out" in said.stderr
