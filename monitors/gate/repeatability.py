"""What the recorded repeats of a suite say: flip rates, the noise behind them, and its cost at the gate. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Final, NamedTuple

from monitors.gate.evaluate import RunFacts
from monitors.gate.false_fails import RUNS, GateSimulator, advise, groups_of
from monitors.gate.settings import GateSettings
from monitors.records.base import Severity
from monitors.records.cases import Suite
from monitors.records.grades import CaseOutcome, FailureKind
from monitors.records.runs import Baseline
from monitors.records.self_checks import FlipRate, RecordedAsk, Repeatability, RepeatedCase
from monitors.stats.repeatability import fit_noise, flip_share, is_fault

FEWEST_PAIRS: Final = 20
"""With fewer graded pairs, none of them flipped, one in seven may still flip: too few to tell anything by."""

ANY: Final = "right or wrong"
NO_ANSWER: Final = "no answer"


class AskPair(NamedTuple):
    """Two askings of one case, one after the other, against one build."""

    case: RepeatedCase
    first: RecordedAsk
    second: RecordedAsk

    @property
    def cluster(self) -> Hashable:
        """What it shares with pairs that it is no independent observation of."""
        return self.case.case_id


def pairs_of(repeats: Iterable[RepeatedCase]) -> tuple[AskPair, ...]:
    """Every two graded askings that follow each other."""
    return tuple(AskPair(one, *both) for one in repeats for both in pairwise(one.graded))


def flip_rates(pairs: Sequence[AskPair]) -> tuple[FlipRate, ...]:
    """The flip rate of right against wrong, over all and by severity, then of each failure kind that was seen."""
    by_severity = (
        (f"severity {severity.value}", [pair for pair in pairs if pair.case.case_severity is severity])
        for severity in sorted(Severity, reverse=True)
    )
    rates = [_rate(ANY, pairs, _failed)]
    rates += [_rate(name, same, _failed) for name, same in by_severity if same]
    kinds = {kind for pair in pairs for ask in (pair.first, pair.second) for kind in ask.failure_kinds}
    rates += [_rate(kind.value, pairs, _shows(kind)) for kind in FailureKind if kind in kinds]
    silent = _rate(NO_ANSWER, pairs, lambda ask: ask.outcome is CaseOutcome.NO_ANSWER)
    return tuple([*rates, silent] if silent.shown else rates)


def _failed(ask: RecordedAsk) -> bool:
    return not ask.is_right


def _shows(kind: FailureKind) -> Callable[[RecordedAsk], bool]:
    return lambda ask: kind in ask.failure_kinds


def _rate(name: str, pairs: Sequence[AskPair], shows: Callable[[RecordedAsk], bool]) -> FlipRate:
    seen = [(pair, shows(pair.first), shows(pair.second)) for pair in pairs]
    share = flip_share((pair.cluster, first is not second) for pair, first, second in seen)
    return FlipRate(
        name=name,
        flips=share.flips,
        pairs=share.pairs,
        cases=share.cases,
        low=share.low,
        high=share.high,
        shown=sum(first or second for _, first, second in seen),
        again=sum(first and second for _, first, second in seen),
        enough=share.pairs >= FEWEST_PAIRS,
    )


def steady_failures(repeats: Iterable[RepeatedCase]) -> Iterator[str]:
    """Cases that failed in most of their askings of a build: they have a fault."""
    for case_id, groups in sorted(groups_of(repeats).items()):
        if any(map(is_fault, groups)):
            yield case_id


def repeatability(
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
    """All figures of one suite. ``configured`` is how often each severity-3 case is asked now."""
    pairs = pairs_of(repeats)
    known = Repeatability(
        target=facts.target.name,
        suite_name=suite.name,
        suite_cases=len(suite.cases),
        severity_3_cases=sum(case.severity is Severity.PAGE for case in suite.cases),
        pairs=len(pairs),
        cases=len({pair.case.case_id for pair in pairs}),
        rates=flip_rates(pairs) if pairs else (),
        flipped=_flipped(pairs),
        steady_failures=tuple(steady_failures(repeats)),
    )
    noise = fit_noise(groups_of(repeats).values())
    if noise is None:
        return known
    known = known.add_noise(noise.mean, low=noise.low, high=noise.high)
    if len(pairs) < FEWEST_PAIRS:
        return known
    simulator = GateSimulator(facts, suite, settings, repeats, baseline=baseline)
    return known.add_advice(advise(simulator, noise, rng, configured=configured, runs=runs))


def _flipped(pairs: Iterable[AskPair]) -> tuple[str, ...]:
    """Cases that flipped, the most often first."""
    flips: defaultdict[str, int] = defaultdict(int)
    for pair in pairs:
        flips[pair.case.case_id] += pair.first.is_right is not pair.second.is_right
    return tuple(case_id for case_id in sorted(flips, key=lambda one: (-flips[one], one)) if flips[case_id])
