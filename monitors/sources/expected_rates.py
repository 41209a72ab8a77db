"""What a stratum is expected to fail at, from earlier nights and from what was believed before them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from monitors.agreement import Confusion
from monitors.records.estimates import StratumTold


class ExpectedRate(NamedTuple):
    """A rate of failures in [0, 1], and how many conversations' worth of evidence stand behind it.

    ``weight`` is above 0; infinite means that the rate is given, not guessed. Both make a Beta distribution.
    """

    rate: float
    weight: float = inf


DEFAULT_PRIOR = ExpectedRate(0.01, 20.0)
"""Before the first night: one in a hundred, believed as much as twenty conversations would make one believe it."""


def expected_rates(
    strata: Iterable[str], earlier: Sequence[StratumTold] = (), prior: ExpectedRate = DEFAULT_PRIOR
) -> Mapping[str, ExpectedRate]:
    """The rate of each stratum: the prior, and what earlier nights counted in it. They may repeat a stratum."""
    found: dict[str, ExpectedRate] = {}
    for stratum in strata:
        nights = [one for one in earlier if one.stratum == stratum]
        told, failures = sum(one.told for one in nights), sum(one.failures for one in nights)
        found[stratum] = _learnt(prior, failures, told)
    return found


def as_said_by_judge(expected: ExpectedRate, confusion: Confusion) -> ExpectedRate:
    """The rate at which a judge that errs as in ``confusion`` will say that conversations failed.

    Its weight is that of the Beta distribution with the turned rate's mean and variance. Both kinds of answers must
    have been reviewed.
    """
    false_fails = confusion.failed_right / (confusion.failed_right + confusion.passed_right)
    found = confusion.failed_wrong / (confusion.failed_wrong + confusion.passed_wrong)
    rate = false_fails + expected.rate * (found - false_fails)
    spread = (found - false_fails) ** 2 * expected.rate * (1 - expected.rate) / (expected.weight + 1)
    return ExpectedRate(rate, max(1.0, rate * (1 - rate) / spread - 1) if spread else inf)


def _learnt(prior: ExpectedRate, failures: int, told: int) -> ExpectedRate:
    if prior.weight == inf:
        return prior
    weight = prior.weight + told
    return ExpectedRate((prior.rate * prior.weight + failures) / weight, weight)
