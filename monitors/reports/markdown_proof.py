"""The part of ``results.md`` that says what the verdict rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from monitors.records.comparisons import Comparison
from monitors.records.runs import RunReport
from monitors.reports.markdown_inert import code_span, inert
from monitors.reports.proof_rows import (
    balance_rows,
    baseline_words,
    change_rows,
    no_baseline_words,
    outcome_words,
    score_rows,
    sight_rows,
)
from monitors.reports.wording import plural

_NAMED_CASES: Final = 12


def against_baseline(report: RunReport) -> Iterator[str]:
    """Both scores beside the baseline's, what newly fails and what was fixed."""
    compared = report.comparison
    if compared is None:
        return
    yield "## Against the baseline"
    yield ""
    yield f"Baseline: {inert(baseline_words(compared))}."
    yield ""
    if compared.refused:
        yield "**Not compared**, because the two runs do not measure the same:"
        yield ""
        yield from (f"- {inert(why)}" for why in compared.refused)
        return
    yield inert(outcome_words(compared))
    yield ""
    yield from _tables(compared)


def _tables(compared: Comparison) -> Iterator[str]:
    yield "| | baseline | now | change |"
    yield "| --- | ---: | ---: | ---: |"
    yield from (f"| {row.name} | {row.before} | {row.now} | {row.change} |" for row in score_rows(compared))
    yield ""
    yield "| severity | shared | newly failing | fixed | exact McNemar |"
    yield "| --- | ---: | --- | --- | ---: |"
    for row in change_rows(compared):
        name = f"{row.severity} {row.words}"
        yield f"| {name} | {row.shared} | {_ids(row.failing)} | {_ids(row.fixed)} | {row.p_value} |"


def _ids(case_ids: Sequence[str]) -> str:
    named = ", ".join(code_span(case_id, 80) for case_id in case_ids[:_NAMED_CASES])
    more = f" and {len(case_ids) - _NAMED_CASES:,} more" if len(case_ids) > _NAMED_CASES else ""
    return f"{len(case_ids):,}: {named}{more}" if case_ids else "0"


def could_have_seen(report: RunReport) -> Iterator[str]:
    """By severity: what the failures seen still allow, and the smallest drop that would have been noticed."""
    if not report.sights:
        return
    yield "## What this suite could have seen"
    yield ""
    if report.comparison is None:
        yield inert(no_baseline_words(report))
        yield ""
    yield "| severity | told | lost | may still fail, 95 % | shared cases | smallest visible drop |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for row in sight_rows(report.sights):
        name = f"{row.severity} {row.words}"
        yield f"| {name} | {row.told} | {row.lost} | {row.may_fail} | {row.pairs} | {row.drop} |"
    if report.flaky:
        named = ", ".join(f"{code_span(one.case_id, 80)} {one.words}" for one in report.flaky[:_NAMED_CASES])
        more = len(report.flaky) - _NAMED_CASES
        yield ""
        yield f"{plural(len(report.flaky), 'flaky case')}: {named}{f' and {more:,} more' if more > 0 else ''}."


def suite_balance(report: RunReport) -> Iterator[str]:
    """How the cases are spread, and what is missing."""
    balance = report.balance
    if balance is None:
        return
    yield "## Balance of the suite"
    yield ""
    yield from (f"- **{inert(lack)}**" for lack in balance.shortfalls)
    if not balance.shortfalls:
        yield "- balanced: nothing that is asked for is missing"
    for row in balance_rows(balance):
        counts = " · ".join(f"{code_span(key, 60)} {cases}" for key, cases in row.counts)
        yield f"- {row.group}: {counts}"
