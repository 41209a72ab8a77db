"""Formats the results of a nightly run as text, for a terminal, the site and Prefect's UI."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from monitors.alerts.traffic_census import CENSUS_WORDS, format_rate
from monitors.plural import plural
from monitors.records.estimates import RateEstimate
from monitors.records.nightly import CensusExample, CensusRate, NightlyReport, QuestionsAsked, Rate, ReportsRated
from monitors.records.traffic import SourceWarning, SourceWarningKind, UnusableReason
from monitors.reports.night import CensusText, NightText, RateText
from monitors.sources.sampling.plan import format_small_sample_warning

SOURCE_WARNING_KINDS: Final = frozenset({SourceWarningKind.PAGES_MAY_FOLLOW})
"""Kinds of warnings that concern a whole source. All other kinds concern one item of a source."""


INCOMPLETE: Final = "INCOMPLETE"


class IntakeSummary(Protocol):
    """The result of reading the sources, for the report of a nightly run or for a plan."""

    @property
    def issues(self) -> Sequence[SourceWarning]:
        """The first few warnings. Warnings about a whole source come before warnings about an item."""
        ...

    @property
    def issue_count(self) -> int:
        """The number of all warnings, including the warnings that are not stored."""
        ...

    @property
    def unusable(self) -> Mapping[UnusableReason, int]:
        """The number of unusable items, by reason."""
        ...

    @property
    def interrupted(self) -> Sequence[str]:
        """The sources that were not read completely, and the reason for each."""
        ...

    @property
    def repeated(self) -> int:
        """The number of items that occurred more than once."""
        ...


def format_nightly_report(report: NightlyReport) -> Iterator[str]:
    """Yield the results of a nightly run. Each line has one fact."""
    yield f"{report.target}: nightly run, conversations until {report.until:%Y-%m-%d %H:%M} UTC"
    known_text = f" ({report.known:,} more were counted on earlier nights)" if report.known else ""
    yield f"  {plural(report.read, 'new conversation')}{known_text}; {report.sampled:,} sampled"
    yield from (f"    {line}" for line in _format_strata(report))
    yield f"  severity-3 rate  {format_rate_text(report.severe, report.reviews)}"
    yield f"  any failure      {format_rate_text(report.failed, report.reviews)}"
    yield from _format_census(report)
    yield from (f"  {line}" for line in format_nightly_findings(report))


def _format_strata(report: NightlyReport) -> Iterator[str]:
    for row in report.strata:
        failures = plural(row.failures, "severity-3 failure")
        yield f"stratum {row.stratum}: {row.sampled:,} of {row.conversations:,} sampled, {failures}"


def format_nightly_findings(report: NightlyReport) -> Iterator[str]:
    """Yield the results of a nightly run as lines, without its counts, its two rates and its census."""
    counted = {row.kind.failure_kind for row in report.census}
    for kind in (row for row in report.kinds if row.kind not in counted):
        yield f"  {kind.kind.value}: {kind.failures:,} found, {format_rate_text(kind.rate)}"
    yield _format_count_of_checked_facts(report)
    yield from (
        f"citations not checked in {name}: this source has no citation field, and almost no answer names a source. "
        f"To check citations, set traffic.sources.{name}.fields.citations."
        for name, is_checked in report.citations_checked.items()
        if not is_checked
    )
    if small := format_small_sample_warning(report.sampled, report.read):
        yield small
    if report.known_questions is not None:
        asked = report.known_questions
        wrong = plural(asked.failed, "wrong answer")
        yield f"{asked.conversations:,} of the conversations asked a gold question; rules found {wrong}"
    if report.reports is not None:
        yield format_report_ratings(report.reports)
    why_no_judge = f" (the judge gave no grades: {report.judging.why})" if report.judging.why else ""
    yield f"graded by {report.graded_by}{why_no_judge}"
    yield from (f"{INCOMPLETE}: {row}" for row in report.shortfalls)
    yield _format_drift(report)
    if report.questions.questions:
        yield format_clarifying_questions(report.questions)
    if report.judging.calls:
        estimated = report.judging.estimated_calls
        note = (
            f" (the tokens of {plural(estimated, 'call')} are estimated, because the provider did not report them)"
            if estimated
            else ""
        )
        judging = report.judging
        cost = judging.cost_text if judging.unpriced_models else f"${judging.cost_usd:.2f}"
        yield f"judge: {plural(report.judging.calls, 'call')}, {cost}{note}"
    yield from (
        f"the judge was called without a batch, at the full price: {row}" for row in report.judging.not_by_batch
    )
    yield from format_intake_warnings(report)


def list_nightly_finding_lines(report: NightlyReport) -> tuple[str, ...]:
    """List the lines of `format_nightly_findings`, without indentation and without lines about missing results."""
    return tuple(line.strip() for line in format_nightly_findings(report) if not line.startswith(INCOMPLETE))


def build_nightly_report_text(report: NightlyReport, examples: Sequence[CensusExample]) -> NightText:
    """Format the parts of a nightly report: rates, census rows, missing results, and other lines.

    ``examples`` are redacted conversations from the census.
    """
    shown = {example.kind: example for example in examples}
    rates = (("severity-3 rate", report.severe), ("any failure", report.failed))
    return NightText(
        rates=tuple(_build_rate_text(name, rate, report.reviews) for name, rate in rates),
        census=tuple(
            CensusText(
                name=CENSUS_WORDS[rate.kind],
                count=format_rate(rate),
                period=_format_first_and_last_time(rate).removeprefix(", "),
                asked=shown[rate.kind].asked if rate.kind in shown else "",
                answered=shown[rate.kind].answered if rate.kind in shown else "",
            )
            for rate in report.census
        ),
        shortfalls=report.shortfalls,
        lines=(*_format_strata(report), *list_nightly_finding_lines(report)),
    )


def _build_rate_text(name: str, rate: Rate, reviews: int) -> RateText:
    share = rate.text_without_interval if isinstance(rate, RateEstimate) else "unknown"
    return RateText(name, share, format_rate_text(rate, reviews).removeprefix(share))


def _format_census(report: NightlyReport) -> Iterator[str]:
    """Yield a line for each failure kind that rules checked in all conversations, including kinds not found."""
    if report.census:
        yield f"  Found by rules in all {plural(report.read, 'conversation')}:"
    for rate in report.census:
        yield f"    {CENSUS_WORDS[rate.kind]}: {format_rate(rate)}{_format_first_and_last_time(rate)}"


def _format_first_and_last_time(rate: CensusRate) -> str:
    if rate.first_at is None or rate.last_at is None:
        return ""
    return f", {rate.first_at:%Y-%m-%d %H:%M} to {rate.last_at:%Y-%m-%d %H:%M} UTC"


def format_nightly_briefly(report: NightlyReport) -> str:
    """Format the results of a nightly run as one line, for a list of runs."""
    short = f"; incomplete: {', '.join(report.shortfalls)}" if report.shortfalls else ""
    return (
        f"{report.target}: {report.sampled:,} of {report.read:,} sampled, "
        f"severity-3 rate {format_rate_text(report.severe)}, any failure {format_rate_text(report.failed)}{short}"
    )


def format_rate_text(rate: Rate, reviews: int = 0) -> str:
    """Format a rate with its interval and the number of graded conversations, or the reason for an unknown rate."""
    if not isinstance(rate, RateEstimate):
        return f"unknown: {rate.why}"
    if rate.is_counted_not_estimated:
        return f"{rate.text_without_interval} (all {plural(rate.conversations, 'conversation')} checked)"
    judge = ", uncorrected for the judge's errors" if rate.is_judged_but_uncorrected else ""
    if rate.corrected:
        judge = ", corrected for the judge's errors" + (f" by {plural(reviews, 'review')}" if reviews else "")
    return f"{rate.text} of {rate.conversations:,}, graded {rate.graded:,} of {rate.sampled:,} sampled{judge}"


def _format_count_of_checked_facts(report: NightlyReport) -> str:
    facts = report.facts
    return (
        f"facts checked in {facts.total:,} of {plural(facts.replies, 'sampled reply', 'sampled replies')}: "
        f"{facts.by_judge:,} by the judge, "
        f"{facts.by_gold:,} by rules against the gold set"
    )


def format_report_ratings(reports: ReportsRated) -> str:
    """Format the average usefulness of the issue reports, according to the judge's ratings."""
    many = plural(reports.reports, "report on an issue", "reports on issues")
    if reports.mean is None or reports.low is None or reports.high is None:
        return f"{many}, none rated"
    interval = f"95 % CI {reports.low:.1f} to {reports.high:.1f}"
    return f"{many}, {reports.rated:,} rated by the judge, average usefulness {reports.mean:.1f} of 5 ({interval})"


def _format_drift(report: NightlyReport) -> str:
    reading = report.drift_reading
    if reading is not None:
        return f"drift: {reading.text}"
    alarm = report.drift.alarm if report.drift else None
    open_alert = f" The drift alert since {alarm.since:%Y-%m-%d} is still open." if alarm else ""
    return f"drift: not tested, because too few facts were checked.{open_alert}"


def format_clarifying_questions(questions: QuestionsAsked) -> str:
    """Format the number of clarifying questions, how they were recognised, and how users rated them."""
    marked_in_log = questions.questions - questions.recognised
    ways = [f"{questions.recognised:,} recognised by their wording"] if questions.recognised else []
    ways += [f"{marked_in_log:,} marked in the log"] if marked_in_log else []
    count = f"{plural(questions.questions, 'clarifying question')} ({', '.join(ways)})"
    if questions.share is None or questions.low is None or questions.high is None:
        return f"{count}, none rated"
    liked = f"{100 * questions.share:.0f} % (95 % CI {100 * questions.low:.0f} to {100 * questions.high:.0f})"
    return f"{count}, {questions.up:,} liked and {questions.down:,} disliked: {liked}"


def format_intake_warnings(read: IntakeSummary) -> Iterator[str]:
    """Yield lines about sources that were not read completely, and about unusable or repeated items."""
    yield from (f"not read completely: {warning}" for warning in read.interrupted)
    yield from (
        f"{warning.place}: {warning.detail}" for warning in read.issues if warning.kind in SOURCE_WARNING_KINDS
    )
    if read.repeated:
        yield f"{plural(read.repeated, 'item')} occurred more than once; each conversation counts once"
    unusable, first = count_unusable_and_find_first(read)
    if first is not None:
        items = f"{plural(unusable, 'item')} could not be used{format_unusable_reasons(read)}"
        yield f"{items}; the first is at {first.place}: {first.detail}"
    if spans := read.unusable.get(UnusableReason.NO_CONVERSATION):
        yield (
            f"the source also has {plural(spans, 'item')} without a conversation, such as tool steps, searches and "
            "embeddings"
        )


def count_unusable_and_find_first(read: IntakeSummary) -> tuple[int, SourceWarning | None]:
    """Count the unusable items and return the first unusable item.

    Items that contain no conversation do not count.
    """
    others = sum(warning.kind in SOURCE_WARNING_KINDS for warning in read.issues)
    spans = read.unusable.get(UnusableReason.NO_CONVERSATION, 0)
    first = next(
        (
            warning
            for warning in read.issues
            if warning.kind not in SOURCE_WARNING_KINDS and warning.reason is not UnusableReason.NO_CONVERSATION
        ),
        None,
    )
    return read.issue_count - others - spans, first


REASON_WORDS: Final = {
    UnusableReason.NO_CONVERSATION: "without a conversation",
    UnusableReason.BROKEN: "broken",
    UnusableReason.NO_TIME: "without a readable time",
    UnusableReason.NO_QUESTION: "without a question",
    UnusableReason.NO_REPLY_PLACE: "without a field for a reply",
    UnusableReason.REPLY_UNREADABLE: "with a reply in an unknown format",
    UnusableReason.UNPAIRED: "whose question and reply cannot be paired",
    UnusableReason.INVALID: "with a value that cannot be stored",
}


def format_unusable_reasons(read: IntakeSummary) -> str:
    """Format in brackets how many items were unusable for each reason.

    Return an empty string if no item was unusable.
    """
    counts = {
        reason: count for reason, count in read.unusable.items() if reason is not UnusableReason.NO_CONVERSATION
    }
    parts = [
        f"{count:,} {REASON_WORDS[reason]}" for reason, count in sorted(counts.items(), key=lambda row: -row[1])
    ]
    return f" ({', '.join(parts)})" if parts else ""
