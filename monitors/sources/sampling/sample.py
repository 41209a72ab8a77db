"""Sample the conversations of a nightly run.

The sample is reproducible and does not depend on the order of the conversations. Each conversation has a
pseudorandom number from 0 to 1, computed as a hash of the conversation's id, the target and the night.

- A sample by number takes the conversations with the lowest pseudorandom numbers in each stratum. Every
  conversation of a stratum has the same inclusion probability: sampled / conversations.
- A sample by rate takes the conversations whose pseudorandom number is below the rate of their stratum. Whether a
  conversation is sampled does not depend on other conversations, unless its stratum would get fewer than the
  minimum.
- The sample for a larger number or rate contains the sample for a smaller number or rate.

A sample by number is divided among the strata one conversation at a time. Four rules take turns: the next
conversation goes to the stratum with the fewest sampled conversations, then to a stratum chosen by size, then to a
stratum chosen by its claim (its risk or its expected spread), then again to a stratum chosen by size. Each stratum
therefore gets some conversations, even if another stratum has a large claim. Half of the sample goes to strata that
are behind their share of all conversations. Therefore, a sampled conversation represents at most about twice as
many conversations as in a simple sample. Conversations that represent many others widen the interval
(`monitors.stats.stratified`).

By size and by claim, the next conversation goes to the stratum with the largest value / sqrt(k (k + 1)), where k is
the number of conversations that the stratum already has: T. Wright, "The equivalence of Neyman optimum allocation
for sampling and equal proportions for apportioning the U.S. House of Representatives", The American Statistician 66
(2012). If the claim is size times spread, this is the allocation of least variance in whole numbers. Each turn
depends only on the turns before it. Therefore, a larger sample contains a smaller sample, which would not be true
for rounded shares.

The expected failure rate of a stratum comes from a prior and from earlier runs.
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
from operator import itemgetter
from typing import Final, NamedTuple

from monitors.records.estimates import GradedStratum
from monitors.records.traffic import Conversation, SampledConversation, StratumCount
from monitors.sources.sampling.settings import Allocation, SamplingSettings
from monitors.sources.sampling.strata import TargetFacts, find_stratum_name, list_strata
from monitors.stats.agreement import Confusion


class ExpectedRate(NamedTuple):
    """An expected failure rate from 0 to 1, and its certainty.

    The rate is as certain as a rate that was measured in ``weight`` graded conversations. ``weight`` is greater
    than 0. If ``weight`` is infinite, the rate is exactly known. Rate and weight define a Beta distribution.
    """

    rate: float
    weight: float = inf


DEFAULT_PRIOR = ExpectedRate(0.01, 20.0)
"""The expected failure rate before the first night: 1 in 100 conversations, with the weight of 20 conversations."""


def compute_expected_failure_rates(
    strata: Iterable[str], earlier: Sequence[GradedStratum] = (), prior: ExpectedRate = DEFAULT_PRIOR
) -> Mapping[str, ExpectedRate]:
    """Return the expected rate of each stratum from the prior and the counts of earlier runs."""
    rates: dict[str, ExpectedRate] = {}
    for stratum in strata:
        nightly_runs = [run for run in earlier if run.stratum == stratum]
        graded, failures = sum(run.graded for run in nightly_runs), sum(run.failures for run in nightly_runs)
        weight = prior.weight + graded
        rate = prior.rate if prior.weight == inf else (prior.rate * prior.weight + failures) / weight
        rates[stratum] = ExpectedRate(rate, weight)
    return rates


def compute_judged_rate(expected: ExpectedRate, confusion: Confusion) -> ExpectedRate:
    """Return the expected share of conversations that a judge with the errors in ``confusion`` will fail.

    ``expected`` is the true failure rate. The judge also fails some right answers, and passes some wrong answers.
    The weight of the result is chosen so that its Beta distribution has the mean and the variance of the converted
    rate. The reviews in ``confusion`` must include both right and wrong answers.
    """
    false_fails = confusion.failed_right / (confusion.failed_right + confusion.passed_right)
    true_fails = confusion.failed_wrong / (confusion.failed_wrong + confusion.passed_wrong)
    rate = false_fails + expected.rate * (true_fails - false_fails)
    spread = (true_fails - false_fails) ** 2 * expected.rate * (1 - expected.rate) / (expected.weight + 1)
    return ExpectedRate(rate, max(1.0, rate * (1 - rate) / spread - 1) if spread else inf)


class NextStratumRule(StrEnum):
    """The rule that chooses the stratum from which the next conversation is sampled."""

    EQUAL = "equal"
    """Choose the stratum with the fewest sampled conversations, so that all strata get the same number."""
    SIZE = "size"
    """Choose the stratum whose share of the sample is furthest below its share of all conversations."""
    CLAIM = "claim"
    """Choose a stratum that must be sampled completely.

    If there is no such stratum, choose the stratum whose part of the sample is furthest below its claim.
    """


BY_RISK: Final = (NextStratumRule.EQUAL, NextStratumRule.SIZE, NextStratumRule.CLAIM, NextStratumRule.SIZE)
BY_SPREAD: Final = (NextStratumRule.EQUAL, NextStratumRule.CLAIM, NextStratumRule.CLAIM, NextStratumRule.CLAIM)
"""The order of the rules for strata whose claim is size times spread.

One turn in four follows the rule ``EQUAL``, and three follow the rule ``CLAIM``. The rule ``SIZE`` is not needed,
because this claim already gives the narrowest interval.
"""


class StratumClaim(NamedTuple):
    """A stratum that gets a part of the sample.

    ``weight`` is the claim of each conversation of the stratum. If ``whole`` is true, turns of the rule
    `NextStratumRule.CLAIM` choose this stratum until all its conversations are sampled.
    """

    conversations: int
    weight: float
    whole: bool = False


def allocate_sample(
    claims: Sequence[StratumClaim], budget: int, minimum: int, turns: Sequence[NextStratumRule] = BY_RISK
) -> tuple[int, ...]:
    """Return the number of conversations to sample from each stratum.

    Each stratum first gets the ``minimum``, which is at least 1. The remaining budget is allocated by the rules in
    ``turns``. A stratum gets at most its size. The numbers add up to ``budget``, or to more if the minimums alone
    need more, or to less if there are not enough conversations.
    """
    if budget >= sum(claim.conversations for claim in claims):
        return tuple(claim.conversations for claim in claims)
    sampled = [min(minimum, claim.conversations) for claim in claims]
    queues = {turn: _StratumQueue(turn, claims, sampled) for turn in set(turns)}
    remaining = budget - sum(sampled)
    for turn in cycle(turns):
        if remaining <= 0:
            return tuple(sampled)
        index = queues[turn].pop_next_stratum()
        sampled[index] += 1
        remaining -= 1
        for queue in queues.values():
            queue.add_stratum_if_any_left(index)
    return tuple(sampled)


class _StratumQueue:
    """The strata that still have conversations, in the order in which one rule chooses them.

    ``sampled`` contains the current number of sampled conversations of each stratum. The caller changes
    ``sampled``.
    """

    def __init__(self, turn: NextStratumRule, claims: Sequence[StratumClaim], sampled: Sequence[int]) -> None:
        self._turn, self._claims, self._sampled = turn, claims, sampled
        self._entries: list[tuple[float, int, int]] = []
        for index in range(len(claims)):
            self.add_stratum_if_any_left(index)

    def add_stratum_if_any_left(self, index: int) -> None:
        """Add the stratum ``index`` with its present count of sampled conversations, unless all are sampled."""
        count = self._sampled[index]
        if count < self._claims[index].conversations:
            heapq.heappush(self._entries, (_compute_rank(self._turn, self._claims[index], count), index, count))

    def pop_next_stratum(self) -> int:
        """Return the index of the stratum that the rule chooses next. Outdated entries of the queue are skipped."""
        while True:
            _, index, old_count = heapq.heappop(self._entries)
            if old_count == self._sampled[index]:
                return index


def _compute_rank(turn: NextStratumRule, claim: StratumClaim, count: int) -> float:
    """Return the rank of a stratum under the rule ``turn``. The rule chooses the stratum with the lowest rank.

    ``count`` is the number of conversations that the stratum already has in the sample.
    """
    if turn is NextStratumRule.EQUAL:
        return count
    if turn is NextStratumRule.CLAIM and claim.whole:
        return -inf
    weight = claim.weight if turn is NextStratumRule.CLAIM else 1.0
    return -claim.conversations * weight / sqrt(count * (count + 1))


class Seed(NamedTuple):
    """The target and the night of a sample. With the same conversations, the same seed gives the same sample."""

    target: str
    day: date


SPARE_CANDIDATES: Final = 64
"""Number of additional candidates per stratum that are stored to replace withdrawn candidates."""

Strata = Mapping[str, Sequence[Conversation]]
"""The conversations of each non-empty stratum, the most severe stratum first."""


class Sample(NamedTuple):
    """The sampled conversations, and the counts of the non-empty strata, the most severe stratum first."""

    sampled: tuple[SampledConversation, ...]
    strata: tuple[StratumCount, ...]


def group_latest_by_stratum(conversations: Iterable[Conversation], facts: TargetFacts) -> Strata:
    """Group conversations by stratum.

    If several conversations have the same id, only the one that was completed last is included.
    """
    latest: dict[str, Conversation] = {}
    for conversation in conversations:
        earlier = latest.get(conversation.id)
        if earlier is None or _make_recency_key(conversation) > _make_recency_key(earlier):
            latest[conversation.id] = conversation
    members_by_stratum: dict[str, list[Conversation]] = {
        stratum.name: [] for stratum in list_strata(facts.settings)
    }
    for conversation in latest.values():
        members_by_stratum[find_stratum_name(conversation, facts)].append(conversation)
    return {name: members for name, members in members_by_stratum.items() if members}


class Candidates:
    """Collects the conversations that a nightly run may sample.

    These are the conversations with the lowest pseudorandom numbers in each stratum (see
    `compute_pseudorandom_place`). A sample by number takes at most that number of conversations from a stratum, or
    the configured minimum for a stratum, if the minimum is larger. For each stratum, only this number of candidates
    is stored, and `SPARE_CANDIDATES` more to replace withdrawn candidates. Memory use therefore depends on the size
    of the sample and not on the traffic. ``sizes`` counts all conversations of each stratum.
    """

    def __init__(self, settings: SamplingSettings, seed: Seed) -> None:
        self._settings, self._seed = settings, seed
        self._max_candidates = max(settings.budget or 0, settings.minimum_per_stratum) + SPARE_CANDIDATES
        self._farthest: dict[str, list[_Farthest]] = defaultdict(list)
        self._certain: dict[str, list[_RankedConversation]] = defaultdict(list)
        self.sizes: dict[str, int] = defaultdict(int)

    def offer(self, stratum: str, conversation: Conversation) -> None:
        """Count a conversation in its stratum. Store the conversation if it can still become part of the sample."""
        self.sizes[stratum] += 1
        self._store_if_candidate(
            stratum,
            _RankedConversation(
                compute_pseudorandom_place(conversation.id, self._seed), conversation.id, conversation
            ),
        )

    def withdraw(self, stratum: str, conversation_id: str) -> None:
        """Remove a conversation that was offered before, because another version with the same id replaces it."""
        self.sizes[stratum] -= 1
        if not self._can_be_candidate(stratum, compute_pseudorandom_place(conversation_id, self._seed)):
            return
        self._farthest[stratum] = [
            candidate for candidate in self._farthest[stratum] if candidate.ranked.id != conversation_id
        ]
        self._certain[stratum] = [
            candidate for candidate in self._certain[stratum] if candidate.id != conversation_id
        ]
        heapq.heapify(self._farthest[stratum])

    def merge(self, added: Candidates) -> None:
        """Add the candidates and counts of ``added``, which comes from another part of the same nightly run."""
        for stratum, members in added.sort_candidates_by_place().items():
            for candidate in members:
                self._store_if_candidate(stratum, candidate)
            self.sizes[stratum] += added.sizes[stratum]

    def sort_candidates_by_place(self) -> Mapping[str, Sequence[_RankedConversation]]:
        """Return the candidates of each stratum, the lowest pseudorandom number first."""
        names = [stratum.name for stratum in list_strata(self._settings) if self.sizes[stratum.name] > 0]
        return {
            name: sorted(
                (*self._certain[name], *(entry.ranked for entry in self._farthest[name])),
                key=itemgetter(0, 1),
            )
            for name in names
        }

    def sample(self, expected: Mapping[str, ExpectedRate]) -> Sample:
        """Sample from all conversations that were offered."""
        return _sample_members(self.sort_candidates_by_place(), self.sizes, self._settings, expected)

    def _can_be_candidate(self, stratum: str, position: float) -> bool:
        """Return whether a conversation of ``stratum`` at ``position`` is, or would become, a candidate.

        ``position`` is the conversation's pseudorandom number (see `compute_pseudorandom_place`).
        """
        heap = self._farthest[stratum]
        if self._settings.budget is None and position < _compute_sampling_rate(stratum, self._settings):
            return True
        return len(heap) < self._max_candidates or -position >= heap[0].nearness

    def _store_if_candidate(self, stratum: str, candidate: _RankedConversation) -> None:
        if self._settings.budget is None and candidate.place < _compute_sampling_rate(stratum, self._settings):
            self._certain[stratum].append(candidate)
            return
        heap = self._farthest[stratum]
        if len(heap) < self._max_candidates:
            heapq.heappush(heap, _Farthest(-candidate.place, candidate))
        elif -candidate.place > heap[0].nearness:
            heapq.heapreplace(heap, _Farthest(-candidate.place, candidate))


def sample_strata(
    members: Strata, settings: SamplingSettings, seed: Seed, expected: Mapping[str, ExpectedRate] | None = None
) -> Sample:
    """Sample from the strata of a nightly run.

    ``expected`` contains the rates for Neyman's allocation. A stratum that is missing in ``expected`` has the rate
    0.5. For a sample by rate, the inclusion probability is computed before sampling and includes the minimum.
    Estimates do not use this probability: they use the counts of sampled conversations, which are exact.
    """
    ranked = {name: _rank_members(conversations, seed) for name, conversations in members.items()}
    return _sample_members(
        ranked, {name: len(conversations) for name, conversations in members.items()}, settings, expected or {}
    )


def _sample_members(
    ranked: Mapping[str, Sequence[_RankedConversation]],
    sizes: Mapping[str, int],
    settings: SamplingSettings,
    expected: Mapping[str, ExpectedRate],
) -> Sample:
    """Sample from strata with these ``sizes``, which count all conversations of each stratum.

    ``ranked`` contains the candidates of each stratum, the lowest pseudorandom number first.
    """
    if settings.budget is None:
        allocated = {
            name: _compute_count_and_probability(
                conversations, sizes[name], _compute_sampling_rate(name, settings), settings
            )
            for name, conversations in ranked.items()
        }
    else:
        numbers = allocate_by_stratum({name: sizes[name] for name in ranked}, settings, expected)
        taken_counts = {name: min(numbers[name], len(conversations)) for name, conversations in ranked.items()}
        allocated = {name: (taken_counts[name], taken_counts[name] / sizes[name]) for name in ranked}
    sampled = [
        SampledConversation(
            conversation=candidate.conversation, stratum=name, inclusion_probability=allocated[name][1]
        )
        for name, conversations in ranked.items()
        for candidate in conversations[: allocated[name][0]]
    ]
    counts = [StratumCount(stratum=name, conversations=sizes[name], sampled=allocated[name][0]) for name in ranked]
    return Sample(tuple(sampled), tuple(counts))


def allocate_by_stratum(
    sizes: Mapping[str, int], settings: SamplingSettings, expected: Mapping[str, ExpectedRate]
) -> Mapping[str, int]:
    """Return how many conversations to sample from each stratum, for a sample by number (not by rate)."""
    nonempty = [stratum for stratum in list_strata(settings) if sizes.get(stratum.name)]
    claims: list[StratumClaim] = []
    for stratum in nonempty:
        weight = settings.get_weight(stratum.sign)
        if settings.allocation is Allocation.NEYMAN:
            rate = expected[stratum.name].rate if stratum.name in expected else 0.5
            weight = sqrt(rate * (1 - rate))
        claims.append(StratumClaim(sizes[stratum.name], weight, stratum.sign in settings.certainty))
    turns = BY_SPREAD if settings.allocation is Allocation.NEYMAN else BY_RISK
    allocated = allocate_sample(claims, settings.budget or 0, settings.minimum_per_stratum, turns)
    return {stratum.name: count for stratum, count in zip(nonempty, allocated, strict=True)}


class _RankedConversation(NamedTuple):
    """A conversation and its pseudorandom number ``place``. Conversations are sorted by this number, then by id."""

    place: float
    id: str
    conversation: Conversation


class _Farthest(NamedTuple):
    """An entry of a heap of candidates. The entry with the highest pseudorandom number is removed first.

    ``nearness`` is the negative pseudorandom number.
    """

    nearness: float
    ranked: _RankedConversation


def _rank_members(members: Sequence[Conversation], seed: Seed) -> Sequence[_RankedConversation]:
    """Return the conversations of a stratum, sorted by `compute_pseudorandom_place`, the lowest number first."""
    ranked = (
        _RankedConversation(compute_pseudorandom_place(conversation.id, seed), conversation.id, conversation)
        for conversation in members
    )
    return sorted(ranked, key=lambda candidate: candidate[:2])


def _make_recency_key(conversation: Conversation) -> tuple[str, str]:
    return conversation.completed_at.isoformat(), conversation.model_dump_json()


def compute_pseudorandom_place(conversation_id: str, seed: Seed) -> float:
    """Return the pseudorandom number of a conversation, from 0 (inclusive) to 1 (exclusive).

    The number is the first 53 bits of a SHA-256 hash, as a fraction. The hash is computed from the target, the
    night and the conversation's id.
    """
    parts = (seed.target, seed.day.isoformat(), conversation_id)
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return (int.from_bytes(digest[:8]) >> 11) / (1 << 53)


def _compute_sampling_rate(name: str, settings: SamplingSettings) -> float:
    sign = next(stratum.sign for stratum in list_strata(settings) if stratum.name == name)
    if sign in settings.certainty:
        return 1.0
    return min(1.0, (settings.rate or 0.0) * settings.get_weight(sign))


def _compute_count_and_probability(
    members: Sequence[_RankedConversation], size: int, rate: float, settings: SamplingSettings
) -> tuple[int, float]:
    """Return how many conversations of a stratum to sample, and the probability that each of them is sampled."""
    minimum = min(settings.minimum_per_stratum, size)
    below = bisect_left(members, rate, key=lambda candidate: candidate.place)
    return max(minimum, below), compute_inclusion_probability(size, rate, minimum)


def compute_inclusion_probability(conversations: int, rate: float, minimum: int) -> float:
    """Return the probability with which a conversation of a stratum is sampled at ``rate``.

    ``conversations`` is the number of conversations in the stratum, and at least ``minimum`` of them are sampled.
    All conversations are equally likely. The probability is the expected number of sampled conversations divided by
    the number of all conversations. The number of sampled conversations is a binomial count, or the minimum if the
    minimum is larger.
    """
    if rate >= 1 or minimum >= conversations:
        return 1.0
    short = fsum(
        (minimum - count) * _compute_binomial_chance(count, conversations, rate) for count in range(minimum)
    )
    return min(1.0, rate + short / conversations)


def _compute_binomial_chance(count: int, conversations: int, rate: float) -> float:
    return exp(log(comb(conversations, count)) + count * log(rate) + (conversations - count) * log1p(-rate))
