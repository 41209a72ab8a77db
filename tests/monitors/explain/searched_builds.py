"""Searches over simulated builds whose first bad one is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from random import Random

from monitors.explain.bisect import BuildSearch


@dataclass(frozen=True)
class SimulatedCase:
    """How often a case fails before the first bad build and from it on; ``breaks_at`` is a build of its own."""

    before: float = 0.0
    after: float = 1.0
    breaks_at: int | None = None


@dataclass(frozen=True)
class SearchResult:
    """What a search claimed, how likely it held that to be, and the questions that it asked."""

    claimed: int
    probability: float
    settled: bool
    probes: int


def noise_free_probes(builds: int) -> int:
    """What binary search needs where every answer is true: one question to each end, then one to halve what is left."""
    return 2 + ceil(log2(builds - 1))


def searched(
    builds: int, cases: Sequence[SimulatedCase], first_bad: int, chance: Random, *, budget: int = 60
) -> SearchResult:
    """A search as `BuildBisection` makes it: both ends first, then what promises most."""
    search, probes = BuildSearch(builds, len(cases)), 0

    def ask(build: int, case: int) -> None:
        simulated = cases[case]
        breaks_at = first_bad if simulated.breaks_at is None else simulated.breaks_at
        rate = simulated.after if build >= breaks_at else simulated.before
        search.record_answer(build, case, failed=chance.random() < rate)

    for end in (builds - 1, 0):
        ask(end, 0)
        probes += 1
    while probes < budget and not search.is_settled():
        question = search.choose_question()
        if question is None:
            break
        ask(question.build, question.case)
        probes += 1
    posterior = search.compute_posterior()
    claimed = max(range(builds + 1), key=posterior.__getitem__)
    return SearchResult(claimed, posterior[claimed], search.is_settled(), probes)


def chosen_case(chance: Random) -> SimulatedCase:
    """A case that passed on the good build and failed on the bad one, of a suite in which one in five is flaky.

    A flaky case fails at random on every build, by a rate of its own; the others fail from the first bad build on.
    """
    while True:
        if chance.random() >= 0.2:
            return SimulatedCase()
        rate = chance.uniform(0.2, 0.8)
        if chance.random() >= rate and chance.random() < rate:
            return SimulatedCase(rate, rate)
