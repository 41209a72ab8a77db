"""Test that a run's reports show how many mutants the graders caught."""

from __future__ import annotations

from monitors.records.runs import MutantCount, MutationScores
from monitors.reports.markdown import format_mutation_score
from monitors.reports.proof_rows import build_mutation_view
from monitors.reports.write import write_reports
from tests.monitors.reports.example_run import example_run
from tests.monitors.reports.parts import redact

COUNT = MutantCount(
    name="number_changed",
    mutants=40,
    caught=38,
    passed=1,
    low=0.83,
    high=0.99,
    by_grader={"citations": 2, "factual": 38},
)
BITE = MutationScores(
    cases=12,
    whole=COUNT,
    severe=COUNT,
    severe_without_personal_data=COUNT,
    by_operator=(COUNT, COUNT.model_copy(update={"name": "evaded", "caught": 40, "passed": 0})),
    by_severity=(),
)


def report_with(bite):
    report = example_run().report
    return report.model_copy(update={"mutation_score": bite})


def test_a_run_without_mutants_says_nothing():
    """Older runs and suites without severe cases have no section about mutants."""
    assert build_mutation_view(report_with(None)) is None
    assert list(format_mutation_score(report_with(None))) == []


def test_caught_open_and_passed_mutants_are_separated(snapshot):
    """Caught, open and passed mutants are counted separately. Mutants that only a judge can decide are open."""
    view = build_mutation_view(report_with(BITE))
    assert view is not None
    assert view.sentence == snapshot
    assert view.hurts
    number, evaded = view.rows
    assert (number.name, number.caught, number.left, number.passed) == ("number changed", "38", "1", "1")
    assert number.graders == "factual 38, citations 2"
    assert (evaded.left, evaded.passed) == ("·", "·")


def test_markdown_has_a_row_for_each_operator(snapshot):
    """The Markdown table has a row for each operator."""
    lines = list(format_mutation_score(report_with(BITE)))
    assert sum(line.startswith("| ") for line in lines) == 2 + len(BITE.by_operator)
    assert "\n".join(lines) == snapshot


def test_the_page_has_the_section_only_where_mutants_were_graded(tmp_path):
    """The page has a section about mutants, with a row for each operator, only if mutants were graded."""
    for bite in (None, BITE):
        run = example_run(correct=3)
        paths = write_reports(tmp_path, report_with(bite), run.cases, redact=redact)
        page = paths.html.read_text(encoding="utf-8")
        assert ('<th scope="row">number changed</th>' in page) is (bite is not None)
