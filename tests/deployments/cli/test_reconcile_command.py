"""`lookout reconcile`: what was found and what was missed, in words; what is unknown says why."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime

import pytest

from deployments.cli.exit_codes import ExitCode
from deployments.cli.reconcile import reconcile_command
from monitors.errors import ConfigError
from monitors.records.base import Finding
from monitors.records.reconciliation import Reconciliation
from monitors.records.reviews import AnswerVerdict
from tests.warehouse.places import store_in
from tests.warehouse.queries.test_reconcile import BLOCKED, draft, entry, label, night, talk
from tests.warehouse.queries.test_reviews import judged
from tests.warehouse.queries.test_reviews import label as reviewed_as
from tests.warehouse.sample_rows import NOON, exchange, run_report, suite
from warehouse.journal.rows import AssessmentRow, LabelRow, ResultRow, RunRow

SINCE_NOON = (datetime.now(UTC) - NOON).days + 3


@pytest.fixture
def config(tmp_path):
    """Forty-one entries, of which twenty are labelled; a night of 200, every tenth of those drawn is bad."""
    path = tmp_path / "lookout.toml"
    path.write_text(
        f'data_folder = "{tmp_path.as_posix()}"\n[targets.helpdesk]\nurl = "https://example.com/"\n'
        'suite = "suite.jsonl"\n[targets.quiet]\nurl = "https://example.com/"\nsuite = "suite.jsonl"\n',
        encoding="utf-8",
    )
    store = store_in(tmp_path)
    entries = [entry(number, asked=f"Question {number}") for number in range(1, 42)]
    said = [label(number, finding_right=False) for number in range(1, 4)]
    wanted = [draft(number) for number in range(4, 21)]
    talks = [
        row
        for number in range(200)
        for row in talk(f"t{number}", *((Finding.NO if number % 10 == 0 else Finding.YES,) if number < 100 else ()))
    ]
    store.journal.append([*entries, *said, *talks, night()], run_id="night-1")
    store.journal.append_outbox(wanted)
    return path


def review(folder, count: int = 60) -> None:
    """A judge that failed what people find wrong, every third, but for one in ten."""
    store = store_in(folder, seed=2)
    store.journal.append_suite(suite(count))
    rows = []
    for number in range(count):
        name, wrong = f"case-{number}", number % 3 == 0
        rows += [
            ResultRow(row=exchange(case_id=name)),
            AssessmentRow(row=judged(name, passed=not wrong or number % 30 == 0)),
            LabelRow(row=reviewed_as(name, AnswerVerdict.WRONG if wrong else AnswerVerdict.RIGHT)),
        ]
    store.journal.append([*rows, RunRow(row=run_report())], run_id="run-1")


def printed(config, capsys, monkeypatch, **options) -> str:
    monkeypatch.setenv("COLUMNS", "300")
    chosen = {"target": "helpdesk", "days": SINCE_NOON} | options
    assert reconcile_command(config=config, **chosen) is ExitCode.PASS
    return capsys.readouterr().out


def test_it_says_what_was_found_and_what_is_unknown(config, capsys, monkeypatch):
    said = printed(config, capsys, monkeypatch)
    assert "helpdesk, 2026-02-28 12:00 to 2026-03-01 12:00 UTC" in said
    assert "held back 41 replies; people called 3 of 20 false alarms → precision 85 % [64, 95]: about 35 [" in said
    assert "Of 200 conversations in 1 night the judge graded 100 and failed 10 → 10.0 % (95 % CI " in said
    assert "by the judge's word alone" in said
    assert "What neither saw: unknown, because the judge was not calibrated" in said
    assert "Two detectors on the same replies: unknown, because both found only 0" in said
    assert BLOCKED not in said


def test_a_reviewed_judge_makes_what_neither_saw_known(config, tmp_path, capsys, monkeypatch):
    review(tmp_path)
    said = printed(config, capsys, monkeypatch)
    assert "errors taken out (people reviewed 20 wrong and 40 right answers)" in said
    assert "What neither saw: about " in said
    assert "of 200 conversations [" in said
    assert "Even if the judge looked at all, it would pass about " in said


def test_the_same_as_json_for_each_target(config, capsys, monkeypatch):
    lines = printed(config, capsys, monkeypatch, target=None, as_json=True).splitlines()
    found = [Reconciliation.model_validate_json(line) for line in lines]
    assert [one.counts.target for one in found] == ["helpdesk", "quiet"]
    assert json.loads(lines[0])["precision"]["value"] == 0.85


def test_where_nothing_happened_nothing_is_claimed(config, capsys, monkeypatch):
    """A guard whose log is followed held back nothing; of one whose log nobody reads, nothing is known."""
    said = printed(config, capsys, monkeypatch, target="quiet")
    assert "What the guard held back: unknown, because no hallucination_log is configured." in said
    assert "held back): unknown, because no hallucination_log is configured." in said
    assert said.count("unknown, because no night of live traffic was graded") == 2
    assert "0 %" not in said
    with config.open("a", encoding="utf-8") as file:
        file.write('hallucination_log = { at = "held.jsonl" }\n')
    said = printed(config, capsys, monkeypatch, target="quiet")
    assert "The guard held back 0 replies." in said
    assert said.count("unknown, because no night of live traffic was graded") == 3


def test_a_target_or_a_warehouse_that_is_not_there_is_said(config, tmp_path):
    with pytest.raises(ConfigError, match="nobody"):
        reconcile_command("nobody", config=config)
    (tmp_path / "warehouse.duckdb").unlink()
    shutil.rmtree(tmp_path / "journal")
    with pytest.raises(ConfigError, match="no warehouse here yet"):
        reconcile_command("helpdesk", config=config)
