"""Test that results.md and the page show the baseline, the detectable drop and the balance of the cases.

Text from the application is escaped.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from monitors.records.base import Severity
from monitors.records.comparisons import FlakyCase
from monitors.reports.markdown import build_markdown_report
from monitors.reports.page import build_report_page, render_report_html
from monitors.reports.proof_rows import format_comparison_outcome
from monitors.reports.settings import ReportsSettings
from tests.monitors.reports.example_run import COMPARISON, example_run
from tests.monitors.reports.parts import redact


@cache
def run():
    return example_run(correct=40)


def shown(report, how: str) -> str:
    if how == "markdown":
        return build_markdown_report(report, run().cases, redact=redact, max_failures=50)
    page = build_report_page(Path(), report, run().cases, redact=redact, settings=ReportsSettings())
    return "".join(render_report_html(page))


@pytest.mark.parametrize("how", ["markdown", "html"])
def test_all_three_sections_are_there(how):
    text = shown(run().report, how)
    for title in ("Comparison with the baseline", "Smallest drop this suite can detect", "Balance of the suite"):
        assert title in text
    assert format_comparison_outcome(COMPARISON) in text
    assert "2 of 3 times" in text
    assert "3f02b1d" in text


@pytest.mark.parametrize("how", ["markdown", "html"])
def test_a_refused_comparison_shows_what_differs_and_no_figures(how):
    refused = COMPARISON.model_copy(
        update={"refused": ("suite 111111111111, not 000000000000",), "severities": (), "shared": 0}
    )
    text = shown(run().report.model_copy(update={"comparison": refused}), how)
    assert "Not compared" in text
    assert "suite 111111111111, not 000000000000" in text
    assert "shared cases" not in text.partition("Smallest drop")[0]


@pytest.mark.parametrize("how", ["markdown", "html"])
def test_a_failure_of_a_flaky_case_is_marked_where_it_is_listed(how):
    odd = FlakyCase(case_id="sublimit-room-rent", severity=Severity.CRITICAL, asked=4, right=3)
    assert "3 of 4 times" in shown(run().report.model_copy(update={"flaky": (odd,)}), how)


@pytest.mark.parametrize("how", ["markdown", "html"])
def test_without_a_baseline_it_is_said(how):
    text = shown(run().report.model_copy(update={"comparison": None}), how)
    assert "Comparison with the baseline" not in text
    assert "no accepted run" in text


@pytest.mark.parametrize("how", ["markdown", "html"])
def test_a_report_of_before_has_none_of_them(how):
    old = run().report.model_copy(update={"comparison": None, "sights": (), "flaky": (), "balance": None})
    text = shown(old, how)
    for title in ("Comparison with the baseline", "Smallest drop this suite can detect", "Balance of the suite"):
        assert title not in text


def test_the_page_links_cases_that_it_shows_and_only_names_the_others():
    text = shown(run().report, "html")
    section = text.partition('id="baseline"')[2].partition("</section>")[0]
    assert '<a href="#case-summary-other-customer">summary-other-customer</a>' in section
    assert "network-hospitals" in section
    assert 'href="#case-network-hospitals"' not in section


def test_hostile_words_in_a_refusal_are_inert():
    hostile = COMPARISON.model_copy(update={"refused": ("<script>alert(1)</script> [x](http://evil)",)})
    report = run().report.model_copy(update={"comparison": hostile})
    assert "<script>alert" not in shown(report, "html")
    assert "[x](http://evil)" not in shown(report, "markdown")
