"""Builds graded suites with planted causes. The attributes are correlated, as in real data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from random import Random

NEARLY = 0.9
"""The minimum overlap (Jaccard index) of a correct description's cases with the cases of the planted cause."""


@dataclass(frozen=True)
class Planted:
    """A suite with planted causes: its cases, and for each case whether it failed.

    ``causes`` lists, for each cause, all correct descriptions, with the planted description first.
    """

    cases: list[dict[str, int]]
    failed: list[bool]
    causes: list[list[dict[str, int]]]

    def named(self, claims: list[dict[str, object]]) -> int:
        """Return how many of the causes are described by one of the claims."""
        return sum(any(claim in right for claim in claims) for right in self.causes)

    def wrong(self, claims: list[dict[str, object]]) -> int:
        """Return how many of the claims describe none of the causes."""
        return sum(not any(claim in right for right in self.causes) for claim in claims)


def planted_suite(seed: int, causes: int) -> Planted:
    """Build a suite with ``causes`` planted causes. With 0, its failures are random.

    The same ``seed`` always gives the same suite.
    """
    for attempt in range(10_000):
        made = _suite(Random(f"{seed}:{attempt}"), causes)
        if made is not None:
            return made
    raise AssertionError(f"no suite for seed {seed}")


def _suite(random: Random, causes: int) -> Planted | None:
    cases = _cases(random)
    if not causes:
        fallen = set(random.sample(range(len(cases)), random.randint(5, min(60, len(cases) // 2))))
        return Planted(cases, [at in fallen for at in range(len(cases))], [])
    planted = [_cause(random, cases) for _ in range(causes)]
    chosen = [(one, members) for one, members in (cause for cause in planted if cause is not None)]
    if len(chosen) < causes or any(
        len(a & b) > min(len(a), len(b)) / 2 for (_, a), (_, b) in combinations(chosen, 2)
    ):
        return None
    base = random.choice((0, 0.01, 0.02, 0.04))
    failed = [random.random() < base for _ in cases]
    for _, members in chosen:
        rate = random.uniform(0.4, 1)
        for at in members:
            failed[at] |= random.random() < rate
    enough = all(sum(failed[at] for at in members) >= 4 for _, members in chosen)
    if not enough or sum(failed) > max(60, len(cases) // 5):
        return None
    return Planted(cases, failed, [descriptions(cases, one, members) for one, members in chosen])


def _cases(random: Random) -> list[dict[str, int]]:
    count = round(50 * 20 ** random.random())
    sizes = [random.choice((2, 3, 3, 4, 5, 6, 8, 12, 24)) for _ in range(random.randint(4, 10))]
    parents = [random.randrange(at) if at and random.random() < 0.3 else None for at in range(len(sizes))]
    cases: list[dict[str, int]] = []
    for _ in range(count):
        row: list[int] = []
        for size, parent in zip(sizes, parents, strict=True):
            follows = parent is not None and random.random() < 0.9
            row.append((row[parent] * 7 + random.randrange(2)) % size if follows else random.randrange(size))
        cases.append({f"attribute {at}": value for at, value in enumerate(row)})
    return cases


def holding(cases: list[dict[str, int]], conditions: Mapping[str, int]) -> set[int]:
    return {at for at, case in enumerate(cases) if conditions.items() <= case.items()}


def _cause(random: Random, cases: list[dict[str, int]]) -> tuple[dict[str, int], set[int]] | None:
    example = random.choice(cases)
    names = random.sample(sorted(example), random.choice((1, 2)))
    conditions = {name: example[name] for name in names}
    members = holding(cases, conditions)
    if not 5 <= len(members) <= 0.4 * len(cases):
        return None
    wider = [holding(cases, {name: example[name]}) for name in names] if len(names) > 1 else []
    return None if any(len(one) < 1.2 * len(members) for one in wider) else (conditions, members)


def descriptions(cases: list[dict[str, int]], planted: dict[str, int], members: set[int]) -> list[dict[str, int]]:
    keys = dict.fromkeys(key for case in cases for key in case.items())
    values = {(name, value): holding(cases, {name: value}) for name, value in keys}
    found = [planted]
    found += [dict([key]) for key, one in values.items() if _near(one, members)]
    found += [
        dict([first, second])
        for (first, one), (second, other) in combinations(values.items(), 2)
        if first[0] != second[0] and _near(one & other, members)
    ]
    return found


def _near(one: set[int], other: set[int]) -> bool:
    return bool(one) and len(one & other) / len(one | other) >= NEARLY
