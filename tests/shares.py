"""The order of the tests when several workers share them: in each share slow tests come first, random otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import TypeVar

Test = TypeVar("Test")


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
