"""Formats numbers, times, names and texts in the same way in every report.

Texts from an application or a user cannot act as Markdown, because they are escaped or put into code spans.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from monitors.plural import plural
from monitors.records.base import Blame, Severity
from monitors.records.exchanges import NoAnswerReason
from monitors.records.runs import QuestionCounts, Ratio, RunExperiment, RunReport, Verdict, format_uncovered_cases
from monitors.reports.invisible import replace_invisible_by_code_points

VERDICT_MARKS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✕", Verdict.INCONCLUSIVE: "?"}
"""A sign for each verdict, for readers who cannot see colours."""

SEVERITY_WORDS: Final = {Severity.CRITICAL: "critical", Severity.MAJOR: "major", Severity.MINOR: "minor"}

NO_ANSWER_WORDS: Final = {
    NoAnswerReason.UNREACHABLE: "unreachable",
    NoAnswerReason.NOT_READY: "not ready",
    NoAnswerReason.ANSWER_TIMEOUT: "no answer in time",
    NoAnswerReason.INCOMPLETE: "answer broke off",
    NoAnswerReason.APP_ERROR_SHOWN: "the page showed an error",
    NoAnswerReason.LEFT_TARGET: "the page left the target",
    NoAnswerReason.ACCESS_DENIED: "blocked by a login or a quota",
    NoAnswerReason.RATE_LIMITED: "too many requests",
    NoAnswerReason.LOGIN_FAILED: "not signed in",
    NoAnswerReason.NO_SUCH_PATH: "the server does not accept questions at this path",
    NoAnswerReason.END_NOT_FOUND: "end of the stream not found",
    NoAnswerReason.ANSWER_NOT_FOUND: "no answer text at the configured path",
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: "no chat found on the page",
    NoAnswerReason.CAPTURE_UNSURE: "Lookout is not sure that it read the answer",
    NoAnswerReason.BROWSER_LOST: "browser lost",
    NoAnswerReason.OLD_JOB: "the application returned an old job",
    NoAnswerReason.CIRCUIT_OPEN: "not asked, the app was down",
}

BLAME_WORDS: Final = {
    Blame.APP: "the application",
    Blame.PROVIDER: "the model provider",
    Blame.MONITOR: "the monitor",
}


def format_score(ratio: Ratio) -> str:
    """Format a score with three decimals, such as 0.823, or ``none`` if no case was counted."""
    return "none" if ratio.value is None else f"{ratio.value:.3f}"


def format_percent(share: float) -> str:
    """Format a share as a percentage with one decimal, such as ``93.9 %``."""
    return f"{100 * share:.1f} %"


def format_agent_questions(counts: QuestionCounts) -> str:
    """Format how many questions the agent asked about its issues, and how many of the questions were useful."""
    asked = f"The agent stopped for {plural(counts.asked, 'question')}"
    if counts.share is None or counts.low is None or counts.high is None:
        return f"{asked}; Lookout does not know whether the issues answer them"
    graded = counts.useful + counts.needless
    unsure = f"; unknown for {counts.asked - graded}" if counts.asked > graded else ""
    return (
        f"{asked}: {counts.useful} useful, {counts.needless} needless (the issue answers them){unsure}. Useful "
        f"share: {format_percent(counts.share)} (95 % CI {format_percent(counts.low)} to "
        f"{format_percent(counts.high)})"
    )


def format_quantity(value: Decimal) -> str:
    """Format a count or a weight without trailing zeros: ``744``, ``1,000``, ``2.5``."""
    return f"{value.normalize():,f}"


def format_seconds(milliseconds: float) -> str:
    """Format a duration in seconds: ``2.4 s``, or ``0.04 s`` below a tenth of a second."""
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 100 else f"{milliseconds / 1000:.2f} s"  # noqa: PLR2004 - said above


def format_moment(when: datetime) -> str:
    """Format a UTC time: ``2026-11-21 03:12:09 UTC``. Times in records are always in UTC."""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"


def format_zoned_moment(when: datetime, zone: str) -> str:
    """Format a time as local time and as UTC: ``2026-11-21 03:15 Europe/Berlin (02:15 UTC)``.

    If the UTC date differs from the local date, the UTC date is added.
    """
    local, utc = when.astimezone(ZoneInfo(zone)), when.astimezone(UTC)
    if local.replace(tzinfo=None) == utc.replace(tzinfo=None):
        return f"{utc:%Y-%m-%d %H:%M} UTC"
    day = "" if local.date() == utc.date() else f"{utc:%Y-%m-%d} "
    return f"{local:%Y-%m-%d %H:%M} {zone} ({day}{utc:%H:%M} UTC)"


def format_headline(report: RunReport) -> str:
    """Return the first decisive reason for the verdict. Without such a reason, state how many cases were graded."""
    decisive = next((reason.text for reason in report.reasons if reason.decisive), None)
    if decisive is not None:
        return decisive
    graded_of = f"{report.coverage.graded:,} of {plural(report.coverage.asked, 'case')} graded"
    if report.resumed_cases:
        graded_of += (
            f", {report.resumed_cases:,} answered before the run was stopped (--fresh asks all cases again)"
        )
    if report.verdict is not Verdict.PASS:
        return graded_of
    left_out = format_uncovered_cases(report.reasons)
    return f"{graded_of}; {f'not covered: {left_out}' if left_out else 'the verdict covers all severe cases'}"


def format_elapsed(report: RunReport) -> str:
    """Format the duration of the run: ``4 min 09 s``."""
    total = max(0, round((report.finished_at - report.started_at).total_seconds()))
    hours, remaining = divmod(total, 3600)
    minutes, secs = divmod(remaining, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {secs:02d} s" if minutes else f"{secs} s"


def shorten(text: str, limit: int) -> str:
    """Return the text as one line of at most ``limit`` characters, with an ellipsis if it was cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def shorten_middle(name: str, limit: int) -> str:
    """Return a name of at most ``limit`` characters.

    The middle of a longer name is replaced by an ellipsis, because ids differ mostly at their ends.
    """
    half = (limit - 1) // 2
    return name if len(name) <= limit else f"{name[: limit - 1 - half]}…{name[-half:]}"


_TICKS: Final = re.compile(r"`+")
# Markup within a line. Markup that has an effect only at the start of a line cannot occur here.
_MARKUP_CHARACTERS: Final = re.compile(r"([\\`*_\[\]|~$^])")
# GitHub resolves these after Markdown. A backslash cannot prevent this, but an invisible word joiner can.
_REFERENCES: Final = re.compile(r"(?i)(@|#(?=\d)|\bGH(?=-\d)|(?<=\w)://|\bwww(?=\.)|:(?=[\d_-]*[a-z+][\w+-]*:))")
_WORD_JOINER: Final = "\u2060"


def format_experiment_problems(experiment: RunExperiment | None) -> tuple[str, ...]:
    """Return what is missing in the run's experiment, and how to fix it.

    The result is empty if nothing is missing.
    """
    if experiment is None:
        return ()
    lines: list[str] = []
    if experiment.unlinked:
        cases = plural(experiment.unlinked, "case has", "cases have")
        is_not = "is not" if experiment.unlinked == 1 else "are not"
        lines.append(
            f"{cases} no example in {experiment.dataset} and {is_not} in the experiment. To add "
            f"{'it' if experiment.unlinked == 1 else 'them'}, run: lookout gold push {experiment.dataset}"
        )
    if experiment.problem:
        status = "The experiment is not complete" if experiment.url else "No experiment"
        lines.append(f"{status} ({experiment.dataset}): {experiment.problem}")
    return tuple(lines)


def format_code_span(text: str, limit: int) -> str:
    """Return the text as a code span on one line, with at most ``limit`` characters.

    The span is safe in a table cell.

    A pipe is replaced by a similar character, because some programs end the cell even at an escaped pipe.
    """
    line = shorten(replace_invisible_by_code_points(text), limit).replace("|", "¦")
    if not line:
        return "(empty)"
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def escape_markdown(text: str, limit: int = 600) -> str:
    """Escape a sentence that may quote untrusted text.

    No part of the result acts as markup, HTML, link, mention or reference.
    """
    line = shorten(replace_invisible_by_code_points(text), limit)
    unresolved = _REFERENCES.sub(lambda match: match[0][0] + _WORD_JOINER + match[0][1:], line)
    return _MARKUP_CHARACTERS.sub(r"\\\1", unresolved.replace("&", "&amp;").replace("<", "&lt;"))
