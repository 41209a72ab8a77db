"""What a comment folds away: all reasons, what was asked and answered, what got no answer, the arithmetic."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from monitors.records.exchanges import NoAnswer
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult, Coverage, RunReport, VerdictReason
from monitors.reports.case_view import answer_text
from monitors.reports.comment_room import Block
from monitors.reports.markdown_inert import code_span, inert
from monitors.reports.masking import Redact, redaction_of
from monitors.reports.wording import BLAME_WORDS, KIND_WORDS, NO_ANSWER_WORDS, plural, quantity

MOST_FOLDED: Final = 100
_NAMED: Final = 6


def what_happened(result: CaseResult) -> str:
    """What is wrong, in two or three words."""
    came = result.result
    if result.assessment.outcome is CaseOutcome.NO_ANSWER:
        return NO_ANSWER_WORDS[came.reason] if isinstance(came, NoAnswer) else "no answer"
    return ", ".join(KIND_WORDS[kind] for kind in result.assessment.failure_kinds)


def _folded(summary: str, *, head: Sequence[str] = (), rows: Sequence[str], total: int | None = None) -> Block:
    """GitHub reads Markdown inside HTML only after an empty line."""
    opened = [f"<details><summary>{summary}</summary>", "", *head]
    return Block(head=opened, rows=rows, foot=["", "</details>"], total=total)


def folded_reasons(report: RunReport, redact: Redact) -> Iterator[Block]:
    """Every reason with the cases behind it."""
    if report.reasons:
        rows = [_reason(reason, redact) for reason in report.reasons[:MOST_FOLDED]]
        yield _folded(f"Why: {plural(len(report.reasons), 'reason')}", rows=rows, total=len(report.reasons))


def _reason(reason: VerdictReason, redact: Redact) -> str:
    kind = reason.kind.replace("_", " ")
    ids = ", ".join(code_span(case_id, 80) for case_id in reason.case_ids[:_NAMED])
    more = f" and {len(reason.case_ids) - _NAMED} more" if len(reason.case_ids) > _NAMED else ""
    cases = f" ({ids}{more})" if ids else ""
    return f"- {f'**{kind}**' if reason.decisive else kind}: {inert(redact(reason.text))}{cases}"


def folded_transcripts(failed: Sequence[CaseResult], redact: Redact) -> Iterator[Block]:
    """What was asked, answered and expected."""
    if failed:
        rows = [_transcript(one, redact) for one in failed[:MOST_FOLDED]]
        yield _folded(f"Asked and answered: {len(failed):,} failed", rows=rows, total=len(failed))


def _transcript(result: CaseResult, redact: Redact) -> str:
    found, safe = result.assessment, redaction_of(result, redact)
    raised = f", row {code_span(found.policy_row, 60)}" if found.severity != found.case_severity else ""
    return "\n".join(
        [
            f"- **severity {found.severity}**{raised}, {code_span(result.case.id, 200)}: {what_happened(result)}",
            f"  - asked {code_span(safe(result.case.question), 200)}",
            f"  - answered {code_span(safe(answer_text(result)), 300)}",
            f"  - expected {code_span(safe(result.case.gold), 200)}",
            f"  - {inert(safe(found.reason), 300)}",
        ]
    )


def folded_silence(silent: Sequence[CaseResult], untold: Sequence[CaseResult], redact: Redact) -> Iterator[Block]:
    """Whose fault it was stands first: an application that did not serve is no fault of the change's wording."""
    if silent or untold:
        blamed = Counter(BLAME_WORDS[one.assessment.blame] for one in silent if one.assessment.blame)
        whose = ", ".join(f"{count:,} by {who}" for who, count in blamed.most_common())
        title = f"No answer: {len(silent):,}{f' ({whose})' if whose else ''}, could not tell: {len(untold):,}"
        both = [*silent, *untold]
        yield _folded(title, rows=[_silence(one, redact) for one in both[:MOST_FOLDED]], total=len(both))


def _silence(result: CaseResult, redact: Redact) -> str:
    found, came = result.assessment, result.result
    detail = came.detail if isinstance(came, NoAnswer) else found.reason
    who = BLAME_WORDS[found.blame] if found.blame else "unknown"
    what = what_happened(result) if found.outcome is CaseOutcome.NO_ANSWER else "could not tell"
    return (
        f"- {code_span(result.case.id, 200)}: {what}, because of {who}: "
        f"{code_span(redaction_of(result, redact)(detail), 200)}"
    )


def folded_arithmetic(report: RunReport) -> Block:
    """How both scores came about."""
    scores = report.scores
    rows = [
        f"| {tally.severity} | {tally.cases:,} | {tally.lost:,} | {quantity(tally.weight)} |"
        for tally in sorted(scores.tallies, key=lambda tally: -tally.severity)
    ]
    head = ["| severity | cases | lost | weight |", "| --- | ---: | ---: | ---: |"]
    sums = (
        f"Weighted {quantity(scores.weighted.earned)} / {quantity(scores.weighted.total)}, flat "
        f"{quantity(scores.flat.earned)} / {quantity(scores.flat.total)}. {_coverage(report.coverage)}"
    )
    return _folded("Arithmetic", head=[*head, *rows, "", sums], rows=())


def _coverage(coverage: Coverage) -> str:
    return f"{coverage.told:,} of {plural(coverage.asked, 'case')} could be told."
