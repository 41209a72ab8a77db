"""Builds ``results.md``, the human-readable report of a run. The verdict comes first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from monitors.plural import plural
from monitors.records.base import Finding
from monitors.records.comparisons import Comparison, FlakyCase, ParityGap
from monitors.records.exchanges import NoAnswer
from monitors.records.grades import CRITERION_LABELS, FAILURE_WORDS, CaseOutcome, Criterion
from monitors.records.incidents import Incident
from monitors.records.runs import Breakdown, CaseResult, Metric, RunReport, format_metric_name
from monitors.reports.case_view import (
    format_failing_since,
    map_open_incidents_by_case,
    select_by_outcome_worst_first,
)
from monitors.reports.figures import (
    build_score_calculation_rows,
    format_changes_since_last_pass,
    format_common_causes,
    format_last_pass_run,
    format_severity_rises,
    group_breakdowns,
)
from monitors.reports.format import (
    BLAME_WORDS,
    NO_ANSWER_WORDS,
    VERDICT_MARKS,
    escape_markdown,
    format_code_span,
    format_elapsed,
    format_experiment_problems,
    format_headline,
    format_moment,
    format_percent,
    format_quantity,
    format_score,
    format_seconds,
)
from monitors.reports.marked_text import Redact, build_case_redactor
from monitors.reports.proof_rows import (
    build_detectable_drop_rows,
    build_mutation_view,
    build_score_rows,
    build_severity_change_rows,
    build_suite_balance_rows,
    format_baseline_run,
    format_best_app_path,
    format_changes_since_unaccepted_run,
    format_comparison_outcome,
    format_language_gap,
    format_no_baseline,
)
from monitors.reports.rechecks import RECHECK_HEADING, format_recheck
from monitors.reports.triage_summary import format_criteria, format_triage_dimension_table
from monitors.reports.triage_view import (
    choose_labels_for_cases,
    extract_asked_text,
    extract_reply_or_root_cause,
    has_only_issues,
    list_criteria_answers,
)

_MAX_CHANGES_NAMED: Final = 12


def format_comparison(report: RunReport) -> Iterator[str]:
    """Format the scores of the run and of its baseline, and list new failures and fixed cases."""
    compared = report.comparison
    if compared is None:
        return
    yield "## Comparison with the baseline"
    yield ""
    yield f"Baseline: {escape_markdown(format_baseline_run(compared))}."
    yield ""
    if compared.refused:
        yield "**Not compared**:"
        yield ""
        changed = format_changes_since_unaccepted_run(compared, max_ids=_MAX_CHANGES_NAMED)
        yield from (f"- {escape_markdown(why)}" for why in (*compared.refused, *changed))
        return
    yield escape_markdown(format_comparison_outcome(compared, report.recheck))
    yield ""
    yield from _format_comparison_tables(compared)


def _format_comparison_tables(compared: Comparison) -> Iterator[str]:
    yield "| | baseline | now | change |"
    yield "| --- | ---: | ---: | ---: |"
    yield from (f"| {row.name} | {row.before} | {row.now} | {row.change} |" for row in build_score_rows(compared))
    yield ""
    yield "| severity | shared | newly failing | fixed | exact McNemar |"
    yield "| --- | ---: | --- | --- | ---: |"
    for row in build_severity_change_rows(compared):
        name = f"{row.severity} {row.text}"
        failing, fixed = _format_case_ids(row.failing), _format_case_ids(row.fixed)
        yield f"| {name} | {row.shared} | {failing} | {fixed} | {row.p_value} |"


def _format_case_ids(case_ids: Sequence[str]) -> str:
    named = ", ".join(format_code_span(case_id, 80) for case_id in case_ids[:_MAX_CHANGES_NAMED])
    more = f" and {len(case_ids) - _MAX_CHANGES_NAMED:,} more" if len(case_ids) > _MAX_CHANGES_NAMED else ""
    return f"{len(case_ids):,}: {named}{more}" if case_ids else "0"


def format_detectable_drops(report: RunReport) -> Iterator[str]:
    """Format two limits for each severity.

    The first limit is an upper limit for the true share of failing cases, computed from this run. The second limit
    is the smallest drop that the run can detect.
    """
    if not report.sights:
        return
    yield "## Smallest drop this suite can detect"
    yield ""
    if report.comparison is None:
        yield escape_markdown(format_no_baseline(report))
        yield ""
    yield "Each case counts under the severity that it has in the suite."
    yield ""
    yield "| severity | graded | not correct | may fail (95 %) | shared cases | smallest detectable drop |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for row in build_detectable_drop_rows(report.sights):
        name = f"{row.severity} {row.text}"
        yield f"| {name} | {row.graded} | {row.not_correct} | {row.may_fail} | {row.pairs} | {row.drop} |"
    if report.flaky:
        named = ", ".join(
            f"{format_code_span(case.case_id, 80)} {case.text}" for case in report.flaky[:_MAX_CHANGES_NAMED]
        )
        more = len(report.flaky) - _MAX_CHANGES_NAMED
        yield ""
        yield f"{plural(len(report.flaky), 'flaky case')}: {named}{f' and {more:,} more' if more > 0 else ''}."


def format_suite_balance(report: RunReport) -> Iterator[str]:
    """Format the number of cases in each group, and state what is missing in the suite."""
    balance = report.balance
    if balance is None:
        return
    yield "## Balance of the suite"
    yield ""
    yield from (f"- **{escape_markdown(lack)}**" for lack in balance.shortfalls)
    if not balance.shortfalls:
        yield "- balanced: the suite meets every balance rule"
    for row in build_suite_balance_rows(balance):
        counts = " · ".join(f"{format_code_span(key, 60)} {cases}" for key, cases in row.counts)
        yield f"- {row.group}: {counts}"


def format_mutation_score(report: RunReport) -> Iterator[str]:
    """Format how many mutants the graders detected. A mutant is a correct reply with a planted fault."""
    view = build_mutation_view(report)
    if view is None:
        return
    yield "## Wrong replies that the graders catch"
    yield ""
    yield view.sentence
    yield ""
    yield "| known-bad reply | tried | caught | for a judge | passed | by |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for row in view.rows:
        yield f"| {row.name} | {row.mutants} | {row.caught} | {row.left} | {row.passed} | {row.graders} |"


_MAX_ASKED_CHARACTERS: Final = 120
_MAX_ANSWERED_CHARACTERS: Final = 160
_MAX_CRITERION_CHARACTERS: Final = 80
_MAX_CASES_NAMED: Final = 6
_MET_WORDS: Final = {
    Finding.YES: "✓ met",
    Finding.NO: "✕ missed",
    Finding.UNGRADED: "",
    Finding.NOT_NEEDED: "not checked",
}


def build_markdown_report(
    report: RunReport,
    cases: Sequence[CaseResult],
    *,
    redact: Redact,
    max_failures: int,
    incidents: Iterable[Incident] = (),
    previous: RunReport | None = None,
) -> str:
    """Build the report. Texts of the application are redacted, shortened and escaped.

    The report lists at most ``max_failures`` failures, and at most ``max_failures`` cases without an answer. For
    further cases, the report contains only their number.
    """
    open_incidents = map_open_incidents_by_case(incidents)
    failed = select_by_outcome_worst_first(cases, CaseOutcome.FAILED)
    unanswered = select_by_outcome_worst_first(cases, CaseOutcome.NO_ANSWER)
    ungraded = select_by_outcome_worst_first(cases, CaseOutcome.UNGRADED)
    sections = [
        _format_verdict_lines(report, previous, redact, (len(failed), len(unanswered), len(ungraded))),
        _format_calculation(report),
        format_comparison(report),
        format_failures(
            failed, redact, max_failures, incidents=open_incidents, commit=report.commit, flaky=report.flaky
        ),
        _format_criteria_table(report, cases, redact, max_failures),
        _format_recheck(report, redact),
        _format_causes(report, redact),
        _format_changes(report, redact),
        _format_cases_without_answer(unanswered, redact, max_failures),
        _format_cases_without_grade(ungraded),
        format_detectable_drops(report),
        _format_metrics(
            [metric for metric in report.metrics if metric.total or not has_only_issues(cases)], report.parity
        ),
        _format_latency(report),
        _format_breakdowns(report.breakdowns),
        format_suite_balance(report),
        format_mutation_score(report),
        _format_footer(report),
        _format_experiment(report),
    ]
    return "\n\n".join("\n".join(lines) for lines in map(list, sections) if lines) + "\n"


def _format_verdict_lines(
    report: RunReport, previous: RunReport | None, redact: Redact, counts: tuple[int, int, int]
) -> Iterator[str]:
    failed, unanswered, ungraded = counts
    yield f"# {VERDICT_MARKS[report.verdict]} {report.verdict}: {escape_markdown(report.target.name)}"
    yield ""
    yield (
        f"**weighted {format_score(report.scores.weighted)}**, flat {format_score(report.scores.flat)} · "
        f"{failed} failed · {unanswered} no answer · {ungraded} not graded"
        f" · deploy {format_code_span(report.commit or 'unknown', 60)}"
    )
    yield ""
    if report.triage is not None:
        yield from format_triage_dimension_table(report)
        yield ""
    if not report.reasons:
        yield f"- {escape_markdown(format_headline(report))}"
    for reason in report.reasons:
        named = ", ".join(format_code_span(case_id, 80) for case_id in reason.case_ids[:_MAX_CASES_NAMED])
        more = len(reason.case_ids) - _MAX_CASES_NAMED
        cases = f" ({named}{f' and {more} more' if more > 0 else ''})" if named else ""
        kind = f"**{reason.kind.replace('_', ' ')}**" if reason.decisive else reason.kind.replace("_", " ")
        yield f"- {kind}: {escape_markdown(redact(reason.text))}{cases}"
    if report.interrupted:
        yield "- **This run was stopped before the end.**"
    if previous is not None:
        yield (
            f"- previous run, deploy {format_code_span(previous.commit or 'unknown', 60)}, "
            f"{format_moment(previous.finished_at)}: {previous.verdict}, weighted "
            f"{format_score(previous.scores.weighted)}, flat {format_score(previous.scores.flat)}"
        )


def _format_criteria_table(
    report: RunReport, cases: Sequence[CaseResult], redact: Redact, limit: int
) -> Iterator[str]:
    """Format a table of the usefulness criteria for at most ``limit`` issues.

    The issues whose reports fail the most criteria come first.
    """
    if not format_criteria(report) or report.rubric is None:
        return
    yield "## Usefulness by criterion"
    yield ""
    yield f"| issue | {' | '.join(CRITERION_LABELS[name] for name in Criterion)} |"
    yield f"| --- |{' --- |' * len(Criterion)}"
    counted = {rating.case_id for rating in report.rubric.ratings}
    answers_by_case = [
        (result.case.id, list_criteria_answers(result, build_case_redactor(result, redact)))
        for result in cases
        if result.case.id in counted
    ]
    answers_by_case.sort(key=lambda row: -sum(answer.startswith("✕") for answer in row[1]))
    for case_id, answers in answers_by_case[:limit]:
        cells = " | ".join(escape_markdown(answer, _MAX_CRITERION_CHARACTERS) for answer in answers)
        yield f"| {format_code_span(case_id, 80)} | {cells} |"
    if len(answers_by_case) > limit:
        yield ""
        yield f"And {len(answers_by_case) - limit} more in report.html."


def _format_recheck(report: RunReport, redact: Redact) -> Iterator[str]:
    lines = format_recheck(report.recheck)
    if lines:
        yield f"## {RECHECK_HEADING}"
        yield ""
        yield from (f"- {escape_markdown(redact(line))}" for line in lines)


def _format_causes(report: RunReport, redact: Redact) -> Iterator[str]:
    causes = format_common_causes(report.first_look)
    if causes:
        yield "## What the failed cases have in common"
        yield ""
        yield from (f"- {escape_markdown(redact(cause))}" for cause in causes)


def _format_changes(report: RunReport, redact: Redact) -> Iterator[str]:
    changes = format_changes_since_last_pass(report.what_changed)
    if report.what_changed is not None and changes:
        yield "## What changed since the last PASS"
        yield ""
        yield from (f"- {escape_markdown(redact(change))}" for change in changes)
        if last := format_last_pass_run(report.what_changed):
            yield ""
            yield escape_markdown(redact(last))


def _format_calculation(report: RunReport) -> Iterator[str]:
    scores = report.scores
    yield "| severity | cases | failed | no answer | weight | earned | of |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for row in build_score_calculation_rows(report):
        yield (
            f"| {row.severity} {row.text} | {row.cases} | {row.failed} | {row.no_answer} | {row.weight} "
            f"| {row.earned} | {row.total} |"
        )
    yield ""
    if format_severity_rises(report):
        yield format_severity_rises(report)
        yield ""
    yield (
        f"Weighted {format_quantity(scores.weighted.earned)} / {format_quantity(scores.weighted.total)} = "
        f"**{format_score(scores.weighted)}**, "
        f"flat {format_quantity(scores.flat.earned)} / {format_quantity(scores.flat.total)} = "
        f"**{format_score(scores.flat)}**, weights {format_code_span(scores.weights_version, 60)}. Coverage: "
        f"{report.coverage.graded} of {report.coverage.asked} cases graded, at least "
        f"{format_percent(report.coverage.floor)} required."
    )


def format_failures(
    failed: Sequence[CaseResult],
    redact: Redact,
    limit: int,
    *,
    incidents: Mapping[str, Incident],
    commit: str | None,
    flaky: Sequence[FlakyCase] = (),
) -> Iterator[str]:
    """Format at most ``limit`` failed cases as a table. For further cases, the table states only their number."""
    if not failed:
        return
    yield f"## Failed cases: {len(failed)}"
    yield ""
    labels = choose_labels_for_cases(failed)
    yield f"| sev | what | case | {labels.asked} | {labels.answered} | why |"
    yield "| --- | --- | --- | --- | --- | --- |"
    notes_of = {case.case_id: f"flaky, {case.text}" for case in flaky}
    for result in failed[:limit]:
        assessment, safe = result.assessment, build_case_redactor(result, redact)
        kinds = ", ".join(FAILURE_WORDS[kind] for kind in assessment.failure_kinds)
        since = format_failing_since(incidents.get(result.case.id), commit)
        notes = [since, "unconfirmed" if assessment.unconfirmed else "", notes_of.get(result.case.id, "")]
        row = (
            f" (raised from severity {assessment.case_severity})"
            if assessment.severity != assessment.case_severity
            else ""
        )
        note_text = "; ".join(escape_markdown(note) for note in notes if note)
        yield (
            f"| {assessment.severity} | {kinds}{row}{f'; {note_text}' if note_text else ''} "
            f"| {format_code_span(result.case.id, 80)} "
            f"| {format_code_span(safe(extract_asked_text(result)), _MAX_ASKED_CHARACTERS)} "
            f"| {format_code_span(safe(extract_reply_or_root_cause(result)), _MAX_ANSWERED_CHARACTERS)} "
            f"| {escape_markdown(safe(assessment.reason), 200)} |"
        )
    if len(failed) > limit:
        yield ""
        yield f"And {len(failed) - limit} more in report.html."


def _format_cases_without_answer(unanswered: Sequence[CaseResult], redact: Redact, limit: int) -> Iterator[str]:
    if not unanswered:
        return
    yield f"## No answer: {len(unanswered)}"
    yield ""
    yield "| caused by | sev | what | case | detail |"
    yield "| --- | --- | --- | --- | --- |"
    for result in unanswered[:limit]:
        response, assessment = result.result, result.assessment
        text = NO_ANSWER_WORDS[response.reason] if isinstance(response, NoAnswer) else "no answer"
        detail = response.detail if isinstance(response, NoAnswer) else assessment.reason
        blame = BLAME_WORDS[assessment.blame] if assessment.blame else "unknown"
        yield (
            f"| {blame} | {assessment.severity} | {text} | {format_code_span(result.case.id, 80)} "
            f"| {format_code_span(build_case_redactor(result, redact)(detail), _MAX_ANSWERED_CHARACTERS)} |"
        )
    if len(unanswered) > limit:
        yield ""
        yield f"And {len(unanswered) - limit} more in report.html."


def _format_cases_without_grade(ungraded: Sequence[CaseResult]) -> Iterator[str]:
    if ungraded:
        named = ", ".join(format_code_span(result.case.id, 80) for result in ungraded[:_MAX_CASES_NAMED])
        more = len(ungraded) - _MAX_CASES_NAMED
        rest = f" and {more} more" if more > 0 else ""
        yield f"Lookout could not grade {plural(len(ungraded), 'case')}: {named}{rest}."


def _format_metrics(metrics: Sequence[Metric], parity: Sequence[ParityGap]) -> Iterator[str]:
    if not metrics:
        return
    yield "## Metrics"
    yield ""
    yield "| metric | value | counted | 95 % interval | target | |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for metric in metrics:
        value = format_percent(metric.passed / metric.total) if metric.total else "nothing counted"
        interval = f"{format_percent(metric.low)} to {format_percent(metric.high)}" if metric.total else ""
        target = f"≥ {format_percent(metric.target)}" if metric.target is not None else ""
        met = _MET_WORDS[metric.met] if metric.target is not None else ""
        name = escape_markdown(format_metric_name(metric.name))
        yield f"| {name} | {value} | {metric.passed} of {metric.total} | {interval} | {target} | {met} |"
    notes = [f"on the same questions, {format_language_gap(gap)}" for gap in parity] + [
        format_best_app_path(metrics)
    ]
    if any(notes):
        yield ""
        yield from (f"- {escape_markdown(text)}" for text in notes if text)


def _format_latency(report: RunReport) -> Iterator[str]:
    if report.latency is not None:
        latency = report.latency
        met = "✓ within" if latency.p50_ms <= latency.objective_p50_ms else "✕ above"
        yield (
            f"Latency over {plural(latency.answered, 'answer')}: p50 **{format_seconds(latency.p50_ms)}** "
            f"({met} the objective of {format_seconds(latency.objective_p50_ms)}), "
            f"p95 **{format_seconds(latency.p95_ms)}**."
        )


def _format_breakdowns(breakdowns: Sequence[Breakdown]) -> Iterator[str]:
    if not breakdowns:
        return
    yield "## By type, language, path and severity"
    for group in group_breakdowns(breakdowns):
        yield ""
        yield f"| {escape_markdown(group.group)} | cases | failed | no answer | ungraded | correct |"
        yield "| --- | ---: | ---: | ---: | ---: | ---: |"
        for row in group.rows:
            key = format_code_span(row.key, 60)
            yield f"| {key} | {row.cases} | {row.failed} | {row.no_answer} | {row.ungraded} | {row.correct} |"


def _format_experiment(report: RunReport) -> Iterator[str]:
    experiment = report.experiment
    if experiment is not None and experiment.url is not None:
        yield f"Experiment on {format_code_span(experiment.dataset, 120)}: <{experiment.url}>"
    yield from (escape_markdown(line) for line in format_experiment_problems(experiment))


def _format_judging_cost(report: RunReport) -> str:
    if report.judging is not None and report.judging.unpriced_models:
        return f"judging: {escape_markdown(report.judging.cost_text)}"
    return f"judging cost ${format_quantity(report.cost_usd)}"


def _format_footer(report: RunReport) -> Iterator[str]:
    yield (
        f"Run {format_code_span(report.run_id, 200)} of suite {format_code_span(report.suite_name, 80)} "
        f"({format_code_span(report.suite_sha256[:12], 12)}), {format_moment(report.started_at)} to "
        f"{format_moment(report.finished_at)} ({format_elapsed(report)}), "
        f"{_format_judging_cost(report)}."
    )
