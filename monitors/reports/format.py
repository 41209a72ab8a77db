"""How figures, times, names and foreign texts are written, the same in every report.

Text from outside stays text in Markdown, whatever it says. Whatever an application or a user wrote goes into a code
span, where no renderer searches for links, HTML, mentions, formulas or emoji. Our own sentences, which may quote a
name from outside, are escaped.
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
from monitors.records.runs import QuestionCounts, Ratio, RunExperiment, RunReport, Verdict, format_uncovered
from monitors.reports.invisible import show_invisible

VERDICT_MARKS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✕", Verdict.INCONCLUSIVE: "?"}
"""A shape beside the word, so that neither colour nor shape speaks alone."""

SEVERITY_WORDS: Final = {Severity.PAGE: "alert at once", Severity.WRONG: "wrong", Severity.ANNOYING: "annoying"}

NO_ANSWER_WORDS: Final = {
    NoAnswerReason.UNREACHABLE: "unreachable",
    NoAnswerReason.NOT_READY: "not ready",
    NoAnswerReason.ANSWER_TIMEOUT: "no answer in time",
    NoAnswerReason.INCOMPLETE: "answer broke off",
    NoAnswerReason.APP_ERROR_SHOWN: "the page showed an error",
    NoAnswerReason.LEFT_TARGET: "the page left the target",
    NoAnswerReason.ACCESS_DENIED: "login or quota wall",
    NoAnswerReason.LOGIN_FAILED: "not signed in",
    NoAnswerReason.NO_SUCH_PATH: "no question is taken at this path",
    NoAnswerReason.END_NOT_FOUND: "end of the stream not found",
    NoAnswerReason.ANSWER_NOT_FOUND: "no text at the configured path",
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: "no chat found on the page",
    NoAnswerReason.CAPTURE_UNSURE: "not sure that what was read is the answer",
    NoAnswerReason.BROWSER_LOST: "browser lost",
    NoAnswerReason.OLD_JOB: "an old job came back",
    NoAnswerReason.CIRCUIT_OPEN: "not asked, the app was down",
}

BLAME_WORDS: Final = {
    Blame.APP: "the application",
    Blame.PROVIDER: "the model provider",
    Blame.MONITOR: "the monitor",
}


def score(ratio: Ratio) -> str:
    """A score as everyone quotes it: three decimals (0.823), or ``none`` where nothing was counted."""
    return "none" if ratio.value is None else f"{ratio.value:.3f}"


def percent(share: float) -> str:
    """A share as a percentage with one decimal: ``93.9 %``."""
    return f"{100 * share:.1f} %"


def format_questions(counts: QuestionCounts) -> str:
    """The questions that agents stopped for, and the share of useful ones among those of which it is known."""
    asked = f"The agent stopped for {plural(counts.asked, 'question')}"
    if counts.share is None or counts.low is None or counts.high is None:
        return f"{asked}; whether the issues answer them is not known"
    known = counts.useful + counts.needless
    unsure = f"; of {counts.asked - known} it is not known" if counts.asked > known else ""
    return (
        f"{asked}: {counts.useful} useful, {counts.needless} that the issue answers{unsure}. Useful are "
        f"{percent(counts.share)} (95 % CI {percent(counts.low)} to {percent(counts.high)})"
    )


def quantity(value: Decimal) -> str:
    """A count or weight without a needless ``.0``: ``744``, ``1,000``, ``2.5``."""
    return f"{value.normalize():,f}"


def seconds(milliseconds: float) -> str:
    """``2.4 s``, and ``0.04 s`` below a tenth."""
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 100 else f"{milliseconds / 1000:.2f} s"  # noqa: PLR2004 - said above


def moment(when: datetime) -> str:
    """``2026-11-21 03:12:09 UTC``; records hold UTC only."""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"


def zoned_moment(when: datetime, zone: str) -> str:
    """``2026-11-21 03:15 Europe/Berlin (02:15 UTC)``; the date of UTC stands beside it where it is another."""
    here, utc = when.astimezone(ZoneInfo(zone)), when.astimezone(UTC)
    if here.replace(tzinfo=None) == utc.replace(tzinfo=None):
        return f"{utc:%Y-%m-%d %H:%M} UTC"
    day = "" if here.date() == utc.date() else f"{utc:%Y-%m-%d} "
    return f"{here:%Y-%m-%d %H:%M} {zone} ({day}{utc:%H:%M} UTC)"


def headline(report: RunReport) -> str:
    """The verdict's first reason. A pass has none: it says how much was graded, which is what it rests on."""
    decisive = next((reason.text for reason in report.reasons if reason.decisive), None)
    if decisive is not None:
        return decisive
    graded_of = f"{report.coverage.graded:,} of {plural(report.coverage.asked, 'case')} graded"
    if report.resumed_cases:
        graded_of += f", {report.resumed_cases:,} answered before the run was stopped (--fresh asks all again)"
    if report.verdict is not Verdict.PASS:
        return graded_of
    left_out = format_uncovered(report.reasons)
    return f"{graded_of}; {f'not covered: {left_out}' if left_out else 'nothing stands against it'}"


def elapsed(report: RunReport) -> str:
    """How long the run took: ``4 min 09 s``."""
    total = max(0, round((report.finished_at - report.started_at).total_seconds()))
    hours, rest = divmod(total, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {secs:02d} s" if minutes else f"{secs} s"


def shortened(text: str, limit: int) -> str:
    """The text on one line, cut after ``limit`` characters with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


_TICKS: Final = re.compile(r"`+")
# What marks up within a line; what only counts at its beginning never stands there.
_MARKUP: Final = re.compile(r"([\\`*_\[\]|~$^])")
# GitHub resolves these after Markdown, where a backslash no longer helps; an invisible word joiner does.
_REFERENCES: Final = re.compile(r"(?i)(@|#(?=\d)|\bGH(?=-\d)|(?<=\w)://|\bwww(?=\.)|:(?=[\d_-]*[a-z+][\w+-]*:))")
_WORD_JOINER: Final = "\u2060"


def format_experiment(found: RunExperiment | None) -> tuple[str, ...]:
    """What is missing where a run appears as an experiment, and what to do; nothing where all is there."""
    if found is None:
        return ()
    lines: list[str] = []
    if found.unlinked:
        cases = plural(found.unlinked, "case has", "cases have")
        is_not = "is not" if found.unlinked == 1 else "are not"
        lines.append(
            f"{cases} no example in {found.dataset} and {is_not} in the experiment; lookout gold push "
            f"{found.dataset} adds {'it' if found.unlinked == 1 else 'them'}"
        )
    if found.problem:
        what = "The experiment is not complete" if found.url else "No experiment"
        lines.append(f"{what} ({found.dataset}): {found.problem}")
    return tuple(lines)


def code_span(text: str, limit: int) -> str:
    """The text as one inert code span, on one line, at most ``limit`` characters; safe in a table cell.

    A pipe is written as a similar character: inside code, a table's pipe cannot be escaped for every renderer.
    """
    line = shortened(show_invisible(text), limit).replace("|", "¦")
    if not line:
        return "(empty)"
    longest = max((len(run) for run in _TICKS.findall(line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line[0] == "`" or line[-1] == "`" else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def inert(text: str, limit: int = 600) -> str:
    """A sentence that may quote something from outside, escaped: no markup, HTML, link, mention or reference."""
    line = shortened(show_invisible(text), limit)
    unresolved = _REFERENCES.sub(lambda found: found[0][0] + _WORD_JOINER + found[0][1:], line)
    return _MARKUP.sub(r"\\\1", unresolved.replace("&", "&amp;").replace("<", "&lt;"))
