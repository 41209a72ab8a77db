"""Compare a run with an earlier run, the baseline, case by case.

The comparison lists the cases that broke and the cases that were fixed. The comparison also states the probability
that chance alone gives a difference of this size. The baseline must have the verdict PASS, the same suite and the
same judge. Otherwise, the comparison is refused, and the refusal states the difference. If the only difference is
that the baseline has another verdict, the changed cases are still listed.

Some questions are asked in two languages. These pairs show whether a user who writes Hindi gets the right answer as
often as a user who writes English.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from monitors.gate.metrics import get_weight
from monitors.gate.ratings import Ratings, compute_rating_change, map_ratings_by_case
from monitors.gate.settings import GateSettings, Weights
from monitors.records.base import Blame, Finding, Language, Severity
from monitors.records.comparisons import Comparison, Direction, ParityGap, SeverityChange
from monitors.records.grades import Assessment, CaseOutcome, JudgeLineage
from monitors.records.runs import Baseline, BaselineResult, CaseResult, Judging, RunReport, Scores, Verdict
from monitors.stats.paired import (
    PairedCounts,
    compute_clustered_mcnemar_p_value,
    compute_mcnemar_p_value,
    compute_paired_difference,
)


def build_baseline(report: RunReport, results: Iterable[CaseResult]) -> Baseline:
    """Build the baseline from the report and the results of a finished run."""
    return Baseline(
        report=report,
        asked=tuple(
            BaselineResult(
                case_id=result.assessment.case_id,
                repeat=result.assessment.repeat,
                outcome=result.assessment.outcome,
                blame=result.assessment.blame,
            )
            for result in results
        ),
    )


_HASH_CHARACTERS: Final = 12
_MAX_JUDGES_NAMED: Final = 3


class Pair(NamedTuple):
    """One case that both runs graded.

    ``before`` is True if the case was right in the baseline. ``now`` is True if the case is right in this run.
    Cases about the same policy have the same ``cluster``.
    """

    case_id: str
    severity: Severity
    cluster: object
    before: bool
    now: bool

    @property
    def difference(self) -> int:
        """Return 1 if the case broke, -1 if it was fixed, and 0 if it did not change."""
        return int(self.before) - int(self.now)


class ComparisonWithPairs(NamedTuple):
    """A comparison with its case pairs and the baseline's ratings.

    ``pairs`` and ``ratings_before`` are empty if the comparison was refused.
    """

    comparison: Comparison
    pairs: tuple[Pair, ...]
    ratings_before: Ratings


def compare_with_baseline(
    baseline: Baseline,
    *,
    run_id: str,
    suite_sha256: str,
    judging: Judging | None,
    assessments: Sequence[Assessment],
    graded: frozenset[str],
    scores: Scores,
    ratings_now: Ratings,
    settings: GateSettings,
) -> ComparisonWithPairs:
    """Compare a run with ``baseline``. ``assessments`` contains one assessment for each case of the run."""
    before = baseline.report
    differences = tuple(_list_run_differences(before, run_id, suite_sha256, judging))
    refused = differences
    if before.verdict is not Verdict.PASS or before.interrupted:
        fault = "was stopped" if before.interrupted else f"has the verdict {before.verdict}"
        refused = (
            f"the earlier run {fault}, but a baseline must be a finished run with the verdict PASS",
            *differences,
        )
    comparison_base = Comparison(
        baseline_run_id=before.run_id,
        baseline_target=before.target.name,
        baseline_environment=before.target.environment,
        baseline_commit=before.commit,
        baseline_finished_at=before.finished_at,
        refused=refused,
    )
    if differences or before.interrupted:
        return ComparisonWithPairs(comparison_base, (), {})
    graded_before = map_baseline_correctness(baseline.asked)
    pairs = _pair_cases(graded_before, assessments, graded)
    ungraded = (a.case_id for a in assessments if a.case_id not in graded)
    changed = _add_case_changes(comparison_base, pairs, tuple(i for i in ungraded if graded_before.get(i)))
    if refused:
        return ComparisonWithPairs(changed, (), {})
    ratings_before = map_ratings_by_case(before.rubric)
    comparison = changed.with_scores(
        weighted_before=_recompute_baseline_score(before.scores, settings.weights),
        weighted_now=scores.weighted.value,
        flat_before=before.scores.flat.value,
        flat_now=scores.flat.value,
        rubric=compute_rating_change(ratings_before, ratings_now),
    )
    return ComparisonWithPairs(comparison, pairs, ratings_before)


def _add_case_changes(
    comparison: Comparison, pairs: Sequence[Pair], no_longer_graded: tuple[str, ...]
) -> Comparison:
    return comparison.with_changes(
        shared=len(pairs),
        severities=tuple(
            _build_severity_change(severity, pairs)
            for severity in sorted({pair.severity for pair in pairs}, reverse=True)
        ),
        p_value=compute_p_value(pairs),
        cluster_p_value=compute_cluster_p_value(pairs),
        direction=find_change_direction(pairs),
        no_longer_graded=no_longer_graded,
    )


def compute_p_value(pairs: Collection[Pair]) -> float:
    """Compute the p-value of the changes with McNemar's exact two-sided test, case by case."""
    broken, fixed = (sum(pair.difference == sign for pair in pairs) for sign in (1, -1))
    return compute_mcnemar_p_value(broken, fixed)


def compute_cluster_p_value(pairs: Collection[Pair]) -> float | None:
    """Compute the p-value of the changes with McNemar's test, policy by policy.

    Cases about one policy often break together. Therefore, this test counts the changes of all cases of a policy as
    one change. Return ``None`` if no two cases share a policy.
    """
    if len({pair.cluster for pair in pairs}) == len(pairs):
        return None
    net: dict[object, int] = {}
    for pair in pairs:
        if pair.difference:
            net[pair.cluster] = net.get(pair.cluster, 0) + pair.difference
    return compute_clustered_mcnemar_p_value(net.values())


def find_change_direction(pairs: Collection[Pair]) -> Direction:
    """Return WORSE if more cases broke than were fixed, BETTER if fewer broke, and SAME otherwise."""
    total = sum(pair.difference for pair in pairs)
    return Direction.WORSE if total > 0 else Direction.BETTER if total < 0 else Direction.SAME


def map_baseline_correctness(asked: Sequence[BaselineResult]) -> Mapping[str, bool]:
    """Map each case id to True if the case was right every time in the baseline, otherwise to False.

    Ungraded cases are skipped.
    """
    graded: dict[str, bool] = {}
    undecided: set[str] = set()
    for result in asked:
        match result.outcome:
            case CaseOutcome.CORRECT:
                graded.setdefault(result.case_id, True)
            case CaseOutcome.FAILED:
                graded[result.case_id] = False
            case CaseOutcome.NO_ANSWER if result.blame is Blame.APP:
                graded[result.case_id] = False
            case CaseOutcome.NO_ANSWER | CaseOutcome.UNGRADED:
                undecided.add(result.case_id)
    return {case_id: right for case_id, right in graded.items() if not (right and case_id in undecided)}


def _list_run_differences(
    before: RunReport, run_id: str, suite_sha256: str, judging: Judging | None
) -> Iterator[str]:
    """Yield the differences that make two runs incomparable."""
    if before.run_id == run_id:
        yield "a run cannot be its own baseline"
    if before.suite_sha256 != suite_sha256:
        yield (
            f"the suite changed from {before.suite_sha256[:_HASH_CHARACTERS]} to {suite_sha256[:_HASH_CHARACTERS]}"
        )
    was, now = _collect_judge_lineages(before.judging), _collect_judge_lineages(judging)
    if was and now and was != now:
        yield f"the judge changed from {_format_judges(was - now or was)} to {_format_judges(now - was or now)}"


def _collect_judge_lineages(judging: Judging | None) -> frozenset[JudgeLineage]:
    return frozenset(judging.lineages) if judging else frozenset()


def _format_judges(judges: Collection[JudgeLineage]) -> str:
    """Format each judge as its model, prompt and rubric.

    If the model, the prompt or the rubric changes, the judge is a different judge.
    """
    text = sorted(
        f"{judge.model} (prompt {judge.prompt_sha256[:8]}, rubric {judge.rubric_version})" for judge in judges
    )
    return " and ".join(text[:_MAX_JUDGES_NAMED])


def _pair_cases(
    before: Mapping[str, bool], assessments: Sequence[Assessment], graded: frozenset[str]
) -> tuple[Pair, ...]:
    return tuple(
        Pair(
            case_id=a.case_id,
            severity=a.case_severity,
            cluster=a.cluster or ("", a.case_id),
            before=before[a.case_id],
            now=a.outcome is CaseOutcome.CORRECT,
        )
        for a in assessments
        if a.case_id in graded and a.case_id in before
    )


def _build_severity_change(severity: Severity, pairs: Sequence[Pair]) -> SeverityChange:
    same = [pair for pair in pairs if pair.severity is severity]
    return SeverityChange(
        severity=severity,
        shared=len(same),
        newly_failing=tuple(pair.case_id for pair in same if pair.difference > 0),
        newly_fixed=tuple(pair.case_id for pair in same if pair.difference < 0),
        p_value=compute_p_value(same),
    )


def _recompute_baseline_score(before: Scores, weights: Weights) -> float | None:
    """Compute the weighted score of the baseline with the current weights.

    The result can be compared with the score of this run.
    """
    total = sum((get_weight(tally.severity, weights) * tally.cases for tally in before.tallies), Decimal(0))
    not_correct = sum(
        (get_weight(tally.severity, weights) * tally.not_correct for tally in before.tallies), Decimal(0)
    )
    return float((total - not_correct) / total) if total else None


MIN_PAIRS = 10
"""Minimum number of pairs of the same question in two languages.

With fewer pairs, one answer changes the gap by more than ten percentage points.
"""

_ROUNDING = 1e-9
"""Tolerance for rounding errors of floating-point numbers: 0.9 - 0.85 is slightly more than 0.05."""


def compute_language_gaps(
    assessments: Sequence[Assessment], *, max_gap: float | None = None, min_pairs: int = MIN_PAIRS
) -> tuple[ParityGap, ...]:
    """Return for each language how much less accurate its answers are than English answers.

    Only questions that were asked in the language and in English count. The two cases of such a question have the
    same ``pair``. If one of the two cases was not graded, the pair is skipped. A case that was asked several times
    is right if it was right every time. ``max_gap`` is the largest accepted gap: 0.05 means five percentage points.
    """
    graded: dict[str, dict[Language, Finding]] = defaultdict(dict)
    for assessment in assessments:
        if assessment.pair is not None:
            findings = graded[assessment.pair]
            findings[assessment.language] = _merge_findings_of_repeats(
                findings.get(assessment.language), assessment.factual_match
            )
    languages = sorted({language for findings in graded.values() for language in findings} - {Language.ENGLISH})
    gaps = (_compute_language_gap(language, graded.values(), max_gap, min_pairs) for language in languages)
    return tuple(gap for gap in gaps if gap.pairs + gap.left_out)


def _compute_language_gap(
    language: Language, graded: Iterable[Mapping[Language, Finding]], max_gap: float | None, min_pairs: int
) -> ParityGap:
    shared = [
        (findings[Language.ENGLISH], findings[language])
        for findings in graded
        if {Language.ENGLISH, language} <= findings.keys()
    ]
    counted = Counter(pair for pair in shared if Finding.UNGRADED not in pair)
    yes, no = Finding.YES, Finding.NO
    table = PairedCounts(counted[yes, yes], counted[yes, no], counted[no, yes], counted[no, no])
    gap, low, high = compute_paired_difference(table)
    return ParityGap(
        language=language,
        both=table.both,
        english_only=table.first_only,
        other_only=table.second_only,
        neither=table.neither,
        left_out=len(shared) - table.total,
        gap=gap,
        low=low,
        high=high,
        target=max_gap,
        met=_compare_gap_with_limit(gap, high, max_gap) if table.total >= max(1, min_pairs) else Finding.UNGRADED,
    )


def _compare_gap_with_limit(gap: float, high: float, max_gap: float | None) -> Finding:
    """Return NO if the gap is above the limit, and YES if its whole confidence interval is within the limit.

    Otherwise, return UNGRADED.
    """
    if max_gap is None:
        return Finding.UNGRADED
    if gap > max_gap + _ROUNDING:
        return Finding.NO
    return Finding.YES if high <= max_gap + _ROUNDING else Finding.UNGRADED


def _merge_findings_of_repeats(before: Finding | None, now: Finding) -> Finding:
    """Return the worse of two findings from two repeats of a case.

    NO is the worst finding, and UNGRADED is the second worst.
    """
    if before is None or before is now:
        return now
    return Finding.NO if Finding.NO in (before, now) else Finding.UNGRADED
