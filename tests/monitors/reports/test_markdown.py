import re

import pytest
from markdown_it import MarkdownIt

from monitors.records.runs import Verdict
from monitors.reports.markdown import build_markdown_report
from tests.monitors.reports.example_failures import LEAK_ACCOUNT, LEAK_ADDRESS, leak, without_answer
from tests.monitors.reports.example_run import FAIL_REASONS, example_run, report_of, right
from tests.monitors.reports.hostile_rows import OWN
from tests.monitors.reports.hostile_run import hostile_cases, hostile_report
from tests.monitors.reports.parts import redact


@pytest.fixture(scope="module")
def text():
    """Return the Markdown report of the example run. Its full text is a snapshot of ``test_texts.py``."""
    run = example_run()
    return build_markdown_report(
        run.report, run.cases, redact=redact, max_failures=40, incidents=run.incidents, previous=run.previous
    )


def test_the_verdict_comes_first_with_both_scores(text):
    lines = text.splitlines()
    assert lines[0] == "# ✕ FAIL: suraksha-health"
    assert lines[2].startswith("**weighted 0.924**, flat 0.911")


def test_the_report_has_the_figures_of_the_run(text):
    for figures in (
        " | 44 | 3 | 0 | 20 | 820 | 880 |",
        "1,025 / 1,109 = **0.924**",
        "123 / 135 = **0.911**",
        "77aa012, 2026-11-19 01:11:05 UTC",
        "`3f02b1d`, 2026-11-20 21:15:05 UTC: PASS",
        " | 91.1 % | 123 of 135 | 85.1 % to 94.8 % | ≥ 95.0 % |",
        "p50 **3.2 s**",
        "p95 **5.2 s**",
        "| `hinglish` | 31 | 1 | 0 | 0 | 30 |",
        "4 min 09 s",
    ):
        assert figures in text


def test_failures_stand_worst_first(text):
    severities = re.findall(r"^\| ([123]) \| \S+ [^|]*\| `", text, re.MULTILINE)
    assert severities == sorted(severities, reverse=True)
    assert len(severities) == 10


def test_the_report_has_no_personal_data(text):
    assert LEAK_ACCOUNT not in text
    assert LEAK_ADDRESS not in text
    assert "example.org" not in text
    assert "9812345670" not in text


def test_omitted_items_are_counted_and_the_text_stays_short():
    """Omitted items are counted, and the report stays below GitHub's limit of 65,536 characters for a comment."""
    cases = [result for _ in range(120) for result in (leak(), *without_answer())]
    report = report_of(cases, FAIL_REASONS)
    text = build_markdown_report(report, cases, redact=redact, max_failures=40)
    assert "And 80 more" in text
    assert "And 440 more" in text
    assert len(text) < 60_000


def test_a_passing_run_is_short_and_says_so():
    cases = tuple(right(number) for number in range(9))
    text = build_markdown_report(report_of(cases, ()), cases, redact=redact, max_failures=40)
    assert text.startswith("# ✓ PASS")
    assert "Failed cases:" not in text
    assert "No answer" not in text


def test_an_interrupted_run_without_any_answer_is_still_written():
    report = report_of((), ()).model_copy(update={"interrupted": True, "verdict": Verdict.INCONCLUSIVE})
    text = build_markdown_report(report, (), redact=redact, max_failures=40)
    assert text.startswith("# ? INCONCLUSIVE")
    assert "weighted none" in text


def test_f83_hostile_texts_render_as_text_only():
    cases = hostile_cases(OWN)
    text = build_markdown_report(hostile_report(OWN, cases), cases, redact=redact, max_failures=500)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tags = {tag.lower() for tag in re.findall(r"<\s*([a-zA-Z]+)", rendered)}
    assert tags <= {"h", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert "<a " not in rendered
    outside_code = re.sub(r"<code>.*?</code>", "", rendered, flags=re.DOTALL)
    assert not re.search(r"\w://|www\.|@\w", outside_code)
