"""Simulate searches for the first bad build. The simulation knows the build that a search must find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2
from random import Random

from monitors.explain.bisect import BuildSearch


@dataclass(frozen=True)
class SimulatedCase:
    """The failure rates of a simulated case: ``before`` the first bad build, and ``after`` it.

    The rate ``after`` also applies to the first bad build itself. ``breaks_at`` is the first bad build of this
    case, if it differs from that of the other cases.
    """

    before: float = 0.0
    after: float = 1.0
    breaks_at: int | None = None


@dataclass(frozen=True)
class SearchResult:
    """The result of a search: the claimed first bad build, its probability, and the number of questions."""

    claimed: int
    probability: float
    settled: bool
    probes: int


def noise_free_probes(builds: int) -> int:
    """Return the number of questions of a binary search if every answer is true.

    The search needs one question for each end, and then one for each halving.
    """
    return 2 + ceil(log2(builds - 1))


def searched(
    builds: int, cases: Sequence[SimulatedCase], first_bad: int, chance: Random, *, budget: int = 60
) -> SearchResult:
    """Run a search as `BuildBisection` does.

    The search asks the last and the first build first, and then always the most informative question.
    """
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
    """Build a case that passed on the good build and failed on the bad one.

    In the suite of this case, one case in five is flaky: it fails at random on every build, at its own rate. The
    other cases fail from the first bad build on.
    """
    while True:
        if chance.random() >= 0.2:
            return SimulatedCase()
        rate = chance.uniform(0.2, 0.8)
        if chance.random() >= rate and chance.random() < rate:
            return SimulatedCase(rate, rate)
