"""Tests that this version reads and continues a data folder of an earlier version (see data/README.md)."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from deployments.cli.exit_codes import ExitCode
from tests import fork_server

STORED = Path(__file__).with_name("data")
CONFIG = """
data_folder = "data"

[targets.bikes]
url = "http://127.0.0.1:9/ask"
suite = "suite.jsonl"
domains = ["general"]

[targets.bikes.probe]
driver = "json"
"""
INCIDENTS = {
    ("case_failure", "pii_disclosure", "live-traffic:pii_disclosure"): "open",
    ("case_failure", "pii_disclosure", "last-renter"): "open",
    ("gate_fail", None, None): "open",
    ("hallucination", None, None): "acknowledged",
    ("case_failure", "error_leak", "live-traffic:error_leak"): "resolved",
}
"""The state of each stored incident. The key is its kind, failure kind and case."""
RUNS = "select verdict, asked, severity_3_not_correct from run_summary order by started_at"
KINDS = "select failure_kind, sum(cases) from failures_by_kind group by all order by all"


@pytest.fixture
def installation(tmp_path):
    """Return a folder with a configuration, the stored suite, and the stored data folder of an earlier version."""
    with tarfile.open(STORED / "written_at_6804228.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    shutil.copy(STORED / "suite.jsonl", tmp_path)
    (tmp_path / "lookout.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def run(folder: Path, *arguments: str, code: ExitCode = ExitCode.PASS) -> str:
    """Run a command, check that it ends with ``code``, and return its standard output."""
    done = fork_server.run(*arguments, cwd=folder, env=fork_server.bare())
    assert done.returncode == code, done.stderr
    return done.stdout


def incidents(folder: Path) -> dict[tuple, str]:
    """Return the state of each incident. The key is its kind, failure kind and case."""
    listed = json.loads(run(folder, "alerts", "list", "--all", "--json"))
    return {(one["kind"], one["failure_kind"], one["case_id"]): one["state"] for one in listed}


def test_the_archive_is_small():
    assert sum(path.stat().st_size for path in STORED.iterdir()) < 200_000


def rows(folder: Path, query: str) -> list[str]:
    """Return the rows of a warehouse query, as lines of CSV without the header."""
    return run(folder, "sql", query, "--csv").splitlines()[1:]


def test_the_warehouse_is_sound_and_can_be_rebuilt_from_the_journal(installation):
    sound = {"loaded": 52, "pending": 0, "problems": []}
    assert json.loads(run(installation, "warehouse", "check", "--json")) == sound
    run(installation, "warehouse", "rebuild")
    assert json.loads(run(installation, "warehouse", "check", "--json")) == sound
    assert rows(installation, RUNS) == ['"PASS",5,0', '"FAIL",5,1']


def test_the_views_answer(installation):
    assert rows(installation, RUNS) == ['"PASS",5,0', '"FAIL",5,1']
    assert rows(installation, KINDS) == [
        '"error_leak",1',
        '"missing_fact",1',
        '"pii_disclosure",2',
        '"should_have_refused",1',
        '"wrong_fact",1',
    ]
    assert rows(installation, "select conversations, sampled, graded from nightly_trend") == ["4,4,4"]


def test_incidents_have_their_state_and_take_an_action(installation):
    assert incidents(installation) == INCIDENTS
    fingerprint = next(
        one["fingerprint"]
        for one in json.loads(run(installation, "alerts", "list", "--json"))
        if one["kind"] == "gate_fail"
    )
    run(installation, "alerts", "ack", fingerprint, "--as", "asha")
    assert incidents(installation) == {**INCIDENTS, ("gate_fail", None, None): "acknowledged"}
    silences = json.loads(run(installation, "alerts", "silences", "--all", "--json"))
    assert [(one["author"], one["fingerprint"][:8]) for one in silences] == [
        ("ravi", "6a7a497e"),
        ("asha", "793922dd"),
    ]


def test_reports_are_written_again_from_results_json(installation):
    places = json.loads(run(installation, "report", "--json"))
    written = json.loads(Path(places["json"]).read_text(encoding="utf-8"))
    assert written["report"]["verdict"] == "FAIL"
    assert run(installation, "gate", places["json"], "--baseline", "none", "--json", code=ExitCode.FAIL)


def test_the_site_shows_runs_and_incidents(installation):
    run(installation, "site", "export", "public", "--json")
    pages = {
        path.relative_to(installation / "public"): path.read_text("utf-8")
        for path in (installation / "public").rglob("*.html")
    }
    runs = [path.name for path in (installation / "data" / "runs").iterdir() if "bikes" in path.name]
    for run_id in runs:
        assert any(run_id in text for text in pages.values()), run_id
    assert any("last-renter" in text for text in pages.values())
