"""Which tests a run takes, and their order when several workers share them.

In each share slow tests come first, random otherwise. Of a test with many rows that each need a browser or a server, a
run of all tests takes some, others every time; `make soak` takes all.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from typing import TypeVar

Test = TypeVar("Test")


def beyond_the_slice(
    tests: Sequence[Test], seed: int, *, family: Callable[[Test], Hashable], most: Callable[[Test], int | None]
) -> list[Test]:
    """The rows that a run with this seed leaves out: of each family all but ``most``, in any order of ``tests``."""
    families: dict[Hashable, list[Test]] = {}
    for test in tests:
        if most(test) is not None:
            families.setdefault(family(test), []).append(test)
    left_out: list[Test] = []
    for name, rows in families.items():
        shuffled = random.Random(f"{seed} {name}").sample(sorted(rows, key=str), len(rows))
        left_out += shuffled[most(rows[0]) :]
    return left_out


def in_shares(
    tests: Sequence[Test], workers: int, *, module: Callable[[Test], object], slow: Callable[[Test], bool]
) -> list[Test]:
    """``tests`` in an order whose consecutive equal parts, one for each worker, each begin with slow modules.

    A worker that is left alone with a module of browsers at the end keeps the others waiting. Within the slow and
    within the fast ones the order stays as it was, and a slow module stays in one part, where its servers are
    started once.
    """
    modules = [list(group) for _, group in groupby(tests, key=module)]
    shares: list[list[Test]] = [[] for _ in range(workers)]
    for group in modules:
        if any(map(slow, group)):
            min(shares, key=len).extend(group)
    fast = iter([test for group in modules if not any(map(slow, group)) for test in group])
    left = len(tests)
    ordered: list[Test] = []
    for number, share in enumerate(shares):  # as large as xdist hands them out
        size = left // (workers - number)
        while len(share) < size and (test := next(fast, None)) is not None:
            share.append(test)
        left -= len(share)
        ordered += share
    return [*ordered, *fast]
