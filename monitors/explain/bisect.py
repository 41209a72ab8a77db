"""Find the first bad build by a probabilistic bisection, for cases that do not fail every time.

The builds are in order. The first build is assumed to be good, and the last build is assumed to be bad. Each
hypothesis names one build as the first bad build. There are two more hypotheses: the first build is already bad, or
no build is bad. A case has two unknown failure rates: one before the first bad build, and one from that build on.
These rates are estimated together with the first bad build, on a grid of rates (`KINDS`). A case may also fail at
random on all builds, or it may have broken at another build than the other cases.

The next question is always the question that is expected to give the most information about the first bad build (D.
V. Lindley, On a Measure of the Information Provided by an Experiment, 1956). If the answers are deterministic, the
search is a binary search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import log2, prod
from typing import Final, NamedTuple

SETTLED_PROBABILITY: Final = 0.95
"""The search ends if one hypothesis has at least this probability."""
END_PRIOR: Final = 0.02
"""The prior probability that the first build, which the user gives as good, is already bad.

The last build, which the user gives as bad, is good with the same prior probability.
"""
OTHER_CAUSE_PRIOR: Final = 0.03
"""The prior probability that a case broke at a different build than the other cases."""
RANDOM_FAILURE_PRIOR: Final = 0.08
"""The prior probability that a case fails as often before as after the first bad build."""
MIN_INFORMATION_BITS: Final = 0.002
"""Minimum expected information of a question in bits. The search ends if no question reaches this minimum."""
STAY_SHARE: Final = 0.97
"""Minimum share of information for which Lookout asks the next question on the current build.

The share is the information that the best question on the current build is expected to give, divided by that of the
best question on any build. On the current build, Lookout need not open another page.
"""


class FailureRates(NamedTuple):
    """The failure rates of a case before and since the first bad build, with their prior probability."""

    before: float
    after: float
    weight: float


_RANDOM_CASE_RATES: Final = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
_RANDOM_SUITE_RATES: Final = (0.2, 0.35, 0.5, 0.65, 0.8)


def _build_failure_rate_pairs(
    before: Mapping[float, float], after: Mapping[float, float], random: float
) -> tuple[FailureRates, ...]:
    """Return the possible pairs of failure rates, before and since the first bad build, with their weights.

    ``before`` and ``after`` map failure rates to weights. Pairs in which the failure rate does not rise are
    omitted. A case that fails at random has two equal rates. ``random`` is the total weight of these pairs.
    """
    broken = [FailureRates(a, b, p * q) for a, p in before.items() for b, q in after.items() if a < b]
    total = sum(rates.weight for rates in broken)
    scaled = [rates._replace(weight=rates.weight / total * (1 - random)) for rates in broken]
    return (*scaled, *(FailureRates(rate, rate, random / len(_RANDOM_CASE_RATES)) for rate in _RANDOM_CASE_RATES))


_RARE_RATES: Final = {0.004: 0.9, 0.05: 0.1}
_FREQUENT_RATES: Final = {0.996: 0.9, 0.9: 0.1}
_INTERMITTENT_RATES: Final = {0.9: 0.3, 0.8: 0.4, 0.65: 0.2, 0.5: 0.1}


class SuiteKind(NamedTuple):
    """A kind of suite: how often its cases may fail before and since the first bad build.

    ``weight`` is the prior probability of this kind. ``rates`` are the possible failure rates of its cases.
    ``is_broken`` is true if a build broke the cases.
    """

    weight: float
    rates: tuple[FailureRates, ...]
    is_broken: bool = True


def _build_suite_kinds(random: float) -> tuple[SuiteKind, ...]:
    sometimes = {1 - rate: weight for rate, weight in _INTERMITTENT_RATES.items()}
    at_random = tuple(FailureRates(rate, rate, 1 / len(_RANDOM_SUITE_RATES)) for rate in _RANDOM_SUITE_RATES)
    return (
        SuiteKind(0.15, _build_failure_rate_pairs(_RARE_RATES, _FREQUENT_RATES, random)),
        SuiteKind(0.38, _build_failure_rate_pairs(_RARE_RATES, _INTERMITTENT_RATES, random)),
        SuiteKind(0.4, _build_failure_rate_pairs(sometimes, _INTERMITTENT_RATES, random)),
        SuiteKind(0.07, at_random, is_broken=False),
    )


KINDS: Final = _build_suite_kinds(RANDOM_FAILURE_PRIOR)
"""The possible kinds of suites. The answers to one case are evidence about the other cases of the suite.

In some kinds, the cases always fail from the first bad build on. In other kinds, the cases sometimes pass on bad
builds. Before the first bad build, cases may sometimes fail. In one kind, cases fail at random, and no build is
bad. The result depends more on the answers than on the weights of the kinds. The weights were chosen so that the
posterior probabilities are calibrated for suites in which every case sometimes passes.
"""
SINGLE_CASE_KINDS: Final = _build_suite_kinds(0.0)
"""The kinds of explanation for a single case. The kind "cases fail at random" is not among them."""


class BuildQuestion(NamedTuple):
    """A question: the index of a build, and the index of the case to ask on that build.

    ``information`` is the expected information in bits.
    """

    build: int
    case: int
    information: float


class BuildSearch:
    """The search over ``builds`` builds with ``cases`` failing cases.

    The first build is assumed to be good, and the last build is assumed to be bad. The hypotheses have numbers:

    - 0: the first build is already bad.
    - k, from 1 to ``builds`` - 1: build k is the first bad build.
    - ``builds``: no build is bad.

    Raises `ValueError` if there are fewer than two builds, or no cases.
    """

    def __init__(self, builds: int, cases: int) -> None:
        if builds <= 1 or cases < 1:
            raise ValueError(f"a search needs at least two builds and one case, got builds={builds}, cases={cases}")
        self.builds = builds
        self._kinds, other_cause = (KINDS, OTHER_CAUSE_PRIOR) if cases > 1 else (SINGLE_CASE_KINDS, 0.0)
        self._answers = [_CaseAnswers(builds, self._kinds, other_cause) for _ in range(cases)]
        self._excluded: set[int] = set()
        self._last_build: int | None = None

    def record_answer(self, build: int, case: int, *, failed: bool) -> None:
        """Record whether a case failed on a build."""
        self._answers[case] = self._answers[case].add_answer(build, failed=failed)
        self._last_build = build

    def exclude_build(self, build: int) -> None:
        """Exclude a build that cannot be reached or gives no answers.

        An excluded build can still be the first bad build.
        """
        self._excluded.add(build)

    @property
    def reachable_builds(self) -> tuple[int, ...]:
        """Return the builds that are not excluded."""
        return tuple(build for build in range(self.builds) if build not in self._excluded)

    def compute_posterior(self) -> tuple[float, ...]:
        """Return the probability of each hypothesis, given the answers. The probabilities add up to 1."""
        return tuple(sum(column) for column in zip(*self._joint_posterior, strict=True))

    @property
    def _joint_posterior(self) -> list[list[float]]:
        """Return the joint probability of each kind of suite and each hypothesis, given the answers."""
        inner = (1 - 2 * END_PRIOR) / (self.builds - 1)
        broken = (END_PRIOR, *[inner] * (self.builds - 1), END_PRIOR)
        none_is_bad = (*[0.0] * self.builds, 1.0)
        weights = [
            [
                kind.weight * beforehand * prod(answers.likelihood[number][index] for answers in self._answers)
                for index, beforehand in enumerate(broken if kind.is_broken else none_is_bad)
            ]
            for number, kind in enumerate(self._kinds)
        ]
        total = sum(map(sum, weights))
        return [[weight / total for weight in row] for row in weights]

    def group_indistinguishable_hypotheses(self) -> tuple[tuple[int, ...], ...]:
        """Group the hypotheses that no question can distinguish, because the builds between them are excluded."""
        groups: list[tuple[int, ...]] = [(0,)]
        unreachable: list[int] = []
        for build in range(1, self.builds):
            unreachable.append(build)
            if build not in self._excluded:
                groups.append(tuple(unreachable))
                unreachable = []
        if unreachable:
            groups.append(tuple(unreachable))
        return (*groups, (self.builds,))

    def is_settled(self, threshold: float = SETTLED_PROBABILITY) -> bool:
        """Return whether one group of hypotheses has at least the probability ``threshold``."""
        posterior = self.compute_posterior()
        return any(
            sum(posterior[index] for index in group) >= threshold
            for group in self.group_indistinguishable_hypotheses()
        )

    def choose_question(self) -> BuildQuestion | None:
        """Return the question with the most expected information. Return ``None`` if no question is worth asking.

        A question on the build of the previous answer is preferred if it is nearly as good (`STAY_SHARE`).
        """
        by_kind = self._joint_posterior
        questions = [
            BuildQuestion(build, case, _compute_information_gain(by_kind, answers.compute_failure_chances(build)))
            for build in self.reachable_builds
            for case, answers in enumerate(self._answers)
        ]
        best = max(questions, key=lambda question: question.information, default=None)
        if best is None or best.information < MIN_INFORMATION_BITS:
            return None
        same_build = [question for question in questions if question.build == self._last_build]
        stay = max(same_build, key=lambda question: question.information, default=best)
        return stay if stay.information >= STAY_SHARE * best.information else best

    def compute_other_cause_probability(self, case: int) -> float:
        """Return the probability that ``case`` fails at random, or broke at another build than the other cases."""
        answers = self._answers[case]
        return sum(
            chance * (1 - share)
            for row, shares in zip(self._joint_posterior, answers.probability_of_break_at_hypothesis, strict=True)
            for chance, share in zip(row, shares, strict=True)
        )


class _RateFit(NamedTuple):
    """How well one hypothesis explains a case's answers.

    ``likelihood`` is the likelihood of the answers. ``before`` and ``after`` are this likelihood times the failure
    rate before and since the first bad build. ``broken`` is the part of the likelihood that comes from pairs of
    rates that differ.
    """

    likelihood: float
    before: float
    after: float
    broken: float


class _CaseAnswers:
    """The answers to one case by build, with their likelihoods for each kind of suite and hypothesis.

    The object is immutable.
    """

    def __init__(
        self,
        builds: int,
        kinds: Sequence[SuiteKind],
        other_cause: float,
        failed: Sequence[int] = (),
        passed: Sequence[int] = (),
    ) -> None:
        self._builds = builds
        self._kinds = kinds
        self._other_cause = other_cause
        self._failed = tuple(failed) or (0,) * builds
        self._passed = tuple(passed) or (0,) * builds

    def add_answer(self, build: int, *, failed: bool) -> _CaseAnswers:
        counts = [list(self._passed), list(self._failed)]
        counts[failed][build] += 1
        return _CaseAnswers(self._builds, self._kinds, self._other_cause, counts[True], counts[False])

    @cached_property
    def _rate_fits_of_all_hypotheses(self) -> tuple[tuple[_RateFit, ...], ...]:
        failed, passed = (list(accumulate(counts, initial=0)) for counts in (self._failed, self._passed))
        sides = [
            (failed[index], passed[index], failed[-1] - failed[index], passed[-1] - passed[index])
            for index in range(self._builds + 1)
        ]
        return tuple(
            tuple(_sum_likelihoods_over_rates(kind.rates, *side) for side in sides) for kind in self._kinds
        )

    @cached_property
    def likelihood(self) -> tuple[tuple[float, ...], ...]:
        """Return the likelihood of the answers, for each kind of suite and each hypothesis.

        The likelihood includes the possibility that the case has another cause and broke at any build.
        """
        return tuple(
            self._mix_with_other_cause([fit.likelihood for fit in fits])
            for fits in self._rate_fits_of_all_hypotheses
        )

    @cached_property
    def probability_of_break_at_hypothesis(self) -> tuple[tuple[float, ...], ...]:
        """Return the probability that the case breaks at the build of the hypothesis."""
        return tuple(
            tuple((1 - self._other_cause) * fit.broken / chance for fit, chance in zip(fits, chances, strict=True))
            for fits, chances in zip(self._rate_fits_of_all_hypotheses, self.likelihood, strict=True)
        )

    def compute_failure_chances(self, build: int) -> Iterator[tuple[float, ...]]:
        """Yield the probabilities that the case fails when it is asked on ``build``."""
        for fits, chances in zip(self._rate_fits_of_all_hypotheses, self.likelihood, strict=True):
            fails = self._mix_with_other_cause(
                [fit.before if build < index else fit.after for index, fit in enumerate(fits)]
            )
            yield tuple(both / chance for both, chance in zip(fails, chances, strict=True))

    def _mix_with_other_cause(self, chances: Sequence[float]) -> tuple[float, ...]:
        """Return ``chances`` adjusted for the possibility that the case broke on its own, at any of the builds."""
        elsewhere = self._other_cause * sum(chances) / len(chances)
        return tuple((1 - self._other_cause) * chance + elsewhere for chance in chances)


def _sum_likelihoods_over_rates(
    rates: Sequence[FailureRates], failed_before: int, passed_before: int, failed_after: int, passed_after: int
) -> _RateFit:
    total = by_before = by_after = broken = 0.0
    for before, after, weight in rates:
        chance = weight * before**failed_before * (1 - before) ** passed_before
        chance *= after**failed_after * (1 - after) ** passed_after
        total += chance
        by_before += chance * before
        by_after += chance * after
        if before < after:
            broken += chance
    return _RateFit(total, by_before, by_after, broken)


def _compute_information_gain(by_kind: Sequence[Sequence[float]], chances: Iterator[Sequence[float]]) -> float:
    """Return how much information one answer is expected to give about the hypotheses, in bits."""
    fails = [0.0] * len(by_kind[0])
    likely = [sum(column) for column in zip(*by_kind, strict=True)]
    for row, failure_chances in zip(by_kind, chances, strict=True):
        for index, (chance, failure) in enumerate(zip(row, failure_chances, strict=True)):
            fails[index] += chance * failure
    remaining = sum(p * _compute_entropy(f / p) for p, f in zip(likely, fails, strict=True) if p > 0)
    return _compute_entropy(sum(fails)) - remaining


def _compute_entropy(chance: float) -> float:
    if chance <= 0 or chance >= 1:
        return 0.0
    return -chance * log2(chance) - (1 - chance) * log2(1 - chance)
