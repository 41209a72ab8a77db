from decimal import Decimal

from monitors.records.base import Severity
from monitors.records.runs import Breakdown, SeverityTally
from monitors.reports.figures import build_metric_rows, build_score_calculation_rows, group_breakdowns
from tests.monitors.reports.example_run import report_of, right


def test_the_known_case_adds_up_row_by_row():
    """The score of a known run is 744 of 904 points, row by row.

    The run has 440 cases of severity 1 (20 failed), 61 of severity 2 (5 failed), and 11 of severity 3 (6 failed).
    """
    rows = ((Severity.MINOR, 1, 440, 20), (Severity.MAJOR, 4, 61, 5), (Severity.CRITICAL, 20, 11, 6))
    tallies = tuple(SeverityTally(severity=s, weight=Decimal(w), cases=c, not_correct=n) for s, w, c, n in rows)
    report = report_of((), ())
    scores = report.scores.model_copy(update={"tallies": tallies})
    found = build_score_calculation_rows(report.model_copy(update={"scores": scores}))
    assert [(row.severity, row.earned, row.total) for row in found] == [
        (3, "100", "220"),
        (2, "224", "244"),
        (1, "420", "440"),
    ]


def test_groups_keep_the_reports_order_even_when_mixed():
    def row(group, key):
        return Breakdown(group=group, key=key, cases=1, correct=1, failed=0, no_answer=0, ungraded=0)

    groups = group_breakdowns([row("type", "b"), row("path", "p"), row("type", "a")])
    assert [(each.group, [row.key for row in each.rows]) for each in groups] == [
        ("type", ["b", "a"]),
        ("path", ["p"]),
    ]


def test_a_metric_that_counted_nothing_says_so():
    rows = {row.name: row for row in build_metric_rows(report_of([right(0)], ()).metrics)}
    assert (rows["pass k"].value, rows["pass k"].interval) == ("nothing counted", "")
