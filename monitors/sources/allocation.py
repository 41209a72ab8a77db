"""How many conversations of a number go to each stratum.

One after the other, each to the stratum with the largest claim over the square root of k (k + 1), where k is what
it has: T. Wright, "The equivalence of Neyman optimum allocation for sampling and equal proportions for apportioning
the U.S. House of Representatives", The American Statistician 66 (2012). With size times spread as claim that is the
allocation of least variance in whole numbers. A larger number only ever adds, so that it contains the smaller one's
draw, which rounding of shares would break.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple


class Claim(NamedTuple):
    """A stratum: how many conversations it has, how loudly each of them asks, whether all are wanted."""

    conversations: int
    weight: float
    whole: bool = False


def allocate(claims: Sequence[Claim], budget: int, minimum: int) -> tuple[int, ...]:
    """How many of each stratum, in their order: first each its ``minimum``, then those wanted whole, then by claim.

    No stratum gets more than it has. The sum is ``budget``, or more where the minimums alone come to more, or all
    there are where that is less. ``minimum`` is at least 1.
    """
    drawn = [min(minimum, claim.conversations) for claim in claims]
    left = max(0, budget - sum(drawn))
    for place, claim in enumerate(claims):
        more = min(left, claim.conversations - drawn[place]) if claim.whole else 0
        drawn[place] += more
        left -= more
    return _by_claim(claims, drawn, left)


def _by_claim(claims: Sequence[Claim], drawn: list[int], left: int) -> tuple[int, ...]:
    queue = [entry for place in range(len(claims)) for entry in _next(claims, drawn, place)]
    heapq.heapify(queue)
    while left and queue:
        _, place = heapq.heappop(queue)
        drawn[place] += 1
        left -= 1
        for entry in _next(claims, drawn, place):
            heapq.heappush(queue, entry)
    return tuple(drawn)


def _next(claims: Sequence[Claim], drawn: Sequence[int], place: int) -> Sequence[tuple[float, int]]:
    """The stratum's place in the queue, the loudest first; none when it has nothing more to give."""
    claim, has = claims[place], drawn[place]
    if has >= claim.conversations:
        return ()
    return ((-claim.conversations * claim.weight / sqrt(has * (has + 1)), place),)
