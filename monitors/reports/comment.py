"""Builds a run's comment on a pull request, which can be read on a phone in ten seconds.

The comment has these parts:

1. The verdict and both scores.
2. The reason.
3. The comparison with the baseline.
4. New failures.
5. Other failures.
6. Folded: all reasons, questions and answers, cases without an answer, and the calculation.
7. The run, the suite, and a link to the log.

If the comment is too long, some rows are omitted, and the comment states how many.
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
from monitors.records.runs import CaseResult, ReasonKind, RunReport, VerdictReason, format_uncovered_cases
from monitors.reports.case_view import select_by_outcome_worst_first
from monitors.reports.figures import (
    build_score_calculation_rows,
    format_changes_since_pass_briefly,
    format_common_causes,
    format_severity_rises,
)
from monitors.reports.format import (
    BLAME_WORDS,
    NO_ANSWER_WORDS,
    VERDICT_MARKS,
    escape_markdown,
    format_code_span,
    format_elapsed,
    format_headline,
    format_quantity,
    format_score,
    shorten,
    shorten_middle,
)
from monitors.reports.marked_text import Redact, build_case_redactor
from monitors.reports.proof_rows import format_changes_since_unaccepted_run
from monitors.reports.rechecks import format_recheck_briefly
from monitors.reports.triage_summary import format_triage_dimension_table
from monitors.reports.triage_view import (
    choose_case_labels,
    extract_asked_text,
    extract_reply_or_root_cause,
    has_only_issues,
)

CUT_NOTE: Final = "*The comment ends here, because GitHub limits its length. The report contains all details.*"


@dataclass(frozen=True, slots=True)
class Block:
    """Lines of the comment that belong together. If the comment would be too long, the last rows are omitted.

    The lines before and after the ``rows`` are always shown. ``total`` is the number of all rows, including rows
    that are not in ``rows``.
    """

    head: Sequence[str] = ()
    rows: Sequence[str] = ()
    foot: Sequence[str] = ()
    total: int | None = None


def join_blocks_within_limit(blocks: Sequence[Block], last: Block, *, limit: int) -> str:
    """Join the blocks with blank lines to at most ``limit`` characters. The text always ends with ``last``.

    If not even one row of a block fits, a note replaces this block and all blocks after it.
    """
    remaining = (
        limit
        - _count_utf16_units(_iterate_lines_with_first_rows(last, len(last.rows)))
        - _count_utf16_units([CUT_NOTE])
        - 4
    )
    shown: list[str] = []
    for block in blocks:
        lines = _cut_block_to_limit(block, remaining)
        if lines is None:
            shown.append(CUT_NOTE)
            break
        remaining -= _count_utf16_units(lines) + 2
        shown.append("\n".join(lines))
    return "\n\n".join([*shown, "\n".join(_iterate_lines_with_first_rows(last, len(last.rows)))]) + "\n"


def _cut_block_to_limit(block: Block, limit: int) -> list[str] | None:
    """Return the lines of ``block``, with as many of its rows as fit into ``limit`` characters.

    Return ``None`` if not even one row fits.
    """
    remaining = limit - _count_utf16_units([*block.head, *_iterate_missing_rows_note(block, 0), *block.foot])
    count = 0
    for row in block.rows:
        remaining -= _count_utf16_units([row])
        if remaining < 0:
            break
        count += 1
    if remaining < 0 and count == 0:
        return None
    return list(_iterate_lines_with_first_rows(block, count))


def _iterate_lines_with_first_rows(block: Block, count: int) -> Iterator[str]:
    yield from block.head
    yield from block.rows[:count]
    yield from _iterate_missing_rows_note(block, count)
    yield from block.foot


def _iterate_missing_rows_note(block: Block, count: int) -> Iterator[str]:
    missing = (block.total if block.total is not None else len(block.rows)) - count
    if missing > 0:
        yield ""
        yield f"And {missing:,} more in the report."


def _count_utf16_units(lines: Sequence[str] | Iterator[str]) -> int:
    return sum(len(line.encode("utf-16-le", "surrogatepass")) // 2 + 1 for line in lines)


MAX_FOLDED_ROWS: Final = 100
_MAX_IDS_NAMED: Final = 6


def format_failure_briefly(result: CaseResult) -> str:
    """Return a short text with the failure kinds of a case. If there is no answer, the text contains the reason."""
    response = result.result
    if result.assessment.outcome is CaseOutcome.NO_ANSWER:
        return NO_ANSWER_WORDS[response.reason] if isinstance(response, NoAnswer) else "no answer"
    return ", ".join(FAILURE_WORDS[kind] for kind in result.assessment.failure_kinds)


def _build_folded_block(
    summary: str, *, head: Sequence[str] = (), rows: Sequence[str], total: int | None = None
) -> Block:
    """Return a block that a reader can unfold. GitHub renders Markdown inside HTML only after an empty line."""
    opened = [f"<details><summary>{summary}</summary>", "", *head]
    return Block(head=opened, rows=rows, foot=["", "</details>"], total=total)


def build_folded_reasons(report: RunReport, redact: Redact) -> Iterator[Block]:
    """Yield a folded block that lists the reasons for the verdict, and for each reason the affected cases."""
    if report.reasons:
        rows = [_format_reason(reason, redact) for reason in report.reasons[:MAX_FOLDED_ROWS]]
        yield _build_folded_block(
            f"Why: {plural(len(report.reasons), 'reason')}", rows=rows, total=len(report.reasons)
        )


def _format_reason(reason: VerdictReason, redact: Redact) -> str:
    kind = reason.kind.replace("_", " ")
    ids = ", ".join(format_code_span(case_id, 80) for case_id in reason.case_ids[:_MAX_IDS_NAMED])
    more = f" and {len(reason.case_ids) - _MAX_IDS_NAMED} more" if len(reason.case_ids) > _MAX_IDS_NAMED else ""
    cases = f" ({ids}{more})" if ids else ""
    return f"- {f'**{kind}**' if reason.decisive else kind}: {escape_markdown(redact(reason.text))}{cases}"


def build_folded_transcripts(failed: Sequence[CaseResult], redact: Redact) -> Iterator[Block]:
    """Yield a folded block with question, answer and expected answer of the failed cases."""
    if failed:
        rows = [_format_transcript(result, redact) for result in failed[:MAX_FOLDED_ROWS]]
        both = "Issues and reports" if has_only_issues(failed) else "Asked and answered"
        yield _build_folded_block(f"{both}: {len(failed):,} failed", rows=rows, total=len(failed))


def _format_transcript(result: CaseResult, redact: Redact) -> str:
    assessment, safe, labels = result.assessment, build_case_redactor(result, redact), choose_case_labels(result)
    raised = f" (raised from {assessment.case_severity})" if assessment.severity != assessment.case_severity else ""
    case_id = format_code_span(result.case.id, 200)
    return "\n".join(
        [
            f"- **severity {assessment.severity}**{raised}, {case_id}: {format_failure_briefly(result)}",
            f"  - {labels.asked} {format_code_span(safe(extract_asked_text(result)), 200)}",
            f"  - {labels.answered} {format_code_span(safe(extract_reply_or_root_cause(result)), 300)}",
            f"  - {labels.expected} {format_code_span(safe(result.case.gold), 200)}",
            f"  - {escape_markdown(safe(assessment.reason), 300)}",
        ]
    )


def build_folded_unanswered_cases(
    unanswered: Sequence[CaseResult], ungraded: Sequence[CaseResult], redact: Redact
) -> Iterator[Block]:
    """Yield a folded block with the cases without an answer or grade.

    The title states how many of the missing answers were caused by the application, by a provider and by Lookout.
    """
    if unanswered or ungraded:
        blamed = Counter(BLAME_WORDS[result.assessment.blame] for result in unanswered if result.assessment.blame)
        by_blame = ", ".join(f"{count:,} by {who}" for who, count in blamed.most_common())
        title = (
            f"No answer: {len(unanswered):,}{f' ({by_blame})' if by_blame else ''}, not graded: {len(ungraded):,}"
        )
        both = [*unanswered, *ungraded]
        yield _build_folded_block(
            title,
            rows=[_format_unanswered_case(result, redact) for result in both[:MAX_FOLDED_ROWS]],
            total=len(both),
        )


def _format_unanswered_case(result: CaseResult, redact: Redact) -> str:
    assessment, response = result.assessment, result.result
    detail = response.detail if isinstance(response, NoAnswer) else assessment.reason
    who = BLAME_WORDS[assessment.blame] if assessment.blame else "unknown"
    failure = format_failure_briefly(result) if assessment.outcome is CaseOutcome.NO_ANSWER else "not graded"
    return (
        f"- {format_code_span(result.case.id, 200)}: {failure}, caused by {who}: "
        f"{format_code_span(build_case_redactor(result, redact)(detail), 200)}"
    )


def build_folded_calculation(report: RunReport) -> Block:
    """Return a folded block with the calculation of the weighted and the flat score."""
    scores = report.scores
    rows = [
        f"| {row.severity} (weight {row.weight}) | {row.cases} | {row.failed} | {row.no_answer} |"
        for row in build_score_calculation_rows(report)
    ]
    head = ["| severity | cases | failed | no answer |", "| --- | ---: | ---: | ---: |"]
    raised = [format_severity_rises(report), ""] if format_severity_rises(report) else []
    sums = (
        f"Weighted {format_quantity(scores.weighted.earned)} / {format_quantity(scores.weighted.total)}, flat "
        f"{format_quantity(scores.flat.earned)} / {format_quantity(scores.flat.total)}. "
        f"{report.coverage.graded:,} of {plural(report.coverage.asked, 'case')} graded."
    )
    return _build_folded_block("Calculation", head=[*head, *rows, "", *raised, sums], rows=())


MAX_COMMENT_CHARACTERS: Final = 65_536
"""GitHub's limit for the length of a comment, in characters. A longer comment is shortened."""
RESERVED_CHARACTERS: Final = 1_000
"""The number of characters reserved for the hidden text with which Lookout finds its comment again."""
MAX_TABLE_ROWS: Final = 25
"""Maximum number of rows in a table that is not folded. Such a table fills at most two screens of a phone."""
MAX_STATUS_CHARACTERS: Final = 140
_MAX_NARROW_CHARACTERS: Final = 40
_MAX_ID_CHARACTERS: Final = 26
"""Maximum length of an id in a table, in characters. With this length, the table fits on a phone.

The middle of a longer id is replaced by an ellipsis.
"""
_MAX_REASONS_SHOWN: Final = 4
_MAX_CHANGES_SHOWN: Final = 4
_MAX_CASES_NAMED: Final = 12


def format_commit_status(report: RunReport, *, redact: Redact) -> str:
    """Format the run as a commit status, in at most 140 characters."""
    scores = f"weighted {format_score(report.scores.weighted)}, flat {format_score(report.scores.flat)}"
    return shorten(f"{report.verdict}: {scores}; {redact(format_headline(report))}", MAX_STATUS_CHARACTERS)


def build_pull_request_comment(
    report: RunReport, cases: Sequence[CaseResult], *, redact: Redact, name: str = "", log: str | None = None
) -> str:
    """Build the comment, which has at most 65,536 characters, including its hidden text.

    Texts of the application are redacted, shortened and escaped. ``name`` is the name of the gate, by default the
    name of the target. ``log`` is the address of the job's log.
    """
    return join_blocks_within_limit(
        list(_build_comment_blocks(report, cases, redact, name or report.target.name)),
        _build_footer_block(report, log),
        limit=MAX_COMMENT_CHARACTERS - RESERVED_CHARACTERS,
    )


def _build_comment_blocks(
    report: RunReport, cases: Sequence[CaseResult], redact: Redact, name: str
) -> Iterator[Block]:
    failed, unanswered, ungraded = (
        _select_first_result_per_case(select_by_outcome_worst_first(cases, outcome)) for outcome in _OUTCOMES
    )
    title = f"### {VERDICT_MARKS[report.verdict]} {report.verdict}: {escape_markdown(name)}"
    yield Block(head=[title, *_format_verdict_lines(report, len(failed), len(unanswered), len(ungraded), redact)])
    yield _build_baseline_block(report)
    # If the whole application was down, the tables do not list every case that got no answer.
    is_down = any(reason.kind is ReasonKind.DEPLOY for reason in report.reasons)
    by_app = [] if is_down else [result for result in unanswered if result.assessment.blame is Blame.APP]
    yield from _build_failure_tables(report, [*failed, *by_app])
    yield from build_folded_reasons(report, redact)
    yield from build_folded_transcripts(failed, redact)
    yield from build_folded_unanswered_cases(unanswered, ungraded, redact)
    yield build_folded_calculation(report)


_OUTCOMES: Final = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNGRADED)


def _select_first_result_per_case(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Return only the first result of each case.

    The first result of a case is its worst repeat, because ``results`` is sorted, worst first.
    """
    worst_by_case: dict[str, CaseResult] = {}
    for result in results:
        worst_by_case.setdefault(result.case.id, result)
    return list(worst_by_case.values())


def _format_verdict_lines(
    report: RunReport, failed: int, unanswered: int, ungraded: int, redact: Redact
) -> Iterator[str]:
    yield ""
    yield f"**weighted {format_score(report.scores.weighted)}**, flat {format_score(report.scores.flat)}"
    yield ""  # two paragraphs, because a line break looks different in a comment and on a job's page
    counts = {"failed": failed, "no answer": unanswered, "not graded": ungraded}
    parts = [f"{count:,} {text}" for text, count in counts.items() if count]
    yield f"{' · '.join(parts) or 'all correct'}, of {plural(report.coverage.asked, 'case')}"
    if asked_again := format_recheck_briefly(report.recheck):
        yield ""
        yield escape_markdown(redact(asked_again))
    for cause in format_common_causes(report.first_look) if report.first_look and report.first_look.causes else ():
        yield ""
        yield f"In common: {escape_markdown(redact(cause))}"
    for change in format_changes_since_pass_briefly(report.what_changed, limit=_MAX_CHANGES_SHOWN):
        yield ""
        yield escape_markdown(redact(change))
    decisive = [reason for reason in report.reasons if reason.decisive]
    if report.triage is not None:
        yield ""
        yield from format_triage_dimension_table(report)
    uncovered = format_uncovered_cases(report.reasons)
    if decisive or report.interrupted or uncovered:
        yield ""
    if report.interrupted:
        yield "- **This run was stopped before the end.**"
    for reason in decisive[:_MAX_REASONS_SHOWN]:
        yield f"- {escape_markdown(redact(reason.text), 300)}"
    if len(decisive) > _MAX_REASONS_SHOWN:
        yield f"- and {plural(len(decisive) - _MAX_REASONS_SHOWN, 'reason')} more, below"
    if uncovered:
        yield f"- Not covered: {escape_markdown(redact(uncovered), 400)}"


def _build_baseline_block(report: RunReport) -> Block:
    compared = report.comparison
    if compared is None:
        branch = report.change.target_branch if report.change else None
        of_branch = f" of {format_code_span(branch, _MAX_NARROW_CHARACTERS)}" if branch else ""
        return Block(head=[f"No baseline: there is no accepted run{of_branch} to compare with."])
    named = f"{format_code_span(compared.baseline_commit or compared.baseline_run_id, _MAX_NARROW_CHARACTERS)}"
    if compared.refused:
        changed = format_changes_since_unaccepted_run(compared, max_ids=_MAX_CASES_NAMED)
        why = [f"- {escape_markdown(reason, 300)}" for reason in (*compared.refused, *changed)]
        return Block(head=[f"**Not compared** with the baseline {named}:", "", *why])
    return Block(
        head=[
            f"| {plural(compared.shared, 'shared case')} | now | base |",
            "| --- | ---: | ---: |",
            *_format_comparison_rows(compared),
        ]
    )


def _format_comparison_rows(compared: Comparison) -> Iterator[str]:
    figures = [
        ("weighted", compared.weighted_now, compared.weighted_before, 3),
        ("flat", compared.flat_now, compared.flat_before, 3),
    ]
    if compared.rubric is not None:
        figures.append(("usefulness, 1 to 5", compared.rubric.now, compared.rubric.before, 2))
    for name, now, before, digits in figures:
        yield f"| {name} | {_format_figure(now, digits)} | {_format_figure(before, digits)} |"
    yield f"| newly failing | {len(compared.newly_failing):,} | |"
    yield f"| newly correct | {len(compared.newly_fixed):,} | |"
    if compared.no_longer_graded:
        yield f"| right before, not graded now | {len(compared.no_longer_graded):,} | |"


def _format_figure(value: float | None, digits: int) -> str:
    return "none" if value is None else f"{value:.{digits}f}"


def _build_failure_tables(report: RunReport, failures: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield the tables of failures, the new failures first."""
    compared = report.comparison
    if compared is None or compared.refused:
        yield from _build_failure_table("Failing", failures)
        return
    new = frozenset(compared.newly_failing)
    yield from _build_failure_table("Newly failing", [result for result in failures if result.case.id in new])
    title = "Failing, not new"
    yield from _build_failure_table(title, [result for result in failures if result.case.id not in new])


def _build_failure_table(title: str, failures: Sequence[CaseResult]) -> Iterator[Block]:
    if failures:
        head = [f"**{title}: {len(failures):,}**", "", "| sev | case | what |", "| --- | --- | --- |"]
        rows = [_format_failure_row(result) for result in failures[:MAX_TABLE_ROWS]]
        yield Block(head=head, rows=rows, total=len(failures))


def _format_failure_row(result: CaseResult) -> str:
    assessment, mark = result.assessment, " (unconfirmed)" if result.assessment.unconfirmed else ""
    case_id = format_code_span(shorten_middle(result.case.id, _MAX_ID_CHARACTERS), _MAX_NARROW_CHARACTERS)
    return f"| {assessment.severity} | {case_id} | {format_failure_briefly(result)}{mark} |"


def _build_footer_block(report: RunReport, log: str | None) -> Block:
    commit = report.commit or (report.change.head if report.change else None)
    deploy = f"deploy {format_code_span(commit, _MAX_NARROW_CHARACTERS)} · " if commit else ""
    links = f" · [the job's log and reports]({log})" if log else ""
    experiment = report.experiment
    if experiment is not None and experiment.url is not None:
        links += f" · [experiment]({experiment.url})"
    about = (
        f"<sub>{deploy}run {format_code_span(report.run_id, 120)} · "
        f"suite {format_code_span(report.suite_name, 60)} "
        f"({format_code_span(report.suite_sha256[:12], 12)}) · {format_elapsed(report)}{links}</sub>"
    )
    return Block(head=[about])
