"""A verdict as it is printed: the reasons, the baseline, and the smallest drop that this suite can detect."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from deployments.cli.gate.verdict import print_verdict
from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.explanations import CaseRecheck, Recheck, RecheckCount
from tests.builders import gold_case
from tests.monitors.gate.runs import LEAK, asked, baseline, batch, report, times

CLEAN = [*batch(Severity.ANNOYING, 30, 0), *batch(Severity.PAGE, 40, 0)]
BROKEN = [*batch(Severity.ANNOYING, 30, 8), *batch(Severity.PAGE, 40, 1)]


def printed(told, width: int = 120, *, verbose: bool = True) -> str:
    out = StringIO()
    print_verdict(Console(file=out, width=width), told, verbose=verbose)
    return out.getvalue()


def test_a_regression_is_printed_with_both_scores_and_the_cases():
    text = printed(report(BROKEN, baseline=baseline(CLEAN)))
    assert "Baseline  run run-0 of demo (staging), deploy abc123, 2026-03-01 12:02:00 UTC" in text
    assert "weighted 1.000 → 0.966  ·  flat 1.000 → 0.871" in text
    assert "Of 70 shared cases 9 newly fail and 0 are fixed: worse, more than chance explains" in text
    assert "newly failing, severity 3: s3-0" in text
    assert "newly failing, severity 1: s1-0, s1-1, s1-2, s1-3, s1-4, s1-5 and 2 more" in text


def test_a_failed_case_has_its_failures_severity_and_no_chance_where_it_fails_every_time():
    """A leak in a harmless case, asked again: one right answer before is no proof, five wrong ones are."""
    clean = [*batch(Severity.ANNOYING, 9, 0), asked(gold_case("lottery", severity=Severity.ANNOYING))]
    leak = asked(gold_case("lottery", severity=Severity.ANNOYING), LEAK)
    results = [*batch(Severity.ANNOYING, 9, 0), leak]
    told = report(results, baseline=baseline(clean))
    out = StringIO()
    print_verdict(Console(file=out, width=200), told, cases=results)
    assert "newly failing, severity 3: lottery" in out.getvalue()
    assert "severity 1: lottery" not in out.getvalue()
    assert "chance alone may explain it" in out.getvalue()

    def again(failed: int) -> str:
        count = RecheckCount(asked=5, failed=failed, right=5 - failed)
        found = Recheck(cases=(CaseRecheck(case_id="lottery", severity=Severity.PAGE, here=count),))
        return printed(told.model_copy(update={"recheck": found}), 200, verbose=False)

    assert "too few cases to prove a drop of the whole suite; that case fails every time." in again(5)
    assert "chance" not in again(5)
    assert "chance alone may explain it" in again(4)


def test_what_could_have_been_seen_is_a_table_by_severity():
    rows = printed(report(CLEAN)).splitlines()
    assert "Baseline  no accepted run to compare with" in map(str.rstrip, rows)
    start = next(n for n, row in enumerate(rows) if row.startswith("Smallest drop this suite can detect"))
    assert rows[start + 2].split() == [
        "3",
        "40",
        "0",
        "up",
        "to",
        "7.2",
        "%",
        "(3/40)",
        "40",
        *["19.0", "%", "or", "more"],
    ]


def test_a_refused_comparison_says_what_differs():
    text = printed(report(CLEAN, baseline=baseline(CLEAN, suite_sha256="1" * 64)))
    assert "not compared: the suite was 111111111111, is 000000000000" in text


def test_a_flaky_case_is_named():
    text = printed(report([*CLEAN, *times(gold_case("odd", severity=Severity.PAGE), 2, 1)]))
    assert "Flaky     odd right in 2 of 3 asks" in text


def test_a_long_reason_goes_on_below_itself():
    rows = printed(report(CLEAN, GateSettings(strict=True)), width=80).splitlines()
    first = next(n for n, row in enumerate(rows) if "blind_spot" in row)
    assert rows[first + 1].startswith(" " * 12)
