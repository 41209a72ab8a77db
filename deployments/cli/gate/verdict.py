"""Print a run's verdict: the result, what broke, what to do next, and the report's path.

With ``verbose`` also the reasons behind it: arithmetic, metrics, the baseline, the smallest drop this suite can
detect, what it lacks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.terminal_console import print_named, print_wrapped
from monitors.plural import plural
from monitors.probes.inspect.findings import find_advice
from monitors.records.base import Finding
from monitors.records.comparisons import Comparison, RubricAverage, format_rating_bound
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
from monitors.reports.figures import build_tally_rows, format_changes, format_common_causes, format_severity_rises
from monitors.reports.format import format_experiment, format_headline, format_questions
from monitors.reports.proof_rows import (
    build_change_rows,
    build_drop_rows,
    build_score_rows,
    format_baseline_run,
    format_best_path,
    format_changes_since_unaccepted_run,
    format_comparison_outcome,
    format_language_gap,
)
from monitors.reports.rechecks import format_recheck
from monitors.request_headers import find_refused_variables

_MAX_IDS = 6


def print_proof(console: Console, report: RunReport, cases: Sequence[CaseResult]) -> None:
    """Print the comparison with the baseline, then a table of the smallest detectable drops, by severity."""
    print_named(console, "Baseline", _format_comparison(report, cases))
    if report.sights:
        console.print(_build_drop_table(report))
    _print_flaky(console, report)


def _print_flaky(console: Console, report: RunReport) -> None:
    lines = [f"{escape(case.case_id)} [dim]{case.text}[/]" for case in report.flaky[:_MAX_IDS]]
    if len(report.flaky) > _MAX_IDS:
        lines.append(f"[dim]and {len(report.flaky) - _MAX_IDS:,} more[/]")
    print_named(console, "Flaky", lines)


def _format_comparison(report: RunReport, cases: Sequence[CaseResult]) -> Iterator[str]:
    compared = report.comparison
    if compared is None:
        yield "[dim]no accepted run to compare with[/]"
        return
    yield escape(format_baseline_run(compared))
    if compared.refused:
        yield from (f"[yellow]not compared:[/] {escape(why)}" for why in compared.refused)
        yield from map(escape, format_changes_since_unaccepted_run(compared, max_ids=_MAX_IDS))
        return
    scores = "  ·  ".join(f"{row.name} {row.before} → {row.now}" for row in build_score_rows(compared))
    yield scores
    yield escape(format_comparison_outcome(compared, report.recheck))
    yield from _format_new_failures(compared, cases)
    for row in build_change_rows(compared):
        if row.fixed:
            yield f"[green]fixed[/], severity {row.severity}: {escape(_format_ids(row.fixed))}"


def _format_new_failures(compared: Comparison, cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield newly failing cases by the severity of their failure, which may be above the case's own."""
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


def _build_drop_table(report: RunReport) -> Table:
    title = "Smallest drop this suite can detect, at 95 %"
    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for name in ("severity", "graded", "not correct", "may still fail", "shared", "smallest drop"):
        table.add_column(name, justify="right")
    for row in build_drop_rows(report.sights):
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
    """Print verdict, scores, deciding reasons, next steps, and the path of the report.

    ``cases`` tell why answers are missing. With ``verbose`` also the arithmetic and all other reasons.
    """
    console.print()
    print_wrapped(console, f"[{STYLES[report.verdict]}] {report.verdict} [/]  {_format_scores(report.scores)}")
    if verbose:
        _print_details(console, report, cases)
    else:
        _print_briefly(console, report, cases)
    _print_experiment(console, report)
    print_named(console, "Next", map(escape, _list_next_steps(report, cases)))
    if report_page is not None:
        print_named(console, "Report", [escape(str(report_page))])
        if verbose:
            print_named(console, "Results", [escape(str(report_page.with_name("results.json")))])
    if not verbose:
        again = "" if report_page is None else f"lookout report {report.run_id} "
        print_named(console, "Details", [f"{again}-v"])


def _print_briefly(console: Console, report: RunReport, cases: Sequence[CaseResult]) -> None:
    """Print the deciding reasons, their explanation, and what changed since the baseline."""
    decisive = [reason for reason in report.reasons if reason.decisive]
    print_named(console, "Why", map(_format_reason, decisive) if decisive else [escape(format_headline(report))])
    languages = [r for r in report.reasons if r.kind is ReasonKind.LANGUAGE and not r.decisive]
    print_named(console, "Language", map(_format_reason, languages))
    if decisive and (left_out := format_uncovered_cases(report.reasons)):
        print_named(console, "Not covered", [escape(left_out)])
    _print_rating(console, report)
    _print_explanation(console, report)
    if report.comparison is not None:
        print_named(console, "Compared", _format_comparison(report, cases))
    _print_flaky(console, report)


def _print_rating(console: Console, report: RunReport) -> None:
    if report.rubric is not None:
        print_named(console, "Ratings", [_format_rating(report.rubric)])


def _format_reason(reason: VerdictReason) -> str:
    cases = f": {_format_ids(reason.case_ids)}" if reason.case_ids else ""
    return f"{escape(reason.text)}[dim]{escape(cases)}[/]"


_ALTERNATIVES: Final = "if a reply is right, add its words to `alternatives` of that case in the suite"


def _list_next_steps(report: RunReport, cases: Sequence[CaseResult]) -> Iterator[str]:
    """Yield what a person should do now; nothing after a PASS."""
    reasons = Counter(case.result.reason for case in cases if isinstance(case.result, NoAnswer))
    del reasons[NoAnswerReason.CIRCUIT_OPEN]  # what was not asked says nothing about why
    if report.verdict is Verdict.PASS:
        return
    refused = _find_refused_variables(cases)
    if refused and report.verdict is Verdict.INCONCLUSIVE:
        yield f"set {refused}, then `lookout doctor {report.target.name}`"
    elif reasons and report.verdict is Verdict.INCONCLUSIVE:
        # A run whose browser did not start did not ask an API.
        snapshot = report.snapshot
        is_api = snapshot is not None and snapshot.browser is None and NoAnswerReason.BROWSER_LOST not in reasons
        yield find_advice(reasons.most_common(1)[0][0], is_api=is_api).replace("NAME", report.target.name)
        if is_api:
            yield f"`lookout doctor {report.target.name}` asks the API one question and shows the response"
        else:
            yield f"`lookout doctor {report.target.address}` shows the page at this address, with a picture"
    elif report.verdict is Verdict.FAIL:
        yield "read the failed cases in the report; `lookout alerts list` shows the open incidents"
        yield "if a reply is right, correct its gold or add the reply's words to `alternatives` of that case"
        if any(FailureKind.PII_DISCLOSURE in case.assessment.failure_kinds for case in cases):
            graders = f"[targets.{report.target.name}.graders]"
            yield f"if the reply contains a contact of your own, add it to public_contacts under {graders}"
    elif any(reason.kind is ReasonKind.DISPUTED for reason in report.reasons):
        yield (
            "read each disputed answer and its gold. If the answer is wrong, roll back; if it is right, mark its "
            "alert as a false alarm"
        )
    elif report.judging is not None and report.judging.state is JudgeState.OFF:
        off = f"the judge is off ({report.judging.why})"
        yield _ALTERNATIVES
        yield f"{off}: a judge would grade the answers that rules cannot grade ([judge], docs/configuration.md)"
    else:
        yield from _list_steps_to_a_verdict(report)


def _list_steps_to_a_verdict(report: RunReport) -> Iterator[str]:
    """Yield what may decide a run whose ratings or grades do not."""
    if all(reason.kind is not ReasonKind.RUBRIC or not reason.decisive for reason in report.reasons):
        yield "see in the report why cases are ungraded"
        yield _ALTERNATIVES
    elif report.rubric is None:
        yield "see in the report why the judge rated no report"
    else:
        yield "add issues to the suite: docs/gate.md shows how many prove which average"


def _find_refused_variables(cases: Sequence[CaseResult]) -> str:
    """Return the variables of headers that an API did not accept or misses; empty where a page refuses."""
    for case in cases:
        result = case.result
        if isinstance(result, NoAnswer) and result.reason is NoAnswerReason.ACCESS_DENIED:
            return " and ".join(find_refused_variables(result.detail))
    return ""


def _print_details(console: Console, report: RunReport, cases: Sequence[CaseResult]) -> None:
    if report.reasons:
        console.print(_build_reason_table(report.reasons))
    console.print()
    console.print(_build_arithmetic_table(report))
    if format_severity_rises(report):
        print_wrapped(console, escape(format_severity_rises(report)))
    console.print(_build_metric_table(report))
    _print_rating(console, report)
    print_named(console, "Parity", (escape(format_language_gap(gap)) for gap in report.parity))
    if format_best_path(report.metrics):
        print_named(console, "Paths", [escape(format_best_path(report.metrics))])
    _print_explanation(console, report)
    if report.questions is not None:
        print_named(console, "Questions", [escape(format_questions(report.questions))])
    print_proof(console, report, cases)
    if report.latency is not None:
        print_named(console, "Latency", [_format_latency(report.latency)])


def _format_latency(latency: Latency) -> str:
    return (
        f"p50 {latency.p50_ms / 1000:.1f} s, p95 {latency.p95_ms / 1000:.1f} s "
        f"(objective: p50 within {latency.objective_p50_ms / 1000:g} s; reported, not graded)"
    )


def _print_explanation(console: Console, report: RunReport) -> None:
    """Print the recheck of failed cases, what they have in common, and what changed since the last PASS."""
    print_named(console, "Again", map(escape, format_recheck(report.recheck)))
    print_named(console, "In common", map(escape, format_common_causes(report.first_look)))
    print_named(console, "Changed", map(escape, format_changes(report.what_changed)))


def _print_experiment(console: Console, report: RunReport) -> None:
    """Print where the run appears as an experiment, and what is missing there."""
    experiment = report.experiment
    if experiment is not None and experiment.url is not None:
        console.print(f"Experiment {experiment.url}", soft_wrap=True, highlight=False, markup=False)
    for line in format_experiment(experiment):
        console.print(line, soft_wrap=True, highlight=False, markup=False)


def _format_rating(rubric: RubricAverage) -> str:
    """Format the average rating, and what so many reports show of the agent in general."""
    bound = format_rating_bound(rubric)
    average = f"average {rubric.mean:.2f} of 5, {plural(len(rubric.ratings), 'report')}"
    criteria = rubric.criteria.text if rubric.criteria else ""
    return escape("; ".join(filter(None, (average, criteria, bound))))


def _format_scores(scores: Scores) -> str:
    if scores.flat.value is None:
        return "nothing was graded"
    return f"weighted {_format_ratio(scores.weighted)}  ·  flat {_format_ratio(scores.flat)}"


def _format_ratio(ratio: Ratio) -> str:
    return "nothing graded" if ratio.value is None else f"{ratio.value:.3f} ({ratio.earned}/{ratio.total})"


def _build_reason_table(reasons: Sequence[VerdictReason]) -> Table:
    """Build a table of the reasons, decisive ones first; long ones wrap."""
    table = Table(box=None, show_header=False, pad_edge=True, padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for reason in reasons:
        weight = "" if reason.decisive else "[dim](not decisive)[/] "
        table.add_row(reason.kind.value, f"{weight}{_format_reason(reason)}")
    return table


def _build_arithmetic_table(report: RunReport) -> Table:
    table = Table(box=None, pad_edge=False, title="Arithmetic", title_justify="left", title_style="bold")
    for name in ("severity", "weight", "cases", "failed", "no answer", "earned", "of"):
        table.add_column(name, justify="right")
    for row in reversed(build_tally_rows(report)):
        cells = (row.weight, row.cases, row.failed, row.no_answer, row.earned, row.total)
        table.add_row(str(row.severity), *cells)
    return table


def _build_metric_table(report: RunReport) -> Table:
    table = Table(box=None, pad_edge=False, title="Metrics", title_justify="left", title_style="bold")
    table.add_column("metric")
    for name in ("share", "of", "95 % interval", "target", ""):
        table.add_column(name, justify="right")
    for metric in report.metrics:
        if metric.total or report.triage is None:  # reports on issues cite nothing and refuse nothing
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
