"""The printed verdict: the reasons, the baseline, and the smallest drop that this suite can detect."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from deployments.cli.gate.verdict import print_verdict
from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.explanations import CaseRecheck, Recheck, RecheckCount
from tests.builders import gold_case
from tests.monitors.gate.runs import LEAK, asked, baseline, batch, report, times


@pytest.fixture(scope="module")
def clean():
    """Return thirty harmless and forty severe cases, all answered correctly."""
    return [*batch(Severity.MINOR, 30, 0), *batch(Severity.CRITICAL, 40, 0)]


@pytest.fixture(scope="module")
def broken():
    """Return the cases of `clean`, with eight harmless cases and one severe case answered wrong."""
    return [*batch(Severity.MINOR, 30, 8), *batch(Severity.CRITICAL, 40, 1)]


def printed(run, width: int = 120, *, verbose: bool = True, **options) -> str:
    out = StringIO()
    print_verdict(Console(file=out, width=width), run, verbose=verbose, **options)
    return "\n".join(map(str.rstrip, out.getvalue().splitlines()))


def test_a_regression_is_printed_with_both_scores_and_the_cases(clean, broken, snapshot):
    run = report(broken, baseline=baseline(clean))
    page, annoying = run.comparison.severities[0], run.comparison.severities[-1]
    assert (page.newly_failing, len(annoying.newly_failing)) == (("s3-0",), 8)
    assert printed(run) == snapshot


def test_without_a_baseline_the_table_shows_what_could_have_been_detected(clean, snapshot):
    run = report(clean)
    assert (run.comparison, len(run.sights)) == (None, 2)
    assert printed(run) == snapshot


def test_a_failed_case_has_its_failures_severity_and_no_chance_where_it_fails_every_time(snapshot):
    """A failed case has the severity of its failure: a leak in a harmless case has severity 3.

    After a recheck, the verdict says that the failure may be chance if four of five answers are wrong, but not if
    all five are.
    """
    before = [*batch(Severity.MINOR, 9, 0), asked(gold_case("lottery", severity=Severity.MINOR))]
    leak = asked(gold_case("lottery", severity=Severity.MINOR), LEAK)
    results = [*batch(Severity.MINOR, 9, 0), leak]
    run = report(results, baseline=baseline(before))
    assert "severity 3: lottery" in printed(run, 200, cases=results)
    assert printed(run, 200, cases=results) == snapshot(name="severity")

    def recheck(failed: int) -> str:
        count = RecheckCount(asked=5, failed=failed, right=5 - failed)
        again = Recheck(cases=(CaseRecheck(case_id="lottery", severity=Severity.CRITICAL, here=count),))
        return printed(run.model_copy(update={"recheck": again}), 200, verbose=False)

    assert ("chance" in recheck(5), "chance" in recheck(4)) == (False, True)
    assert recheck(5) == snapshot(name="five of five fail")


def test_a_refused_comparison_names_what_differs(clean):
    run = report(clean, baseline=baseline(clean, suite_sha256="1" * 64))
    (refused,) = run.comparison.refused
    assert "1" * 12 in refused
    assert "not compared:" in printed(run)
    assert refused in printed(run, 200)


def test_a_flaky_case_is_named(clean):
    run = report([*clean, *times(gold_case("odd", severity=Severity.CRITICAL), 2, 1)])
    (flaky,) = run.flaky
    assert flaky.case_id == "odd"
    assert f"odd {flaky.text}" in printed(run)


def test_a_long_reason_goes_on_below_itself(clean):
    rows = printed(report(clean, GateSettings(strict=True)), width=80).splitlines()
    first = next(n for n, row in enumerate(rows) if "blind_spot" in row)
    assert rows[first + 1].startswith(" " * 12)
