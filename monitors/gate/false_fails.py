"""Estimate how often the gate gives the verdict FAIL by chance, when the application has no fault.

The estimate comes from simulated runs of the suite. Each question fails with a small probability, its **noise**.
The noise is estimated from recorded runs that asked the same question several times
(`monitors.stats.repeatability`). For a case with few recorded answers, the noise is estimated mostly from other
cases. `monitors.gate.evaluate` gives the verdict of each simulated run.

A case that mostly fails has a fault. It is simulated as if the fault were fixed, because a FAIL that a fault causes
is not false. An outage that breaks many cases at once is not simulated.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from math import comb
from random import Random
from statistics import variance
from typing import Final

from monitors.gate.assess import decide_severity
from monitors.gate.evaluate import RunFacts, compute_verdict_only
from monitors.gate.settings import GateSettings
from monitors.records.base import Blame, Finding, Severity
from monitors.records.cases import GoldCase, Suite
from monitors.records.exchanges import Exchange, NoAnswer, NoAnswerReason, ProbeResult, Timings
from monitors.records.grades import CASE_ROW, Assessment, CaseOutcome, FailureKind
from monitors.records.runs import Baseline, CaseResult, Verdict
from monitors.records.self_checks import FalseFailRate, MissedFault, RecordedAsk, RepeatAdvice, RepeatedCase
from monitors.stats.intervals import compute_beta_quantile
from monitors.stats.repeatability import Group, NoiseFit, NoiseOdds, compute_case_noise, has_consistent_failure

RUNS: Final = 200
"""Number of simulated runs: enough to distinguish a rate of 1 % from a rate of 5 %."""

NOISE_SAMPLES: Final = 40
RUNS_PER_NOISE: Final = 15
"""Number of simulated runs for each of the `NOISE_SAMPLES` random samples of the noise.

The confidence interval is computed from the 600 runs of all samples together.
"""

REPEAT_OPTIONS: Final = (1, 2, 3, 5)
"""`compare_repeat_counts` compares runs that ask each severity-3 case this many times."""

PRIOR: Final = 0.5
"""The number that is added to the count of FAIL verdicts, and also to the count of all other verdicts.

If nothing were added, 600 runs without a FAIL would give a rate of exactly 0, which 600 runs cannot prove.
"""
MIN_SPREAD: Final = 1 / 400
MIN_SIZE: Final = 0.2
"""Minimum size (sum of both parameters) of the fitted Beta distribution. `MIN_SPREAD` is its minimum spread.

Smaller values cannot be estimated from 40 rates.
"""

FAULT_SHARES: Final = (0.25, 0.5, 0.9)
"""Shares of the answers in which a fault shows.

For each share, the chance that the gate misses the fault is computed.
"""

_RUN: Final = "simulated"
_NO_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The time of simulated answers, which has no effect on the verdict."""

_Failure = tuple[str, int, RecordedAsk]


def count_failures_per_case_build(repeats: Iterable[RepeatedCase]) -> Mapping[str, tuple[Group, ...]]:
    """Return a pair for each case and build: the number of failed answers and the number of graded answers."""
    groups_by_case: defaultdict[str, list[Group]] = defaultdict(list)
    for case in repeats:
        if case.graded:
            groups_by_case[case.case_id].append((sum(not ask.is_right for ask in case.graded), len(case.graded)))
    return {case_id: tuple(groups) for case_id, groups in groups_by_case.items()}


def collect_chance_failures(repeats: Iterable[RepeatedCase]) -> Mapping[str, tuple[RecordedAsk, ...]]:
    """Return for each case the recorded answers that failed by chance and not because of a fault."""
    failures: defaultdict[str, list[RecordedAsk]] = defaultdict(list)
    for case in repeats:
        failed = [ask for ask in case.graded if not ask.is_right]
        if failed and not has_consistent_failure((len(failed), len(case.graded))) and len(case.graded) > 1:
            failures[case.case_id].extend(failed)
    return {case_id: tuple(asks) for case_id, asks in failures.items()}


class GateSimulator:
    """A simulator that computes the verdicts of runs of one suite.

    If several runs have the same failures, their verdict is computed only once.
    """

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
        self._groups = count_failures_per_case_build(repeats)
        self._steady = {
            case.id: build_right_answer_record(case) for case in suite.cases
        } | _collect_never_graded_answers(suite, repeats)
        self._without_failure: dict[tuple[str, int], CaseResult] = {}
        self._failures = collect_chance_failures(repeats)
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

    def estimate_false_fails(
        self, noise: NoiseFit, rng: Random, *, repeats: int, runs: int = RUNS
    ) -> FalseFailRate:
        """Simulate ``runs`` runs that ask each severity-3 case ``repeats`` times, and count the verdicts FAIL.

        The rate is computed with the most likely noise of each case. The interval also allows for other noise that
        fits the recorded answers.
        """
        verdicts = [
            self._simulate_run(self._sample_case_noises(noise.likeliest, rng), rng, repeats) for _ in range(runs)
        ]
        failed = verdicts.count(Verdict.FAIL)
        low, high = self._estimate_interval(noise, rng, repeats)
        return FalseFailRate(
            repeats=repeats,
            runs=runs,
            failed=failed,
            inconclusive=verdicts.count(Verdict.INCONCLUSIVE),
            low=min(low if noise.mean and low > 1 / (2 * runs) else 0.0, failed / runs),
            high=max(high, failed / runs),
            probes=sum(self._choose_repeats_by_severity(case, repeats) for case in self._cases),
        )

    def _estimate_interval(self, noise: NoiseFit, rng: Random, repeats: int) -> tuple[float, float]:
        """Return the 95 % interval of the rate of false FAILs, from simulations with different noise."""
        counts: list[int] = []
        for _ in range(NOISE_SAMPLES):
            noises = self._sample_case_noises(noise.posterior, rng)
            counts.append(
                sum(self._simulate_run(noises, rng, repeats) is Verdict.FAIL for _ in range(RUNS_PER_NOISE))
            )
        return _compute_beta_interval(counts, RUNS_PER_NOISE)

    def _sample_case_noises(self, odds: NoiseOdds, rng: Random) -> Sequence[float]:
        """Draw the noise of each case at random."""
        mean, concentration = odds.sample(rng)
        if not mean:
            return [0.0] * len(self._cases)
        groups = (self._groups.get(case.id, ()) for case in self._cases)
        return [compute_case_noise(group, mean, concentration).sample(rng) for group in groups]

    def _simulate_run(self, noises: Sequence[float], rng: Random, repeats: int) -> Verdict:
        failures = [
            (case.id, repeat, self._sample_failure(case, rng))
            for case, noise in zip(self._cases, noises, strict=True)
            for repeat in range(self._choose_repeats_by_severity(case, repeats) if noise else 0)
            if rng.random() < noise
        ]
        return self._compute_cached_verdict(repeats, failures)

    def _sample_failure(self, case: GoldCase, rng: Random) -> RecordedAsk:
        """Return a recorded chance failure of this case or of similar cases.

        If there is no such failure, return a wrong answer. Two cases are similar if both expect a refusal, or both
        expect an answer.
        """
        alike = self._failures.get(case.id) or self._of_others[case.expected_refusal]
        ask = rng.choice(alike) if alike else build_wrong_answer_record(case)
        severity, row = decide_severity(case.severity, ask.failure_kinds)
        return ask.with_severity(severity, row)

    def _compute_cached_verdict(self, repeats: int, failures: Iterable[_Failure]) -> Verdict:
        failed = frozenset(failures)
        if (repeats, failed) not in self._verdicts:
            self._verdicts[repeats, failed] = self._compute_verdict_with_failures(repeats, failed)
        return self._verdicts[repeats, failed]

    def _compute_verdict_with_failures(self, repeats: int, failures: frozenset[_Failure]) -> Verdict:
        failed = {(case_id, repeat): ask for case_id, repeat, ask in failures}
        results = [
            self._build_cached_result(case, repeat, failed.get((case.id, repeat)))
            for case in self._cases
            for repeat in range(self._choose_repeats_by_severity(case, repeats))
        ]
        return compute_verdict_only(
            self._facts, results, self._settings, baseline=self._baseline, suite=self._cases
        )

    def _build_cached_result(self, case: GoldCase, repeat: int, failure: RecordedAsk | None) -> CaseResult:
        if failure is not None:
            return _build_recorded_result(case, repeat, failure)
        key = (case.id, repeat)
        if key not in self._without_failure:
            self._without_failure[key] = _build_recorded_result(case, repeat, self._steady[case.id])
        return self._without_failure[key]

    def _choose_repeats_by_severity(self, case: GoldCase, repeats: int) -> int:
        return repeats if case.severity is Severity.CRITICAL else 1

    def estimate_miss_chance(self, *, repeats: int, shows: float) -> MissedFault | None:
        """Return the chance that the gate misses a fault in a severity-3 case.

        ``shows`` is the share of the answers that show the fault. All other cases pass. Return ``None`` if the
        suite has no severity-3 case.
        """
        case = next((case for case in self._cases if case.severity is Severity.CRITICAL), None)
        if case is None:
            return None
        wrong = build_wrong_answer_record(case)
        missed = 0.0
        for count in range(repeats + 1):
            verdict = self._compute_cached_verdict(repeats, ((case.id, repeat, wrong) for repeat in range(count)))
            if verdict is not Verdict.FAIL:
                missed += comb(repeats, count) * shows**count * (1 - shows) ** (repeats - count)
        return MissedFault(shows=shows, no_fail=min(1.0, missed), no_alert=(1 - shows) ** repeats)


def _compute_beta_interval(counts: Sequence[int], runs: int) -> tuple[float, float]:
    """Return the 95 % interval of a rate.

    Each of ``counts`` is the number of events in a group of ``runs`` runs.

    A Beta distribution is fitted to the rates of the groups. The variance that comes from the small number of runs
    is subtracted first.
    """
    total = len(counts) * runs
    mean = (sum(counts) + PRIOR) / (total + 2 * PRIOR)
    spread = variance(count / runs for count in counts) - mean * (1 - mean) / runs
    share = max(MIN_SPREAD, spread * runs / (runs - 1) / (mean * (1 - mean)))
    size = max(MIN_SIZE, 1 / share - 1)
    first, second = mean * size, (1 - mean) * size
    return compute_beta_quantile(0.025, first, second), compute_beta_quantile(0.975, first, second)


def _collect_never_graded_answers(suite: Suite, repeats: Iterable[RepeatedCase]) -> dict[str, RecordedAsk]:
    """Return the last answer of each case that was never graded. Such a case stays ungraded in simulated runs."""
    asked, graded = dict[str, RecordedAsk](), set[str]()
    for repeated in repeats:
        if repeated.asks:
            asked[repeated.case_id] = repeated.asks[-1]
        if repeated.graded:
            graded.add(repeated.case_id)
    return {
        case.id: asked[case.id].mark_ungraded()
        for case in suite.cases
        if case.id in asked and case.id not in graded
    }


def compare_repeat_counts(
    simulator: GateSimulator, noise: NoiseFit, rng: Random, *, configured: int, runs: int = RUNS
) -> tuple[RepeatAdvice, ...]:
    """Compute for several numbers of repeats how often a run falsely fails, and how often it misses a fault.

    The configured number of repeats comes first.
    """
    return tuple(
        RepeatAdvice(
            false_fail=simulator.estimate_false_fails(noise, rng, repeats=repeats, runs=runs),
            missed=tuple(
                missed
                for shows in FAULT_SHARES
                if (missed := simulator.estimate_miss_chance(repeats=repeats, shows=shows)) is not None
            ),
        )
        for repeats in dict.fromkeys((configured, *REPEAT_OPTIONS))
    )


def build_right_answer_record(case: GoldCase) -> RecordedAsk:
    """Build the record of a right answer to ``case``."""
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


def build_wrong_answer_record(case: GoldCase) -> RecordedAsk:
    """Build the record of a wrong answer to ``case``."""
    kind = FailureKind.SHOULD_HAVE_REFUSED if case.expected_refusal else FailureKind.WRONG_FACT
    return build_right_answer_record(case).mark_failed(kind)


def _build_recorded_result(case: GoldCase, repeat: int, ask: RecordedAsk) -> CaseResult:
    """Build the result of a simulated answer, with the recorded outcome and an empty text."""
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
    return CaseResult(case=case, result=_build_probe_result(case, repeat, ask), assessment=assessment)


def _build_probe_result(case: GoldCase, repeat: int, ask: RecordedAsk) -> ProbeResult:
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
