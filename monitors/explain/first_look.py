"""What do the failed cases have in common? Values of recorded attributes, alone or two together, beyond chance.

A group is all cases that share a value, or two values of two attributes. Fisher's exact test (R. A. Fisher, The
Design of Experiments, 1935, chapter 2) says how surprising its failures are. Hundreds of groups are tried, and many
overlap, so what counts is how often the most surprising of *all* groups of a suite would be as surprising if
failures fell where they fall: found by permuting them (P. H. Westfall and S. S. Young, Resampling-Based Multiple
Testing, 1993, the minP procedure). A further cause must be surprising beside those found: failures are permuted
inside and outside of them apart. Then all are chosen again together, by what explains the failures best: two causes
that overlap look from afar like a third one between them.

Which groups are tried depends on their size alone, never on where the failures are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import exp, inf, lgamma, log
from random import Random
from typing import Final, NamedTuple

from monitors.records.explanations import Cause, FirstLook, Value

FEWEST_CASES: Final = 3
"""A group of two cases is an anecdote."""
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
        first = self._first()
        found = self._best_two([first]) if first is not None else []
        while found and len(found) < MOST_CAUSES:
            more = self._next(found)
            if more is None:
                break
            found = self._chosen_again([*found, more])
            if len(found) == 2:  # noqa: PLR2004 - a first and a further one
                found = self._best_two(found)
        return [cause for cause in found if len(found) == 1 or self._holds_beside(cause, found)]

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
        return _FisherTest(self._all, self.failed)(cause.members) + cause.log_tried

    def _outside(self, causes: Sequence[_CaseGroup]) -> int:
        rest = self._all
        for cause in causes:
            rest &= ~cause.members
        return rest

    # --- is there one? ---------------------------------------------------------------------------------------

    def _first(self) -> _CaseGroup | None:
        """The most surprising group, when chance does as well less often than `ALPHA_FIRST`."""
        test = _FisherTest(self._all, self.failed)
        if test.failures < FEWEST_FAILURES or test.failures == test.cases or not self.groups:
            return None
        best = min(self.groups, key=lambda group: test(group.members) + group.log_tried)
        lowest = test(best.members) + best.log_tried
        if lowest >= 0:
            return None
        certain = 2 * exp(lowest) <= ALPHA_FIRST  # Bonferroni's bound: no permutation can say otherwise
        return best if certain or self._beats_chance(test, lowest) else None

    def _beats_chance(self, test: _FisherTest, lowest: float) -> bool:
        needed = [
            (group.members, enough)
            for group in self.groups
            if (enough := test.enough(group.members.bit_count(), lowest - group.log_tried)) is not None
        ]
        allowed = _allowed(ALPHA_FIRST, PERMUTATIONS)
        as_surprising = 0
        for _ in range(PERMUTATIONS):
            permuted = self._permuted(test)
            as_surprising += any((members & permuted).bit_count() >= enough for members, enough in needed)
            if as_surprising > allowed:
                return False
        return True

    def _next(self, causes: Sequence[_CaseGroup]) -> _CaseGroup | None:
        """The group that is most surprising beside the causes found.

        Only where chance does as well less often than `ALPHA_NEXT`, with as many failures inside each of them.
        """
        strata = [_FisherTest(cell, self.failed) for cell in self._cells(causes)]
        known, rest = {cause.members for cause in causes}, self._outside(causes)
        tried = [
            (group, [group.members & stratum.inside for stratum in strata])
            for group in self.groups
            if group.members not in known and (group.members & rest).bit_count() >= FEWEST_NEW
        ]
        if not tried:
            return None
        real = [stratum.failed for stratum in strata]
        lowest, at = min((_stratified(one, strata, real), at) for at, one in enumerate(tried))
        allowed = _allowed(ALPHA_NEXT, PERMUTATIONS_NEXT)
        as_surprising = 0
        for _ in range(PERMUTATIONS_NEXT):
            permuted = [self._permuted(stratum) for stratum in strata]
            as_surprising += any(_stratified(one, strata, permuted) <= lowest for one in tried)
            if as_surprising > allowed:
                return None
        return tried[at][0]

    def _permuted(self, test: _FisherTest) -> int:
        """As many failures, fallen where they fall among the same cases."""
        return sum(1 << at for at in self._random.sample(test.places, test.failures))

    def _cells(self, causes: Sequence[_CaseGroup]) -> list[int]:
        return [cell for cell, _ in _partition([cause.members for cause in causes], self._all)]

    # --- which is it? ----------------------------------------------------------------------------------------

    def _candidates(self, inside: int) -> list[_CaseGroup]:
        test = _FisherTest(inside, self.failed)
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

    def _holds_beside(self, cause: _CaseGroup, causes: Sequence[_CaseGroup]) -> bool:
        """Whether a cause is surprising in what the others leave, too."""
        inside = self._outside([one for one in causes if one is not cause])
        return _FisherTest(inside, self.failed)(cause.members & inside) + cause.log_tried < 0

    def _explains(self, causes: Sequence[_CaseGroup]) -> float:
        """How well causes explain all failures: log-likelihood, less the logarithm of how many can be chosen."""
        key = frozenset(cause.members for cause in causes)
        if key not in self._explained:
            cost = sum(cause.log_tried for cause in causes)
            self._explained[key] = _likelihood([*key], self.failed, self._all) - cost
        return self._explained[key]


class _FisherTest:
    """Fisher's exact test, one-sided, of the failures among some cases."""

    def __init__(self, inside: int, failed: int) -> None:
        self.inside, self.failed = inside, failed & inside
        self.cases, self.failures = inside.bit_count(), self.failed.bit_count()
        self._log_p: dict[tuple[int, int], float] = {}

    @cached_property
    def places(self) -> list[int]:
        """Where the cases stand."""
        return [at for at in range(self.inside.bit_length()) if self.inside >> at & 1]

    def __call__(self, members: int) -> float:
        """The logarithm of the probability of as many failures or more among these members by chance."""
        return self.log_p(members.bit_count(), (members & self.failed).bit_count())

    def log_p(self, size: int, failures: int) -> float:
        """The same from the counts."""
        if failures * self.cases <= size * self.failures:
            return 0.0
        known = self._log_p.get((size, failures))
        if known is None:
            known = self._log_p[size, failures] = self._tail(size, failures)
        return known

    def enough(self, size: int, log_p: float) -> int | None:
        """How many failures a group of this size needs to be as surprising; ``None`` when all are too few."""
        most = min(size, self.failures)
        return next((count for count in range(1, most + 1) if self.log_p(size, count) <= log_p), None)

    def _tail(self, size: int, failures: int) -> float:
        least = max(failures, size - (self.cases - self.failures))
        terms = [self._log_term(size, count) for count in range(least, min(size, self.failures) + 1)]
        top = max(terms, default=-inf)
        return min(0.0, top + log(sum(exp(term - top) for term in terms)))

    def _log_term(self, size: int, count: int) -> float:
        passed = self.cases - self.failures
        return _log_choose(self.failures, count) + _log_choose(passed, size - count) - _log_choose(self.cases, size)


def _stratified(
    tried: tuple[_CaseGroup, Sequence[int]], strata: Sequence[_FisherTest], failed: Sequence[int]
) -> float:
    """A group's surprise over all strata, after R. A. Fisher's way to combine tests: by their product."""
    group, parts = tried
    surprise = group.log_tried
    for part, stratum, fallen in zip(parts, strata, failed, strict=True):
        if part:
            surprise += stratum.log_p(part.bit_count(), (part & fallen).bit_count())
    return surprise


def _allowed(alpha: float, permutations: int) -> int:
    """How many permutations may be as surprising as what was found; what was found counts as one itself."""
    return int(alpha * (permutations + 1)) - 1


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
        if first[0] != second[0] and both.bit_count() >= FEWEST_CASES and both not in single:
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
