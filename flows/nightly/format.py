"""A nightly run in words, for a terminal and for Prefect's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from monitors.alerts.traffic_census import CENSUS_WORDS, share_text
from monitors.plural import plural
from monitors.records.estimates import RateEstimate
from monitors.records.nightly import CensusRate, NightlyReport, QuestionsAsked, Rate, ReportsRated
from monitors.records.traffic import SourceWarning, SourceWarningKind

ABOUT_ALL: Final = frozenset({SourceWarningKind.PAGES_MAY_FOLLOW})
"""Notices that are about a source and not about one of its items."""


class IntakeSummary(Protocol):
    """What reading the sources came to: a nightly run's report, or a plan's reading."""

    @property
    def issues(self) -> Sequence[SourceWarning]:
        """The first few, those about a whole source before those about an item."""
        ...

    @property
    def issue_count(self) -> int:
        """All of them."""
        ...

    @property
    def interrupted(self) -> Sequence[str]:
        """Sources that were not read to their end, and why."""
        ...

    @property
    def repeated(self) -> int:
        """Items that appeared again."""
        ...


def format_nightly(report: NightlyReport) -> Iterator[str]:
    """The results of a nightly run, a line a fact."""
    yield f"{report.target}: the night until {report.until:%Y-%m-%d %H:%M} UTC"
    known = f", {report.known:,} known from earlier nights" if report.known else ""
    yield f"  {plural(report.read, 'conversation')}{known}; {report.sampled:,} sampled"
    for one in report.strata:
        counts = f"{one.sampled:,} of {one.conversations:,} sampled, {one.failures:,} of severity 3"
        yield f"    {one.stratum}: {counts}"
    yield f"  severity-3 rate  {rate_text(report.severe, report.reviews)}"
    yield f"  any failure      {rate_text(report.failed, report.reviews)}"
    yield from _census_lines(report)
    counted = {one.kind.failure_kind for one in report.census}
    for kind in (one for one in report.kinds if one.kind not in counted):
        yield f"    {kind.kind.value}: {kind.failures:,} found, {rate_text(kind.rate)}"
    yield f"  {_facts(report)}"
    if report.known_questions is not None:
        asked = report.known_questions
        yield f"  {asked.conversations:,} asked what the gold set asks: {asked.failed:,} answered wrongly, by rule"
    if report.reports is not None:
        yield f"  {reports_text(report.reports)}"
    yield f"  graded by {report.graded_by}{_why(report)}"
    yield from (f"  NOT WHOLE: {one}" for one in report.shortfalls)
    yield f"  {_drift(report)}"
    if report.questions.questions:
        yield f"  {questions_text(report.questions)}"
    if report.judging.calls:
        yield f"  judge: {plural(report.judging.calls, 'call')}, ${report.judging.cost_usd:.2f}"
    yield from (f"  asked one by one, at the full price: {one}" for one in report.judging.not_by_batch)
    yield from (f"  {line}" for line in intake_lines(report))


def _census_lines(report: NightlyReport) -> Iterator[str]:
    """What rules found in every conversation. A kind that was found nowhere is a number too."""
    if report.census:
        yield f"  in all {plural(report.read, 'conversation')}, by rules alone:"
    for one in report.census:
        yield f"    {CENSUS_WORDS[one.kind]}: {share_text(one)}{_from_to(one)}"


def _from_to(one: CensusRate) -> str:
    if one.first_at is None or one.last_at is None:
        return ""
    return f", {one.first_at:%Y-%m-%d %H:%M} to {one.last_at:%Y-%m-%d %H:%M} UTC"


def in_one_line(report: NightlyReport) -> str:
    """The same in one line, for a list of runs."""
    short = f"; not whole: {', '.join(report.shortfalls)}" if report.shortfalls else ""
    return (
        f"{report.target}: {report.sampled:,} of {report.read:,} sampled, "
        f"severity-3 rate {rate_text(report.severe)}, any failure {rate_text(report.failed)}{short}"
    )


def rate_text(rate: Rate, reviews: int = 0) -> str:
    """The rate with its interval and how many were graded for it, or why there is none."""
    if not isinstance(rate, RateEstimate):
        return f"unknown, {rate.why}"
    if rate.is_counted:
        return f"{rate.without_interval}, counted in all {rate.conversations:,}"
    judge = ", uncorrected for the judge's errors" if rate.is_uncorrected else ""
    if rate.corrected:
        judge = ", corrected for the judge's errors" + (f" by {plural(reviews, 'review')}" if reviews else "")
    return f"{rate.text} of {rate.conversations:,}, graded {rate.graded:,} of {rate.sampled:,} sampled{judge}"


def _facts(report: NightlyReport) -> str:
    facts = report.facts
    return (
        f"facts checked in {facts.total:,} of {facts.replies:,} sampled replies: {facts.by_judge:,} by the judge, "
        f"{facts.by_gold:,} by rule against the gold set"
    )


def reports_text(found: ReportsRated) -> str:
    """How useful the reports on issues are, by the judge."""
    many = plural(found.reports, "report on an issue", "reports on issues")
    if found.mean is None or found.low is None or found.high is None:
        return f"{many}, none rated"
    interval = f"95 % CI {found.low:.1f} to {found.high:.1f}"
    return f"{many}, usefulness {found.mean:.1f} of 5 ({interval}) by the judge, {found.rated:,} rated"


def _drift(report: NightlyReport) -> str:
    reading = report.drift_reading
    if reading is not None:
        return reading.text
    alarm = report.drift.alarm if report.drift else None
    known = f"; the drift since {alarm.since:%Y-%m-%d} stays open" if alarm else ""
    return f"drift: not tested, too few facts were checked in this night{known}"


def _why(report: NightlyReport) -> str:
    return f" (the judge did not speak: {report.judging.why})" if report.judging.why else ""


def questions_text(asked: QuestionsAsked) -> str:
    """How many clarifying questions there were, how they were known, and how users liked them."""
    marked = asked.questions - asked.recognised
    ways = [f"{asked.recognised:,} known by their wording"] if asked.recognised else []
    ways += [f"{marked:,} marked in the log"] if marked else []
    count = f"{plural(asked.questions, 'clarifying question')} ({', '.join(ways)})"
    if asked.share is None or asked.low is None or asked.high is None:
        return f"{count}, none rated"
    liked = f"{100 * asked.share:.0f} % (95 % CI {100 * asked.low:.0f} to {100 * asked.high:.0f})"
    return f"{count}, {asked.up:,} liked and {asked.down:,} not: {liked}"


def intake_lines(read: IntakeSummary) -> Iterator[str]:
    """What of the sources could not be used, or not all be read, and what appeared twice."""
    yield from (f"not read to its end: {one}" for one in read.interrupted)
    yield from (f"{one.place}: {one.detail}" for one in read.issues if one.kind in ABOUT_ALL)
    if read.repeated:
        yield f"{plural(read.repeated, 'item')} stood there more than once: each conversation counts once"
    unusable, first = unusable_of(read)
    if first is not None:
        yield f"{plural(unusable, 'item')} could not be used, the first at {first.place}: {first.detail}"


def unusable_of(read: IntakeSummary) -> tuple[int, SourceWarning | None]:
    """How many items could not be used, and the first of them."""
    others = sum(one.kind in ABOUT_ALL for one in read.issues)
    return read.issue_count - others, next((one for one in read.issues if one.kind not in ABOUT_ALL), None)
