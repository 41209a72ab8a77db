"""A run as a pull request's comment: read on a phone, in ten seconds; what takes longer is folded away.

verdict and both scores; of an agent's reports on issues the four dimensions
why, in a sentence or two
beside the baseline, in three narrow columns
what fails now and did not before
what failed before too
folded: all reasons, what was asked and answered, no answers, the arithmetic
which run, which suite, where the log is

The text may not grow too long: a block of Markdown that does not fit is counted, never dropped unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from monitors.plural import plural
from monitors.records.base import Blame
from monitors.records.comparisons import Comparison
from monitors.records.exchanges import NoAnswer
from monitors.records.grades import FAILURE_WORDS, CaseOutcome
from monitors.records.runs import CaseResult, Coverage, ReasonKind, RunReport, VerdictReason, format_uncovered
from monitors.reports.case_view import with_outcome
from monitors.reports.figures import format_causes, format_changes_briefly, format_raised, tally_rows
from monitors.reports.format import (
    BLAME_WORDS,
    NO_ANSWER_WORDS,
    VERDICT_MARKS,
    code_span,
    elapsed,
    headline,
    inert,
    quantity,
    score,
    shortened,
)
from monitors.reports.marked_text import Redact, redaction_of
from monitors.reports.proof_rows import format_change
from monitors.reports.rechecks import format_recheck_briefly
from monitors.reports.triage_summary import dimension_table
from monitors.reports.triage_view import asked_text, labels_of, only_issues, replied_text

CUT: Final = "*Cut here: a comment holds no more. The report has the rest.*"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together: ``rows`` may be left out from the end, ``head`` and ``foot`` may not.

    ``total`` is how many rows there would be: the missing ones are counted after those that are shown.
    """

    head: Sequence[str] = ()
    rows: Sequence[str] = ()
    foot: Sequence[str] = ()
    total: int | None = None


def fitted(blocks: Sequence[Block], last: Block, *, limit: int) -> str:
    """The blocks in their order with a line between, and always ``last``; at most ``limit`` characters.

    Characters are counted as UTF-16 does, where one beyond the basic plane is two: no way of counting gives more.
    A block that does not fit with at least one row, and all after it, give way to a note that says so.
    """
    room = limit - _size(_lines(last, len(last.rows))) - _size([CUT]) - 4
    shown: list[str] = []
    for block in blocks:
        lines = _within(block, room)
        if lines is None:
            shown.append(CUT)
            break
        room -= _size(lines) + 2
        shown.append("\n".join(lines))
    return "\n\n".join([*shown, "\n".join(_lines(last, len(last.rows)))]) + "\n"


def _within(block: Block, room: int) -> list[str] | None:
    """The rows that there is room for; nothing when there is not even room for one."""
    left = room - _size([*block.head, *_more(block, 0), *block.foot])
    count = 0
    for row in block.rows:
        left -= _size([row])
        if left < 0:
            break
        count += 1
    if left < 0 and count == 0:
        return None
    return list(_lines(block, count))


def _lines(block: Block, count: int) -> Iterator[str]:
    yield from block.head
    yield from block.rows[:count]
    yield from _more(block, count)
    yield from block.foot


def _more(block: Block, count: int) -> Iterator[str]:
    missing = (block.total if block.total is not None else len(block.rows)) - count
    if missing > 0:
        yield ""
        yield f"And {missing:,} more in the report."


def _size(lines: Sequence[str] | Iterator[str]) -> int:
    return sum(len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1 for line in lines)


MOST_FOLDED: Final = 100
_NAMED: Final = 6


def what_happened(result: CaseResult) -> str:
    """What is wrong, in two or three words."""
    came = result.result
    if result.assessment.outcome is CaseOutcome.NO_ANSWER:
        return NO_ANSWER_WORDS[came.reason] if isinstance(came, NoAnswer) else "no answer"
    return ", ".join(FAILURE_WORDS[kind] for kind in result.assessment.failure_kinds)


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
        both = "Issues and reports" if only_issues(failed) else "Asked and answered"
        yield _folded(f"{both}: {len(failed):,} failed", rows=rows, total=len(failed))


def _transcript(result: CaseResult, redact: Redact) -> str:
    found, safe, labels = result.assessment, redaction_of(result, redact), labels_of(result)
    raised = f" (raised from {found.case_severity})" if found.severity != found.case_severity else ""
    return "\n".join(
        [
            f"- **severity {found.severity}**{raised}, {code_span(result.case.id, 200)}: {what_happened(result)}",
            f"  - {labels.asked} {code_span(safe(asked_text(result)), 200)}",
            f"  - {labels.answered} {code_span(safe(replied_text(result)), 300)}",
            f"  - {labels.expected} {code_span(safe(result.case.gold), 200)}",
            f"  - {inert(safe(found.reason), 300)}",
        ]
    )


def folded_silence(silent: Sequence[CaseResult], ungraded: Sequence[CaseResult], redact: Redact) -> Iterator[Block]:
    """Whose fault it was stands first: an application that did not serve is no fault of the change's wording."""
    if silent or ungraded:
        blamed = Counter(BLAME_WORDS[one.assessment.blame] for one in silent if one.assessment.blame)
        whose = ", ".join(f"{count:,} by {who}" for who, count in blamed.most_common())
        title = f"No answer: {len(silent):,}{f' ({whose})' if whose else ''}, could not tell: {len(ungraded):,}"
        both = [*silent, *ungraded]
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
        f"| {row.severity} (weight {row.weight}) | {row.cases} | {row.failed} | {row.no_answer} |"
        for row in tally_rows(report)
    ]
    head = ["| severity | cases | failed | no answer |", "| --- | ---: | ---: | ---: |"]
    raised = [format_raised(report), ""] if format_raised(report) else []
    sums = (
        f"Weighted {quantity(scores.weighted.earned)} / {quantity(scores.weighted.total)}, flat "
        f"{quantity(scores.flat.earned)} / {quantity(scores.flat.total)}. {_coverage(report.coverage)}"
    )
    return _folded("Arithmetic", head=[*head, *rows, "", *raised, sums], rows=())


def _coverage(coverage: Coverage) -> str:
    return f"{coverage.graded:,} of {plural(coverage.asked, 'case')} graded."


MOST_CHARACTERS: Final = 65_536
"""The limit of a comment on GitHub."""
KEPT_FREE: Final = 1_000
"""For the marks that a comment is found by."""
MOST_ROWS: Final = 25
"""The most rows of a table that is not folded away: two screens of a phone."""
MOST_DESCRIPTION: Final = 140
_NARROW: Final = 40
_REASONS_IN_SIGHT: Final = 4
_CHANGES_IN_SIGHT: Final = 4
_NAMED_CASES: Final = 12


def status_line(report: RunReport, *, redact: Redact) -> str:
    """The run in at most 140 characters, for a commit's status."""
    scores = f"weighted {score(report.scores.weighted)}, flat {score(report.scores.flat)}"
    return shortened(f"{report.verdict}: {scores}; {redact(headline(report))}", MOST_DESCRIPTION)


def pull_request_comment(
    report: RunReport, cases: Sequence[CaseResult], *, redact: Redact, log: str | None = None
) -> str:
    """The whole text, ending in a newline, of at most 65,536 characters less what its marks take.

    Texts of the application are redacted, short, and inert. ``log`` is an address of ours that a person opens.
    """
    return fitted(list(_blocks(report, cases, redact)), _last(report, log), limit=MOST_CHARACTERS - KEPT_FREE)


def _blocks(report: RunReport, cases: Sequence[CaseResult], redact: Redact) -> Iterator[Block]:
    failed, silent, ungraded = (_once(with_outcome(cases, outcome)) for outcome in _OUTCOMES)
    yield Block(head=list(_verdict(report, len(failed), len(silent), len(ungraded), redact)))
    yield from _beside(report)
    yield from _tables(report, [*failed, *_not_correct(report, silent)])
    yield from folded_reasons(report, redact)
    yield from folded_transcripts(failed, redact)
    yield from folded_silence(silent, ungraded, redact)
    yield folded_arithmetic(report)


_OUTCOMES: Final = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNGRADED)


def _once(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Each case once, with its worst repeat."""
    found: dict[str, CaseResult] = {}
    for result in results:
        found.setdefault(result.case.id, result)
    return list(found.values())


def _not_correct(report: RunReport, silent: Sequence[CaseResult]) -> list[CaseResult]:
    """No answers that count against the application: an app that did not serve at all is one line."""
    if any(reason.kind is ReasonKind.DEPLOY for reason in report.reasons):
        return []
    return [one for one in silent if one.assessment.blame is Blame.APP]


def _verdict(report: RunReport, failed: int, silent: int, ungraded: int, redact: Redact) -> Iterator[str]:
    yield f"### {VERDICT_MARKS[report.verdict]} {report.verdict}: {inert(report.target.name)}"
    yield ""
    yield f"**weighted {score(report.scores.weighted)}**, flat {score(report.scores.flat)}"
    yield ""  # two paragraphs: in a comment a new line is one, on a job's page it is none
    counts = {"failed": failed, "no answer": silent, "could not tell": ungraded}
    parts = [f"{count:,} {text}" for text, count in counts.items() if count]
    yield f"{' · '.join(parts) or 'all correct'}, of {plural(report.coverage.asked, 'case')}"
    if asked_again := format_recheck_briefly(report.recheck):
        yield ""
        yield inert(redact(asked_again))
    for cause in format_causes(report.first_look) if report.first_look and report.first_look.causes else ():
        yield ""
        yield f"In common: {inert(redact(cause))}"
    for change in format_changes_briefly(report.what_changed, most=_CHANGES_IN_SIGHT):
        yield ""
        yield inert(redact(change))
    decisive = [reason for reason in report.reasons if reason.decisive]
    if report.triage is not None:
        yield ""
        yield from dimension_table(report)
    left_out = format_uncovered(report.reasons)
    if decisive or report.interrupted or left_out:
        yield ""
    if report.interrupted:
        yield "- **This run was stopped before it was finished.**"
    for reason in decisive[:_REASONS_IN_SIGHT]:
        yield f"- {inert(redact(reason.text), 300)}"
    if len(decisive) > _REASONS_IN_SIGHT:
        yield f"- and {plural(len(decisive) - _REASONS_IN_SIGHT, 'reason')} more, below"
    if left_out:
        yield f"- Not covered: {inert(redact(left_out), 400)}"


def _beside(report: RunReport) -> Iterator[Block]:
    compared = report.comparison
    if compared is None:
        yield Block(head=["No baseline: there is no accepted run to compare with."])
        return
    named = f"{code_span(compared.baseline_commit or compared.baseline_run_id, _NARROW)}"
    if compared.refused:
        changed = format_change(compared, most_ids=_NAMED_CASES)
        why = [f"- {inert(reason, 300)}" for reason in (*compared.refused, *changed)]
        yield Block(head=[f"**Not compared** with the baseline {named}:", "", *why])
        return
    yield Block(
        head=[
            f"| {plural(compared.shared, 'shared case')} | now | base |",
            "| --- | ---: | ---: |",
            *_rows(compared),
        ]
    )


def _rows(compared: Comparison) -> Iterator[str]:
    figures = [
        ("weighted", compared.weighted_now, compared.weighted_before, 3),
        ("flat", compared.flat_now, compared.flat_before, 3),
    ]
    if compared.rubric is not None:
        figures.append(("usefulness, 1 to 5", compared.rubric.now, compared.rubric.before, 2))
    for name, now, before, digits in figures:
        yield f"| {name} | {_figure(now, digits)} | {_figure(before, digits)} |"
    yield f"| newly failing | {len(compared.newly_failing):,} | |"
    yield f"| newly right | {len(compared.newly_fixed):,} | |"


def _figure(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _tables(report: RunReport, bad: Sequence[CaseResult]) -> Iterator[Block]:
    """What is new stands before what was there: that is what this pull request is about."""
    compared = report.comparison
    if compared is None or compared.refused:
        yield from _table("Failing", bad)
        return
    new = frozenset(compared.newly_failing)
    yield from _table("Newly failing", [one for one in bad if one.case.id in new])
    title = "Failing, not new"
    yield from _table(title, [one for one in bad if one.case.id not in new])


def _table(title: str, bad: Sequence[CaseResult]) -> Iterator[Block]:
    if bad:
        head = [f"**{title}: {len(bad):,}**", "", "| sev | case | what |", "| --- | --- | --- |"]
        rows = [_row(one) for one in bad[:MOST_ROWS]]
        yield Block(head=head, rows=rows, total=len(bad))


def _row(result: CaseResult) -> str:
    found, mark = result.assessment, " (unconfirmed)" if result.assessment.unconfirmed else ""
    return f"| {found.severity} | {code_span(result.case.id, _NARROW)} | {what_happened(result)}{mark} |"


def _last(report: RunReport, log: str | None) -> Block:
    deploy = f"deploy {code_span(report.commit, _NARROW)} · " if report.commit else ""
    seen = f" · [the job's log and reports]({log})" if log else ""
    experiment = report.experiment
    if experiment is not None and experiment.url is not None:
        seen += f" · [experiment]({experiment.url})"
    about = (
        f"<sub>{deploy}run {code_span(report.run_id, 120)} · suite {code_span(report.suite_name, 60)} "
        f"({code_span(report.suite_sha256[:12], 12)}) · {elapsed(report)}{seen}</sub>"
    )
    return Block(head=[about])
