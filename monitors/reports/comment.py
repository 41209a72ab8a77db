"""A run as a pull request's comment: read on a phone, in ten seconds; what takes longer is folded away.

verdict and both scores
why, in a sentence or two
beside the baseline, in three narrow columns
what fails now and did not before
what failed before too
folded: all reasons, what was asked and answered, no answers, the arithmetic
which run, which suite, where the log is
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from monitors.records.base import Blame
from monitors.records.comparisons import Comparison
from monitors.records.grades import CaseOutcome
from monitors.records.runs import CaseResult, ReasonKind, RunReport
from monitors.reports.comment_folded import (
    folded_arithmetic,
    folded_reasons,
    folded_silence,
    folded_transcripts,
    what_happened,
)
from monitors.reports.comment_room import Block, fitted
from monitors.reports.markdown_inert import code_span, inert
from monitors.reports.masking import Redact
from monitors.reports.ordering import with_outcome
from monitors.reports.wording import VERDICT_MARKS, elapsed, headline, plural, score, shortened

MOST_CHARACTERS: Final = 65_536
"""Of a comment on GitHub."""
KEPT_FREE: Final = 1_000
"""For the marks that a comment is found by."""
MOST_ROWS: Final = 25
"""Of a table that is not folded away: two screens of a phone."""
MOST_DESCRIPTION: Final = 140
_NARROW: Final = 40
_REASONS_IN_SIGHT: Final = 4


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
    failed, silent, untold = (_once(with_outcome(cases, outcome)) for outcome in _OUTCOMES)
    yield Block(head=list(_verdict(report, len(failed), len(silent), len(untold), redact)))
    yield from _beside(report)
    yield from _tables(report, [*failed, *_lost(report, silent)])
    yield from folded_reasons(report, redact)
    yield from folded_transcripts(failed, redact)
    yield from folded_silence(silent, untold, redact)
    yield folded_arithmetic(report)


_OUTCOMES: Final = (CaseOutcome.FAILED, CaseOutcome.NO_ANSWER, CaseOutcome.UNTOLD)


def _once(results: Sequence[CaseResult]) -> list[CaseResult]:
    """Each case once, with its worst repeat."""
    found: dict[str, CaseResult] = {}
    for result in results:
        found.setdefault(result.case.id, result)
    return list(found.values())


def _lost(report: RunReport, silent: Sequence[CaseResult]) -> list[CaseResult]:
    """No answers that count against the application: where it did not serve at all, that is said once."""
    if any(reason.kind is ReasonKind.DEPLOY for reason in report.reasons):
        return []
    return [one for one in silent if one.assessment.blame is Blame.APP]


def _verdict(report: RunReport, failed: int, silent: int, untold: int, redact: Redact) -> Iterator[str]:
    yield f"### {VERDICT_MARKS[report.verdict]} {report.verdict}: {inert(report.target.name)}"
    yield ""
    yield f"**weighted {score(report.scores.weighted)}**, flat {score(report.scores.flat)}"
    yield ""  # two paragraphs: in a comment a new line is one, on a job's page it is none
    counts = {"failed": failed, "no answer": silent, "could not tell": untold}
    told = [f"{count:,} {words}" for words, count in counts.items() if count]
    yield f"{' · '.join(told) or 'all correct'}, of {plural(report.coverage.asked, 'case')}"
    decisive = [reason for reason in report.reasons if reason.decisive]
    if decisive or report.interrupted:
        yield ""
    if report.interrupted:
        yield "- **This run was stopped before it was finished.**"
    for reason in decisive[:_REASONS_IN_SIGHT]:
        yield f"- {inert(redact(reason.text), 300)}"
    if len(decisive) > _REASONS_IN_SIGHT:
        yield f"- and {plural(len(decisive) - _REASONS_IN_SIGHT, 'reason')} more, below"


def _beside(report: RunReport) -> Iterator[Block]:
    compared = report.comparison
    if compared is None:
        yield Block(head=["No baseline: there is no accepted run to compare with."])
        return
    named = f"{code_span(compared.baseline_commit or compared.baseline_run_id, _NARROW)}"
    if compared.refused:
        why = [f"- {inert(reason, 300)}" for reason in compared.refused]
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
        figures.append(("rubric, 1 to 5", compared.rubric.now, compared.rubric.before, 2))
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
    about = (
        f"<sub>{deploy}run {code_span(report.run_id, 120)} · suite {code_span(report.suite_name, 60)} "
        f"({code_span(report.suite_sha256[:12], 12)}) · {elapsed(report)}{seen}</sub>"
    )
    return Block(head=[about])
