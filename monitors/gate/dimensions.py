"""Count the correct reports of an agent that investigates issues, and the steps that it needed.

The ratings of the reports are in `monitors.gate.ratings`. Each figure is compared with the baseline only on the
issues that have this figure in both runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from monitors.facts.tool_calls import map_repeated_steps_to_first
from monitors.gate.compare import ComparisonWithPairs, Pair
from monitors.records.comparisons import Comparison, DimensionChange, TriageChange
from monitors.records.exchanges import Evidence, Exchange
from monitors.records.grades import Assessment, CaseOutcome
from monitors.records.runs import CaseResult, IssuePath, Metric, TriageSummary
from monitors.stats.intervals import compute_clustered_share, count_by_cluster

ACCURACY = "triage_accuracy"


def build_triage_summary(
    results: Sequence[CaseResult], assessments: Sequence[Assessment], graded: frozenset[str]
) -> TriageSummary | None:
    """Return the number of issues, the accuracy of the reports and the steps.

    Return ``None`` if there are no issues. ``assessments`` contains one assessment for each case. ``graded``
    contains the ids of the cases that were graded.
    """
    issues = _collect_issue_ids(results)
    if not issues:
        return None
    return TriageSummary(
        issues=len(issues),
        accuracy=_compute_report_accuracy([a for a in assessments if a.case_id in issues & graded]),
        paths=tuple(_list_agent_paths_of_issues(results)),
    )


def _compute_report_accuracy(assessments: Sequence[Assessment]) -> Metric:
    correct = ((a.cluster or ("", a.case_id), a.outcome is CaseOutcome.CORRECT) for a in assessments)
    share = compute_clustered_share(count_by_cluster(correct))
    return Metric(
        name=ACCURACY,
        passed=share.passed,
        total=share.total,
        low=share.low,
        high=share.high,
        clusters=share.clusters if share.clusters < share.total else None,
    )


def _list_agent_paths_of_issues(results: Sequence[CaseResult]) -> Iterator[IssuePath]:
    results_by_case: dict[str, list[CaseResult]] = {}
    for result in results:
        if (
            result.case.triage is not None
            and isinstance(result.result, Exchange)
            and count_agent_steps(result.result.evidence)
        ):
            results_by_case.setdefault(result.case.id, []).append(result)
    for case_id, asked in results_by_case.items():
        yield _build_agent_path_of_issue(case_id, asked)


def _build_agent_path_of_issue(case_id: str, asked: Sequence[CaseResult]) -> IssuePath:
    task, evidences = asked[0].case.triage, [result.result.evidence for result in asked]
    comparable = [
        evidence.steps for evidence in evidences if any(step.detail and not step.cut for step in evidence.steps)
    ]
    return IssuePath(
        case_id=case_id,
        steps=fmean(count_agent_steps(evidence) for evidence in evidences),
        repeated=fmean(len(map_repeated_steps_to_first(steps)) for steps in comparable) if comparable else None,
        shortest_path=task.reference.shortest_path if task else None,
    )


def count_agent_steps(evidence: Evidence) -> int:
    """Return the number of steps that the agent needed, or 0 if the number is unknown.

    If the application reports its number of hops, this number is returned. Otherwise, the observed steps are
    counted.
    """
    return evidence.hops or (0 if evidence.steps_cut else len(evidence.steps))


def build_comparison_with_triage_change(
    compared: ComparisonWithPairs,
    before: TriageSummary | None,
    now: TriageSummary | None,
    results: Sequence[CaseResult],
) -> Comparison:
    """Add the changes of accuracy and steps to the comparison ``compared``, and return it.

    If one of the runs has no issues, or if the runs are not comparable, the comparison is returned unchanged.
    """
    if compared.comparison.refused or before is None or now is None:
        return compared.comparison
    issues = _collect_issue_ids(results)
    change = TriageChange(
        accuracy=_compute_accuracy_change([pair for pair in compared.pairs if pair.case_id in issues]),
        steps=_compute_step_count_change({path.case_id: path.steps for path in before.paths}, now.paths),
    )
    return compared.comparison.with_triage(None if change == TriageChange() else change)


def _collect_issue_ids(results: Sequence[CaseResult]) -> frozenset[str]:
    return frozenset(result.case.id for result in results if result.case.triage is not None)


def _compute_accuracy_change(pairs: Sequence[Pair]) -> DimensionChange | None:
    if not pairs:
        return None
    return DimensionChange(
        shared=len(pairs),
        before=fmean(pair.before for pair in pairs),
        now=fmean(pair.now for pair in pairs),
    )


def _compute_step_count_change(before: Mapping[str, float], now: Sequence[IssuePath]) -> DimensionChange | None:
    shared = [path for path in now if path.case_id in before]
    if not shared:
        return None
    return DimensionChange(
        shared=len(shared),
        before=fmean(before[path.case_id] for path in shared),
        now=fmean(path.steps for path in shared),
    )
