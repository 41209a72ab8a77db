"""Snapshots of all texts about a run: results.md, the comment on a pull request, and the page."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from monitors.records.incidents import Incident
from monitors.records.runs import CaseResult, ReasonKind, RunReport, Verdict, VerdictReason
from monitors.reports.comment import build_pull_request_comment
from monitors.reports.markdown import build_markdown_report
from monitors.reports.write import write_reports
from tests.monitors.reports.example_failures import leak, without_answer
from tests.monitors.reports.example_run import COMPARISON, FAIL_REASONS, example_run, report_of, right
from tests.monitors.reports.example_triage import triage_run
from tests.monitors.reports.page_text import page_text
from tests.monitors.reports.parts import redact


class Run(NamedTuple):
    """The input of the report writers for one run."""

    report: RunReport
    cases: tuple[CaseResult, ...]
    incidents: tuple[Incident, ...] = ()
    previous: RunReport | None = None


def failed() -> Run:
    """Return a run with the verdict FAIL and a baseline.

    It has failures of every severity, flaky cases and cases without an answer.
    """
    run = example_run(correct=40)
    return Run(run.report, run.cases, run.incidents, run.previous)


def triage() -> Run:
    """Return a run of a triage agent: reports on issues, with a baseline."""
    run = triage_run()
    return Run(run.report, tuple(run.cases))


def passed() -> Run:
    """Return a run with nine right answers."""
    cases = tuple(right(number) for number in range(9))
    return Run(report_of(cases, ()), cases)


def stopped() -> Run:
    """Return a run that was stopped before it had an answer."""
    return Run(report_of((), ()).model_copy(update={"interrupted": True, "verdict": Verdict.INCONCLUSIVE}), ())


def not_served() -> Run:
    """Return a run against an application that gave no answer."""
    cases = tuple(without_answer())
    reason = VerdictReason(kind=ReasonKind.DEPLOY, text="refused", case_ids=tuple(one.case.id for one in cases))
    return Run(report_of(cases, (reason,)).model_copy(update={"verdict": Verdict.INCONCLUSIVE}), cases)


def without_baseline() -> Run:
    """Return a run with one failure and no baseline, because it is the first run of its target."""
    cases = (leak(),)
    return Run(report_of(cases, FAIL_REASONS[:1]).model_copy(update={"comparison": None}), cases)


def not_compared() -> Run:
    """Return a run with one failure and a baseline of another suite."""
    refused = {"refused": ("another suite",), "severities": (), "shared": 0, "rubric": None}
    run = without_baseline()
    comparison = COMPARISON.model_copy(update=refused)
    return run._replace(report=run.report.model_copy(update={"comparison": comparison}))


RUNS = [failed, triage, passed, stopped, not_served, without_baseline, not_compared]


@pytest.mark.parametrize("make", RUNS, ids=lambda make: make.__name__)
def test_the_markdown_report(make, snapshot):
    run = make()
    text = build_markdown_report(
        run.report, run.cases, redact=redact, max_failures=40, incidents=run.incidents, previous=run.previous
    )
    assert text == snapshot


@pytest.mark.parametrize("make", RUNS, ids=lambda make: make.__name__)
def test_the_comment_of_a_pull_request(make, snapshot):
    run = make()
    assert build_pull_request_comment(run.report, run.cases, redact=redact) == snapshot


@pytest.mark.parametrize("make", [failed, triage], ids=lambda make: make.__name__)
def test_the_page(make, snapshot, tmp_path):
    run = make()
    paths = write_reports(tmp_path, run.report, run.cases, redact=redact, incidents=run.incidents)
    assert page_text(paths.html.read_text(encoding="utf-8")) == snapshot
