"""A run beside its baseline, case by case: what broke, what was fixed, and whether chance explains it. Pure.

The baseline is an accepted run, one whose verdict was PASS, over the same suite and graded by the same judge. Where
one of these does not hold, nothing is compared, and the comparison says what differs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from monitors.gate.ratings import Ratings, change_of, ratings_of
from monitors.gate.score import weight_of
from monitors.gate.settings import Weights
from monitors.paired import clustered_mcnemar, mcnemar
from monitors.records.base import Blame, Severity
from monitors.records.baselines import Asked, Baseline
from monitors.records.comparisons import Comparison, Direction, SeverityChange
from monitors.records.grades import Assessment, CaseOutcome, JudgeLineage
from monitors.records.judging import Judging
from monitors.records.runs import RunReport, Scores, Verdict

_HASH_SHOWN: Final = 12
_MODELS_SHOWN: Final = 3


class Pair(NamedTuple):
    """One case in both runs: right before, right now. ``cluster`` is its policy, or itself."""

    case_id: str
    severity: Severity
    cluster: object
    before: bool
    now: bool

    @property
    def difference(self) -> int:
        """1 when it broke, -1 when it was fixed, else 0."""
        return int(self.before) - int(self.now)


class Compared(NamedTuple):
    """A comparison with the pairs and ratings behind it; both are empty where it was refused."""

    comparison: Comparison
    pairs: tuple[Pair, ...]
    ratings_before: Ratings


def compare(
    baseline: Baseline,
    *,
    run_id: str,
    suite_sha256: str,
    judging: Judging | None,
    assessments: Sequence[Assessment],
    told: frozenset[str],
    scores: Scores,
    ratings_now: Ratings,
    weights: Weights,
) -> Compared:
    """The run of these ``assessments`` (one for each case) against ``baseline``."""
    before = baseline.report
    refused = tuple(_differences(before, run_id, suite_sha256, judging))
    known = Comparison(
        baseline_run_id=before.run_id,
        baseline_target=before.target.name,
        baseline_environment=before.target.environment,
        baseline_commit=before.commit,
        baseline_finished_at=before.finished_at,
        refused=refused,
    )
    if refused:
        return Compared(known, (), {})
    pairs = _pairs(right_or_wrong(baseline.asked), assessments, told)
    rated = ratings_of(before.rubric)
    found = known.model_copy(
        update={
            "shared": len(pairs),
            "severities": tuple(_change(severity, pairs) for severity in _severities(pairs)),
            "p_value": p_value(pairs),
            "cluster_p_value": cluster_p_value(pairs),
            "direction": direction_of(pairs),
            "weighted_before": _weighted(before.scores, weights),
            "weighted_now": scores.weighted.value,
            "flat_before": before.scores.flat.value,
            "flat_now": scores.flat.value,
            "rubric": change_of(rated, ratings_now),
        }
    )
    return Compared(found, pairs, rated)


def p_value(pairs: Collection[Pair]) -> float:
    """McNemar's, exact and two-sided, over the cases one by one: each was asked in a conversation of its own."""
    broken, fixed = (sum(pair.difference == way for pair in pairs) for way in (1, -1))
    return mcnemar(broken, fixed)


def cluster_p_value(pairs: Collection[Pair]) -> float | None:
    """The same by policies, which speaks for policies beyond the suite's; ``None`` where no cases share one."""
    if len({pair.cluster for pair in pairs}) == len(pairs):
        return None
    net: dict[object, int] = {}
    for pair in pairs:
        if pair.difference:
            net[pair.cluster] = net.get(pair.cluster, 0) + pair.difference
    return clustered_mcnemar(net.values())


def direction_of(pairs: Collection[Pair]) -> Direction:
    """Whether more broke than were fixed."""
    total = sum(pair.difference for pair in pairs)
    return Direction.WORSE if total > 0 else Direction.BETTER if total < 0 else Direction.SAME


def right_or_wrong(asked: Sequence[Asked]) -> Mapping[str, bool]:
    """By case id, whether a baseline got it right every time; without what it could not tell."""
    told: dict[str, bool] = {}
    open_ones: set[str] = set()
    for one in asked:
        match one.outcome:
            case CaseOutcome.CORRECT:
                told.setdefault(one.case_id, True)
            case CaseOutcome.FAILED:
                told[one.case_id] = False
            case CaseOutcome.NO_ANSWER if one.blame is Blame.APP:
                told[one.case_id] = False
            case CaseOutcome.NO_ANSWER | CaseOutcome.UNTOLD:
                open_ones.add(one.case_id)
    return {case_id: right for case_id, right in told.items() if not (right and case_id in open_ones)}


def _differences(before: RunReport, run_id: str, suite_sha256: str, judging: Judging | None) -> Iterator[str]:
    if before.run_id == run_id:
        yield "it is this very run"
    if before.verdict is not Verdict.PASS or before.interrupted:
        how = "it was stopped" if before.interrupted else f"its verdict is {before.verdict}"
        yield f"{how}, and only an accepted run, PASS, is a baseline"
    if before.suite_sha256 != suite_sha256:
        yield f"the suite was {before.suite_sha256[:_HASH_SHOWN]}, is {suite_sha256[:_HASH_SHOWN]}"
    was, now = _judges(before.judging), _judges(judging)
    if was and now and was != now:
        yield f"the judge was {_named(was - now or was)}, is {_named(now - was or now)}"


def _judges(judging: Judging | None) -> frozenset[JudgeLineage]:
    return frozenset(judging.lineages) if judging else frozenset()


def _named(judges: Collection[JudgeLineage]) -> str:
    """Model, rubric and prompt: each of them makes another judge."""
    words = sorted(f"{one.model} (prompt {one.prompt_sha256[:8]}, rubric {one.rubric_version})" for one in judges)
    return " and ".join(words[:_MODELS_SHOWN])


def _pairs(before: Mapping[str, bool], assessments: Sequence[Assessment], told: frozenset[str]) -> tuple[Pair, ...]:
    return tuple(
        Pair(
            case_id=a.case_id,
            severity=a.case_severity,
            cluster=a.cluster or ("", a.case_id),
            before=before[a.case_id],
            now=a.outcome is CaseOutcome.CORRECT,
        )
        for a in assessments
        if a.case_id in told and a.case_id in before
    )


def _severities(pairs: Collection[Pair]) -> Sequence[Severity]:
    return sorted({pair.severity for pair in pairs}, reverse=True)


def _change(severity: Severity, pairs: Sequence[Pair]) -> SeverityChange:
    same = [pair for pair in pairs if pair.severity is severity]
    return SeverityChange(
        severity=severity,
        shared=len(same),
        newly_failing=tuple(pair.case_id for pair in same if pair.difference > 0),
        newly_fixed=tuple(pair.case_id for pair in same if pair.difference < 0),
        p_value=p_value(same),
    )


def _weighted(before: Scores, weights: Weights) -> float | None:
    """The baseline's weighted score under today's weights: two sets of weights cannot be compared."""
    total = sum((weight_of(tally.severity, weights) * tally.cases for tally in before.tallies), Decimal(0))
    lost = sum((weight_of(tally.severity, weights) * tally.lost for tally in before.tallies), Decimal(0))
    return float((total - lost) / total) if total else None
