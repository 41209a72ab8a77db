"""`lookout warehouse` as a user runs it: its output, its exit codes, and no lost data."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.data_folder import open_store_in
from monitors.records.base import Severity
from tests import fork_server
from tests.builders import assessment, exchange, gold_case
from tests.in_process import run_in_process
from tests.stable_text import replace_volatile
from warehouse.journal.rows import AssessmentRow, ResultRow


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data folder with one loaded run of three answers."""
    store = open_store_in(tmp_path / "data")
    for number in range(3):
        case = gold_case(f"case-{number}", severity=Severity.MAJOR)
        rows = (ResultRow(row=exchange(case)), AssessmentRow(row=assessment(case)))
        store.journal.append(rows, run_id="run-1")
    store.load_pending(5)
    return tmp_path / "data"


def lookout(
    *arguments: str, data: Path, run: Callable[..., Any] = run_in_process, **variables: str
) -> subprocess.CompletedProcess[str]:
    return run(*arguments, "--data-folder", str(data), cwd=data.parent, env=fork_server.bare(**variables))


def count(data: Path) -> int:
    row = lookout("sql", "select count(*) as n from results", "--json", data=data)
    return int(json.loads(row.stdout)["n"])


def test_a_sound_warehouse_is_called_sound(data, snapshot):
    done = lookout("warehouse", "check", data=data, run=fork_server.run)
    assert (done.returncode, done.stdout) == (0, snapshot)


def test_loading_by_hand_says_what_came_and_what_was_damaged(data, snapshot):
    store = open_store_in(data)
    case = gold_case("case-new", severity=Severity.MAJOR)
    rows = (ResultRow(row=exchange(case)), AssessmentRow(row=assessment(case)))
    first, second = (store.journal.append(rows, run_id="run-2") for _ in range(2))
    (data / "journal" / "run-2" / f"{second}.jsonl").write_bytes(b"half a line")
    done = lookout("warehouse", "load", data=data)
    assert done.returncode == 4
    assert second in done.stdout
    assert first not in done.stdout
    assert replace_volatile(done.stdout, data, second=second) == snapshot
    assert lookout("warehouse", "load", data=data).returncode == 0
    assert count(data) == 4


def test_figures_are_printed_as_people_read_them(data):
    done = lookout(
        "sql", "select 12345.678::double as ms, 0.98765::double as share, 2.50::decimal(4, 2) as usd", data=data
    )
    assert done.stdout.split() == ["ms", "share", "usd", "12346", "0.9877", "2.5"]


def test_a_lost_file_is_rebuilt_from_the_journal(data):
    (data / "warehouse.duckdb").write_bytes(b"not a database")
    checked = lookout("warehouse", "check", data=data)
    assert checked.returncode == 4
    assert "PROBLEMS FOUND" in checked.stdout
    assert "lookout warehouse rebuild" in checked.stdout
    assert lookout("warehouse", "rebuild", data=data).returncode == 0
    assert lookout("warehouse", "check", data=data).returncode == 0
    assert count(data) == 3


def test_compacting_and_exporting_lose_nothing(data, tmp_path):
    report = json.loads(lookout("warehouse", "compact", "--days", "0", "--json", data=data).stdout)
    assert report["archives"] >= 0
    assert lookout("warehouse", "check", data=data).returncode == 0
    assert count(data) == 3
    goal = tmp_path / "out"
    exported = lookout(
        "warehouse", "export", str(goal), "--since", "2026-01-01", "--until", "2026-12-31", data=data
    )
    assert exported.returncode == 0
    assert list(goal.glob("results/day=2026-03-01/*.parquet"))


@pytest.mark.parametrize("variables", [{}, {"LOOKOUT_AGE_KEY": "short"}])
def test_pseudonyms_need_a_key_from_the_environment(data, variables):
    done = lookout("warehouse", "age", "--days", "30", data=data, **variables)
    assert done.returncode == 2
    assert "LOOKOUT_AGE_KEY" in done.stderr
    assert "short;" not in done.stdout


def test_a_wrong_query_is_an_error_and_files_are_out_of_reach(data):
    wrong = lookout("sql", "select nothing from nowhere", data=data)
    assert wrong.returncode == 2
    assert "nowhere" in wrong.stderr
    assert lookout("sql", "select * from read_csv('/etc/passwd')", data=data).returncode == 2
    assert lookout("sql", "drop table results", data=data).returncode == 2
    for query in (
        "call enable_logging(level='trace')",
        "from enable_logging()",
        "select 1; select 2",
        "set threads=1",
    ):
        assert lookout("sql", query, data=data).returncode == 2
    for query in ("from results", "with r as (from results) select * from r", "show tables", "summarize results"):
        assert lookout("sql", query, data=data).returncode == 0
    assert count(data) == 3
