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

FEWEST_CASES: Final = 3
"""A group of two cases is an anecdote."""
FEWEST_CASES_OF_TWO: Final = 4
"""Values can be joined in thousands of ways, most of them for three cases: trying those hides the larger groups."""
FEWEST_FAILURES: Final = 3
"""With fewer failures than this nothing can be said to be common to them."""
ALPHA_FIRST: Final = 0.01
"""How often a suite without any cause gets one claimed: seldom, because a person at night follows the claim."""
ALPHA_NEXT: Final = 0.05
"""The same for each further cause, where there is one already."""
MOST_CAUSES: Final = 3
MOST_PAIRS: Final = 6_000
"""Above that the smallest groups of two values are left out: a look ends within a second."""
PERMUTATIONS: Final = 999
PERMUTATIONS_NEXT: Final = 399
"""Enough for `ALPHA_NEXT`."""
FEWEST_NEW: Final = 2
"""A further cause holds so many cases that no other does."""
CANDIDATES: Final = 30
"""So many of the most surprising groups are tried together."""
STRADDLE: Final = 3.0
"""Logarithm of the odds (20 to 1) by which two causes must explain better than a single one between them."""
_SEED: Final = 1993
_ROUNDS: Final = 4


class _CaseGroup(NamedTuple):
    """Cases as a set of bits, and what they share.

    ``log_tried`` is the logarithm of twice how many such groups there are: half of what may be claimed by chance
    goes to single values, half to pairs.
    """

    members: int
    conditions: tuple[tuple[str, Value], ...]
    log_tried: float


def first_look(cases: Sequence[Mapping[str, Value]], failed: Sequence[bool]) -> FirstLook:
    """The causes that these cases support, the most surprising first; at most three.

    ``failed`` says for each case whether it failed; leave ungraded ones out. `ValueError` when there are not as
    many of them as cases. The same cases give the same answer, in whatever order their attributes stand.
    """
    search = _CauseSearch(cases, failed)
    causes = sorted(search.causes(), key=search.surprise)
    covered = 0
    for cause in causes:
        covered |= cause.members & search.failed
    return FirstLook(
        cases=len(cases),
        failed=search.failed.bit_count(),
        causes=tuple(search.described(cause) for cause in causes),
        covered=covered.bit_count(),
        groups=len(search.groups),
    )


class _CauseSearch:
    """One suite's groups and failures."""

    def __init__(self, cases: Sequence[Mapping[str, Value]], failed: Sequence[bool]) -> None:
        self._count = len(cases)
        self._all = (1 << self._count) - 1
        self.failed = sum(1 << at for at, (_, one) in enumerate(zip(cases, failed, strict=True)) if one)
        self.groups = tuple(_groups(cases))
        self._random = Random(_SEED)  # noqa: S311 - permutations, and the same ones every time
        self._explained: dict[frozenset[int], float] = {}

    def causes(self) -> list[_CaseGroup]:
        """All that can be claimed."""
        first = self._next([])
        found = self._best_two([first]) if first is not None else []
        while found and len(found) < MOST_CAUSES:
            more = self._next(found)
            if more is None:
                break
            found = self._chosen_again([*found, more])
            if len(found) == 2:  # noqa: PLR2004 - a first and a further one
                found = self._best_two(found)
        return self._without_weak(found)

    def described(self, cause: _CaseGroup) -> Cause:
        """A cause with its counts."""
        rest = self._all & ~cause.members
        return Cause(
            conditions=dict(cause.conditions),
            cases=cause.members.bit_count(),
            failed=(cause.members & self.failed).bit_count(),
            elsewhere=rest.bit_count(),
            elsewhere_failed=(rest & self.failed).bit_count(),
        )

    def surprise(self, cause: _CaseGroup) -> float:
        """The logarithm of its corrected probability by chance: the lower, the more surprising."""
        return _ExactTest(self._all, self.failed)(cause.members) + cause.log_tried

    def _outside(self, causes: Sequence[_CaseGroup]) -> int:
        rest = self._all
        for cause in causes:
            rest &= ~cause.members
        return rest

    # --- is there one? ---------------------------------------------------------------------------------------

    def _next(self, causes: Sequence[_CaseGroup]) -> _CaseGroup | None:
        """The group that is most surprising beside the causes found, when chance seldom does as well.

        Looked for outside of them: where a cause has made most cases fail, another one can hardly show.
        """
        rest = self._outside(causes)
        test = _ExactTest(rest, self.failed)
        if test.failures < FEWEST_FAILURES or test.failures == test.cases:
            return None
        known = {cause.members for cause in causes}
        tried = [
            group
            for group in self.groups
            if group.members not in known and (group.members & rest).bit_count() >= FEWEST_NEW
        ]
        lowest, at = min(
            ((test(group.members) + group.log_tried, at) for at, group in enumerate(tried)), default=(0.0, 0)
        )
        if lowest >= 0:
            return None
        alpha, permutations = (ALPHA_NEXT, PERMUTATIONS_NEXT) if causes else (ALPHA_FIRST, PERMUTATIONS)
        certain = 2 * exp(lowest) <= alpha  # Bonferroni's bound: no permutation can say otherwise
        return tried[at] if certain or self._beats_chance(test, tried, lowest, alpha, permutations) else None

    def _beats_chance(
        self, test: _ExactTest, tried: Sequence[_CaseGroup], lowest: float, alpha: float, permutations: int
    ) -> bool:
        needed = [
            (group.members, enough)
            for group in tried
            if (enough := test.enough(group.members, lowest - group.log_tried)) is not None
        ]
        allowed = int(alpha * (permutations + 1)) - 1  # what was found counts as one itself
        as_surprising = 0
        for _ in range(permutations):
            permuted = test.permuted(self._random)
            as_surprising += any((members & permuted).bit_count() >= enough for members, enough in needed)
            if as_surprising > allowed:
                return False
        return True

    # --- which is it? ----------------------------------------------------------------------------------------

    def _candidates(self, inside: int) -> list[_CaseGroup]:
        test = _ExactTest(inside, self.failed)
        seen: dict[int, _CaseGroup] = {}
        for group in self.groups:
            part = group.members & inside
            if part.bit_count() >= FEWEST_NEW:
                seen.setdefault(part, group)
        ranked = sorted(seen.items(), key=lambda pair: test(pair[0]) + pair[1].log_tried)
        return [group for _, group in ranked[:CANDIDATES]]

    def _chosen_again(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Each cause again, given the others, until nothing explains better."""
        for _ in range(_ROUNDS):
            before = list(causes)
            for at in range(len(causes)):
                others = causes[:at] + causes[at + 1 :]
                options = [one for one in self._candidates(self._outside(others)) if one not in others]
                best = max([causes[at], *options], key=lambda one: self._explains([*others, one]))
                causes = [*causes[:at], best, *causes[at + 1 :]]
            if causes == before:
                break
        return causes

    def _best_two(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Two causes at once, where one was found that only lies between them."""
        needed = self._explains(causes) + (STRADDLE if len(causes) == 1 else 0)
        pairs = combinations(self._candidates(self._all), 2)
        best = max(pairs, key=self._explains, default=None)
        return list(best) if best is not None and self._explains(best) > needed else causes

    def _without_weak(self, causes: list[_CaseGroup]) -> list[_CaseGroup]:
        """Leave out the weakest cause that is not surprising in what the others leave, choose again, and so on.

        One at a time: two causes that share their failures each look weak beside the other.
        """
        while len(causes) > 1:
            beside, at = max((self._beside(cause, causes), at) for at, cause in enumerate(causes))
            if beside < 0:
                break
            causes = self._chosen_again(causes[:at] + causes[at + 1 :])
        return causes

    def _beside(self, cause: _CaseGroup, causes: Sequence[_CaseGroup]) -> float:
        """How surprising a cause is in what the others leave."""
        inside = self._outside([one for one in causes if one is not cause])
        return _ExactTest(inside, self.failed)(cause.members & inside) + cause.log_tried

    def _explains(self, causes: Sequence[_CaseGroup]) -> float:
        """How well causes explain all failures: log-likelihood, less the logarithm of how many can be chosen."""
        key = frozenset(cause.members for cause in causes)
        if key not in self._explained:
            cost = sum(cause.log_tried for cause in causes)
            self._explained[key] = _likelihood([*key], self.failed, self._all) - cost
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
        return 0.0 if failures * self.cases <= size * self.failures else self._tail(size)[failures]

    def enough(self, members: int, log_p: float) -> int | None:
        """How many failures these members need to be as surprising; ``None`` when all are too few."""
        tail = self._tail((members & self._inside).bit_count())
        return next((count for count, value in enumerate(tail) if value <= log_p), None)

    def permuted(self, random: Random) -> int:
        """As many failures, fallen where they fall among the same cases."""
        return sum(1 << at for at in random.sample(self._places, self.failures))

    @cached_property
    def _places(self) -> list[int]:
        return [at for at in range(self._inside.bit_length()) if self._inside >> at & 1]

    def _tail(self, size: int) -> list[float]:
        """The logarithm of the probability of so many failures or more in a group of this size, for each number."""
        known = self._tails.get(size)
        if known is None:
            known = self._tails[size] = _upper_tail(_log_terms(size, self.cases, self.failures))
        return known


def _log_terms(size: int, cases: int, failed: int) -> list[float]:
    """The logarithm of the probability of 0, 1, 2 … failures in a group of this size (hypergeometric)."""
    passed, whole = cases - failed, _log_choose(cases, size)
    return [
        _log_choose(failed, count) + _log_choose(passed, size - count) - whole if size - count <= passed else -inf
        for count in range(min(size, failed) + 1)
    ]


def _upper_tail(terms: list[float]) -> list[float]:
    tail, above = [0.0] * len(terms), -inf
    for at in range(len(terms) - 1, -1, -1):
        high, low = max(above, terms[at]), min(above, terms[at])
        above = high if low == -inf else high + log1p(exp(low - high))
        tail[at] = min(0.0, above)
    return tail


@lru_cache(maxsize=100_000)
def _log_choose(whole: int, part: int) -> float:
    return lgamma(whole + 1) - lgamma(part + 1) - lgamma(whole - part + 1)


def _groups(cases: Sequence[Mapping[str, Value]]) -> Iterator[_CaseGroup]:
    """Single values, then pairs. Those of the same cases count once, by the fewest and first values."""
    singles = {key: members for key, members in _values(cases).items() if members.bit_count() < len(cases)}
    single: dict[int, tuple[tuple[str, Value], ...]] = {}
    for key, members in singles.items():
        if members.bit_count() >= FEWEST_CASES:
            single.setdefault(members, (key,))
    tried = log(2 * max(1, len(single)))
    yield from (_CaseGroup(members, conditions, tried) for members, conditions in single.items())
    pairs: dict[int, tuple[tuple[str, Value], ...]] = {}
    for (first, one), (second, other) in combinations(singles.items(), 2):
        both = one & other
        if first[0] != second[0] and both.bit_count() >= FEWEST_CASES_OF_TWO and both not in single:
            pairs.setdefault(both, (first, second))
    largest = sorted(pairs.items(), key=lambda pair: -pair[0].bit_count())[:MOST_PAIRS]
    tried = log(2 * max(1, len(largest)))
    yield from (_CaseGroup(members, conditions, tried) for members, conditions in largest)


def _values(cases: Sequence[Mapping[str, Value]]) -> dict[tuple[str, Value], int]:
    """The cases of each attribute's values, as sets of bits; attributes in the order of their names."""
    found: dict[tuple[str, Value], int] = {}
    for name in sorted({name for case in cases for name in case}):
        for at, case in enumerate(cases):
            key = (name, case.get(name))
            found[key] = found.get(key, 0) | 1 << at
    return found


@dataclass(frozen=True)
class _Cell:
    """Cases that lie in the same causes."""

    causes: frozenset[int]
    cases: int
    failed: int


_STEPS: Final = 12
_SURE: Final = 1e-4
"""No rate is nearer to 0 or 1 than this: a single exception must not make a cause impossible."""


def _likelihood(causes: Sequence[int], failed: int, everything: int) -> float:
    """The log-likelihood of a noisy-or: each cause by itself, or a rate that all cases share, makes a case fail.

    Fitted by expectation maximisation (A. P. Dempster and others, 1977): a dozen steps are near enough to compare.
    """
    cells = [
        _Cell(inside, cases.bit_count(), (cases & failed).bit_count())
        for cases, inside in _partition(causes, everything)
    ]
    rest = next((cell for cell in cells if not cell.causes), _Cell(frozenset(), 1, 0))
    base = (rest.failed + 0.5) / (rest.cases + 1)
    rates = [_share([cell for cell in cells if at in cell.causes]) for at in range(len(causes))]
    for _ in range(_STEPS):
        base, rates = _step(cells, base, rates)
    total = 0.0
    for cell in cells:
        fails = min(max(_fails(cell, base, rates), _SURE), 1 - _SURE)
        total += cell.failed * log(fails) + (cell.cases - cell.failed) * log(1 - fails)
    return total


def _partition(causes: Sequence[int], everything: int) -> list[tuple[int, frozenset[int]]]:
    """The cases in the same causes, with the places of those causes."""
    parts: list[tuple[int, frozenset[int]]] = [(everything, frozenset())]
    for at, members in enumerate(causes):
        parts = [
            part
            for cases, inside in parts
            for part in ((cases & members, inside | {at}), (cases & ~members, inside))
            if part[0]
        ]
    return parts


def _share(cells: Sequence[_Cell]) -> float:
    return (sum(cell.failed for cell in cells) + 0.5) / (sum(cell.cases for cell in cells) + 1)


def _fails(cell: _Cell, base: float, rates: Sequence[float]) -> float:
    passes = 1 - base
    for at in cell.causes:
        passes *= 1 - rates[at]
    return 1 - passes


def _step(cells: Sequence[_Cell], base: float, rates: Sequence[float]) -> tuple[float, list[float]]:
    """One step of expectation maximisation: failures are shared out to what may have made them."""
    shares = [(cell, cell.failed / max(_fails(cell, base, rates), 1e-9)) for cell in cells]
    cases = sum(cell.cases for cell in cells)
    new_base = sum(share * base for _, share in shares) / cases
    new_rates: list[float] = []
    for at, rate in enumerate(rates):
        inside = [(cell, share) for cell, share in shares if at in cell.causes]
        new_rates.append(sum(share * rate for _, share in inside) / max(1, sum(cell.cases for cell, _ in inside)))
    return _between(new_base), [_between(rate) for rate in new_rates]


def _between(rate: float) -> float:
    return min(max(rate, _SURE), 1 - _SURE)
