"""How figures, times and names are written, the same in every report."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Final

from monitors.records.base import Blame, Severity
from monitors.records.exchanges import NoAnswerReason
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import Ratio, RunReport, Verdict

VERDICT_MARKS: Final = {Verdict.PASS: "✓", Verdict.FAIL: "✕", Verdict.INCONCLUSIVE: "?"}
"""A shape beside the word, so that neither colour nor shape speaks alone."""

SEVERITY_WORDS: Final = {Severity.PAGE: "page someone", Severity.WRONG: "wrong", Severity.ANNOYING: "annoying"}

OUTCOME_WORDS: Final = {
    CaseOutcome.CORRECT: "correct",
    CaseOutcome.FAILED: "failed",
    CaseOutcome.NO_ANSWER: "no answer",
    CaseOutcome.UNTOLD: "could not tell",
}

KIND_WORDS: Final = {
    FailureKind.WRONG_FACT: "wrong fact",
    FailureKind.MISSING_FACT: "missing fact",
    FailureKind.MISSING_CITATION: "no citation",
    FailureKind.WRONG_CITATION: "wrong citation",
    FailureKind.UNSUPPORTED_CLAIM: "unsupported claim",
    FailureKind.SHOULD_HAVE_REFUSED: "should have refused",
    FailureKind.OVER_REFUSAL: "refused a fair question",
    FailureKind.PII_DISCLOSURE: "personal data disclosed",
    FailureKind.UNSAFE_ACTION: "unsafe action",
    FailureKind.WRONG_LANGUAGE: "wrong language",
    FailureKind.TONE: "tone",
    FailureKind.FORMAT: "format",
    FailureKind.ERROR_LEAK: "error shown as answer",
    FailureKind.POOR_TRIAGE: "poor triage",
    FailureKind.INEFFICIENT: "inefficient",
}

NO_ANSWER_WORDS: Final = {
    NoAnswerReason.UNREACHABLE: "unreachable",
    NoAnswerReason.NOT_READY: "not ready",
    NoAnswerReason.ANSWER_TIMEOUT: "no answer in time",
    NoAnswerReason.INCOMPLETE: "answer broke off",
    NoAnswerReason.APP_ERROR_SHOWN: "the page showed an error",
    NoAnswerReason.ACCESS_DENIED: "login or quota wall",
    NoAnswerReason.PAGE_NOT_UNDERSTOOD: "no chat found on the page",
    NoAnswerReason.BROWSER_LOST: "browser lost",
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


def quantity(value: Decimal) -> str:
    """A count or weight without a needless ``.0``: ``744``, ``1,000``, ``2.5``."""
    return f"{value.normalize():,f}"


def seconds(milliseconds: float) -> str:
    """``2.4 s``, and ``0.04 s`` below a tenth."""
    return f"{milliseconds / 1000:.1f} s" if milliseconds >= 100 else f"{milliseconds / 1000:.2f} s"  # noqa: PLR2004 - said above


def moment(when: datetime) -> str:
    """``2026-11-21 03:12:09 UTC``; records hold UTC only."""
    return f"{when:%Y-%m-%d %H:%M:%S} UTC"


def metric_name(name: str) -> str:
    """``factual_accuracy:hi`` as ``factual accuracy, hi``."""
    return name.replace("_", " ").replace(":", ", ")


def headline(report: RunReport) -> str:
    """The verdict's first reason. A pass has none: it says how much was told, which is what it rests on."""
    decisive = next((reason.text for reason in report.reasons if reason.decisive), None)
    if decisive is not None:
        return decisive
    told = f"{report.coverage.told:,} of {plural(report.coverage.asked, 'case')} could be told"
    return f"{told}; nothing stands against it" if report.verdict is Verdict.PASS else told


def elapsed(report: RunReport) -> str:
    """How long the run took: ``4 min 09 s``."""
    total = max(0, round((report.finished_at - report.started_at).total_seconds()))
    hours, rest = divmod(total, 3600)
    minutes, secs = divmod(rest, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {secs:02d} s" if minutes else f"{secs} s"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 case``, ``2 cases``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def shortened(text: str, limit: int) -> str:
    """The text on one line, cut after ``limit`` characters with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
