"""`lookout reconcile` describes findings and misses in words, and gives a reason for each unknown value."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime

import pytest

from deployments.cli.exit_codes import ExitCode
from deployments.cli.reconcile import reconcile_command
from monitors.errors import ConfigError
from monitors.records.base import Finding
from monitors.records.estimates import RateUnknown
from monitors.records.reconciliation import Interval, Reconciliation, Unknown
from monitors.records.reviews import AnswerVerdict
from tests.stable_text import replace_volatile
from tests.warehouse.queries.test_reconcile import BLOCKED, draft, entry, label, night, talk
from tests.warehouse.queries.test_reviews import judged
from tests.warehouse.queries.test_reviews import label as reviewed_as
from tests.warehouse.sample_rows import NOON, exchange, run_report, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import AssessmentRow, LabelRow, ResultRow, RunRow

SINCE_NOON = (datetime.now(UTC) - NOON).days + 3


@pytest.fixture
def config(tmp_path):
    """Write a configuration, 41 log entries, of which 20 are labelled, and a night of 200 conversations.

    One in ten of the sampled conversations is bad.
    """
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
    """Store ``count`` reviews. Every third answer is wrong, and the judge failed nine in ten of the wrong ones."""
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


def records(config, capsys, monkeypatch, **options) -> list[Reconciliation]:
    lines = printed(config, capsys, monkeypatch, as_json=True, **options).splitlines()
    return [Reconciliation.model_validate_json(line) for line in lines]


def test_the_command_prints_findings_and_unknowns(config, capsys, monkeypatch, snapshot):
    said = printed(config, capsys, monkeypatch)
    assert "85 % [64, 95]" in said
    assert BLOCKED not in said
    assert said == snapshot
    (record,) = records(config, capsys, monkeypatch)
    assert (record.precision.value, record.flagged.rate, record.corrected) == (0.85, 0.1, False)
    assert (type(record.missed), type(record.total_bad)) == (Unknown, Unknown)


def test_a_reviewed_judge_makes_what_neither_saw_known(config, tmp_path, capsys, monkeypatch, snapshot):
    review(tmp_path)
    assert printed(config, capsys, monkeypatch) == snapshot
    (record,) = records(config, capsys, monkeypatch)
    assert record.corrected
    assert (record.reviewed_wrong, record.reviewed_right) == (20, 40)
    assert (type(record.missed), type(record.judge_blind)) == (Interval, Interval)


def test_the_same_as_json_for_each_target(config, capsys, monkeypatch):
    found = records(config, capsys, monkeypatch, target=None)
    assert [one.counts.target for one in found] == ["helpdesk", "quiet"]
    assert found[0].precision.value == 0.85


def test_without_data_nothing_is_claimed(config, capsys, monkeypatch, snapshot):
    """Without data, no figure is claimed.

    A guard whose log is empty held back nothing. If no log is read, the guard's figures are unknown.
    """
    said = replace_volatile(printed(config, capsys, monkeypatch, target="quiet"))
    assert "0 %" not in said
    assert said == snapshot(name="no log is read")
    (record,) = records(config, capsys, monkeypatch, target="quiet")
    assert (record.counts.guard.entries, type(record.flagged)) == (0, RateUnknown)
    with config.open("a", encoding="utf-8") as file:
        file.write('hallucination_log = { at = "held.jsonl" }\n')
    said = replace_volatile(printed(config, capsys, monkeypatch, target="quiet"))
    assert said == snapshot(name="an empty log")


def test_a_target_or_a_warehouse_that_is_not_there_is_said(config, tmp_path):
    with pytest.raises(ConfigError, match="nobody"):
        reconcile_command("nobody", config=config)
    (tmp_path / "warehouse.duckdb").unlink()
    shutil.rmtree(tmp_path / "journal")
    with pytest.raises(ConfigError, match="no warehouse yet"):
        reconcile_command("helpdesk", config=config)
