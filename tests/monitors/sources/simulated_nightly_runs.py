"""Simulated nightly runs: 2,000 conversations with planted failures are sampled, judged and estimated."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from typing import NamedTuple

from monitors.records.estimates import GradedStratum, RateEstimate, RateForecast
from monitors.records.traffic import Conversation
from monitors.sources.sampling.plan import SEVERE_RATE_NAME, Grading, PlannedRate, plan_nightly
from monitors.sources.sampling.sample import (
    ExpectedRate,
    Sample,
    Seed,
    Strata,
    group_latest_by_stratum,
    sample_strata,
)
from monitors.sources.sampling.settings import RiskSign, SamplingSettings
from monitors.sources.sampling.strata import TargetFacts
from monitors.stats.agreement import Confusion
from monitors.stats.stratified import estimate_failure_rate
from tests.monitors.sources.night_traffic import night, simple, stratified

SIZES: Mapping[RiskSign | None, int] = {
    RiskSign.DISCLOSURE: 20,
    RiskSign.ERROR_LEAK: 20,
    RiskSign.THUMBS_DOWN: 60,
    RiskSign.FALLBACK: 100,
    RiskSign.LANGUAGE: 200,
    RiskSign.SLOW: 100,
    None: 1_500,
}
CONVERSATIONS = night(dict(SIZES))
SIGN_OF = {each.id: sign for each, sign in zip(
    CONVERSATIONS, [sign for sign, count in SIZES.items() for _ in range(count)], strict=True
)}  # fmt: skip
IDS_OF = {sign: [each.id for each in CONVERSATIONS if SIGN_OF[each.id] is sign] for sign in SIZES}
PLANTED: Mapping[str, Mapping[RiskSign | None, int]] = {
    "1 % everywhere": {sign: max(1, round(count / 100)) if sign else 14 for sign, count in SIZES.items()},
    "1 % in risk strata": {RiskSign.DISCLOSURE: 8, RiskSign.ERROR_LEAK: 4, RiskSign.FALLBACK: 5, RiskSign.THUMBS_DOWN: 3},
    "1 % hidden in the rest": {None: 20},
    "0.3 %": {RiskSign.DISCLOSURE: 3, None: 3},
    "8 %": {RiskSign.DISCLOSURE: 15, RiskSign.FALLBACK: 40, None: 105},
}  # fmt: skip
"""For each scenario, the number of severity-3 failures in the stratum of each risk sign."""
DESIGNS: Mapping[str, TargetFacts] = {
    "simple 10": simple(),
    "simple 50": simple(number=50),
    "simple 200": simple(number=200),
    "simple 5 %": simple(rate=0.05),
    "stratified 50": stratified(number=50),
    "stratified 200": stratified(number=200, minimum_per_stratum=5),
    "stratified 5 %": stratified(rate=0.05, minimum_per_stratum=2),
    "neyman 200": stratified(number=200, allocation="neyman", minimum_per_stratum=5),
}
FALSE_PASS, FALSE_FAIL = 0.10, 0.05
REVIEWED_RIGHT, REVIEWED_WRONG = 300, 100
"""The numbers of right and wrong answers in the calibration set of a judge."""


class SimulatedNight(NamedTuple):
    """One simulated night: the estimated rate, the true rate, and the strata."""

    estimate: RateEstimate
    truth: float
    strata: tuple[GradedStratum, ...]

    @property
    def covered(self) -> bool:
        """Return whether the interval contains the true rate, apart from rounding."""
        return self.estimate.low - 1e-9 <= self.truth <= self.estimate.high + 1e-9


class Design(NamedTuple):
    """A design of the simulation: how the conversations are sampled and graded.

    If ``judged`` is true, a judge that makes errors grades the sample, with a new calibration set each night.
    """

    facts: TargetFacts
    planted: Mapping[RiskSign | None, int]
    judged: bool = False
    graded_share: float = 1.0

    @property
    def strata(self) -> Strata:
        """Return the strata of a night's conversations."""
        return _strata_of(self.facts.settings.model_dump_json())

    @property
    def rates(self) -> Mapping[str, ExpectedRate]:
        """Return the expected rate of each stratum: the planted rate, as if 100 conversations had shown it."""
        return _rates_of(self.facts.settings.model_dump_json(), tuple(self.planted.items()))


@cache
def _strata_of(settings: str) -> Strata:
    """Return the strata, which are the same every night and therefore cached."""
    return group_latest_by_stratum(CONVERSATIONS, TargetFacts(SamplingSettings.model_validate_json(settings)))


@cache
def _rates_of(settings: str, planted: Sequence[tuple[RiskSign | None, int]]) -> Mapping[str, ExpectedRate]:
    share = {sign: count / SIZES[sign] for sign, count in planted}
    failures = {
        name: sum(share.get(SIGN_OF[each.id], 0) for each in members)
        for name, members in _strata_of(settings).items()
    }
    return {
        name: ExpectedRate((failing + 0.001) / (len(_strata_of(settings)[name]) + 0.1), 100.0)
        for name, failing in failures.items()
    }


def simulate(design: Design, nights: int, seed: int) -> Sequence[SimulatedNight]:
    """Simulate ``nights`` nights, each with its own failures, sample, judge errors and calibration set."""
    return [_night(design, number, random.Random(f"{seed} {number}")) for number in range(nights)]


def planned_width(design: Design, rates: Mapping[str, ExpectedRate], number: int = 0) -> float:
    """Return the width of the interval that the plan for night ``number`` expects."""
    sampling = _sample_night(design, number)
    confusion = _calibration(random.Random(f"plan {number}")) if design.judged else None
    grading = Grading(1.2, Decimal("0.004"), confusion)
    wanted = PlannedRate(SEVERE_RATE_NAME, rates, design.graded_share)
    (forecast,) = plan_nightly(sampling.strata, [wanted], grading, design.facts.settings).rates
    assert isinstance(forecast, RateForecast)
    return forecast.width


def _sample_night(design: Design, number: int) -> Sample:
    return sample_strata(
        design.strata, design.facts.settings, Seed("demo", date(2026, 1, 1) + timedelta(days=number)), design.rates
    )


def _night(design: Design, number: int, chance: random.Random) -> SimulatedNight:
    failing = _failing(design, chance)
    sampling = _sample_night(design, number)
    seen = [one for one in sampling.sampled if chance.random() < design.graded_share]
    said = {one.conversation.id: _said(one.conversation, failing, design, chance) for one in seen}
    graded = Counter(one.stratum for one in seen)
    failed = Counter(one.stratum for one in seen if said[one.conversation.id])
    strata = tuple(
        GradedStratum(**one.model_dump(), graded=graded[one.stratum], failures=failed[one.stratum])
        for one in sampling.strata
    )
    found = estimate_failure_rate(strata, confusion=_calibration(chance) if design.judged else None)
    assert isinstance(found, RateEstimate)
    return SimulatedNight(found, len(failing) / len(CONVERSATIONS), strata)


def _failing(design: Design, chance: random.Random) -> frozenset[str]:
    ids: list[str] = []
    for sign, count in design.planted.items():
        ids += chance.sample(IDS_OF[sign], count)
    return frozenset(ids)


def _said(conversation: Conversation, failing: frozenset[str], design: Design, chance: random.Random) -> bool:
    """Return whether the conversation is graded as failed. A judge that makes errors can be wrong."""
    wrong = conversation.id in failing
    if not design.judged:
        return wrong
    return chance.random() >= FALSE_PASS if wrong else chance.random() < FALSE_FAIL


def _calibration(chance: random.Random) -> Confusion:
    passed_wrong = sum(chance.random() < FALSE_PASS for _ in range(REVIEWED_WRONG))
    failed_right = sum(chance.random() < FALSE_FAIL for _ in range(REVIEWED_RIGHT))
    return Confusion(REVIEWED_RIGHT - failed_right, passed_wrong, failed_right, REVIEWED_WRONG - passed_wrong)
