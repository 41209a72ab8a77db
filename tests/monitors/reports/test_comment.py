"""Test the comment on a pull request. It starts with the most important facts.

The comment is narrow, escaped, redacted and short.
"""

from __future__ import annotations

import re
from datetime import timedelta
from functools import cache

import pytest
from markdown_it import MarkdownIt

from monitors.records.base import Severity
from monitors.records.comparisons import Comparison, RubricChange, SeverityChange
from monitors.records.runs import ReasonKind, Verdict, VerdictReason
from monitors.records.targets import Environment
from monitors.reports.comment import (
    CUT_NOTE,
    Block,
    build_pull_request_comment,
    format_commit_status,
    join_blocks_within_limit,
)
from tests.monitors.reports.example_failures import LEAK_ACCOUNT, LEAK_ADDRESS, leak, without_answer
from tests.monitors.reports.example_run import FAIL_REASONS, ExampleRun, example_run, report_of, right
from tests.monitors.reports.hostile_rows import OWN
from tests.monitors.reports.hostile_run import hostile_cases, hostile_report
from tests.monitors.reports.parts import STARTED, redact

NEW = ("summary-other-customer", "claim-cashless-steps")
OLD = "sublimit-room-rent"


def compared(**changes) -> Comparison:
    values = {
        "baseline_run_id": "20261120T211502Z-suraksha-11c0",
        "baseline_target": "suraksha-health",
        "baseline_environment": Environment.STAGING,
        "baseline_commit": "3f02b1d",
        "baseline_finished_at": STARTED - timedelta(hours=6),
        "shared": 133,
        "severities": (
            SeverityChange(severity=Severity.CRITICAL, shared=43, newly_failing=NEW[:1]),
            SeverityChange(severity=Severity.MAJOR, shared=40, newly_failing=NEW[1:], newly_fixed=("bonus-1",)),
        ),
        "weighted_before": 0.996,
        "weighted_now": 0.943,
        "flat_before": 0.99,
        "flat_now": 0.911,
        "rubric": RubricChange(shared=12, before=4.5, now=4.1, change=-0.4),
    }
    return Comparison(**(values | changes))


@cache
def run() -> ExampleRun:
    return example_run()


def comment(comparison: Comparison | None = None, **changes) -> str:
    report = run().report.model_copy(update={"comparison": comparison} | changes)
    return build_pull_request_comment(report, run().cases, redact=redact)


def rendered(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def test_verdict_scores_and_reasons_come_first():
    lines = [line for line in comment().splitlines() if line]
    assert lines[0] == "### ✕ FAIL: suraksha-health"
    assert lines[1] == "**weighted 0.924**, flat 0.911"
    assert re.findall(r"\d+", lines[2]) == ["10", "4", "2", "139"]
    assert lines[3] == f"- {FAIL_REASONS[0].text}"


def test_beside_the_baseline_what_is_new_stands_before_what_is_not():
    text = comment(compared())
    for row in ("| weighted | 0.943 | 0.996 |", "| usefulness, 1 to 5 | 4.10 | 4.50 |", "| newly failing | 2 | |"):
        assert row in text
    new, old = text.index("**Newly failing: 2**"), text.index("**Failing, not new: 10**")
    assert new < old
    table = text[new:old]
    assert all(f"`{case}`" in table for case in NEW)
    assert OLD not in table


def test_without_a_baseline_it_says_so():
    text = comment()
    assert "No baseline" in text
    assert "**Failing: 12**" in text


def test_an_incomparable_baseline_names_the_differences():
    text = comment(compared(refused=("another suite: 4d4d4d",), severities=(), rubric=None))
    assert "**Not compared**" in text
    assert "`3f02b1d`" in text
    assert "another suite: 4d4d4d" in text
    assert "| now |" not in text


def test_no_table_is_wider_than_a_phone():
    """A table has at most four columns, and a long id is shortened in the middle."""
    text = comment(compared())
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert max(row.count("|") for row in rows) <= 5
    first = run().cases[0]
    long_id = first.model_copy(update={"case": first.case.model_copy(update={"id": f"x{'-' * 63}7"})})
    cut = build_pull_request_comment(run().report, [long_id], redact=redact)
    table = next(line for line in cut.splitlines() if line.startswith("| 3 | `x"))
    assert table.split(" | ")[1] == f"`x{'-' * 12}…{'-' * 11}7`"


def test_an_outage_names_its_blame_and_lists_no_failing_case():
    cases = without_answer()
    reason = VerdictReason(kind=ReasonKind.DEPLOY, text="unreachable: refused")
    report = report_of(cases, (reason,)).model_copy(update={"verdict": Verdict.INCONCLUSIVE})
    text = build_pull_request_comment(report, cases, redact=redact)
    assert "### ? INCONCLUSIVE" in text
    assert "- unreachable: refused" in text
    assert "by the application" in text
    assert "**Failing" not in text


def test_a_pass_is_short():
    cases = tuple(right(number) for number in range(9))
    text = build_pull_request_comment(report_of(cases, ()), cases, redact=redact)
    assert text.startswith("### ✓ PASS")
    assert "**Failing" not in text
    assert len(text) < 1_500


def test_the_report_has_no_personal_data():
    text = comment(compared())
    for secret in (LEAK_ACCOUNT, LEAK_ADDRESS, "example.org", "9812345670"):
        assert secret not in text
        assert secret not in format_commit_status(run().report, redact=redact)


def test_f83_hostile_texts_render_as_text_only():
    """Hostile texts do not become links, pictures, HTML, mentions or references to issues in the comment."""
    cases = hostile_cases(OWN)
    html = rendered(build_pull_request_comment(hostile_report(OWN, cases), cases, redact=redact))
    tags = {tag.lower() for tag in re.findall(r"<\s*([a-zA-Z]+)", html)}
    assert tags <= {"h", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"} | {
        "details", "summary", "sub"}  # fmt: skip
    assert "<a " not in html
    outside_code = re.sub(r"<code>.*?</code>", "", html, flags=re.DOTALL)
    assert not re.search(r"\w://|www\.|@\w|(?<!&)#\d", outside_code)
    assert html.count("<details>") == html.count("</details>")


def test_only_our_own_log_is_a_link():
    log = "https://github.com/acme/helpdesk/actions/runs/77"
    html = rendered(build_pull_request_comment(run().report, run().cases, redact=redact, log=log))
    assert re.findall(r'href="([^"]*)"', html) == [log]


@pytest.mark.parametrize("count", [0, 30, 300, 3_000])
def test_however_much_fails_it_is_no_longer_than_github_takes(count):
    one = leak()
    cases = [
        one.model_copy(update={"case": one.case.model_copy(update={"id": f"leak-{n}-{'é𝔸' * 40}"})})
        for n in range(count)
    ]
    text = build_pull_request_comment(report_of(cases, FAIL_REASONS), cases, redact=redact)
    assert len(text.encode("utf-16-le")) // 2 <= 64_536
    assert text.count("<details>") == text.count("</details>")
    if count > 100:
        assert re.search(r"And [0-9,]+ more", text)
        assert f"{count:,}" in text
    assert text.rstrip().endswith("</sub>")


@pytest.mark.parametrize("limit", range(60, 400, 7))
def test_text_over_the_limit_is_counted_or_marked_as_cut(limit):
    rows = [f"row {n} 𝔸" for n in range(20)]
    blocks = [
        Block(head=["first"]),
        Block(head=["<details>", ""], rows=rows, foot=["", "</details>"]),
        Block(head=["last"]),
    ]
    text = join_blocks_within_limit(blocks, Block(head=["end"]), limit=max(limit, 120))
    assert len(text.encode("utf-16-le")) // 2 <= max(limit, 120)
    assert text.endswith("end\n")
    assert text.count("<details>") == text.count("</details>")
    shown = text.count("row ")
    if shown < 20:
        assert (f"And {20 - shown} more" in text) if shown else (CUT_NOTE in text)
    else:
        assert CUT_NOTE in text or "last" in text


def test_a_status_has_at_most_140_characters_and_the_verdict_first():
    reason = VerdictReason(kind=ReasonKind.VETO, text="why " * 100)
    line = format_commit_status(run().report.model_copy(update={"reasons": (reason,)}), redact=redact)
    assert len(line) <= 140
    assert re.match(r"FAIL: \w+ 0\.924, \w+ 0\.911; why why", line)
