"""Find attribute values, or pairs of values, that failed cases share more often than chance explains.

A group consists of all cases that share the value of one attribute, or the values of two attributes. Fisher's exact
test (R. A. Fisher, The Design of Experiments, 1935, chapter 2) gives the p-value of the failures in a group.
Hundreds of overlapping groups are tried, so the p-value must be corrected. For this, the failures are permuted many
times, and the group is compared with the most surprising of *all* groups in each permutation (P. H. Westfall and S.
S. Young, Resampling-Based Multiple Testing, 1993, the minP procedure).

The search has these steps:

1. Find a first cause, which is the most surprising group.
2. Find a further cause, which must be surprising among the cases that belong to no cause found so far.
3. Choose all causes again together, by how well they explain the failures. Two overlapping causes could otherwise
   look like a third cause between them. Then go back to step 2.
4. Drop causes that are not surprising once the other causes are known, the weakest cause first.

Which groups are tried depends only on their size, never on the failures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from math import exp, inf, lgamma, log, log1p
from random import Random
from typing import Final, NamedTuple

from monitors.records.explanations import Cause, FirstLook, Value

MIN_CASES: Final = 3
"""Minimum number of cases in a group. Smaller groups are not tried: two cases prove nothing."""
MIN_PAIR_CASES: Final = 4
"""Minimum number of cases in a group with two values.

Thousands of pairs have only three cases. If all of them were tried, larger pairs would hardly be significant.
"""
MIN_FAILURES: Final = 3
"""Minimum number of failed cases. With fewer failed cases, no common cause can be shown."""
ALPHA_FIRST: Final = 0.01
"""The false positive rate of a first cause. The rate is low, because an on-call engineer relies on this cause."""
ALPHA_NEXT: Final = 0.05
"""The false positive rate of each further cause."""
MAX_CAUSES: Final = 3
MAX_PAIRS: Final = 6_000
"""Maximum number of pairs of values that are tried. A search then takes less than 1 s.

If there are more pairs, those with the fewest cases are ignored.
"""
PERMUTATIONS: Final = 999
PERMUTATIONS_NEXT: Final = 399
"""The number of permutations for a further cause, which is enough to test at the level `ALPHA_NEXT`."""
MIN_NEW_CASES: Final = 2
"""Minimum number of cases that a further cause must have outside of the other causes."""
MAX_CANDIDATES: Final = 30
"""Maximum number of groups that are tried together. Only the most surprising groups are tried."""
MIN_PAIR_LOG_ODDS: Final = 3.0
"""Logarithm of 20: two causes replace a single cause only if they explain the failures at least 20 times better."""
_SEED: Final = 1993
_MAX_ROUNDS: Final = 4


class _CaseGroup(NamedTuple):
    """A group of cases, stored as a bit set, with the values that the cases have in common.

    ``log_tried`` is the logarithm of twice the number of groups of the same kind (single values or pairs). Half of
    the error probability is for single values, half for pairs.
    """

    members: int
    conditions: tuple[tuple[str, Value], ...]
    log_tried: float


def find_shared_causes(cases: Sequence[Mapping[str, Value]], failed: Sequence[bool]) -> FirstLook:
    """Return at most three likely causes of the failures, the most surprising first.

    ``failed`` states for each of ``cases`` whether the case failed. Ungraded cases must be omitted. Raises
    `ValueError` if the lengths differ. The result does not depend on the order of the attributes.
    """
    search = _CauseSearch(cases, failed)
    causes = sorted(search.find_causes(), key=search.compute_corrected_log_p_value)
    covered = 0
    for cause in causes:
        covered |= cause.members & search.failed
    return FirstLook(
        cases=len(cases),
        failed=search.failed.bit_count(),
        causes=tuple(search.build_cause(cause) for cause in causes),
        covered=covered.bit_count(),
        groups=len(search.groups),
    )


class _CauseSearch:
    """The search over the groups and failures of one suite."""

    def __init__(self, cases: Sequence[Mapping[str, Value]], failed: Sequence[bool]) -> None:
        self._count = len(cases)
        self._all = (1 << self._count) - 1
        self.failed = sum(
            1 << index for index, (_, is_failed) in enumerate(zip(cases, failed, strict=True)) if is_failed
        )
        self.groups = tuple(_list_attribute_value_groups(cases))
        self._random = Random(_SEED)  # noqa: S311 - permutations, and the same ones every time
        self._explained: dict[frozenset[int], float] = {}

    def find_causes(self) -> list[_CaseGroup]:
        """Return all causes that chance does not explain."""
        first = self._find_next_cause([])
        causes = self._replace_by_better_pair([first]) if first is not None else []
        while causes and len(causes) < MAX_CAUSES:
            next_cause = self._find_next_cause(causes)
            if next_cause is None:
                break
            causes = self._choose_each_cause_again([*causes, next_cause])
            if len(causes) == 2:  # noqa: PLR2004 - a first and a further one
                causes = self._replace_by_better_pair(causes)
        return self._drop_weak_and_rechoose_causes(causes)

    def build_cause(self, cause: _CaseGroup) -> Cause:
        """Return a cause with its counts."""
        outside = self._all & ~cause.members
        return Cause(
            conditions=dict(cause.conditions),
            cases=cause.members.bit_count(),
            failed=(cause.members & self.failed).bit_count(),
            elsewhere=outside.bit_count(),
            elsewhere_failed=(outside & self.failed).bit_count(),
        )

    def compute_corrected_log_p_value(self, cause: _CaseGroup) -> float:
        """Return the logarithm of the corrected p-value of a cause: the lower, the more surprising."""
        return _ExactTest(self._all, self.failed)(cause.members) + cause.log_tried

    def _compute_case_bits_outside(self, causes: Sequence[_CaseGroup]) -> int:
        uncovered = self._all
        for cause in causes:
            uncovered &= ~cause.members
        return uncovered

    # --- is there a further cause? --------------------------------------------------------------------------------

    def _find_next_cause(self, causes: Sequence[_CaseGroup]) -> _CaseGroup | None:
        """Return the most surprising group outside of the known causes, unless chance explains the group.

        Cases that belong to known causes are excluded: if one cause made most of them fail, the effect of another
        cause is hardly visible.
        """
        uncovered = self._compute_case_bits_outside(causes)
        test = _ExactTest(uncovered, self.failed)
        if test.failures < MIN_FAILURES or test.failures == test.cases:
            return None
        excluded = {cause.members for cause in causes}
        tried = [
            group
            for group in self.groups
            if group.members not in excluded and (group.members & uncovered).bit_count() >= MIN_NEW_CASES
        ]
        lowest, index = min(
            ((test(group.members) + group.log_tried, index) for index, group in enumerate(tried)), default=(0.0, 0)
        )
        if lowest >= 0:
            return None
        alpha, permutations = (ALPHA_NEXT, PERMUTATIONS_NEXT) if causes else (ALPHA_FIRST, PERMUTATIONS)
        certain = (
            2 * exp(lowest) <= alpha
        )  # already significant by Bonferroni's bound, which is stricter than the permutations
        return tried[index] if certain or self._is_beyond_chance(test, tried, lowest, alpha, permutations) else None

    def _is_beyond_chance(
        self, test: _ExactTest, tried: Sequence[_CaseGroup], lowest: float, alpha: float, permutations: int
    ) -> bool:
        needed = [
            (group.members, enough)
            for group in tried
            if (enough := test.find_min_significant_failures(group.members, lowest - group.log_tried)) is not None
        ]
        allowed = int(alpha * (permutations + 1)) - 1  # the observed result counts as one of the permutations
        as_surprising = 0
        for _ in range(permutations):
            permuted = test.draw_random_failure_mask(self._random)
            as_surprising += any((members & permuted).bit_count() >= enough for members, enough in needed)
            if as_surprising > allowed:
                return False
        return True

    # --- which causes explain best? -------------------------------------------------------------------------------

    def _list_best_candidate_groups(self, inside: int) -> list[_CaseGroup]:
        test = _ExactTest(inside, self.failed)
        groups: dict[int, _CaseGroup] = {}
        for group in self.groups:
            members = group.members & inside
            if members.bit_count() >= MIN_NEW_CASES:
                groups.setdefault(members, group)
        ranked = sorted(groups.items(), key=lambda pair: test(pair[0]) + pair[1].log_tried)
        return [group for _, group in ranked[:MAX_CANDIDATES]]

    def _choose_each_cause_again(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Choose each cause again, given the other causes, until no choice explains the failures better."""
        for _ in range(_MAX_ROUNDS):
            previous = list(causes)
            for index in range(len(causes)):
                others = causes[:index] + causes[index + 1 :]
                options = [
                    group
                    for group in self._list_best_candidate_groups(self._compute_case_bits_outside(others))
                    if group not in others
                ]
                best = max(
                    [causes[index], *options], key=lambda group: self._compute_explanation_score([*others, group])
                )
                causes = [*causes[:index], best, *causes[index + 1 :]]
            if causes == previous:
                break
        return causes

    def _replace_by_better_pair(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Replace the causes with the best pair of causes, if that pair explains the failures better."""
        needed = self._compute_explanation_score(causes) + (MIN_PAIR_LOG_ODDS if len(causes) == 1 else 0)
        pairs = combinations(self._list_best_candidate_groups(self._all), 2)
        best = max(pairs, key=self._compute_explanation_score, default=None)
        return list(best) if best is not None and self._compute_explanation_score(best) > needed else causes

    def _drop_weak_and_rechoose_causes(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Drop causes that are not surprising once the other causes are known.

        After each drop, the remaining causes are chosen again. Causes are dropped one at a time, because if two
        causes share their failures, each of them looks weak beside the other.
        """
        while len(causes) > 1:
            surprise, index = max(
                (self._compute_log_p_beside_others(cause, causes), index) for index, cause in enumerate(causes)
            )
            if surprise < 0:
                break
            causes = self._choose_each_cause_again(causes[:index] + causes[index + 1 :])
        return causes

    def _compute_log_p_beside_others(self, cause: _CaseGroup, causes: Sequence[_CaseGroup]) -> float:
        """Return the log p-value of a cause among the cases outside of the other causes, plus its ``log_tried``."""
        inside = self._compute_case_bits_outside(
            [other_cause for other_cause in causes if other_cause is not cause]
        )
        return _ExactTest(inside, self.failed)(cause.members & inside) + cause.log_tried

    def _compute_explanation_score(self, causes: Sequence[_CaseGroup]) -> float:
        """Return the log-likelihood of causes, minus a penalty: the logarithm of the number of possible groups."""
        key = frozenset(cause.members for cause in causes)
        if key not in self._explained:
            cost = sum(cause.log_tried for cause in causes)
            self._explained[key] = _compute_noisy_or_log_likelihood([*key], self.failed, self._all) - cost
        return self._explained[key]


class _ExactTest:
    """Fisher's exact test (one-sided): whether a group has more failures than chance explains."""

    def __init__(self, inside: int, failed: int) -> None:
        self._inside, self._failed = inside, failed & inside
        self.cases, self.failures = inside.bit_count(), self._failed.bit_count()
        self._tails: dict[int, list[float]] = {}

    def __call__(self, members: int) -> float:
        """Return the log-probability that, by chance, at least the observed number of ``members`` fail."""
        size, failures = (members & self._inside).bit_count(), (members & self._failed).bit_count()
        return (
            0.0
            if failures * self.cases <= size * self.failures
            else self._compute_tail_log_probabilities(size)[failures]
        )

    def find_min_significant_failures(self, members: int, log_p: float) -> int | None:
        """Return the smallest number of failures that gives ``members`` a log p-value of at most ``log_p``.

        Return ``None`` if no number of failures is enough.
        """
        tail = self._compute_tail_log_probabilities((members & self._inside).bit_count())
        return next((count for count, value in enumerate(tail) if value <= log_p), None)

    def draw_random_failure_mask(self, random: Random) -> int:
        """Return a bit mask of random failures among the tested cases, as many as were observed."""
        return sum(1 << index for index in random.sample(self._case_indices, self.failures))

    @cached_property
    def _case_indices(self) -> list[int]:
        return [index for index in range(self._inside.bit_length()) if self._inside >> index & 1]

    def _compute_tail_log_probabilities(self, size: int) -> list[float]:
        """Return the log-probabilities of at least 0, 1, 2 … failures by chance in a group of ``size`` cases."""
        tail = self._tails.get(size)
        if tail is None:
            tail = self._tails[size] = _accumulate_log_upper_tails(
                _compute_hypergeometric_log_probabilities(size, self.cases, self.failures)
            )
        return tail


def _compute_hypergeometric_log_probabilities(size: int, cases: int, failed: int) -> list[float]:
    """Return the logarithms of the probabilities of 0, 1, 2 … failures in a group (hypergeometric)."""
    passed, whole = cases - failed, _compute_log_choose(cases, size)
    return [
        _compute_log_choose(failed, count) + _compute_log_choose(passed, size - count) - whole
        if size - count <= passed
        else -inf
        for count in range(min(size, failed) + 1)
    ]


def _accumulate_log_upper_tails(terms: list[float]) -> list[float]:
    tail, above = [0.0] * len(terms), -inf
    for index in range(len(terms) - 1, -1, -1):
        high, low = max(above, terms[index]), min(above, terms[index])
        above = high if low == -inf else high + log1p(exp(low - high))
        tail[index] = min(0.0, above)
    return tail


@lru_cache(maxsize=100_000)
def _compute_log_choose(whole: int, part: int) -> float:
    return lgamma(whole + 1) - lgamma(part + 1) - lgamma(whole - part + 1)


def _list_attribute_value_groups(cases: Sequence[Mapping[str, Value]]) -> Iterator[_CaseGroup]:
    """Yield groups by single values, then by pairs of values.

    If several groups have the same cases, only the simplest group is yielded.
    """
    singles = {
        key: members for key, members in _map_values_to_case_bits(cases).items() if members.bit_count() < len(cases)
    }
    single: dict[int, tuple[tuple[str, Value], ...]] = {}
    for key, members in singles.items():
        if members.bit_count() >= MIN_CASES:
            single.setdefault(members, (key,))
    tried = log(2 * max(1, len(single)))
    yield from (_CaseGroup(members, conditions, tried) for members, conditions in single.items())
    pairs: dict[int, tuple[tuple[str, Value], ...]] = {}
    for (first, first_members), (second, second_members) in combinations(singles.items(), 2):
        shared = first_members & second_members
        if first[0] != second[0] and shared.bit_count() >= MIN_PAIR_CASES and shared not in single:
            pairs.setdefault(shared, (first, second))
    largest = sorted(pairs.items(), key=lambda pair: -pair[0].bit_count())[:MAX_PAIRS]
    tried = log(2 * max(1, len(largest)))
    yield from (_CaseGroup(members, conditions, tried) for members, conditions in largest)


def _map_values_to_case_bits(cases: Sequence[Mapping[str, Value]]) -> dict[tuple[str, Value], int]:
    """Map each attribute value to the bit set of its cases, in alphabetical order of the attribute names."""
    members: dict[tuple[str, Value], int] = {}
    for name in sorted({name for case in cases for name in case}):
        for index, case in enumerate(cases):
            key = (name, case.get(name))
            members[key] = members.get(key, 0) | 1 << index
    return members


@dataclass(frozen=True)
class _Cell:
    """The number of cases that belong to exactly the same causes, and how many of them failed.

    ``causes`` contains the indices of these causes.
    """

    causes: frozenset[int]
    cases: int
    failed: int


_EM_STEPS: Final = 12
_MIN_RATE: Final = 1e-4
"""Fitted rates stay at least this far from 0 and 1.

Otherwise, one case that does not fit could rule out a cause.
"""


def _compute_noisy_or_log_likelihood(causes: Sequence[int], failed: int, all_cases: int) -> float:
    """Return the log-likelihood of a noisy-or model: each cause, or a common base rate, makes a case fail.

    The model is fitted by expectation maximisation (A. P. Dempster and others, 1977). A dozen steps are accurate
    enough to compare causes.
    """
    cells = [
        _Cell(inside, cases.bit_count(), (cases & failed).bit_count())
        for cases, inside in _partition_cases(causes, all_cases)
    ]
    rest = next((cell for cell in cells if not cell.causes), _Cell(frozenset(), 1, 0))
    base = (rest.failed + 0.5) / (rest.cases + 1)
    rates = [
        _compute_smoothed_failure_share([cell for cell in cells if index in cell.causes])
        for index in range(len(causes))
    ]
    for _ in range(_EM_STEPS):
        base, rates = _run_em_step(cells, base, rates)
    total = 0.0
    for cell in cells:
        failure_rate = min(max(_compute_failure_rate(cell, base, rates), _MIN_RATE), 1 - _MIN_RATE)
        total += cell.failed * log(failure_rate) + (cell.cases - cell.failed) * log(1 - failure_rate)
    return total


def _partition_cases(causes: Sequence[int], all_cases: int) -> list[tuple[int, frozenset[int]]]:
    """Group the cases by the causes that they belong to, given as indices."""
    parts: list[tuple[int, frozenset[int]]] = [(all_cases, frozenset())]
    for index, members in enumerate(causes):
        parts = [
            part
            for cases, inside in parts
            for part in ((cases & members, inside | {index}), (cases & ~members, inside))
            if part[0]
        ]
    return parts


def _compute_smoothed_failure_share(cells: Sequence[_Cell]) -> float:
    return (sum(cell.failed for cell in cells) + 0.5) / (sum(cell.cases for cell in cells) + 1)


def _compute_failure_rate(cell: _Cell, base: float, rates: Sequence[float]) -> float:
    pass_rate = 1 - base
    for index in cell.causes:
        pass_rate *= 1 - rates[index]
    return 1 - pass_rate


def _run_em_step(cells: Sequence[_Cell], base: float, rates: Sequence[float]) -> tuple[float, list[float]]:
    """Run one step of expectation maximisation: failures are distributed over their possible causes."""
    shares = [(cell, cell.failed / max(_compute_failure_rate(cell, base, rates), 1e-9)) for cell in cells]
    cases = sum(cell.cases for cell in cells)
    new_base = sum(share * base for _, share in shares) / cases
    new_rates: list[float] = []
    for index, rate in enumerate(rates):
        inside = [(cell, share) for cell, share in shares if index in cell.causes]
        new_rates.append(sum(share * rate for _, share in inside) / max(1, sum(cell.cases for cell, _ in inside)))
    return _clip_rate(new_base), [_clip_rate(rate) for rate in new_rates]


def _clip_rate(rate: float) -> float:
    return min(max(rate, _MIN_RATE), 1 - _MIN_RATE)
