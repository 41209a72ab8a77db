"""``results.md``: a run for people, in a Prefect artifact or a pull request's comment. The verdict comes first.

It also says what the verdict rests on, and the graders' mutation score.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from monitors.plural import plural
from monitors.records.base import Finding
from monitors.records.comparisons import Comparison, ParityGap
from monitors.records.exchanges import NoAnswer
from monitors.records.grades import FAILURE_WORDS, CaseOutcome
from monitors.records.incidents import Incident
from monitors.records.runs import Breakdown, CaseResult, Metric, RunReport, format_metric
from monitors.reports.case_view import format_since, known_incidents, with_outcome
from monitors.reports.figures import (
    breakdown_groups,
    format_causes,
    format_changes,
    format_last_pass,
    format_raised,
    tally_rows,
)
from monitors.reports.format import (
    BLAME_WORDS,
    NO_ANSWER_WORDS,
    VERDICT_MARKS,
    code_span,
    elapsed,
    format_experiment,
    headline,
    inert,
    moment,
    percent,
    quantity,
    score,
    seconds,
)
from monitors.reports.marked_text import Redact, redaction_of
from monitors.reports.proof_rows import (
    balance_rows,
    change_rows,
    format_baseline,
    format_change,
    format_no_baseline,
    format_outcome,
    format_parity,
    format_path,
    mutation_view,
    score_rows,
    sight_rows,
)
from monitors.reports.rechecks import IS_IT_STILL_SO, format_recheck
from monitors.reports.triage_summary import dimension_table
from monitors.reports.triage_view import asked_text, case_labels, only_issues, replied_text

_NAMED_CHANGES: Final = 12


def against_baseline(report: RunReport) -> Iterator[str]:
    """Both scores beside the baseline's, what newly fails and what was fixed."""
    compared = report.comparison
    if compared is None:
        return
    yield "## Against the baseline"
    yield ""
    yield f"Baseline: {inert(format_baseline(compared))}."
    yield ""
    if compared.refused:
        yield "**Not compared**:"
        yield ""
        changed = format_change(compared, most_ids=_NAMED_CHANGES)
        yield from (f"- {inert(why)}" for why in (*compared.refused, *changed))
        return
    yield inert(format_outcome(compared, report.recheck))
    yield ""
    yield from _tables(compared)


def _tables(compared: Comparison) -> Iterator[str]:
    yield "| | baseline | now | change |"
    yield "| --- | ---: | ---: | ---: |"
    yield from (f"| {row.name} | {row.before} | {row.now} | {row.change} |" for row in score_rows(compared))
    yield ""
    yield "| severity | shared | newly failing | fixed | exact McNemar |"
    yield "| --- | ---: | --- | --- | ---: |"
    for row in change_rows(compared):
        name = f"{row.severity} {row.text}"
        yield f"| {name} | {row.shared} | {_ids(row.failing)} | {_ids(row.fixed)} | {row.p_value} |"


def _ids(case_ids: Sequence[str]) -> str:
    named = ", ".join(code_span(case_id, 80) for case_id in case_ids[:_NAMED_CHANGES])
    more = f" and {len(case_ids) - _NAMED_CHANGES:,} more" if len(case_ids) > _NAMED_CHANGES else ""
    return f"{len(case_ids):,}: {named}{more}" if case_ids else "0"


def could_have_seen(report: RunReport) -> Iterator[str]:
    """What the failures seen still allow, by severity, and the smallest drop that would have been noticed."""
    if not report.sights:
        return
    yield "## Smallest drop this suite can detect"
    yield ""
    if report.comparison is None:
        yield inert(format_no_baseline(report))
        yield ""
    yield "Cases stand by the severity that they were written with."
    yield ""
    yield "| severity | graded | not correct | may still fail, 95 % | shared cases | smallest detectable drop |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for row in sight_rows(report.sights):
        name = f"{row.severity} {row.text}"
        yield f"| {name} | {row.graded} | {row.not_correct} | {row.may_fail} | {row.pairs} | {row.drop} |"
    if report.flaky:
        named = ", ".join(f"{code_span(one.case_id, 80)} {one.text}" for one in report.flaky[:_NAMED_CHANGES])
        more = len(report.flaky) - _NAMED_CHANGES
        yield ""
        yield f"{plural(len(report.flaky), 'flaky case')}: {named}{f' and {more:,} more' if more > 0 else ''}."


def suite_balance(report: RunReport) -> Iterator[str]:
    """How the cases are spread, and what is missing."""
    balance = report.balance
    if balance is None:
        return
    yield "## Balance of the suite"
    yield ""
    yield from (f"- **{inert(lack)}**" for lack in balance.shortfalls)
    if not balance.shortfalls:
        yield "- balanced: nothing that is asked for is missing"
    for row in balance_rows(balance):
        counts = " · ".join(f"{code_span(key, 60)} {cases}" for key, cases in row.counts)
        yield f"- {row.group}: {counts}"


def mutation_section(report: RunReport) -> Iterator[str]:
    """What the graders caught of replies that are known to be wrong."""
    view = mutation_view(report)
    if view is None:
        return
    yield "## Do the graders catch wrong replies?"
    yield ""
    yield view.sentence
    yield ""
    yield "| known-bad reply | tried | caught | for a judge | passed | by |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for row in view.rows:
        yield f"| {row.name} | {row.mutants} | {row.caught} | {row.left} | {row.passed} | {row.graders} |"


_ASKED: Final = 120
_ANSWERED: Final = 160
_NAMED_CASES: Final = 6
_MET: Final = {
    Finding.YES: "✓ met",
    Finding.NO: "✕ missed",
    Finding.UNGRADED: "",
    Finding.NOT_NEEDED: "not checked",
}


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
    ungraded = with_outcome(cases, CaseOutcome.UNGRADED)
    sections = [
        _verdict(report, previous, redact, (len(failed), len(unanswered), len(ungraded))),
        _arithmetic(report),
        against_baseline(report),
        _failures(failed, redact, known, report, most_failures),
        _asked_again(report, redact),
        _in_common(report, redact),
        _what_changed(report, redact),
        _unanswered(unanswered, redact, most_failures),
        _ungraded(ungraded),
        could_have_seen(report),
        _metrics([one for one in report.metrics if one.total or not only_issues(cases)], report.parity),
        _latency(report),
        _breakdowns(report.breakdowns),
        suite_balance(report),
        mutation_section(report),
        _about(report),
        _experiment(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in map(list, sections) if lines) + "\n"


def _verdict(
    report: RunReport, previous: RunReport | None, redact: Redact, counts: tuple[int, int, int]
) -> Iterator[str]:
    failed, unanswered, ungraded = counts
    yield f"# {VERDICT_MARKS[report.verdict]} {report.verdict}: {inert(report.target.name)}"
    yield ""
    yield (
        f"**weighted {score(report.scores.weighted)}**, flat {score(report.scores.flat)} · {failed} failed · "
        f"{unanswered} no answer · {ungraded} could not tell · deploy {code_span(report.commit or 'unknown', 60)}"
    )
    yield ""
    if report.triage is not None:
        yield from dimension_table(report)
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


def _asked_again(report: RunReport, redact: Redact) -> Iterator[str]:
    lines = format_recheck(report.recheck)
    if lines:
        yield f"## {IS_IT_STILL_SO}"
        yield ""
        yield from (f"- {inert(redact(line))}" for line in lines)


def _in_common(report: RunReport, redact: Redact) -> Iterator[str]:
    causes = format_causes(report.first_look)
    if causes:
        yield "## What the failed cases have in common"
        yield ""
        yield from (f"- {inert(redact(cause))}" for cause in causes)


def _what_changed(report: RunReport, redact: Redact) -> Iterator[str]:
    changes = format_changes(report.what_changed)
    if report.what_changed is not None and changes:
        yield "## What changed since the last PASS"
        yield ""
        yield from (f"- {inert(redact(change))}" for change in changes)
        if last := format_last_pass(report.what_changed):
            yield ""
            yield inert(redact(last))


def _arithmetic(report: RunReport) -> Iterator[str]:
    scores = report.scores
    yield "| severity | cases | failed | no answer | weight | earned | of |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in tally_rows(report):
        yield (
            f"| {row.severity} {row.text} | {row.cases} | {row.failed} | {row.no_answer} | {row.weight} "
            f"| {row.earned} | {row.total} |"
        )
    yield ""
    if format_raised(report):
        yield format_raised(report)
        yield ""
    yield (
        f"Weighted {quantity(scores.weighted.earned)} / {quantity(scores.weighted.total)} = "
        f"**{score(scores.weighted)}**, flat {quantity(scores.flat.earned)} / {quantity(scores.flat.total)} = "
        f"**{score(scores.flat)}**, weights {code_span(scores.weights_version, 60)}. Coverage "
        f"{report.coverage.graded} of {report.coverage.asked} graded, floor {percent(report.coverage.floor)}."
    )


def _failures(
    failed: Sequence[CaseResult], redact: Redact, known: Mapping[str, Incident], report: RunReport, most: int
) -> Iterator[str]:
    if not failed:
        return
    yield f"## What broke: {len(failed)}"
    yield ""
    labels = case_labels(failed)
    yield f"| sev | what | case | {labels.asked} | {labels.answered} | why |"
    yield "| --- | --- | --- | --- | --- | --- |"
    flaky = {one.case_id: f"flaky, {one.text}" for one in report.flaky}
    for result in failed[:most]:
        found, safe = result.assessment, redaction_of(result, redact)
        kinds = ", ".join(FAILURE_WORDS[kind] for kind in found.failure_kinds)
        since = format_since(known.get(result.case.id), report.commit)
        notes = [since, "unconfirmed" if found.unconfirmed else "", flaky.get(result.case.id, "")]
        row = f" (raised from severity {found.case_severity})" if found.severity != found.case_severity else ""
        said = "; ".join(inert(note) for note in notes if note)
        yield (
            f"| {found.severity} | {kinds}{row}{f'; {said}' if said else ''} | {code_span(result.case.id, 80)} "
            f"| {code_span(safe(asked_text(result)), _ASKED)} "
            f"| {code_span(safe(replied_text(result)), _ANSWERED)} | {inert(safe(found.reason), 200)} |"
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
        text = NO_ANSWER_WORDS[came.reason] if isinstance(came, NoAnswer) else "no answer"
        detail = came.detail if isinstance(came, NoAnswer) else found.reason
        blame = BLAME_WORDS[found.blame] if found.blame else "unknown"
        yield (
            f"| {blame} | {found.severity} | {text} | {code_span(result.case.id, 80)} "
            f"| {code_span(redaction_of(result, redact)(detail), _ANSWERED)} |"
        )
    if len(unanswered) > most:
        yield ""
        yield f"And {len(unanswered) - most} more in report.html."


def _ungraded(ungraded: Sequence[CaseResult]) -> Iterator[str]:
    if ungraded:
        named = ", ".join(code_span(result.case.id, 80) for result in ungraded[:_NAMED_CASES])
        more = len(ungraded) - _NAMED_CASES
        rest = f" and {more} more" if more > 0 else ""
        yield f"Could not tell about {plural(len(ungraded), 'case')}: {named}{rest}."


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
        name = inert(format_metric(metric.name))
        yield f"| {name} | {value} | {metric.passed} of {metric.total} | {interval} | {target} | {met} |"
    said = [f"the same questions, {format_parity(gap)}" for gap in parity] + [format_path(metrics)]
    if any(said):
        yield ""
        yield from (f"- {inert(text)}" for text in said if text)


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
        yield f"| {inert(group.group)} | cases | failed | no answer | ungraded | correct |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for row in group.rows:
            key = code_span(row.key, 60)
            yield f"| {key} | {row.cases} | {row.failed} | {row.no_answer} | {row.ungraded} | {row.correct} |"


def _experiment(report: RunReport) -> Iterator[str]:
    found = report.experiment
    if found is not None and found.url is not None:
        yield f"Experiment on {code_span(found.dataset, 120)}: <{found.url}>"
    yield from (inert(line) for line in format_experiment(found))


def _about(report: RunReport) -> Iterator[str]:
    yield (
        f"Run {code_span(report.run_id, 200)} of suite {code_span(report.suite_name, 80)} "
        f"({code_span(report.suite_sha256[:12], 12)}), {moment(report.started_at)} to "
        f"{moment(report.finished_at)} ({elapsed(report)}), judging cost ${quantity(report.cost_usd)}."
    )
