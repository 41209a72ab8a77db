"""``results.md``: a run for people, in a Prefect artifact or a pull request's comment. The verdict comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from monitors.records.base import Finding
from monitors.records.exchanges import NoAnswer
from monitors.records.grades import CaseOutcome
from monitors.records.incidents import Incident
from monitors.records.parity import ParityGap
from monitors.records.runs import Breakdown, CaseResult, Metric, RunReport
from monitors.reports.case_view import answer_text
from monitors.reports.figure_rows import breakdown_groups
from monitors.reports.history import known_incidents, since_words
from monitors.reports.markdown_bite import suite_bite
from monitors.reports.markdown_inert import code_span, inert
from monitors.reports.markdown_proof import against_baseline, could_have_seen, suite_balance
from monitors.reports.masking import Redact, redaction_of
from monitors.reports.ordering import with_outcome
from monitors.reports.proof_rows import parity_words, path_words
from monitors.reports.wording import (
    BLAME_WORDS,
    KIND_WORDS,
    NO_ANSWER_WORDS,
    SEVERITY_WORDS,
    VERDICT_MARKS,
    elapsed,
    headline,
    metric_name,
    moment,
    percent,
    plural,
    quantity,
    score,
    seconds,
)

_ASKED: Final = 120
_ANSWERED: Final = 160
_NAMED_CASES: Final = 6
_MET: Final = {Finding.YES: "✓ met", Finding.NO: "✕ missed", Finding.UNTOLD: ""}


def markdown_report(
    report: RunReport,
    cases: Sequence[CaseResult],
    *,
    redact: Redact,
    most_failures: int,
    incidents: Iterable[Incident] = (),
    previous: RunReport | None = None,
) -> str:
    """The whole text, ending in a newline. Texts of the application are redacted, short, and inert.

    At most ``most_failures`` failures are listed, and as many cases without answer; what is left out is counted.
    """
    known = known_incidents(incidents)
    failed = with_outcome(cases, CaseOutcome.FAILED)
    unanswered = with_outcome(cases, CaseOutcome.NO_ANSWER)
    untold = with_outcome(cases, CaseOutcome.UNTOLD)
    sections = [
        _verdict(report, previous, redact, (len(failed), len(unanswered), len(untold))),
        _arithmetic(report),
        against_baseline(report),
        _failures(failed, redact, known, report, most_failures),
        _unanswered(unanswered, redact, most_failures),
        _untold(untold),
        could_have_seen(report),
        _metrics(report.metrics, report.parity),
        _latency(report),
        _breakdowns(report.breakdowns),
        suite_balance(report),
        suite_bite(report),
        _about(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in map(list, sections) if lines) + "\n"


def _verdict(
    report: RunReport, previous: RunReport | None, redact: Redact, counts: tuple[int, int, int]
) -> Iterator[str]:
    failed, unanswered, untold = counts
    yield f"# {VERDICT_MARKS[report.verdict]} {report.verdict}: {inert(report.target.name)}"
    yield ""
    yield (
        f"**weighted {score(report.scores.weighted)}**, flat {score(report.scores.flat)} · {failed} failed · "
        f"{unanswered} no answer · {untold} could not tell · deploy {code_span(report.commit or 'unknown', 60)}"
    )
    yield ""
    if not report.reasons:
        yield f"- {inert(headline(report))}"
    for reason in report.reasons:
        named = ", ".join(code_span(case_id, 80) for case_id in reason.case_ids[:_NAMED_CASES])
        more = len(reason.case_ids) - _NAMED_CASES
        cases = f" ({named}{f' and {more} more' if more > 0 else ''})" if named else ""
        kind = f"**{reason.kind.replace('_', ' ')}**" if reason.decisive else reason.kind.replace("_", " ")
        yield f"- {kind}: {inert(redact(reason.text))}{cases}"
    if report.interrupted:
        yield "- **This run was stopped before it was finished.**"
    if previous is not None:
        yield (
            f"- the run before, of {code_span(previous.commit or 'unknown', 60)}, {moment(previous.finished_at)}: "
            f"{previous.verdict}, weighted {score(previous.scores.weighted)}, flat {score(previous.scores.flat)}"
        )


def _arithmetic(report: RunReport) -> Iterator[str]:
    scores = report.scores
    yield "| severity | cases | lost | weight | earned | of |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for tally in sorted(scores.tallies, key=lambda tally: -tally.severity):
        earned, total = tally.weight * (tally.cases - tally.lost), tally.weight * tally.cases
        yield (
            f"| {tally.severity} {SEVERITY_WORDS[tally.severity]} | {tally.cases:,} | {tally.lost:,} "
            f"| {quantity(tally.weight)} | {quantity(earned)} | {quantity(total)} |"
        )
    yield ""
    yield (
        f"Weighted {quantity(scores.weighted.earned)} / {quantity(scores.weighted.total)} = "
        f"**{score(scores.weighted)}**, flat {quantity(scores.flat.earned)} / {quantity(scores.flat.total)} = "
        f"**{score(scores.flat)}**, weights {code_span(scores.weights_version, 60)}. Coverage "
        f"{report.coverage.told} of {report.coverage.asked} told, floor {percent(report.coverage.floor)}."
    )


def _failures(
    failed: Sequence[CaseResult], redact: Redact, known: Mapping[str, Incident], report: RunReport, most: int
) -> Iterator[str]:
    if not failed:
        return
    yield f"## What broke: {len(failed)}"
    yield ""
    yield "| sev | what | case | asked | answered | why |"
    yield "| --- | --- | --- | --- | --- | --- |"
    flaky = {one.case_id: f"flaky, {one.words}" for one in report.flaky}
    for result in failed[:most]:
        found, safe = result.assessment, redaction_of(result, redact)
        kinds = ", ".join(KIND_WORDS[kind] for kind in found.failure_kinds)
        since = since_words(known.get(result.case.id), report.commit)
        notes = [since, "unconfirmed" if found.unconfirmed else "", flaky.get(result.case.id, "")]
        row = f" (row {code_span(found.policy_row, 60)})" if found.severity != found.case_severity else ""
        said = "; ".join(inert(note) for note in notes if note)
        yield (
            f"| {found.severity} | {kinds}{row}{f'; {said}' if said else ''} | {code_span(result.case.id, 80)} "
            f"| {code_span(safe(result.case.question), _ASKED)} "
            f"| {code_span(safe(answer_text(result)), _ANSWERED)} | {inert(safe(found.reason), 200)} |"
        )
    if len(failed) > most:
        yield ""
        yield f"And {len(failed) - most} more in report.html."


def _unanswered(unanswered: Sequence[CaseResult], redact: Redact, most: int) -> Iterator[str]:
    if not unanswered:
        return
    yield f"## No answer: {len(unanswered)}"
    yield ""
    yield "| because of | sev | what | case | detail |"
    yield "| --- | --- | --- | --- | --- |"
    for result in unanswered[:most]:
        came, found = result.result, result.assessment
        words = NO_ANSWER_WORDS[came.reason] if isinstance(came, NoAnswer) else "no answer"
        detail = came.detail if isinstance(came, NoAnswer) else found.reason
        blame = BLAME_WORDS[found.blame] if found.blame else "unknown"
        yield (
            f"| {blame} | {found.severity} | {words} | {code_span(result.case.id, 80)} "
            f"| {code_span(redaction_of(result, redact)(detail), _ANSWERED)} |"
        )
    if len(unanswered) > most:
        yield ""
        yield f"And {len(unanswered) - most} more in report.html."


def _untold(untold: Sequence[CaseResult]) -> Iterator[str]:
    if untold:
        named = ", ".join(code_span(result.case.id, 80) for result in untold[:_NAMED_CASES])
        more = len(untold) - _NAMED_CASES
        rest = f" and {more} more" if more > 0 else ""
        yield f"Could not tell about {plural(len(untold), 'case')}: {named}{rest}."


def _metrics(metrics: Sequence[Metric], parity: Sequence[ParityGap]) -> Iterator[str]:
    if not metrics:
        return
    yield "## Metrics"
    yield ""
    yield "| metric | value | counted | 95 % interval | target | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for metric in metrics:
        value = percent(metric.passed / metric.total) if metric.total else "nothing counted"
        interval = f"{percent(metric.low)} to {percent(metric.high)}" if metric.total else ""
        target = f"≥ {percent(metric.target)}" if metric.target is not None else ""
        met = _MET[metric.met] if metric.target is not None else ""
        name = inert(metric_name(metric.name))
        yield f"| {name} | {value} | {metric.passed} of {metric.total} | {interval} | {target} | {met} |"
    said = [f"the same questions, {parity_words(gap)}" for gap in parity] + [path_words(metrics)]
    if any(said):
        yield ""
        yield from (f"- {inert(words)}" for words in said if words)


def _latency(report: RunReport) -> Iterator[str]:
    if report.latency is not None:
        latency = report.latency
        met = "✓ within" if latency.p50_ms <= latency.objective_p50_ms else "✕ above"
        yield (
            f"Latency over {plural(latency.answered, 'answer')}: p50 **{seconds(latency.p50_ms)}** ({met} the "
            f"objective of {seconds(latency.objective_p50_ms)}), p95 **{seconds(latency.p95_ms)}**."
        )


def _breakdowns(breakdowns: Sequence[Breakdown]) -> Iterator[str]:
    if not breakdowns:
        return
    yield "## By type, language, path and severity"
    for group in breakdown_groups(breakdowns):
        yield ""
        yield f"| {inert(group.group)} | cases | failed | no answer | not told | correct |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for row in group.rows:
            key = code_span(row.key, 60)
            yield f"| {key} | {row.cases} | {row.failed} | {row.no_answer} | {row.untold} | {row.correct} |"


def _about(report: RunReport) -> Iterator[str]:
    yield (
        f"Run {code_span(report.run_id, 200)} of suite {code_span(report.suite_name, 80)} "
        f"({code_span(report.suite_sha256[:12], 12)}), {moment(report.started_at)} to "
        f"{moment(report.finished_at)} ({elapsed(report)}), judging cost ${quantity(report.cost_usd)}."
    )
