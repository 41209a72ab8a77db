"""Measure how often an application answers a question correctly once and wrongly the next time.

Two such answers to one case are a **flip**. The figures come from recorded runs that asked each case several times.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from monitors.gate.evaluate import RunFacts
from monitors.gate.false_fails import RUNS, GateSimulator, compare_repeat_counts, count_failures_per_case_build
from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.cases import Suite
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import Baseline
from monitors.records.self_checks import FlipRate, RecordedAsk, Repeatability, RepeatedCase
from monitors.stats.repeatability import compute_flip_share, fit_noise, has_consistent_failure

MIN_PAIRS: Final = 20
"""A flip rate needs at least this many graded pairs of answers.

With 19 pairs and no flip, the true rate can still be one in seven.
"""

ANY_FAILURE: Final = "right or wrong"
NO_ANSWER: Final = "no answer"


class AnswerPair(NamedTuple):
    """Two consecutive answers of the same build to one case."""

    case: RepeatedCase
    first: RecordedAsk
    second: RecordedAsk

    @property
    def cluster(self) -> Hashable:
        """Return the id of the case, because pairs of the same case are not independent observations."""
        return self.case.case_id


def pair_consecutive_answers(repeats: Iterable[RepeatedCase]) -> tuple[AnswerPair, ...]:
    """Pair each graded answer with the next graded answer to the same case."""
    return tuple(AnswerPair(case, *both) for case in repeats for both in pairwise(case.graded))


def compute_flip_rates(pairs: Sequence[AnswerPair]) -> tuple[FlipRate, ...]:
    """Return the flip rates: of all cases, by severity, and by failure kind."""
    by_severity = (
        (f"severity {severity.value}", [pair for pair in pairs if pair.case.case_severity is severity])
        for severity in sorted(Severity, reverse=True)
    )
    rates = [_compute_flip_rate(ANY_FAILURE, pairs, _is_failed_answer)]
    rates += [_compute_flip_rate(name, same, _is_failed_answer) for name, same in by_severity if same]
    kinds = {kind for pair in pairs for ask in (pair.first, pair.second) for kind in ask.failure_kinds}
    rates += [
        _compute_flip_rate(kind.value, pairs, lambda ask, kind=kind: kind in ask.failure_kinds)
        for kind in FailureKind
        if kind in kinds
    ]
    silent = _compute_flip_rate(NO_ANSWER, pairs, lambda ask: ask.outcome is CaseOutcome.NO_ANSWER)
    return tuple([*rates, silent] if silent.shown else rates)


def _is_failed_answer(ask: RecordedAsk) -> bool:
    return not ask.is_right


def _compute_flip_rate(name: str, pairs: Sequence[AnswerPair], is_shown: Callable[[RecordedAsk], bool]) -> FlipRate:
    shown_pairs = [(pair, is_shown(pair.first), is_shown(pair.second)) for pair in pairs]
    share = compute_flip_share((pair.cluster, first is not second) for pair, first, second in shown_pairs)
    return FlipRate(
        name=name,
        flips=share.flips,
        pairs=share.pairs,
        cases=share.cases,
        low=share.low,
        high=share.high,
        shown=sum(first or second for _, first, second in shown_pairs),
        again=sum(first and second for _, first, second in shown_pairs),
        enough=share.pairs >= MIN_PAIRS,
    )


def list_consistently_failing_case_ids(repeats: Iterable[RepeatedCase]) -> Iterator[str]:
    """Yield the ids of the cases that at least one build answered wrong most of the time.

    Such a failure is a fault, not chance.
    """
    for case_id, groups in sorted(count_failures_per_case_build(repeats).items()):
        if any(map(has_consistent_failure, groups)):
            yield case_id


def compute_repeatability(
    facts: RunFacts,
    suite: Suite,
    repeats: Sequence[RepeatedCase],
    settings: GateSettings,
    rng: Random,
    *,
    configured: int = 1,
    baseline: Baseline | None = None,
    runs: int = RUNS,
) -> Repeatability:
    """Return all repeatability figures of one suite.

    ``configured`` is the number of times that a run currently asks each severity-3 case.
    """
    pairs = pair_consecutive_answers(repeats)
    figures = Repeatability(
        target=facts.target.name,
        suite_name=suite.name,
        suite_cases=len(suite.cases),
        severity_3_cases=sum(case.severity is Severity.CRITICAL for case in suite.cases),
        pairs=len(pairs),
        cases=len({pair.case.case_id for pair in pairs}),
        rates=compute_flip_rates(pairs) if pairs else (),
        flipped=_list_flipped_cases(pairs),
        steady_failures=tuple(list_consistently_failing_case_ids(repeats)),
    )
    noise = fit_noise(count_failures_per_case_build(repeats).values())
    if noise is None:
        return figures
    figures = figures.with_noise(noise.mean, low=noise.low, high=noise.high)
    if len(pairs) < MIN_PAIRS:
        return figures
    simulator = GateSimulator(facts, suite, settings, repeats, baseline=baseline)
    return figures.with_advice(compare_repeat_counts(simulator, noise, rng, configured=configured, runs=runs))


def _list_flipped_cases(pairs: Iterable[AnswerPair]) -> tuple[str, ...]:
    """Return the ids of the cases with flips, most flips first."""
    flips: defaultdict[str, int] = defaultdict(int)
    for pair in pairs:
        flips[pair.case.case_id] += pair.first.is_right is not pair.second.is_right
    return tuple(
        case_id for case_id in sorted(flips, key=lambda case_id: (-flips[case_id], case_id)) if flips[case_id]
    )
