"""Two more generators of suites with planted causes.

They show that the search for common attributes is not tuned to one generator.

*Nested*: value frequencies are unequal as in real data (a few common, many rare), a document belongs to one policy
and a policy to one insurer, some values are missing, and a cause may be at any level. *Sessions*: cases come in
groups that share most of their attributes, like the questions of one customer. If a case has several causes, their
effects are added on the odds scale. In both generators, up to 15 % of the cases also fail without a cause.
"""

from __future__ import annotations

from itertools import combinations
from math import exp, log
from random import Random
from typing import Final

from tests.monitors.explain.planted import Planted, descriptions, holding

MIN_CASES: Final = 4
"""Minimum number of cases, and of failures, of a planted cause. With fewer, a cause cannot be found."""
HIGHEST_SHARE: Final = 0.5
BASES: Final = (0.0, 0.01, 0.03, 0.06, 0.1, 0.15)

_Chosen = list[tuple[dict[str, int], set[int]]]


def nested_suite(seed: int, causes: int) -> Planted:
    """Build a suite with nested values. Each cause makes cases fail independently of the other causes."""
    for attempt in range(10_000):
        random = Random(f"nested:{seed}:{attempt}")
        cases = _nested_cases(random)
        chosen = _causes(random, cases, causes)
        if chosen is None:
            continue
        base = random.choice(BASES)
        failed = [random.random() < base for _ in cases]
        for _, inside in chosen:
            rate = random.uniform(max(0.3, 3 * base), 1)
            for at in inside:
                failed[at] |= random.random() < rate
        if _usable(failed, chosen):
            return _planted(cases, failed, chosen)
    raise AssertionError(f"no suite for seed {seed}")


def sessions_suite(seed: int, causes: int) -> Planted:
    """Build a suite with groups of similar cases. The effects of several causes are added on the odds scale."""
    for attempt in range(10_000):
        random = Random(f"sessions:{seed}:{attempt}")
        cases = _session_cases(random)
        chosen = _causes(random, cases, causes)
        if chosen is None:
            continue
        base = max(random.choice(BASES), 0.003)
        odds = [log(base / (1 - base)) for _ in cases]
        for _, inside in chosen:
            effect = random.uniform(2, 4) - log(base / (1 - base)) / 2
            for at in inside:
                odds[at] += effect
        failed = [random.random() < 1 / (1 + exp(-one)) for one in odds]
        if _usable(failed, chosen):
            return _planted(cases, failed, chosen)
    raise AssertionError(f"no suite for seed {seed}")


def _nested_cases(random: Random) -> list[dict[str, int]]:
    count = round(40 * 25 ** random.random())
    sizes = [random.choice((2, 3, 5, 9, 20)) for _ in range(random.randint(2, 6))]
    chains = [[random.choice((3, 5, 8)), random.choice((2, 3))][: random.randint(1, 2)] for _ in range(2)]
    missing = random.choice((0, 0, 0.1, 0.4))
    cases: list[dict[str, int]] = []
    for _ in range(count):
        case = {f"flat {at}": _common(random, size) for at, size in enumerate(sizes)}
        for at, chain in enumerate(chains):
            value = 0
            for depth, size in enumerate(chain):
                value = value * 10 + _common(random, size)
                case[f"chain {at} depth {depth}"] = value
        if random.random() < missing:
            del case["flat 0"]
        cases.append(case)
    return cases


def _session_cases(random: Random) -> list[dict[str, int]]:
    count = round(40 * 25 ** random.random())
    sizes = [random.choice((2, 3, 4, 6, 10, 30)) for _ in range(random.randint(3, 16))]
    loyal = random.uniform(0.3, 0.95)
    cases: list[dict[str, int]] = []
    while len(cases) < count:
        prototype = [random.randrange(size) for size in sizes]
        for _ in range(random.randint(1, 12)):
            row = [
                value if random.random() < loyal else random.randrange(size)
                for value, size in zip(prototype, sizes, strict=True)
            ]
            cases.append({f"attribute {at:02}": value for at, value in enumerate(row)})
    return cases[:count]


def _common(random: Random, size: int) -> int:
    """Return a random number below ``size``. By Zipf's law, 0 is the most common value."""
    return random.choices(range(size), [1 / (at + 1) for at in range(size)])[0]


def _causes(random: Random, cases: list[dict[str, int]], count: int) -> _Chosen | None:
    found: _Chosen = []
    for _ in range(count):
        example = random.choice(cases)
        names = random.sample(sorted(example), random.choice((1, 2)))
        conditions = {name: example[name] for name in names}
        inside = holding(cases, conditions)
        narrower = all(len(holding(cases, {name: example[name]})) >= 1.2 * len(inside) for name in names)
        if not MIN_CASES <= len(inside) <= HIGHEST_SHARE * len(cases) or (len(names) > 1 and not narrower):
            return None
        found.append((conditions, inside))
    apart = all(len(a & b) <= 0.6 * min(len(a), len(b)) for (_, a), (_, b) in combinations(found, 2))
    return found if apart else None


def _usable(failed: list[bool], chosen: _Chosen) -> bool:
    alone = [inside - set().union(*(other for _, other in chosen if other is not inside)) for _, inside in chosen]
    return (
        5 <= sum(failed) <= HIGHEST_SHARE * len(failed)
        and all(sum(failed[at] for at in inside) >= MIN_CASES for _, inside in chosen)
        and all(sum(failed[at] for at in inside) >= 2 for inside in alone)
    )


def _planted(cases: list[dict[str, int]], failed: list[bool], chosen: _Chosen) -> Planted:
    return Planted(cases, failed, [descriptions(cases, one, inside) for one, inside in chosen])
