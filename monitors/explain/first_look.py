"""What do the failed cases have in common? Values of recorded attributes, alone or two together, beyond chance.

A group is all cases that share a value, or two values of two attributes. Fisher's exact test (R. A. Fisher, The
Design of Experiments, 1935, chapter 2) says how surprising its failures are. Hundreds of groups are tried, and many
overlap, so what counts is how often the most surprising of *all* groups of a suite would be as surprising if
failures fell where they fall: found by permuting them (P. H. Westfall and S. S. Young, Resampling-Based Multiple
Testing, 1993, the minP procedure). A further cause must be surprising outside of those found, among the failures
that they leave. Then all are chosen again together, by what explains the failures best: two causes that overlap
look from afar like a third one between them. At last each must hold beside the others; of those that do not, the
weakest goes first.

Which groups are tried depends on their size alone, never on where the failures are.
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
"""A group of two cases is an anecdote."""
MIN_PAIR_CASES: Final = 4
"""Values can be joined in thousands of ways, most of them for three cases: trying those hides the larger groups."""
MIN_FAILURES: Final = 3
"""With fewer failures than this nothing can be said to be common to them."""
ALPHA_FIRST: Final = 0.01
"""How often a suite without any cause gets one claimed: seldom, because a person at night follows the claim."""
ALPHA_NEXT: Final = 0.05
"""The same for each further cause, where there is one already."""
MAX_CAUSES: Final = 3
MAX_PAIRS: Final = 6_000
"""Above that the smallest groups of two values are left out: a look ends within a second."""
PERMUTATIONS: Final = 999
PERMUTATIONS_NEXT: Final = 399
"""Enough for `ALPHA_NEXT`."""
MIN_NEW_CASES: Final = 2
"""A further cause holds so many cases that no other does."""
MAX_CANDIDATES: Final = 30
"""So many of the most surprising groups are tried together."""
MIN_PAIR_LOG_ODDS: Final = 3.0
"""Logarithm of the odds (20 to 1) by which two causes must explain better than a single one between them."""
_SEED: Final = 1993
_MAX_ROUNDS: Final = 4


class _CaseGroup(NamedTuple):
    """Cases as a set of bits, and what they share.

    ``log_tried`` is the logarithm of twice how many such groups there are: half of what may be claimed by chance
    goes to single values, half to pairs.
    """

    members: int
    conditions: tuple[tuple[str, Value], ...]
    log_tried: float


def find_shared_causes(cases: Sequence[Mapping[str, Value]], failed: Sequence[bool]) -> FirstLook:
    """The causes that these cases support, the most surprising first; at most three.

    ``failed`` says for each case whether it failed; leave ungraded ones out. `ValueError` when there are not as
    many of them as cases. The same cases give the same answer, in whatever order their attributes stand.
    """
    search = _CauseSearch(cases, failed)
    causes = sorted(search.find_causes(), key=search.compute_surprise)
    covered = 0
    for cause in causes:
        covered |= cause.members & search.failed
    return FirstLook(
        cases=len(cases),
        failed=search.failed.bit_count(),
        causes=tuple(search.describe(cause) for cause in causes),
        covered=covered.bit_count(),
        groups=len(search.groups),
    )


class _CauseSearch:
    """One suite's groups and failures."""

    def __init__(self, cases: Sequence[Mapping[str, Value]], failed: Sequence[bool]) -> None:
        self._count = len(cases)
        self._all = (1 << self._count) - 1
        self.failed = sum(
            1 << index for index, (_, is_failed) in enumerate(zip(cases, failed, strict=True)) if is_failed
        )
        self.groups = tuple(_list_groups(cases))
        self._random = Random(_SEED)  # noqa: S311 - permutations, and the same ones every time
        self._explained: dict[frozenset[int], float] = {}

    def find_causes(self) -> list[_CaseGroup]:
        """All that can be claimed."""
        first = self._find_next([])
        causes = self._find_best_pair([first]) if first is not None else []
        while causes and len(causes) < MAX_CAUSES:
            next_cause = self._find_next(causes)
            if next_cause is None:
                break
            causes = self._choose_again([*causes, next_cause])
            if len(causes) == 2:  # noqa: PLR2004 - a first and a further one
                causes = self._find_best_pair(causes)
        return self._drop_weak(causes)

    def describe(self, cause: _CaseGroup) -> Cause:
        """A cause with its counts."""
        rest = self._all & ~cause.members
        return Cause(
            conditions=dict(cause.conditions),
            cases=cause.members.bit_count(),
            failed=(cause.members & self.failed).bit_count(),
            elsewhere=rest.bit_count(),
            elsewhere_failed=(rest & self.failed).bit_count(),
        )

    def compute_surprise(self, cause: _CaseGroup) -> float:
        """The logarithm of its corrected probability by chance: the lower, the more surprising."""
        return _ExactTest(self._all, self.failed)(cause.members) + cause.log_tried

    def _find_uncovered(self, causes: Sequence[_CaseGroup]) -> int:
        rest = self._all
        for cause in causes:
            rest &= ~cause.members
        return rest

    # --- is there one? ---------------------------------------------------------------------------------------

    def _find_next(self, causes: Sequence[_CaseGroup]) -> _CaseGroup | None:
        """The group that is most surprising beside the causes found, when chance seldom does as well.

        Looked for outside of them: where a cause has made most cases fail, another one can hardly show.
        """
        rest = self._find_uncovered(causes)
        test = _ExactTest(rest, self.failed)
        if test.failures < MIN_FAILURES or test.failures == test.cases:
            return None
        excluded = {cause.members for cause in causes}
        tried = [
            group
            for group in self.groups
            if group.members not in excluded and (group.members & rest).bit_count() >= MIN_NEW_CASES
        ]
        lowest, index = min(
            ((test(group.members) + group.log_tried, index) for index, group in enumerate(tried)), default=(0.0, 0)
        )
        if lowest >= 0:
            return None
        alpha, permutations = (ALPHA_NEXT, PERMUTATIONS_NEXT) if causes else (ALPHA_FIRST, PERMUTATIONS)
        certain = 2 * exp(lowest) <= alpha  # Bonferroni's bound: no permutation can say otherwise
        return tried[index] if certain or self._beats_chance(test, tried, lowest, alpha, permutations) else None

    def _beats_chance(
        self, test: _ExactTest, tried: Sequence[_CaseGroup], lowest: float, alpha: float, permutations: int
    ) -> bool:
        needed = [
            (group.members, enough)
            for group in tried
            if (enough := test.find_needed_failures(group.members, lowest - group.log_tried)) is not None
        ]
        allowed = int(alpha * (permutations + 1)) - 1  # what was found counts as one itself
        as_surprising = 0
        for _ in range(permutations):
            permuted = test.permute_failures(self._random)
            as_surprising += any((members & permuted).bit_count() >= enough for members, enough in needed)
            if as_surprising > allowed:
                return False
        return True

    # --- which is it? ----------------------------------------------------------------------------------------

    def _list_candidates(self, inside: int) -> list[_CaseGroup]:
        test = _ExactTest(inside, self.failed)
        groups: dict[int, _CaseGroup] = {}
        for group in self.groups:
            members = group.members & inside
            if members.bit_count() >= MIN_NEW_CASES:
                groups.setdefault(members, group)
        ranked = sorted(groups.items(), key=lambda pair: test(pair[0]) + pair[1].log_tried)
        return [group for _, group in ranked[:MAX_CANDIDATES]]

    def _choose_again(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Each cause again, given the others, until nothing explains better."""
        for _ in range(_MAX_ROUNDS):
            previous = list(causes)
            for index in range(len(causes)):
                others = causes[:index] + causes[index + 1 :]
                options = [
                    group for group in self._list_candidates(self._find_uncovered(others)) if group not in others
                ]
                best = max([causes[index], *options], key=lambda group: self._compute_explanation([*others, group]))
                causes = [*causes[:index], best, *causes[index + 1 :]]
            if causes == previous:
                break
        return causes

    def _find_best_pair(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Two causes at once, where one was found that only lies between them."""
        needed = self._compute_explanation(causes) + (MIN_PAIR_LOG_ODDS if len(causes) == 1 else 0)
        pairs = combinations(self._list_candidates(self._all), 2)
        best = max(pairs, key=self._compute_explanation, default=None)
        return list(best) if best is not None and self._compute_explanation(best) > needed else causes

    def _drop_weak(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Leave out the weakest cause that is not surprising in what the others leave, choose again, and so on.

        One at a time: two causes that share their failures each look weak beside the other.
        """
        while len(causes) > 1:
            surprise, index = max(
                (self._compute_remaining_surprise(cause, causes), index) for index, cause in enumerate(causes)
            )
            if surprise < 0:
                break
            causes = self._choose_again(causes[:index] + causes[index + 1 :])
        return causes

    def _compute_remaining_surprise(self, cause: _CaseGroup, causes: Sequence[_CaseGroup]) -> float:
        """How surprising a cause is in what the others leave."""
        inside = self._find_uncovered([other_cause for other_cause in causes if other_cause is not cause])
        return _ExactTest(inside, self.failed)(cause.members & inside) + cause.log_tried

    def _compute_explanation(self, causes: Sequence[_CaseGroup]) -> float:
        """How well causes explain all failures: log-likelihood, less the logarithm of how many can be chosen."""
        key = frozenset(cause.members for cause in causes)
        if key not in self._explained:
            cost = sum(cause.log_tried for cause in causes)
            self._explained[key] = _compute_likelihood([*key], self.failed, self._all) - cost
        return self._explained[key]


class _ExactTest:
    """Fisher's exact test, one-sided, of the failures among some cases."""

    def __init__(self, inside: int, failed: int) -> None:
        self._inside, self._failed = inside, failed & inside
        self.cases, self.failures = inside.bit_count(), self._failed.bit_count()
        self._tails: dict[int, list[float]] = {}

    def __call__(self, members: int) -> float:
        """The logarithm of the probability of as many failures or more among these members by chance."""
        size, failures = (members & self._inside).bit_count(), (members & self._failed).bit_count()
        return 0.0 if failures * self.cases <= size * self.failures else self._get_tail(size)[failures]

    def find_needed_failures(self, members: int, log_p: float) -> int | None:
        """How many failures these members need to be as surprising; ``None`` when all are too few."""
        tail = self._get_tail((members & self._inside).bit_count())
        return next((count for count, value in enumerate(tail) if value <= log_p), None)

    def permute_failures(self, random: Random) -> int:
        """As many failures, fallen where they fall among the same cases."""
        return sum(1 << index for index in random.sample(self._places, self.failures))

    @cached_property
    def _places(self) -> list[int]:
        return [index for index in range(self._inside.bit_length()) if self._inside >> index & 1]

    def _get_tail(self, size: int) -> list[float]:
        """The logarithm of the probability of so many failures or more in a group of this size, for each number."""
        tail = self._tails.get(size)
        if tail is None:
            tail = self._tails[size] = _sum_upper_tail(_compute_log_terms(size, self.cases, self.failures))
        return tail


def _compute_log_terms(size: int, cases: int, failed: int) -> list[float]:
    """The logarithm of the probability of 0, 1, 2 … failures in a group of this size (hypergeometric)."""
    passed, whole = cases - failed, _compute_log_choose(cases, size)
    return [
        _compute_log_choose(failed, count) + _compute_log_choose(passed, size - count) - whole
        if size - count <= passed
        else -inf
        for count in range(min(size, failed) + 1)
    ]


def _sum_upper_tail(terms: list[float]) -> list[float]:
    tail, above = [0.0] * len(terms), -inf
    for index in range(len(terms) - 1, -1, -1):
        high, low = max(above, terms[index]), min(above, terms[index])
        above = high if low == -inf else high + log1p(exp(low - high))
        tail[index] = min(0.0, above)
    return tail


@lru_cache(maxsize=100_000)
def _compute_log_choose(whole: int, part: int) -> float:
    return lgamma(whole + 1) - lgamma(part + 1) - lgamma(whole - part + 1)


def _list_groups(cases: Sequence[Mapping[str, Value]]) -> Iterator[_CaseGroup]:
    """Single values, then pairs. Those of the same cases count once, by the fewest and first values."""
    singles = {key: members for key, members in _collect_values(cases).items() if members.bit_count() < len(cases)}
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


def _collect_values(cases: Sequence[Mapping[str, Value]]) -> dict[tuple[str, Value], int]:
    """The cases of each attribute's values, as sets of bits; attributes in the order of their names."""
    members: dict[tuple[str, Value], int] = {}
    for name in sorted({name for case in cases for name in case}):
        for index, case in enumerate(cases):
            key = (name, case.get(name))
            members[key] = members.get(key, 0) | 1 << index
    return members


@dataclass(frozen=True)
class _Cell:
    """Cases that lie in the same causes."""

    causes: frozenset[int]
    cases: int
    failed: int


_STEPS: Final = 12
_MIN_RATE: Final = 1e-4
"""No rate is nearer to 0 or 1 than this: a single exception must not make a cause impossible."""


def _compute_likelihood(causes: Sequence[int], failed: int, everything: int) -> float:
    """The log-likelihood of a noisy-or: each cause by itself, or a rate that all cases share, makes a case fail.

    Fitted by expectation maximisation (A. P. Dempster and others, 1977): a dozen steps are near enough to compare.
    """
    cells = [
        _Cell(inside, cases.bit_count(), (cases & failed).bit_count())
        for cases, inside in _partition_cases(causes, everything)
    ]
    rest = next((cell for cell in cells if not cell.causes), _Cell(frozenset(), 1, 0))
    base = (rest.failed + 0.5) / (rest.cases + 1)
    rates = [_compute_share([cell for cell in cells if index in cell.causes]) for index in range(len(causes))]
    for _ in range(_STEPS):
        base, rates = _run_em_step(cells, base, rates)
    total = 0.0
    for cell in cells:
        failure_rate = min(max(_compute_failure_rate(cell, base, rates), _MIN_RATE), 1 - _MIN_RATE)
        total += cell.failed * log(failure_rate) + (cell.cases - cell.failed) * log(1 - failure_rate)
    return total


def _partition_cases(causes: Sequence[int], everything: int) -> list[tuple[int, frozenset[int]]]:
    """The cases in the same causes, with the places of those causes."""
    parts: list[tuple[int, frozenset[int]]] = [(everything, frozenset())]
    for index, members in enumerate(causes):
        parts = [
            part
            for cases, inside in parts
            for part in ((cases & members, inside | {index}), (cases & ~members, inside))
            if part[0]
        ]
    return parts


def _compute_share(cells: Sequence[_Cell]) -> float:
    return (sum(cell.failed for cell in cells) + 0.5) / (sum(cell.cases for cell in cells) + 1)


def _compute_failure_rate(cell: _Cell, base: float, rates: Sequence[float]) -> float:
    pass_rate = 1 - base
    for index in cell.causes:
        pass_rate *= 1 - rates[index]
    return 1 - pass_rate


def _run_em_step(cells: Sequence[_Cell], base: float, rates: Sequence[float]) -> tuple[float, list[float]]:
    """One step of expectation maximisation: failures are shared out to what may have made them."""
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
