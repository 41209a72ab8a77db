"""Test nightly runs over typical logs with one question and answer per line, a suite and default settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from flows.data_folder import open_store_in
from flows.nightly.context import build_nightly_context
from flows.nightly.run import NightlyRun
from monitors.config.file import parse_config
from monitors.records.cases import GoldCase
from monitors.records.estimates import RateEstimate
from monitors.records.grades import FailureKind
from monitors.records.nightly import CensusKind, NightlyReport
from tests.builders import gold_case
from tests.flows.judged_run import judge_at, with_key
from tests.flows.nightly_runs import stable_report
from tests.monitors.alerts.sample_observations import NIGHT
from tests.servers.anthropic import AnthropicServer

PERIOD = gold_case("period", turns=("How long is the guarantee?",), gold="24 months")
DIMMER = gold_case("dimmer", turns=("Is the dimmer covered by the guarantee?",), gold="Yes", severity=3)
REFUND = gold_case("refund", turns=("Is there a refund when the service is unavailable?",), gold="Yes")
RIGHT = "The guarantee lasts 24 months."
WRONG = "The guarantee lasts 36 months."
PROVIDER_ERROR = "Error: 503 Service Unavailable, no healthy upstream"


def row(number: int, question: str, answer: str, **fields: object) -> str:
    """Return a line of the log with one question, its answer and the time of the answer."""
    at = NIGHT - timedelta(hours=1) - timedelta(seconds=number)
    value = {"id": f"r{number}", "ts": at.isoformat(), "question": question, "answer": answer}
    return json.dumps(value | fields, ensure_ascii=False) + "\n"


def configure(folder: Path, cases: Sequence[GoldCase], **target: Any) -> dict[str, Any]:
    """Return the configuration of one target, ``shop``, whose traffic is in ``turns.jsonl``."""
    (folder / "suite.jsonl").write_text("".join(case.model_dump_json() + "\n" for case in cases), encoding="utf-8")
    traffic = {"sources": {"turns": {"kind": "file", "at": str(folder / "turns.jsonl")}}}
    base = {"url": "http://127.0.0.1:9", "suite": str(folder / "suite.jsonl"), "traffic": traffic}
    return {"data_folder": str(folder / "data"), "targets": {"shop": base | target}}


async def grade(
    folder: Path, rows: Sequence[str], cases: Sequence[GoldCase], *, night: datetime = NIGHT, **target: Any
) -> NightlyReport:
    """Write ``rows`` to the log, and grade the night."""
    (folder / "turns.jsonl").write_text("".join(rows), encoding="utf-8")
    config = parse_config(configure(folder, cases, **target), "lookout.toml")
    return await NightlyRun(build_nightly_context(config, "shop", night)).run()


def count_found(report: NightlyReport) -> dict[CensusKind, int]:
    """Return, for each kind of finding, the number of conversations in which it was found."""
    return {rate.kind: rate.found for rate in report.census if rate.found}


async def test_an_error_shown_as_an_answer_counts_as_that_and_as_nothing_else(tmp_path):
    hindi = "डिमर की गारंटी कितने महीने की है और किससे पूछूँ?"
    rows = [
        *(row(number, PERIOD.question, WRONG) for number in range(2)),
        *(row(10 + number, PERIOD.question, PROVIDER_ERROR) for number in range(2)),
        *(row(20 + number, DIMMER.question, PROVIDER_ERROR) for number in range(2)),
        *(row(30 + number, REFUND.question, PROVIDER_ERROR) for number in range(2)),
        row(40, hindi, PROVIDER_ERROR),
        row(41, PERIOD.question, RIGHT),
    ]
    report = await grade(tmp_path, rows, (PERIOD, DIMMER, REFUND))
    assert count_found(report) == {CensusKind.ERROR_LEAK: 7}
    assert report.known_questions is not None
    assert (report.known_questions.conversations, report.known_questions.failed) == (3, 2)
    store = open_store_in(tmp_path / "data")
    store.load_pending(5)
    kinds = store.query(
        "select distinct failure_kinds::varchar from assessments where outcome = 'failed' order by 1"
    )
    assert [kind for (kind,) in kinds.rows] == ["[error_leak]", "[wrong_fact]"]
    failed = (
        "select distinct g.aspect from grades g join results r using (run_id, case_id)"
        " where not g.passed and r.visible_text like 'Error:%'"
    )
    assert [aspect for (aspect,) in store.query(failed).rows] == ["error_leak"]


async def test_without_a_judge_rules_grade_every_conversation(tmp_path):
    rows = [row(number, PERIOD.question, WRONG if number % 4 == 0 else RIGHT) for number in range(60)]
    report = await grade(tmp_path, rows, (PERIOD,))
    assert (report.read, report.sampled) == (60, 60)
    assert report.known_questions is not None
    assert (report.known_questions.conversations, report.known_questions.failed) == (60, 15)
    assert isinstance(report.failed, RateEstimate)
    assert (report.failed.rate, report.failed.graded) == (0.25, 60)


async def test_a_default_sample_for_the_judge_says_how_little_it_can_show(tmp_path, monkeypatch, snapshot):
    with_key(monkeypatch)
    with AnthropicServer() as provider:
        config = configure(tmp_path, (PERIOD,), model_family="gpt") | {"judge": judge_at(provider)}
        (tmp_path / "turns.jsonl").write_text(
            "".join(row(number, PERIOD.question, RIGHT) for number in range(300)), encoding="utf-8"
        )
        run = NightlyRun(build_nightly_context(parse_config(config, "lookout.toml"), "shop", NIGHT))
        plan, _ = await run.plan()
        report = await run.run()
    assert plan is not None
    assert (report.sampled, plan.sampled) == (10, 10)
    assert stable_report(report) == snapshot
    assert plan.notes == snapshot


CITING = {"graders": {"citation_required": True}}


def find_failures(report: NightlyReport) -> dict[FailureKind, int]:
    """Return, for each failure kind, the number of sampled conversations that failed."""
    return {rate.kind: rate.failures for rate in report.kinds}


async def test_a_log_without_sources_says_nothing_about_citations(tmp_path, snapshot):
    asked = "How long may I send it back?"
    rows = [row(number, asked, f"You have {number} days to send it back.") for number in range(10)]
    report = await grade(tmp_path, rows, (PERIOD,), **CITING)
    assert find_failures(report) == {}
    assert report.citations_checked == {"turns": False}
    assert stable_report(report) == snapshot


async def test_citations_are_checked_where_the_log_has_a_field_for_them(tmp_path):
    rows = [row(number, PERIOD.question, RIGHT, sources=[]) for number in range(9)]
    report = await grade(
        tmp_path, [*rows, row(10, PERIOD.question, RIGHT, sources=["Guarantee"])], (PERIOD,), **CITING
    )
    assert find_failures(report) == {FailureKind.MISSING_CITATION: 9}
    assert report.citations_checked == {"turns": True}


async def test_citations_are_checked_where_answers_show_them_and_in_the_nights_after(tmp_path):
    cited = f"{RIGHT} [Source: Guarantee, clause 2]"
    rows = [row(number, PERIOD.question, cited if number < 4 else RIGHT) for number in range(10)]
    report = await grade(tmp_path, rows, (PERIOD,), **CITING)
    assert find_failures(report) == {FailureKind.MISSING_CITATION: 6}
    later = [
        row(100 + number, PERIOD.question, RIGHT, ts=(NIGHT + timedelta(hours=5)).isoformat())
        for number in range(5)
    ]
    report = await grade(tmp_path, later, (PERIOD,), night=NIGHT + timedelta(days=1), **CITING)
    assert find_failures(report) == {FailureKind.MISSING_CITATION: 5}


async def test_sources_without_an_answer_are_no_answer(tmp_path):
    rows = [
        row(1, PERIOD.question, "\n\nSources: Guarantee, clause 4.2"),
        row(2, DIMMER.question, "**Sources:**\n- Guarantee, clause 4.2\n- Guarantee, clause 4.3"),
        row(3, PERIOD.question, "[Source: Guarantee, clause 4.2]"),
        row(4, PERIOD.question, "Sources:"),
        row(5, PERIOD.question, f"{RIGHT}\n\nSources: Guarantee, clause 4.2"),
        row(6, "Which sources do you use?", "Sources: the guarantee and the price list."),
    ]
    report = await grade(tmp_path, rows, (PERIOD, DIMMER))
    assert count_found(report) == {CensusKind.NO_ANSWER: 4}
    assert report.known_questions is not None
    assert (report.known_questions.conversations, report.known_questions.failed) == (1, 0)
