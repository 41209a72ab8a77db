"""Functions that print the verdict of a run: the scores, the reasons, the next steps, and the path of the report.

With ``verbose``, they also print the calculation, the metrics, the baseline and the smallest drop that the suite
can detect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.terminal_console import print_named_lines, print_wrapped
from monitors.plural import plural
from monitors.probes.inspect.findings import find_advice
from monitors.records.base import Finding
from monitors.records.comparisons import Comparison, format_rating_bound
from monitors.records.exchanges import NoAnswer, NoAnswerReason
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import (
    CaseResult,
    JudgeState,
    Latency,
    Ratio,
    ReasonKind,
    RunReport,
    Scores,
    Verdict,
    VerdictReason,
    format_metric_name,
    format_uncovered_cases,
)
from monitors.reports.figures import (
    build_score_calculation_rows,
    format_changes_since_last_pass,
    format_common_causes,
    format_severity_rises,
)
from monitors.reports.format import format_agent_questions, format_experiment_problems, format_headline
from monitors.reports.proof_rows import (
    build_detectable_drop_rows,
    build_score_rows,
    build_severity_change_rows,
    format_baseline_run,
    format_best_app_path,
    format_changes_since_unaccepted_run,
    format_comparison_outcome,
    format_language_gap,
)
from monitors.reports.rechecks import format_recheck
from monitors.request_headers import find_variables_in_refusal

_MAX_IDS = 6


def print_comparison_and_flaky_cases(console: Console, report: RunReport, cases: Sequence[CaseResult]) -> None:
    """Print the comparison with the baseline, the smallest drops that the run can detect, and flaky cases."""
    print_named_lines(console, "Baseline", _iterate_comparison_lines(report, cases))
    if report.sights:
        console.print(_build_detectable_drop_table(report))
    _print_flaky_cases(console, report)


def _print_flaky_cases(console: Console, report: RunReport) -> None:
    lines = [f"{escape(case.case_id)} [dim]{case.text}[/]" for case in report.flaky[:_MAX_IDS]]
    if len(report.flaky) > _MAX_IDS:
        lines.append(f"[dim]and {len(report.flaky) - _MAX_IDS:,} more[/]")
    print_named_lines(console, "Flaky", lines)


def _iterate_comparison_lines(report: RunReport, cases: Sequence[CaseResult]) -> Iterator[str]:
    compared = report.comparison
    if compared is None:
        yield "[dim]there is no accepted run to compare with[/]"
        return
    yield escape(format_baseline_run(compared))
    if compared.refused:
        yield from (f"[yellow]not compared:[/] {escape(why)}" for why in compared.refused)
        yield from map(escape, format_changes_since_unaccepted_run(compared, max_ids=_MAX_IDS))
        return
    scores = "  ·  ".join(f"{row.name} {row.before} → {row.now}" for row in build_score_rows(compared))
    yield scores
    yield escape(format_comparison_outcome(compared, report.recheck))
    yield from _iterate_new_failures(compared, cases)
    for row in build_severity_change_rows(compared):
        if row.fixed:
            yield f"[green]fixed[/], severity {row.severity}: {escape(_format_ids(row.fixed))}"


def _iterate_new_failures(compared: Comparison, cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield a line with the newly failing cases of each severity, highest severity first.

    The severity is that of the failure, which can be higher than the severity of the case.
    """
    severities = {case_id: row.severity for row in compared.severities for case_id in row.newly_failing}
    for result in cases:
        if result.case.id in severities and result.assessment.outcome is CaseOutcome.FAILED:
            severities[result.case.id] = max(severities[result.case.id], result.assessment.severity)
    for severity in sorted(set(severities.values()), reverse=True):
        failing = [case_id for case_id in compared.newly_failing if severities.get(case_id) is severity]
        yield f"[red]newly failing[/], severity {severity}: {escape(_format_ids(failing))}"


def _format_ids(case_ids: Sequence[str]) -> str:
    more = f" and {len(case_ids) - _MAX_IDS:,} more" if len(case_ids) > _MAX_IDS else ""
    return ", ".join(case_ids[:_MAX_IDS]) + more


def _build_detectable_drop_table(report: RunReport) -> Table:
    title = "Smallest drop this suite can detect, at 95 %"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for name in ("severity", "graded", "not correct", "may still fail", "shared", "smallest drop"):
        table.add_column(name, justify="right")
    for row in build_detectable_drop_rows(report.sights):
        cells = (str(row.severity.value), row.graded, row.not_correct, row.may_fail, row.pairs, row.drop)
        table.add_row(*map(escape, cells))
    return table


STYLES = {
    Verdict.PASS: "bold white on green",
    Verdict.FAIL: "bold white on red",
    Verdict.INCONCLUSIVE: "bold black on yellow",
}


def print_verdict(
    console: Console,
    report: RunReport,
    *,
    cases: Sequence[CaseResult] = (),
    report_page: Path | None = None,
    verbose: bool = False,
) -> None:
    """Print the verdict, the scores, the reasons that decided, the next steps and the path of the report.

    ``cases`` are needed to explain missing answers. With ``verbose``, all reasons and the calculation are printed.
    """
    console.print()
    print_wrapped(console, f"[{STYLES[report.verdict]}] {report.verdict} [/]  {_format_scores(report.scores)}")
    if verbose:
        _print_details(console, report, cases)
    else:
        _print_brief_reasons(console, report, cases)
    _print_experiment(console, report)
    print_named_lines(console, "Next", map(escape, _iterate_next_steps(report, cases)))
    if report_page is not None:
        print_named_lines(console, "Report", [escape(str(report_page))])
        if verbose:
            print_named_lines(console, "Results", [escape(str(report_page.with_name("results.json")))])
    if not verbose:
        again = "" if report_page is None else f"lookout report {report.run_id} "
        print_named_lines(console, "Details", [f"{again}-v"])


def _print_brief_reasons(console: Console, report: RunReport, cases: Sequence[CaseResult]) -> None:
    """Print the reasons that decided, their explanation, and the comparison with the baseline."""
    decisive = [reason for reason in report.reasons if reason.decisive]
    print_named_lines(
        console, "Why", map(_format_reason, decisive) if decisive else [escape(format_headline(report))]
    )
    languages = [r for r in report.reasons if r.kind is ReasonKind.LANGUAGE and not r.decisive]
    print_named_lines(console, "Language", map(_format_reason, languages))
    if decisive and (left_out := format_uncovered_cases(report.reasons)):
        print_named_lines(console, "Not covered", [escape(left_out)])
    _print_average_rating(console, report)
    _print_failure_explanation(console, report)
    if report.comparison is not None:
        print_named_lines(console, "Compared", _iterate_comparison_lines(report, cases))
    _print_flaky_cases(console, report)


def _print_average_rating(console: Console, report: RunReport) -> None:
    """Print the average rating of the reports, and a lower bound for the agent's true average."""
    rubric = report.rubric
    if rubric is not None:
        average = f"average {rubric.mean:.2f} of 5, {plural(len(rubric.ratings), 'report')}"
        criteria = rubric.criteria.text if rubric.criteria else ""
        parts = filter(None, (average, criteria, format_rating_bound(rubric)))
        print_named_lines(console, "Ratings", [escape("; ".join(parts))])


def _format_reason(reason: VerdictReason) -> str:
    cases = f": {_format_ids(reason.case_ids)}" if reason.case_ids else ""
    return f"{escape(reason.text)}[dim]{escape(cases)}[/]"


_ALTERNATIVES: Final = "if a reply is correct, add its words to the `alternatives` of its case in the suite"


def _iterate_next_steps(report: RunReport, cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield the next steps for the user. Yields nothing after a PASS."""
    reasons = Counter(case.result.reason for case in cases if isinstance(case.result, NoAnswer))
    del reasons[NoAnswerReason.CIRCUIT_OPEN]  # a question that was not asked has no cause of its own
    if report.verdict is Verdict.PASS:
        return
    refused = _find_refused_header_variables(cases)
    if refused and report.verdict is Verdict.INCONCLUSIVE:
        yield f"set {refused}, then run `lookout doctor {report.target.name}`"
    elif reasons and report.verdict is Verdict.INCONCLUSIVE:
        # If no browser started, the run did not ask an API.
        snapshot = report.snapshot
        is_api = snapshot is not None and snapshot.browser is None and NoAnswerReason.BROWSER_LOST not in reasons
        yield find_advice(reasons.most_common(1)[0][0], is_api=is_api).replace("NAME", report.target.name)
        if is_api:
            yield f"`lookout doctor {report.target.name}` asks the API one question and shows the response"
        else:
            yield f"`lookout doctor {report.target.address}` shows the page at this address, with a picture"
    elif report.verdict is Verdict.FAIL:
        yield "read the failed cases in the report. `lookout alerts list` lists the open incidents"
        yield "if a reply is correct, change the gold of the case, or add the words of the reply to `alternatives`"
        if any(FailureKind.PII_DISCLOSURE in case.assessment.failure_kinds for case in cases):
            graders = f"[targets.{report.target.name}.graders]"
            yield f"if the personal data is one of your public contacts, add it to public_contacts under {graders}"
    elif any(reason.kind is ReasonKind.DISPUTED for reason in report.reasons):
        yield (
            "read each disputed answer and its gold. If the answer is wrong, roll back the deploy. If it is "
            "correct, mark its alert as a false alarm"
        )
    elif report.judging is not None and report.judging.state is JudgeState.OFF:
        off = f"the judge is off ({report.judging.why})"
        yield _ALTERNATIVES
        yield f"{off}. A judge grades answers that rules cannot grade: see [judge] in docs/configuration.md"
    else:
        yield from _iterate_steps_to_a_verdict(report)


def _iterate_steps_to_a_verdict(report: RunReport) -> Iterator[str]:
    """If there were too few grades or ratings for a verdict, yield the steps that lead to a verdict."""
    if all(reason.kind is not ReasonKind.RUBRIC or not reason.decisive for reason in report.reasons):
        yield "see the report for the reasons why cases are ungraded"
        yield _ALTERNATIVES
    elif report.rubric is None:
        yield "see the report for the reason why the judge gave no ratings"
    else:
        yield "add issues to the suite. docs/gate.md explains how many ratings are needed to prove an average"


def _find_refused_header_variables(cases: Sequence[CaseResult]) -> str:
    """Find the environment variables of request headers that are missing or that an API rejected.

    For a page, the result is empty.
    """
    for case in cases:
        result = case.result
        if isinstance(result, NoAnswer) and result.reason is NoAnswerReason.ACCESS_DENIED:
            return " and ".join(find_variables_in_refusal(result.detail))
    return ""


def _print_details(console: Console, report: RunReport, cases: Sequence[CaseResult]) -> None:
    if report.reasons:
        console.print(_build_reason_table(report.reasons))
    console.print()
    console.print(_build_arithmetic_table(report))
    if format_severity_rises(report):
        print_wrapped(console, escape(format_severity_rises(report)))
    console.print(_build_metric_table(report))
    _print_average_rating(console, report)
    print_named_lines(console, "Parity", (escape(format_language_gap(gap)) for gap in report.parity))
    if format_best_app_path(report.metrics):
        print_named_lines(console, "Paths", [escape(format_best_app_path(report.metrics))])
    _print_failure_explanation(console, report)
    if report.questions is not None:
        print_named_lines(console, "Questions", [escape(format_agent_questions(report.questions))])
    print_comparison_and_flaky_cases(console, report, cases)
    if report.latency is not None:
        print_named_lines(console, "Latency", [_format_latency(report.latency)])


def _format_latency(latency: Latency) -> str:
    return (
        f"p50 {latency.p50_ms / 1000:.1f} s, p95 {latency.p95_ms / 1000:.1f} s "
        f"(objective: p50 at most {latency.objective_p50_ms / 1000:g} s; latency never fails a run)"
    )


def _print_failure_explanation(console: Console, report: RunReport) -> None:
    """Print the results of the recheck, what failed cases have in common, and what changed since the last PASS."""
    print_named_lines(console, "Again", map(escape, format_recheck(report.recheck)))
    print_named_lines(console, "In common", map(escape, format_common_causes(report.first_look)))
    print_named_lines(console, "Changed", map(escape, format_changes_since_last_pass(report.what_changed)))


def _print_experiment(console: Console, report: RunReport) -> None:
    """Print the address of the run's experiment, and the data that could not be written to the experiment."""
    experiment = report.experiment
    if experiment is not None and experiment.url is not None:
        console.print(f"Experiment {experiment.url}", soft_wrap=True, highlight=False, markup=False)
    for line in format_experiment_problems(experiment):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _format_scores(scores: Scores) -> str:
    if scores.flat.value is None:
        return "nothing was graded"
    return f"weighted {_format_ratio(scores.weighted)}  ·  flat {_format_ratio(scores.flat)}"


def _format_ratio(ratio: Ratio) -> str:
    return "nothing graded" if ratio.value is None else f"{ratio.value:.3f} ({ratio.earned}/{ratio.total})"


def _build_reason_table(reasons: Sequence[VerdictReason]) -> Table:
    """Build a table of the reasons. Reasons that did not decide the verdict are marked."""
    table = Table(box=None, show_header=False, pad_edge=True, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for reason in reasons:
        weight = "" if reason.decisive else "[dim](not decisive)[/] "
        table.add_row(reason.kind.value, f"{weight}{_format_reason(reason)}")
    return table


def _build_arithmetic_table(report: RunReport) -> Table:
    table = Table(
        box=None,
        pad_edge=False,
        title="Arithmetic",
        title_justify="left",
        title_style="bold",
    )
    for name in ("severity", "weight", "cases", "failed", "no answer", "earned", "of"):
        table.add_column(name, justify="right")
    for row in reversed(build_score_calculation_rows(report)):
        cells = (row.weight, row.cases, row.failed, row.no_answer, row.earned, row.total)
        table.add_row(str(row.severity), *cells)
    return table


def _build_metric_table(report: RunReport) -> Table:
    table = Table(box=None, pad_edge=False, title="Metrics", title_justify="left", title_style="bold")
    table.add_column("metric")
    for name in ("share", "of", "95 % interval", "target", ""):
        table.add_column(name, justify="right")
    for metric in report.metrics:
        if metric.total or report.triage is None:  # reports on issues contain no citations and no refusals
            share = f"{metric.passed / metric.total:.3f}" if metric.total else "-"
            target = "" if metric.target is None else f"≥ {metric.target:.2f}"
            interval = f"{metric.low:.3f} to {metric.high:.3f}"
            table.add_row(
                format_metric_name(metric.name), share, str(metric.total), interval, target, _MET[metric.met]
            )
    return table


_MET: Final = {
    Finding.YES: "[green]met[/]",
    Finding.NO: "[red]missed[/]",
    Finding.UNGRADED: "",
    Finding.NOT_NEEDED: "not checked",
}
