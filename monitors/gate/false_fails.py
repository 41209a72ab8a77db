"""How often the gate would FAIL this suite although nothing is wrong: simulated runs through the gate itself. Pure.

A simulated run asks every case as a real one does. Each asking fails or not by the noise of its case, sampled anew
for each run from what the recorded repeats say of it (`monitors.stats.repeatability`), so that cases with few
repeats take part with the noise of the others. What a failure looks like is one of the case's own recorded failures
by chance, else one of another case's, else a wrong answer. The outcomes go through `monitors.gate.evaluate`, and
its verdict counts.

A case that has a fault takes part as if the fault were repaired, so a FAIL that was right is never called false.
Cases fail independently of each other: a bad hour of the application, which hits many at once, is not in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from math import comb
from random import Random
from statistics import variance
from typing import Final

from monitors.gate.assess import severity_of
from monitors.gate.evaluate import RunFacts, verdict_of
from monitors.gate.settings import GateSettings
from monitors.records.base import Blame, Finding, Severity
from monitors.records.cases import GoldCase, Suite
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason, ProbeResult, Timings
from monitors.records.grades import CASE_ROW, Assessment, CaseOutcome, FailureKind
from monitors.records.runs import Baseline, CaseResult, Verdict
from monitors.records.self_checks import FalseFailRate, MissedFault, RecordedAsk, RepeatAdvice, RepeatedCase
from monitors.stats.intervals import beta_quantile
from monitors.stats.repeatability import Group, NoiseFit, NoiseOdds, is_fault, noise_of

RUNS: Final = 200
"""Simulated runs for each figure: a rate of 1 % is told from one of 5 %."""

POSSIBLE: Final = 40
RUNS_OF_EACH: Final = 15
"""Simulated runs of each noise that is possible, for the interval: 600 together."""

REPEATS: Final = (1, 2, 3, 5)
"""How often each severity-3 case may be asked: what advice is given about."""

PRIOR: Final = 0.5
"""Added to what failed and to what did not, so that 600 runs without a FAIL are not taken for a rate of 0."""
LEAST_SPREAD: Final = 1 / 400
LEAST_SIZE: Final = 0.2
"""Bounds of what the spread of 40 rates can say."""

SHOWS: Final = (0.25, 0.5, 0.9)
"""Shares of answers in which a fault may show."""

_RUN: Final = "simulated"
_NO_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Of what was never asked; the verdict reads no time."""

_Failure = tuple[str, int, RecordedAsk]


def groups_of(repeats: Iterable[RepeatedCase]) -> Mapping[str, tuple[Group, ...]]:
    """Failed and all graded askings of each case, build by build."""
    found: defaultdict[str, list[Group]] = defaultdict(list)
    for one in repeats:
        if one.graded:
            found[one.case_id].append((sum(not ask.is_right for ask in one.graded), len(one.graded)))
    return {case_id: tuple(groups) for case_id, groups in found.items()}


def chance_failures(repeats: Iterable[RepeatedCase]) -> Mapping[str, tuple[RecordedAsk, ...]]:
    """The recorded failures by chance of each case."""
    found: defaultdict[str, list[RecordedAsk]] = defaultdict(list)
    for one in repeats:
        failed = [ask for ask in one.graded if not ask.is_right]
        if failed and not is_fault((len(failed), len(one.graded))) and len(one.graded) > 1:
            found[one.case_id].extend(failed)
    return {case_id: tuple(asks) for case_id, asks in found.items()}


class GateSimulator:
    """Runs of one suite through one gate, with what failures look like. Verdicts of equal outcomes are stored."""

    def __init__(
        self,
        facts: RunFacts,
        suite: Suite,
        settings: GateSettings,
        repeats: Sequence[RepeatedCase],
        *,
        baseline: Baseline | None = None,
    ) -> None:
        self._facts = facts
        self._cases = sorted(suite.cases, key=lambda case: -case.severity)
        self._settings = settings
        self._baseline = baseline
        self._groups = groups_of(repeats)
        self._steady = {case.id: right_answer(case) for case in suite.cases} | _never_graded(suite, repeats)
        self._without_failure: dict[tuple[str, int], CaseResult] = {}
        self._failures = chance_failures(repeats)
        self._of_others = {
            refusal: tuple(
                ask
                for case in self._cases
                if case.expected_refusal is refusal
                for ask in self._failures.get(case.id, ())
            )
            for refusal in (False, True)
        }
        self._verdicts: dict[tuple[int, frozenset[_Failure]], Verdict] = {}

    def false_fails(self, noise: NoiseFit, rng: Random, *, repeats: int, runs: int = RUNS) -> FalseFailRate:
        """How often ``runs`` runs FAIL that ask each severity-3 case ``repeats`` times.

        The rate is that of the likeliest noise, sampled anew for each run; the interval that of all noise that the
        askings leave possible (`_interval`).
        """
        verdicts = [self._run(self._noises(noise.likeliest, rng), rng, repeats) for _ in range(runs)]
        failed = verdicts.count(Verdict.FAIL)
        low, high = self._interval(noise, rng, repeats)
        return FalseFailRate(
            repeats=repeats,
            runs=runs,
            failed=failed,
            inconclusive=verdicts.count(Verdict.INCONCLUSIVE),
            low=min(low if noise.mean and low > 1 / (2 * runs) else 0.0, failed / runs),
            high=max(high, failed / runs),
            probes=sum(self._times(case, repeats) for case in self._cases),
        )

    def _interval(self, noise: NoiseFit, rng: Random, repeats: int) -> tuple[float, float]:
        """The middle 95 % of the rates that are possible: a Beta distribution with their mean and variance.

        Each of `POSSIBLE` rates is counted over a few runs of one noise; what so few runs add to the variance is
        taken off.
        """
        counts: list[int] = []
        for _ in range(POSSIBLE):
            noises = self._noises(noise.posterior, rng)
            counts.append(sum(self._run(noises, rng, repeats) is Verdict.FAIL for _ in range(RUNS_OF_EACH)))
        return _beta_interval(counts, RUNS_OF_EACH)

    def _noises(self, odds: NoiseOdds, rng: Random) -> Sequence[float]:
        """A noise for each case that is possible."""
        mean, concentration = odds.sample(rng)
        if not mean:
            return [0.0] * len(self._cases)
        groups = (self._groups.get(case.id, ()) for case in self._cases)
        return [noise_of(each, mean, concentration).sample(rng) for each in groups]

    def _run(self, noises: Sequence[float], rng: Random, repeats: int) -> Verdict:
        return self._verdict(repeats, self._sampled(noises, rng, repeats))

    def _sampled(self, noises: Sequence[float], rng: Random, repeats: int) -> Iterator[_Failure]:
        for case, noise in zip(self._cases, noises, strict=True):
            for repeat in range(self._times(case, repeats) if noise else 0):
                if rng.random() < noise:
                    yield case.id, repeat, self._failure(case, rng)

    def _failure(self, case: GoldCase, rng: Random) -> RecordedAsk:
        alike = self._failures.get(case.id) or self._of_others[case.expected_refusal]
        found = rng.choice(alike) if alike else wrong_answer(case)
        severity, row = severity_of(case.severity, found.failure_kinds)
        return found.model_copy(update={"severity": severity, "policy_row": row})

    def _verdict(self, repeats: int, failures: Iterable[_Failure]) -> Verdict:
        failed = frozenset(failures)
        if (repeats, failed) not in self._verdicts:
            self._verdicts[repeats, failed] = self._evaluated(repeats, failed)
        return self._verdicts[repeats, failed]

    def _evaluated(self, repeats: int, failures: frozenset[_Failure]) -> Verdict:
        failed = {(case_id, repeat): ask for case_id, repeat, ask in failures}
        results = [
            self._one(case, repeat, failed.get((case.id, repeat)))
            for case in self._cases
            for repeat in range(self._times(case, repeats))
        ]
        return verdict_of(self._facts, results, self._settings, baseline=self._baseline, suite=self._cases)

    def _one(self, case: GoldCase, repeat: int, failure: RecordedAsk | None) -> CaseResult:
        if failure is not None:
            return _result(case, repeat, failure)
        key = (case.id, repeat)
        if key not in self._without_failure:
            self._without_failure[key] = _result(case, repeat, self._steady[case.id])
        return self._without_failure[key]

    def _times(self, case: GoldCase, repeats: int) -> int:
        return repeats if case.severity is Severity.PAGE else 1

    def missed(self, *, repeats: int, shows: float) -> MissedFault | None:
        """How likely a fault of a severity-3 case is missed; ``None`` without such a case. Nothing else fails.

        Exact: each number of askings that may show it goes through the gate once, with its binomial probability.
        """
        case = next((case for case in self._cases if case.severity is Severity.PAGE), None)
        if case is None:
            return None
        wrong = wrong_answer(case)
        missed = 0.0
        for count in range(repeats + 1):
            verdict = self._verdict(repeats, ((case.id, repeat, wrong) for repeat in range(count)))
            if verdict is not Verdict.FAIL:
                missed += comb(repeats, count) * shows**count * (1 - shows) ** (repeats - count)
        return MissedFault(shows=shows, no_fail=min(1.0, missed), no_alert=(1 - shows) ** repeats)


def _beta_interval(counts: Sequence[int], runs: int) -> tuple[float, float]:
    """The ends of the Beta distribution of rates of which each was counted over ``runs``."""
    total = len(counts) * runs
    mean = (sum(counts) + PRIOR) / (total + 2 * PRIOR)
    spread = variance(count / runs for count in counts) - mean * (1 - mean) / runs
    share = max(LEAST_SPREAD, spread * runs / (runs - 1) / (mean * (1 - mean)))
    size = max(LEAST_SIZE, 1 / share - 1)
    first, second = mean * size, (1 - mean) * size
    return beta_quantile(0.025, first, second), beta_quantile(0.975, first, second)


def _never_graded(suite: Suite, repeats: Iterable[RepeatedCase]) -> dict[str, RecordedAsk]:
    """What the cases came to that were asked and never graded: they stay ungraded in a simulated run."""
    asked, graded = dict[str, RecordedAsk](), set[str]()
    for one in repeats:
        if one.asks:
            asked[one.case_id] = one.asks[-1]
        if one.graded:
            graded.add(one.case_id)
    return {
        case.id: asked[case.id].model_copy(update={"outcome": CaseOutcome.UNGRADED, "failure_kinds": ()})
        for case in suite.cases
        if case.id in asked and case.id not in graded
    }


def advise(
    simulator: GateSimulator, noise: NoiseFit, rng: Random, *, configured: int, runs: int = RUNS
) -> tuple[RepeatAdvice, ...]:
    """What each number of repeats buys, the configured one first."""
    return tuple(
        RepeatAdvice(
            false_fail=simulator.false_fails(noise, rng, repeats=repeats, runs=runs),
            missed=tuple(
                missed for shows in SHOWS if (missed := simulator.missed(repeats=repeats, shows=shows)) is not None
            ),
        )
        for repeats in dict.fromkeys((configured, *REPEATS))
    )


def right_answer(case: GoldCase) -> RecordedAsk:
    """What a right answer to ``case`` comes to."""
    refusal = case.expected_refusal
    return RecordedAsk(
        run_id=_RUN,
        outcome=CaseOutcome.CORRECT,
        severity=case.severity,
        policy_row=CASE_ROW,
        factual_match=Finding.YES,
        citation_present=Finding.UNGRADED if refusal else Finding.YES,
        refused=Finding.YES if refusal else Finding.NO,
    )


def wrong_answer(case: GoldCase) -> RecordedAsk:
    """What an answer to ``case`` comes to that is wrong, and nothing worse."""
    kind = FailureKind.SHOULD_HAVE_REFUSED if case.expected_refusal else FailureKind.WRONG_FACT
    return right_answer(case).model_copy(
        update={
            "outcome": CaseOutcome.FAILED,
            "failure_kinds": (kind,),
            "blame": Blame.APP,
            "factual_match": Finding.NO,
            "refused": Finding.NO,
        }
    )


def _result(case: GoldCase, repeat: int, ask: RecordedAsk) -> CaseResult:
    """A result that comes to what was recorded; of the answer itself there is nothing."""
    assessment = Assessment(
        outcome=ask.outcome,
        failure_kinds=ask.failure_kinds,
        severity=ask.severity,
        policy_row=ask.policy_row,
        blame=ask.blame,
        factual_match=ask.factual_match,
        citation_present=ask.citation_present,
        refused=ask.refused,
        run_id=_RUN,
        case_id=case.id,
        repeat=repeat,
        case_severity=case.severity,
        reason="recorded",
        expected_refusal=case.expected_refusal,
        type=case.type,
        language=case.language,
        cluster=case.cluster,
        pair=case.pair,
    )
    return CaseResult(case=case, result=_came_back(case, repeat, ask), assessment=assessment)


def _came_back(case: GoldCase, repeat: int, ask: RecordedAsk) -> ProbeResult:
    if ask.outcome is CaseOutcome.NO_ANSWER:
        return NoAnswer(
            run_id=_RUN,
            case_id=case.id,
            repeat=repeat,
            turns=case.turns,
            reason=NoAnswerReason.ANSWER_TIMEOUT,
            blame=Blame.APP,
            detail="recorded",
            asked_at=_NO_TIME,
        )
    return Exchange(
        run_id=_RUN,
        case_id=case.id,
        repeat=repeat,
        turns=case.turns,
        visible_text="",
        asked_at=_NO_TIME,
        timings=Timings(total_ms=0),
    )
