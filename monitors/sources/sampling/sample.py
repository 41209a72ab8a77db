"""The sample of a nightly run: the same conversations whoever samples, in whatever order they come.

Every conversation has a place in [0, 1) that follows from its id, the target and the night alone. A sample by
number takes the lowest places of each stratum, so that given its size each conversation of the stratum was as
likely as any other: sampled / conversations, exactly. A sample by rate takes the places below the rate, so that
whether a conversation is sampled does not depend on which others there are, unless its stratum falls short of the
minimum. A larger number or rate contains the smaller one's sample.

The failure rate that a stratum is expected to have comes from earlier runs and from what was believed before them.
A number is allocated to the strata one after the other, in turns: one to the stratum that has fewest, one by size,
one by claim, one by size again. So every stratum has a floor, however large another one's claim is; and half of the
number goes where a stratum falls behind its share of all conversations, so that no sampled conversation stands for
much more than twice as many as in a simple sample. One that stands for many is what makes an interval wide
(`monitors.stats.stratified`).

By size and by claim the next one goes to the largest value over the square root of k (k + 1), where k is what the
stratum has: T. Wright, "The equivalence of Neyman optimum allocation for sampling and equal proportions for
apportioning the U.S. House of Representatives", The American Statistician 66 (2012). With size times spread as
claim that is the allocation of least variance in whole numbers. Each turn goes by what was given before it alone: a
larger number only ever adds, so that it contains the smaller one's sample, which rounding of shares would break.
"""

from __future__ import annotations

import hashlib
import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from itertools import cycle
from math import comb, exp, fsum, inf, log, log1p, sqrt
from typing import Final, NamedTuple

from monitors.records.estimates import GradedStratum
from monitors.records.traffic import Conversation, SampledConversation, StratumCount
from monitors.sources.sampling.settings import Allocation, SamplingSettings
from monitors.sources.sampling.strata import Stratum, TargetFacts, strata, stratum_of
from monitors.stats.agreement import Confusion


class ExpectedRate(NamedTuple):
    """A rate of failures in [0, 1], and how many conversations' worth of evidence stand behind it.

    ``weight`` is above 0; infinite means that the rate is given, not guessed. Both make a Beta distribution.
    """

    rate: float
    weight: float = inf


DEFAULT_PRIOR = ExpectedRate(0.01, 20.0)
"""Before the first night: one in a hundred, believed as much as twenty conversations would make one believe it."""


def expected_rates(
    strata: Iterable[str], earlier: Sequence[GradedStratum] = (), prior: ExpectedRate = DEFAULT_PRIOR
) -> Mapping[str, ExpectedRate]:
    """The rate of each stratum: the prior, and what earlier runs counted in it. They may repeat a stratum."""
    found: dict[str, ExpectedRate] = {}
    for stratum in strata:
        nightly_runs = [one for one in earlier if one.stratum == stratum]
        graded, failures = sum(one.graded for one in nightly_runs), sum(one.failures for one in nightly_runs)
        found[stratum] = _learnt(prior, failures, graded)
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


def _learnt(prior: ExpectedRate, failures: int, graded: int) -> ExpectedRate:
    if prior.weight == inf:
        return prior
    weight = prior.weight + graded
    return ExpectedRate((prior.rate * prior.weight + failures) / weight, weight)


class StratumTurn(StrEnum):
    """Which stratum is next."""

    FEWEST = "fewest"
    """The one with the fewest so far."""
    SIZE = "size"
    """The one that is furthest behind its share of all conversations."""
    CLAIM = "claim"
    """One that is wanted whole, then the one that is furthest behind its claim."""


BY_RISK: Final = (StratumTurn.FEWEST, StratumTurn.SIZE, StratumTurn.CLAIM, StratumTurn.SIZE)
BY_SPREAD: Final = (StratumTurn.FEWEST, StratumTurn.CLAIM, StratumTurn.CLAIM, StratumTurn.CLAIM)
"""Where the claim is size times spread it takes care of the interval itself."""


class StratumDemand(NamedTuple):
    """A stratum: how many conversations it has, how large each one's claim is, whether all are wanted."""

    conversations: int
    weight: float
    whole: bool = False


def allocate(
    claims: Sequence[StratumDemand], budget: int, minimum: int, turns: Sequence[StratumTurn] = BY_RISK
) -> tuple[int, ...]:
    """How many of each stratum, in their order: first each its ``minimum``, then in ``turns``.

    No stratum gets more than it has. The sum is ``budget``, or more where the minimums alone come to more, or all
    there are where that is less. ``minimum`` is at least 1.
    """
    if budget >= sum(claim.conversations for claim in claims):
        return tuple(claim.conversations for claim in claims)
    sampled = [min(minimum, claim.conversations) for claim in claims]
    queues = {turn: _Queue(turn, claims, sampled) for turn in set(turns)}
    left = budget - sum(sampled)
    for turn in cycle(turns):
        if left <= 0:
            return tuple(sampled)
        place = queues[turn].first()
        sampled[place] += 1
        left -= 1
        for queue in queues.values():
            queue.push(place)
    return tuple(sampled)


class _Queue:
    """The strata that have more to give, the next one of a turn first; ``sampled`` is what each has by now."""

    def __init__(self, turn: StratumTurn, claims: Sequence[StratumDemand], sampled: Sequence[int]) -> None:
        self._turn, self._claims, self._sample_strata = turn, claims, sampled
        self._entries: list[tuple[float, int, int]] = []
        for place in range(len(claims)):
            self.push(place)

    def push(self, place: int) -> None:
        """A stratum, with what it has by now."""
        has = self._sample_strata[place]
        if has < self._claims[place].conversations:
            heapq.heappush(self._entries, (_rank(self._turn, self._claims[place], has), place, has))

    def first(self) -> int:
        """The place of the next stratum. Entries from before it got its last one count no more."""
        while True:
            _, place, had = heapq.heappop(self._entries)
            if had == self._sample_strata[place]:
                return place


def _rank(turn: StratumTurn, claim: StratumDemand, has: int) -> float:
    """Where a stratum stands in a turn's queue, the lowest first."""
    if turn is StratumTurn.FEWEST:
        return has
    if turn is StratumTurn.CLAIM and claim.whole:
        return -inf
    weight = claim.weight if turn is StratumTurn.CLAIM else 1.0
    return -claim.conversations * weight / sqrt(has * (has + 1))


class Seed(NamedTuple):
    """What a sample depends on besides the conversations: the same target and night, the same sample."""

    target: str
    day: date


SPARE: Final = 64
"""Candidates of each stratum beyond what may be sampled: so many may be withdrawn without a trace."""

Strata = Mapping[str, Sequence[Conversation]]
"""The conversations of each stratum that has any, the gravest stratum first."""


class Sample(NamedTuple):
    """What was sampled, and of how many. ``strata`` are those that have conversations, the gravest first."""

    sampled: tuple[SampledConversation, ...]
    strata: tuple[StratumCount, ...]


def sample(
    conversations: Iterable[Conversation],
    facts: TargetFacts,
    seed: Seed,
    expected: Mapping[str, ExpectedRate] | None = None,
) -> Sample:
    """Sample a nightly run's conversations: `stratify` and `sample_from` in one."""
    return sample_from(stratify(conversations, facts), facts.settings, seed, expected)


def stratify(conversations: Iterable[Conversation], facts: TargetFacts) -> Strata:
    """The strata that have conversations. An id that comes twice is one conversation, the one completed last."""
    once: dict[str, Conversation] = {}
    for each in conversations:
        known = once.get(each.id)
        if known is None or _age(each) > _age(known):
            once[each.id] = each
    found: dict[str, list[Conversation]] = {stratum.name: [] for stratum in strata(facts.settings)}
    for each in once.values():
        found[stratum_of(each, facts)].append(each)
    return {name: members for name, members in found.items() if members}


class Candidates:
    """The conversations that a nightly run may sample, while it reads them: the lowest places of each stratum.

    A sample by number takes no more of a stratum than the number, so no more are candidates: the memory of a
    nightly run follows from its sample, not from its length. A few more are held for those that are withdrawn. All
    are counted.
    """

    def __init__(self, settings: SamplingSettings, seed: Seed) -> None:
        self._settings, self._seed = settings, seed
        self._most = max(settings.budget or 0, settings.minimum_per_stratum) + SPARE
        self._farthest: dict[str, list[_Farthest]] = defaultdict(list)
        self._sure: dict[str, list[_RankedConversation]] = defaultdict(list)
        self._sizes: dict[str, int] = defaultdict(int)

    def offer(self, stratum: str, conversation: Conversation) -> None:
        """Count one, and hold it as long as it may be sampled."""
        self._sizes[stratum] += 1
        self._retain(
            stratum, _RankedConversation(place(conversation.id, self._seed), conversation.id, conversation)
        )

    def withdraw(self, stratum: str, conversation_id: str) -> None:
        """Remove one that was offered: another content came under its id."""
        self._sizes[stratum] -= 1
        if not self._is_near(stratum, place(conversation_id, self._seed)):
            return
        self._farthest[stratum] = [one for one in self._farthest[stratum] if one.placed.id != conversation_id]
        self._sure[stratum] = [one for one in self._sure[stratum] if one.id != conversation_id]
        heapq.heapify(self._farthest[stratum])

    def take(self, other: Candidates) -> None:
        """Take over all that another one of the same nightly run has."""
        for stratum, members in other.members().items():
            for one in members:
                self._retain(stratum, one)
            self._sizes[stratum] += other.sizes()[stratum]

    def members(self) -> Mapping[str, Sequence[_RankedConversation]]:
        """What may be sampled, the lowest place first."""
        names = [one.name for one in strata(self._settings) if self._sizes[one.name] > 0]
        return {
            name: sorted(
                (*self._sure[name], *(one.placed for one in self._farthest[name])), key=lambda one: one[:2]
            )
            for name in names
        }

    def sizes(self) -> Mapping[str, int]:
        """How many conversations each stratum has in all."""
        return self._sizes

    def sample(self, expected: Mapping[str, ExpectedRate]) -> Sample:
        """Sample from all that were offered."""
        return _sample_strata(self.members(), self._sizes, self._settings, expected)

    def _is_near(self, stratum: str, where: float) -> bool:
        """Whether one at this place is a candidate, had it been offered."""
        heap = self._farthest[stratum]
        if self._settings.budget is None and where < _rate(stratum, self._settings):
            return True
        return len(heap) < self._most or -where >= heap[0].nearness

    def _retain(self, stratum: str, one: _RankedConversation) -> None:
        if self._settings.budget is None and one.place < _rate(stratum, self._settings):
            self._sure[stratum].append(one)
            return
        heap = self._farthest[stratum]
        if len(heap) < self._most:
            heapq.heappush(heap, _Farthest(-one.place, one))
        elif -one.place > heap[0].nearness:
            heapq.heapreplace(heap, _Farthest(-one.place, one))


def sample_from(
    members: Strata, settings: SamplingSettings, seed: Seed, expected: Mapping[str, ExpectedRate] | None = None
) -> Sample:
    """Sample from the strata of a nightly run.

    ``expected`` are the rates that Neyman's allocation goes by; strata that it lacks are taken as wide open. Of a
    sample by rate the inclusion probability is the one before sampling, the minimum reckoned in; estimates go by
    the counts, which are exact given how many were sampled.
    """
    placed = {name: _placed(each, seed) for name, each in members.items()}
    return _sample_strata(placed, {name: len(each) for name, each in members.items()}, settings, expected or {})


def _sample_strata(
    placed: Mapping[str, Sequence[_RankedConversation]],
    sizes: Mapping[str, int],
    settings: SamplingSettings,
    expected: Mapping[str, ExpectedRate],
) -> Sample:
    """Sample from strata of these ``sizes``; of each, its candidates are there, the lowest place first."""
    if settings.budget is None:
        taken = {
            name: _by_rate(each, sizes[name], _rate(name, settings), settings) for name, each in placed.items()
        }
    else:
        wanted = numbers({name: sizes[name] for name in placed}, settings, expected)
        taken_counts = {name: min(wanted[name], len(each)) for name, each in placed.items()}
        taken = {name: (taken_counts[name], taken_counts[name] / sizes[name]) for name in placed}
    sampled = [
        SampledConversation(conversation=one.conversation, stratum=name, inclusion_probability=taken[name][1])
        for name, each in placed.items()
        for one in each[: taken[name][0]]
    ]
    counts = [StratumCount(stratum=name, conversations=sizes[name], sampled=taken[name][0]) for name in placed]
    return Sample(tuple(sampled), tuple(counts))


def numbers(
    sizes: Mapping[str, int], settings: SamplingSettings, expected: Mapping[str, ExpectedRate]
) -> Mapping[str, int]:
    """How many of each stratum a sample by number takes, for strata of these sizes. Not for one by rate."""
    known = [stratum for stratum in strata(settings) if sizes.get(stratum.name)]
    claims = [_claim(stratum, sizes[stratum.name], settings, expected) for stratum in known]
    turns = BY_SPREAD if settings.allocation is Allocation.NEYMAN else BY_RISK
    allocated = allocate(claims, settings.budget or 0, settings.minimum_per_stratum, turns)
    return {stratum.name: count for stratum, count in zip(known, allocated, strict=True)}


class _RankedConversation(NamedTuple):
    """A conversation with its place; sorts by place, then by id."""

    place: float
    id: str
    conversation: Conversation


class _Farthest(NamedTuple):
    """A candidate; of a heap of these the first lies farthest out and goes first."""

    nearness: float
    placed: _RankedConversation


def _placed(members: Sequence[Conversation], seed: Seed) -> Sequence[_RankedConversation]:
    """The conversations of a stratum, the lowest place first."""
    found = (_RankedConversation(place(each.id, seed), each.id, each) for each in members)
    return sorted(found, key=lambda one: one[:2])


def _age(conversation: Conversation) -> tuple[str, str]:
    return conversation.completed_at.isoformat(), conversation.model_dump_json()


def place(conversation_id: str, seed: Seed) -> float:
    """Where a conversation lies in [0, 1) on that night: 53 bits of a SHA-256, as many as a float holds."""
    parts = (seed.target, seed.day.isoformat(), conversation_id)
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return (int.from_bytes(digest[:8]) >> 11) / (1 << 53)


def _claim(
    stratum: Stratum, size: int, settings: SamplingSettings, expected: Mapping[str, ExpectedRate]
) -> StratumDemand:
    weight = settings.weight(stratum.sign)
    if settings.allocation is Allocation.NEYMAN:
        rate = expected[stratum.name].rate if stratum.name in expected else 0.5
        weight = sqrt(rate * (1 - rate))
    return StratumDemand(size, weight, stratum.sign in settings.certainty)


def _rate(name: str, settings: SamplingSettings) -> float:
    sign = next(stratum.sign for stratum in strata(settings) if stratum.name == name)
    if sign in settings.certainty:
        return 1.0
    return min(1.0, (settings.rate or 0.0) * settings.weight(sign))


def _by_rate(
    members: Sequence[_RankedConversation], size: int, rate: float, settings: SamplingSettings
) -> tuple[int, float]:
    """How many are sampled, and how likely each of all that there are was to be."""
    least = min(settings.minimum_per_stratum, size)
    below = bisect_left(members, rate, key=lambda one: one.place)
    return max(least, below), inclusion_probability(size, rate, least)


def inclusion_probability(conversations: int, rate: float, minimum: int) -> float:
    """How likely each of ``conversations`` is sampled at a rate of which at least ``minimum`` are taken.

    All are equally likely, so that it is the expected number sampled over their number: that of the larger of the
    minimum and a binomial count.
    """
    if rate >= 1 or minimum >= conversations:
        return 1.0
    short = fsum((minimum - each) * _chance(each, conversations, rate) for each in range(minimum))
    return min(1.0, rate + short / conversations)


def _chance(each: int, conversations: int, rate: float) -> float:
    return exp(log(comb(conversations, each)) + each * log(rate) + (conversations - each) * log1p(-rate))
