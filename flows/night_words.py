"""A night in words, for a terminal and for Prefect's page."""

from __future__ import annotations

from collections.abc import Iterator

from monitors.records.estimates import RateEstimate
from monitors.records.nights import NightReport, Rate


def night_lines(report: NightReport) -> Iterator[str]:
    """What a night came to, a line a fact."""
    yield f"{report.target}: the night until {report.until:%Y-%m-%d %H:%M} UTC"
    known = f", {report.known:,} known from earlier nights" if report.known else ""
    yield f"  {report.read:,} conversations{known}; {report.drawn:,} drawn"
    for one in report.strata:
        counts = f"{one.drawn:,} of {one.conversations:,} drawn, {one.told:,} told, {one.failures:,} severe"
        yield f"    {one.stratum}: {counts}"
    yield f"  severity-3 rate  {rate_text(report.severe)}"
    yield f"  any failure      {rate_text(report.failed)}"
    for kind in report.kinds:
        yield f"    {kind.kind.value}: {kind.failures:,} drawn, {rate_text(kind.rate)}"
    yield f"  graded by {report.graded_by}{_why(report)}"
    if report.drift_reading is not None:
        yield f"  {report.drift_reading.text}"
    if report.questions.questions:
        yield f"  {_questions(report)}"
    if report.judging.calls:
        yield f"  judge: {report.judging.calls:,} calls, ${report.judging.cost_usd:.2f}"
    yield from (f"  asked one by one, at the full price: {one}" for one in report.judging.not_by_batch)
    yield from (f"  not read to its end: {one}" for one in report.interrupted)
    if report.notice_count:
        first = report.notices[0]
        yield f"  {report.notice_count:,} items could not be used, the first at {first.place}: {first.detail}"


def in_one_line(report: NightReport) -> str:
    """The same for a list of runs."""
    return f"{report.target}: {report.drawn:,} of {report.read:,} drawn, severity 3 {rate_text(report.severe)}"


def rate_text(rate: Rate) -> str:
    """The rate with its interval, or why there is none."""
    if not isinstance(rate, RateEstimate):
        return f"unknown: {rate.why}"
    coverage = f", told of {100 * rate.coverage:.0f} %" if rate.coverage < 1 else ""
    return f"{rate.text} of {rate.conversations:,}{coverage}{', corrected for the judge' if rate.corrected else ''}"


def _why(report: NightReport) -> str:
    return f" (the judge did not speak: {report.judging.why})" if report.judging.why else ""


def _questions(report: NightReport) -> str:
    asked = report.questions
    if asked.share is None or asked.low is None or asked.high is None:
        return f"{asked.questions:,} clarifying questions, none rated"
    return (
        f"{asked.questions:,} clarifying questions, {asked.up} liked and {asked.down} not: "
        f"{100 * asked.share:.0f} % [{100 * asked.low:.0f}, {100 * asked.high:.0f}]"
    )
