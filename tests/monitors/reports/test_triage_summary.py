"""Test the summary of a triage run: the four dimensions in words, with known and unknown values and changes."""

from __future__ import annotations

import re

import pytest

from monitors.records.comparisons import format_rating_bound
from monitors.records.runs import QuestionCounts
from monitors.reports.comment import build_pull_request_comment
from monitors.reports.markdown import build_markdown_report
from monitors.reports.results_json import read_results
from monitors.reports.triage_summary import build_triage_dimensions, format_triage_changes_or_figures
from monitors.reports.write import write_reports
from tests.monitors.reports.example_run import example_run
from tests.monitors.reports.example_triage import (
    LOCK,
    MAIL,
    SEARCH,
    Written,
    calls,
    evaluated,
    issue,
    result_of,
    structured,
    triage_run,
)
from tests.monitors.reports.parts import redact

GOOD = structured(
    "Nobody gives the lock back when the charge raises an error.",
    "Use a with statement for it.",
    [
        "shop/payments.py",
        "shop/locks.py",
    ],
)


def usefulness(report) -> str:
    found = report.rubric
    rated = f"average of {len(found.ratings)} reports; {format_rating_bound(found)}"
    return f"{found.mean:.1f} of 5: {rated}"


def test_a_chat_has_no_dimensions(tmp_path):
    run = example_run()
    assert (build_triage_dimensions(run.report), format_triage_changes_or_figures(run.report)) == ((), "")
    page = write_reports(tmp_path, run.report, run.cases, redact=redact).html.read_text()
    assert "triage accuracy" not in page
    assert '<dl class="figures dimensions">' not in page


def test_each_of_the_four_is_said_with_what_it_rests_on(snapshot):
    report = triage_run().report
    found = {one.name: one.value for one in build_triage_dimensions(report)}
    assert found == {
        "triage accuracy": "50.0 %",
        "usefulness": f"{report.rubric.mean:.1f} of 5",
        "question quality": "50.0 % useful",
        "efficiency": "4.1 × shortest path",
    }
    assert {one.name: one.detail for one in build_triage_dimensions(report)} == snapshot


def test_changed_scores_come_first_and_only_shared_ones(snapshot):
    run = triage_run()
    assert format_triage_changes_or_figures(run.report) == snapshot
    against = {one.name: one.against for one in build_triage_dimensions(run.report)}
    assert against == snapshot
    assert against["question quality"] == ""


def test_without_a_baseline_the_values_are_said_and_no_movement(snapshot):
    report = triage_run(with_baseline=False).report
    assert format_triage_changes_or_figures(report) == snapshot
    assert {one.moved for one in build_triage_dimensions(report)} == {None}


def test_unknown_values_are_neither_zero_nor_good():
    report = evaluated([result_of(Written(LOCK, GOOD))])
    unknown = {one.name: one.value for one in build_triage_dimensions(report) if not one.known}
    assert unknown == {
        "usefulness": "not rated",
        "question quality": "no question asked",
        "efficiency": "not measured",
    }
    assert format_triage_changes_or_figures(report) == "Triage accuracy 100.0 %"


def test_a_run_in_which_nothing_could_be_graded_has_no_accuracy():
    bare = issue(1, "Title", "", files=(), severity=None, shortest_path=None)
    (accuracy, *_) = build_triage_dimensions(evaluated([result_of(Written(bare, GOOD))]))
    assert (accuracy.known, accuracy.value, accuracy.detail) == (False, "nothing graded", "of 1 issue")


@pytest.mark.parametrize(
    ("counts", "value", "known"),
    [
        (None, "no question asked", False),
        (QuestionCounts(asked=3, useful=0, needless=0), "not known", False),
        (QuestionCounts(asked=5, useful=3, needless=1, share=0.75, low=0.301, high=0.954), "75.0 % useful", True),
    ],
    ids=["none", "unknown", "known"],
)
def test_questions_are_rated_only_where_something_is_known_of_them(counts, value, known, snapshot):
    found = build_triage_dimensions(triage_run().report.model_copy(update={"questions": counts}))[2]
    assert (found.value, found.known) == (value, known)
    assert found.detail == snapshot


@pytest.mark.parametrize(
    ("steps", "figures"),
    [
        (calls(("a", "1"), ("a", "1")), ["2", "3", "1", "1"]),
        (calls(("a", "1"), ("b", "1")), ["2", "3", "0"]),
        (tuple(step.model_copy(update={"detail": ""}) for step in calls(("a", ""))), ["1", "3"]),
    ],
    ids=["repeated", "not repeated", "not known"],
)
def test_efficiency_says_how_many_calls_repeat_where_they_can_be_distinguished(steps, figures, snapshot):
    detail = build_triage_dimensions(evaluated([result_of(Written(MAIL, GOOD, steps))]))[3].detail
    assert re.findall(r"\d+", detail) == figures
    assert detail == snapshot


def test_steps_without_a_shortest_path_are_an_average_of_steps(snapshot):
    case = issue(1, "Title", "", shortest_path=None, relevant_files=["shop/mail.py"])
    found = build_triage_dimensions(evaluated([result_of(Written(case, GOOD, calls(("a", "1"), ("b", "1"))))]))[3]
    assert found.value == "2.0 steps per issue"
    assert found.detail == snapshot


def test_the_summary_stands_on_top_of_every_report(tmp_path):
    run = triage_run()
    paths = write_reports(tmp_path, run.report, run.cases, redact=redact)
    text = build_markdown_report(run.report, run.cases, redact=redact, max_failures=10)
    comment = build_pull_request_comment(run.report, run.cases, redact=redact)
    row = f"| usefulness | **{usefulness(run.report).replace(':', '**:')} | 4.5 → 3.8 on 4 shared issues |"
    for shown in (text, comment):
        assert row in shown.split("\n- ")[0]
    assert paths.html.read_text().index("triage accuracy") < paths.html.read_text().index("weighted score</dt>")
    again, _ = read_results(paths.json)
    assert again.triage == run.report.triage
    head = paths.json.read_text()
    assert head.index('"triage":{') < head.index('"scores":{')


def test_a_comment_and_a_summary_show_titles_and_causes_and_no_json():
    run = triage_run()
    for text in (
        build_markdown_report(run.report, run.cases, redact=redact, max_failures=10),
        build_pull_request_comment(run.report, run.cases, redact=redact),
    ):
        assert f"`{SEARCH.triage.issue.title}`" in text
        assert "`The limiter raises its" in text
        assert "root_cause" not in text
        assert "asked" not in text.split("graded")[0]


def test_a_mixed_suite_has_both(tmp_path):
    chat, agent = example_run(), triage_run()
    report = agent.report.model_copy(update={"scores": chat.report.scores, "metrics": chat.report.metrics})
    cases = [*chat.cases, *agent.cases]
    page = write_reports(tmp_path, report, cases, redact=redact).html.read_text()
    for part in (
        "triage accuracy",
        "Failing transcripts and reports",
        "<th>asked, or issue</th>",
        "Correct reports",
        "expected refusals that were refused (refusal precision)",
    ):
        assert part in page
