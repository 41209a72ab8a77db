"""Measures simulated searches for the first bad build among 20 builds.

The figures are how often the search finds this build, and how many questions it needs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean, median

from tests.accuracy.figure import Figure, Measured, build_share
from tests.monitors.explain.searched_builds import (
    SearchResult,
    SimulatedCase,
    chosen_case,
    noise_free_probes,
    searched,
)

NAME = "bisect"
BUILDS = 20
SEEDS = range(1000, 1200)
"""Seeds of the simulated searches. The weights of `monitors.explain.bisect` were tuned with other seeds."""
CASES = 5

Suite = Callable[[Random], list[SimulatedCase]]


@dataclass(frozen=True)
class SimulatedSuite:
    """A simulated suite with failing cases.

    If ``twice`` is true, the suite has a goal: on average, a search needs at most twice as many probes as
    without noise.
    """

    what: str
    cases: Suite
    twice: bool = True


def _build_similar(count: int, before: float, after: float) -> Suite:
    return lambda _chance: [SimulatedCase(before, after)] * count


def _build_differing(chance: Random) -> list[SimulatedCase]:
    return [*[SimulatedCase()] * 3, SimulatedCase(breaks_at=chance.randrange(1, BUILDS))]


SUITES = (
    SimulatedSuite("no case is flaky", _build_similar(CASES, 0, 1)),
    SimulatedSuite("one case in five is flaky", lambda chance: [chosen_case(chance) for _ in range(CASES)]),
    SimulatedSuite("every case passes 20 % of the time after the break", _build_similar(CASES, 0, 0.8)),
    SimulatedSuite("one case alone, and it passes 20 % of the time after the break", _build_similar(1, 0, 0.8)),
    SimulatedSuite("one case of four broke by another build", _build_differing),
    SimulatedSuite(
        "every case is wrong 20 % of the time, before and after", _build_similar(CASES, 0.2, 0.8), twice=False
    ),
)

NOTE = """\
The searches of this set are simulated. The first bad build is called the break. A probe is one question to one build. A search
uses no record of an earlier run. It ends when one build is the first bad build with a probability of 95 %, or after 60 probes.

- If no answer is right or wrong by chance (noise-free), a search needs {noise_free} probes: one shows that the good build is right,
  one shows that the bad build is wrong, and {halves} halve the {between} candidates.
- If a case passes 20 % of the time after the break, one answer gives at most 0.62 bits of information. Therefore every method
  needs at least 7 probes on average.
- If every answer is wrong 20 % of the time, one answer gives at most 0.28 bits. Therefore every method needs at least 16
  probes, which is more than twice {noise_free}.

| failing cases | right | probes: mean | median | 95th percentile | noise-free |
| --- | ---: | ---: | ---: | ---: | ---: |
{rows}"""


def measure(data: Path) -> Measured:
    """Measure the share of correct searches and the number of probes, for each kind of suite."""
    del data  # simulated
    simulations = {suite.what: [_simulate(suite, seed) for seed in SEEDS] for suite in SUITES}
    figures = [figure for suite in SUITES for figure in _build_figures(suite, simulations[suite.what])]
    return Measured(tuple(figures), notes=(_format_note(simulations),))


@dataclass(frozen=True)
class _Simulated:
    result: SearchResult
    right: bool


def _simulate(suite: SimulatedSuite, seed: int) -> _Simulated:
    chance = Random(seed)
    cases, first_bad = suite.cases(chance), chance.randrange(1, BUILDS)
    result = searched(BUILDS, cases, first_bad, chance)
    return _Simulated(result, result.claimed == first_bad)


def _build_figures(suite: SimulatedSuite, simulations: list[_Simulated]) -> list[Figure]:
    right = sum(simulation.right for simulation in simulations)
    settled = [simulation for simulation in simulations if simulation.result.settled]
    wrong = sum(not simulation.right for simulation in settled)
    figures = [
        build_share(NAME, f"{suite.what}: right", right, len(simulations), target=0.95 if suite.twice else None),
        build_share(NAME, f"{suite.what}: wrong where 95 % sure", wrong, len(settled), target=0.05, at_most=True),
    ]
    if suite.twice:
        allowed = 2 * noise_free_probes(BUILDS)
        within = sum(simulation.result.probes <= allowed for simulation in simulations)
        figures.append(build_share(NAME, f"{suite.what}: at most {allowed} probes", within, len(simulations)))
    return figures


def _format_note(simulations: Mapping[str, list[_Simulated]]) -> str:
    noise_free = noise_free_probes(BUILDS)
    rows = "\n".join(_format_row(what, simulated, noise_free) for what, simulated in simulations.items())
    return NOTE.format(noise_free=noise_free, halves=noise_free - 2, between=BUILDS - 1, rows=rows)


def _format_row(what: str, simulations: list[_Simulated], noise_free: int) -> str:
    probes = sorted(simulation.result.probes for simulation in simulations)
    right = sum(simulation.right for simulation in simulations)
    high = probes[int(0.95 * len(probes)) - 1]
    return f"| {what} | {right} of {len(simulations)} | {mean(probes):.1f} | {median(probes):g} | {high} | {noise_free} |"
