"""Which conversations of a night are looked at: the same ones whoever draws, in whatever order they come.

Every conversation has a place in [0, 1) that follows from its id, the target and the night alone. A draw by number
takes the lowest places of each stratum, so that given its size each conversation of the stratum was as likely as
any other: drawn / conversations, exactly. A draw by rate takes the places below the rate, so that whether a
conversation is drawn does not depend on which others there are, unless its stratum falls short of the minimum. A
larger number or rate contains the smaller one's draw.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from math import comb, exp, fsum, log, log1p, sqrt
from typing import NamedTuple

from monitors.records.traffic import Conversation, Sampled, StratumCount
from monitors.sources.allocation import Claim, allocate
from monitors.sources.expected_rates import ExpectedRate
from monitors.sources.risk_strata import Stratum, TargetFacts, strata, stratum_of
from monitors.sources.sampling_settings import Allocation, SamplingSettings


class Seed(NamedTuple):
    """What a draw depends on besides the conversations: the same target and night, the same draw."""

    target: str
    night: date


Strata = Mapping[str, Sequence[Conversation]]
"""The conversations of each stratum that has any, the gravest stratum first."""


class Draw(NamedTuple):
    """What was drawn, and of how many. ``strata`` are those that have conversations, the gravest first."""

    sampled: tuple[Sampled, ...]
    strata: tuple[StratumCount, ...]


def draw(
    conversations: Iterable[Conversation],
    facts: TargetFacts,
    seed: Seed,
    expected: Mapping[str, ExpectedRate] | None = None,
) -> Draw:
    """Draw from a night's conversations: `stratify` and `draw_from` in one."""
    return draw_from(stratify(conversations, facts), facts.settings, seed, expected)


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


def draw_from(
    members: Strata, settings: SamplingSettings, seed: Seed, expected: Mapping[str, ExpectedRate] | None = None
) -> Draw:
    """Draw from the strata of a night.

    ``expected`` are the rates that Neyman's allocation goes by; strata that it lacks are taken as wide open.
    Of a draw by rate the inclusion probability is the one before the draw, the minimum reckoned in; estimates go by
    the counts, which are exact given how many were drawn.
    """
    placed = {name: _placed(each, seed) for name, each in members.items()}
    if settings.budget is None:
        taken = {name: _by_rate(each, _rate(name, settings), settings) for name, each in placed.items()}
    else:
        drawn = numbers({name: len(each) for name, each in members.items()}, settings, expected or {})
        taken = {name: (drawn[name], drawn[name] / len(each)) for name, each in members.items()}
    sampled = [
        Sampled(conversation=one.conversation, stratum=name, inclusion_probability=taken[name][1])
        for name, each in placed.items()
        for one in each[: taken[name][0]]
    ]
    counts = [
        StratumCount(stratum=name, conversations=len(each), drawn=taken[name][0]) for name, each in placed.items()
    ]
    return Draw(tuple(sampled), tuple(counts))


def numbers(
    sizes: Mapping[str, int], settings: SamplingSettings, expected: Mapping[str, ExpectedRate]
) -> Mapping[str, int]:
    """How many of each stratum a draw by number takes, for strata of these sizes. Not for a draw by rate."""
    known = [stratum for stratum in strata(settings) if sizes.get(stratum.name)]
    claims = [_claim(stratum, sizes[stratum.name], settings, expected) for stratum in known]
    drawn = allocate(claims, settings.budget or 0, settings.minimum_per_stratum)
    return {stratum.name: count for stratum, count in zip(known, drawn, strict=True)}


class _Placed(NamedTuple):
    """A conversation with its place; sorts by place, then by id."""

    place: float
    id: str
    conversation: Conversation


def _placed(members: Sequence[Conversation], seed: Seed) -> Sequence[_Placed]:
    """The conversations of a stratum, the lowest place first."""
    found = (_Placed(place(each.id, seed), each.id, each) for each in members)
    return sorted(found, key=lambda one: one[:2])


def _age(conversation: Conversation) -> tuple[str, str]:
    return conversation.completed_at.isoformat(), conversation.model_dump_json()


def place(conversation_id: str, seed: Seed) -> float:
    """Where a conversation lies in [0, 1) on that night: 53 bits of a SHA-256, as many as a float holds."""
    parts = (seed.target, seed.night.isoformat(), conversation_id)
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return (int.from_bytes(digest[:8]) >> 11) / (1 << 53)


def _claim(stratum: Stratum, size: int, settings: SamplingSettings, expected: Mapping[str, ExpectedRate]) -> Claim:
    weight = settings.weight(stratum.sign)
    if settings.allocation is Allocation.NEYMAN:
        rate = expected[stratum.name].rate if stratum.name in expected else 0.5
        weight = sqrt(rate * (1 - rate))
    return Claim(size, weight, stratum.sign in settings.certainty)


def _rate(name: str, settings: SamplingSettings) -> float:
    sign = next(stratum.sign for stratum in strata(settings) if stratum.name == name)
    if sign in settings.certainty:
        return 1.0
    return min(1.0, (settings.rate or 0.0) * settings.weight(sign))


def _by_rate(members: Sequence[_Placed], rate: float, settings: SamplingSettings) -> tuple[int, float]:
    """How many are drawn, and how likely each was to be."""
    least = min(settings.minimum_per_stratum, len(members))
    below = bisect_left(members, rate, key=lambda one: one.place)
    return max(least, below), inclusion_probability(len(members), rate, least)


def inclusion_probability(conversations: int, rate: float, minimum: int) -> float:
    """How likely each of ``conversations`` is drawn at a rate of which at least ``minimum`` are taken.

    All are equally likely, so that it is the expected number drawn over their number: that of the larger of the
    minimum and a binomial count.
    """
    if rate >= 1 or minimum >= conversations:
        return 1.0
    short = fsum((minimum - each) * _chance(each, conversations, rate) for each in range(minimum))
    return min(1.0, rate + short / conversations)


def _chance(each: int, conversations: int, rate: float) -> float:
    return exp(log(comb(conversations, each)) + each * log(rate) + (conversations - each) * log1p(-rate))
