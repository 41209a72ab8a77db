import re

import pytest
from markdown_it import MarkdownIt

from monitors.records.runs import Verdict
from monitors.reports.markdown import markdown_report
from tests.monitors.reports.example_failures import LEAK_ACCOUNT, LEAK_ADDRESS, leak, without_answer
from tests.monitors.reports.example_run import FAIL_REASONS, example_run, report_of, right
from tests.monitors.reports.hostile_rows import OWN
from tests.monitors.reports.hostile_run import hostile_cases, hostile_report
from tests.monitors.reports.parts import redact

RUN = example_run()
TEXT = markdown_report(
    RUN.report, RUN.cases, redact=redact, most_failures=40, incidents=RUN.incidents, previous=RUN.previous
)


def test_the_verdict_comes_first_with_both_scores():
    lines = TEXT.splitlines()
    assert lines[0] == "# ✕ FAIL: suraksha-health"
    assert lines[2].startswith("**weighted 0.924**, flat 0.911 · 10 failed · 4 no answer · 2 could not tell")


@pytest.mark.parametrize(
    "part",
    [
        "| 3 alert at once | 44 | 3 | 0 | 20 | 820 | 880 |",
        "Weighted 1,025 / 1,109 = **0.924**, flat 123 / 135 = **0.911**",
        "- **veto**: 3 failures of severity 3",
        "(raised from severity 2); new with this deploy, 9c41e77 |",
        "since deploy 77aa012, 2026-11-19 01:11:05 UTC, seen in 9 runs",
        "`3f02b1d`, 2026-11-20 21:15:05 UTC: PASS, weighted 0.996",
        "| factual accuracy | 91.1 % | 123 of 135 | 85.1 % to 94.8 % | ≥ 95.0 % | ✕ missed |",
        "| pass k | nothing counted | 0 of 0 |",
        "| the model provider | 1 | unreachable |",
        "Could not tell about 2 cases: `open-advice-0`, `open-advice-1`.",
        "p50 **3.2 s** (✓ within the objective of 4.0 s), p95 **5.2 s**",
        "| `hinglish` | 31 | 1 | 0 | 0 | 30 |",
        "4 min 09 s",
    ],
)
def test_it_says(part):
    assert part in TEXT


def test_failures_stand_worst_first():
    severities = re.findall(r"^\| ([123]) \| \S+ [^|]*\| `", TEXT, re.MULTILINE)
    assert severities == sorted(severities, reverse=True)
    assert len(severities) == 10


def test_nobodys_data_is_in_it():
    assert LEAK_ACCOUNT not in TEXT
    assert LEAK_ADDRESS not in TEXT
    assert "example.org" not in TEXT
    assert "9812345670" not in TEXT


def test_what_is_left_out_is_counted_and_the_text_stays_short():
    """A pull-request comment holds 65,536 characters."""
    cases = [result for _ in range(120) for result in (leak(), *without_answer())]
    report = report_of(cases, FAIL_REASONS)
    text = markdown_report(report, cases, redact=redact, most_failures=40)
    assert "And 80 more in report.html." in text
    assert "And 440 more in report.html." in text
    assert len(text) < 60_000


def test_a_passing_run_is_short_and_says_so():
    cases = tuple(right(number) for number in range(9))
    text = markdown_report(report_of(cases, ()), cases, redact=redact, most_failures=40)
    assert text.startswith("# ✓ PASS")
    assert "What broke" not in text
    assert "No answer" not in text


def test_an_interrupted_run_without_any_answer_is_still_written():
    report = report_of((), ()).model_copy(update={"interrupted": True, "verdict": Verdict.INCONCLUSIVE})
    text = markdown_report(report, (), redact=redact, most_failures=40)
    assert text.startswith("# ? INCONCLUSIVE")
    assert "weighted none" in text
    assert "stopped before it was finished" in text


def test_f83_hostile_texts_render_as_text_only():
    cases = hostile_cases(OWN)
    text = markdown_report(hostile_report(OWN, cases), cases, redact=redact, most_failures=500)
    rendered = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    tags = {tag.lower() for tag in re.findall(r"<\s*([a-zA-Z]+)", rendered)}
    assert tags <= {"h", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td", "ul", "li"}
    assert "<a " not in rendered
    outside_code = re.sub(r"<code>.*?</code>", "", rendered, flags=re.DOTALL)
    assert not re.search(r"\w://|www\.|@\w", outside_code)
