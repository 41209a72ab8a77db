"""A run beside its baseline, case by case: what broke, what was fixed, and whether chance explains it. Pure.

The baseline is an accepted run, one whose verdict was PASS, over the same suite and graded by the same judge. Where
one of these does not hold, nothing is held against it, and the comparison says what differs. Beside a finished run
of the same measure that was not accepted the cases that changed are still listed. A run's own results serve as a
baseline too, for those who have a ``results.json`` instead of a warehouse.

Paired questions show whether a user who writes Hindi gets the right answer as often as one who writes English.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from monitors.gate.metrics import weight_of
from monitors.gate.ratings import Clusters, Ratings, change_of, ratings_of
from monitors.gate.settings import GateSettings, Weights
from monitors.records.base import Blame, Finding, Language, Severity
from monitors.records.comparisons import Comparison, Direction, ParityGap, SeverityChange
from monitors.records.grades import Assessment, CaseOutcome, JudgeLineage
from monitors.records.runs import Baseline, BaselineResult, CaseResult, Judging, RunReport, Scores, Verdict
from monitors.stats.paired import PairedCounts, clustered_mcnemar, mcnemar, paired_difference


def baseline_of(report: RunReport, results: Iterable[CaseResult]) -> Baseline:
    """What `evaluate` compares with, from a run as it was written. Whether it may be compared is decided there."""
    return Baseline(
        report=report,
        asked=tuple(
            BaselineResult(
                case_id=one.assessment.case_id,
                repeat=one.assessment.repeat,
                outcome=one.assessment.outcome,
                blame=one.assessment.blame,
            )
            for one in results
        ),
    )


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


class ComparisonDetail(NamedTuple):
    """A comparison with the pairs and ratings behind it; both are empty where it was refused.

    ``right_before`` are the cases that the baseline had right, where it measured the same.
    """

    comparison: Comparison
    pairs: tuple[Pair, ...]
    ratings_before: Ratings
    right_before: frozenset[str] = frozenset()


def compare(
    baseline: Baseline,
    *,
    run_id: str,
    suite_sha256: str,
    judging: Judging | None,
    assessments: Sequence[Assessment],
    graded: frozenset[str],
    scores: Scores,
    ratings_now: Ratings,
    clusters: Clusters,
    settings: GateSettings,
) -> ComparisonDetail:
    """The run of these ``assessments`` (one for each case) against ``baseline``."""
    before = baseline.report
    other_measure = tuple(_differences(before, run_id, suite_sha256, judging))
    refused = (*_not_accepted(before), *other_measure)
    known = Comparison(
        baseline_run_id=before.run_id,
        baseline_target=before.target.name,
        baseline_environment=before.target.environment,
        baseline_commit=before.commit,
        baseline_finished_at=before.finished_at,
        refused=refused,
    )
    if other_measure or before.interrupted:
        return ComparisonDetail(known, (), {})
    graded_before = right_or_wrong(baseline.asked)
    right = frozenset(case_id for case_id, is_right in graded_before.items() if is_right)
    pairs = _pairs(graded_before, assessments, graded)
    if refused:
        return ComparisonDetail(_add_changes(known, pairs), (), {}, right)
    rated = ratings_of(before.rubric)
    comparison = _add_changes(known, pairs).add_scores(
        weighted_before=_weighted(before.scores, settings.weights),
        weighted_now=scores.weighted.value,
        flat_before=before.scores.flat.value,
        flat_now=scores.flat.value,
        rubric=change_of(rated, ratings_now, clusters, drop=settings.max_rubric_drop),
    )
    return ComparisonDetail(comparison, pairs, rated, right)


def _add_changes(comparison: Comparison, pairs: Sequence[Pair]) -> Comparison:
    return comparison.add_changes(
        shared=len(pairs),
        severities=tuple(_change(severity, pairs) for severity in _severities(pairs)),
        p_value=p_value(pairs),
        cluster_p_value=cluster_p_value(pairs),
        direction=direction_of(pairs),
    )


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


def right_or_wrong(asked: Sequence[BaselineResult]) -> Mapping[str, bool]:
    """Whether a baseline got each case right every time, by case id; without what it left ungraded."""
    graded: dict[str, bool] = {}
    open_ones: set[str] = set()
    for one in asked:
        match one.outcome:
            case CaseOutcome.CORRECT:
                graded.setdefault(one.case_id, True)
            case CaseOutcome.FAILED:
                graded[one.case_id] = False
            case CaseOutcome.NO_ANSWER if one.blame is Blame.APP:
                graded[one.case_id] = False
            case CaseOutcome.NO_ANSWER | CaseOutcome.UNGRADED:
                open_ones.add(one.case_id)
    return {case_id: right for case_id, right in graded.items() if not (right and case_id in open_ones)}


def _not_accepted(before: RunReport) -> Iterator[str]:
    if before.verdict is not Verdict.PASS or before.interrupted:
        how = "it was stopped" if before.interrupted else f"its verdict is {before.verdict}"
        yield f"{how}, and only an accepted run, PASS, is a baseline"


def _differences(before: RunReport, run_id: str, suite_sha256: str, judging: Judging | None) -> Iterator[str]:
    """Why two runs do not measure the same."""
    if before.run_id == run_id:
        yield "it is this very run"
    if before.suite_sha256 != suite_sha256:
        yield f"the suite was {before.suite_sha256[:_HASH_SHOWN]}, is {suite_sha256[:_HASH_SHOWN]}"
    was, now = _judges(before.judging), _judges(judging)
    if was and now and was != now:
        yield f"the judge was {_named(was - now or was)}, is {_named(now - was or now)}"


def _judges(judging: Judging | None) -> frozenset[JudgeLineage]:
    return frozenset(judging.lineages) if judging else frozenset()


def _named(judges: Collection[JudgeLineage]) -> str:
    """Model, rubric and prompt: each of them makes another judge."""
    text = sorted(f"{one.model} (prompt {one.prompt_sha256[:8]}, rubric {one.rubric_version})" for one in judges)
    return " and ".join(text[:_MODELS_SHOWN])


def _pairs(
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
    not_correct = sum(
        (weight_of(tally.severity, weights) * tally.not_correct for tally in before.tallies), Decimal(0)
    )
    return float((total - not_correct) / total) if total else None


FEWEST_PAIRS = 10
"""Below it one answer is a tenth, and a gap of five points cannot be asked for."""

_ROUNDING = 1e-9
"""Two shares of twenty differ by exactly 0.05 as people count, and by 0.05 and a bit as floats do."""


def parity(
    assessments: Sequence[Assessment], *, most_gap: float | None = None, fewest_pairs: int = FEWEST_PAIRS
) -> tuple[ParityGap, ...]:
    """The gap of every other language against English, over cases that share a ``pair``; none without pairs.

    A case asked several times is right when it was right each time. A pair is left out when one of its sides is
    ungraded: neither right nor wrong. ``most_gap`` is the largest gap that is accepted (0.05 = five points).
    """
    graded: dict[str, dict[Language, Finding]] = defaultdict(dict)
    for one in assessments:
        if one.pair is not None:
            found = graded[one.pair]
            found[one.language] = _worse(found.get(one.language), one.factual_match)
    others = sorted({language for found in graded.values() for language in found} - {Language.ENGLISH})
    gaps = (_gap(language, graded.values(), most_gap, fewest_pairs) for language in others)
    return tuple(gap for gap in gaps if gap.pairs + gap.left_out)


def _gap(
    language: Language, graded: Iterable[Mapping[Language, Finding]], most_gap: float | None, fewest_pairs: int
) -> ParityGap:
    shared = [
        (one[Language.ENGLISH], one[language]) for one in graded if {Language.ENGLISH, language} <= one.keys()
    ]
    counted = Counter(pair for pair in shared if Finding.UNGRADED not in pair)
    yes, no = Finding.YES, Finding.NO
    table = PairedCounts(counted[yes, yes], counted[yes, no], counted[no, yes], counted[no, no])
    gap, low, high = paired_difference(table)
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
        target=most_gap,
        met=_met(gap, high, most_gap) if table.total >= max(1, fewest_pairs) else Finding.UNGRADED,
    )


def _met(gap: float, high: float, most_gap: float | None) -> Finding:
    """Missed when the gap is too large; met only when its interval leaves no room for one that is."""
    if most_gap is None:
        return Finding.UNGRADED
    if gap > most_gap + _ROUNDING:
        return Finding.NO
    return Finding.YES if high <= most_gap + _ROUNDING else Finding.UNGRADED


def _worse(before: Finding | None, now: Finding) -> Finding:
    """Wrong once is wrong; ungraded once, and never wrong, is ungraded."""
    if before is None or before is now:
        return now
    return Finding.NO if Finding.NO in (before, now) else Finding.UNGRADED
