"""Cases that cannot both be right: one question with two golds, one field of one policy with two values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from monitors.goldset.findings import Check, GoldFinding, Weight
from monitors.goldset.numbered import NumberedCase
from monitors.goldset.overlap import folded
from monitors.goldset.quantities_kept import stated
from monitors.goldset.twin_polarity import Stance, stance_of
from monitors.goldset.twin_rightness import is_still_right
from monitors.records.cases import GoldCase

PAIRS_TOLD = 3
"""Of one group so many pairs are told: ten cases with ten golds are forty-five pairs and one mistake."""


def contradictions(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """The same question first, then the same field."""
    asked: dict[tuple[str, ...], list[NumberedCase]] = {}
    fields: dict[tuple[str, str], list[NumberedCase]] = {}
    for one in cases:
        asked.setdefault(tuple(folded(turn) for turn in one.case.turns), []).append(one)
        if one.case.cluster and one.case.provenance.field:
            fields.setdefault((one.case.cluster, one.case.provenance.field), []).append(one)
    told: set[frozenset[int]] = set()
    for group in asked.values():
        yield from _of_question(group, told)
    for (cluster, field), group in fields.items():
        yield from _of_field(cluster, field, group, told)


def _of_question(group: Sequence[NumberedCase], told: set[frozenset[int]]) -> Iterator[GoldFinding]:
    found = [(one, other, _difference(one.case, other.case)) for one, other in combinations(group, 2)]
    for one, other, difference in [entry for entry in found if entry[2]][:PAIRS_TOLD]:
        told.add(frozenset((one.line, other.line)))
        yield GoldFinding(
            check=Check.CONTRADICTION,
            weight=Weight.MUST,
            places=(one.place, other.place),
            what=f"the same question with two golds: {difference}",
            do="name the policy in the question, or settle which gold is right by its clause",
        )


def _of_field(
    cluster: str, field: str, group: Sequence[NumberedCase], told: set[frozenset[int]]
) -> Iterator[GoldFinding]:
    """Silence against a value, value against value; translations and other questions about one field agree."""
    pairs = (pair for pair in combinations(group, 2) if frozenset(one.line for one in pair) not in told)
    found = [(one, other, _other_value(one.case, other.case)) for one, other in pairs]
    for one, other, difference in [entry for entry in found if entry[2]][:PAIRS_TOLD]:
        yield GoldFinding(
            check=Check.CONTRADICTION,
            weight=Weight.MUST,
            places=(one.place, other.place),
            what=f"two values for {field} of {cluster}: {difference}",
            do="settle which is right by the clause, and mend the other",
        )


def _difference(one: GoldCase, other: GoldCase) -> str:
    """How two golds of one question differ; empty when they say the same, or nothing that can be compared."""
    if one.expected_refusal and other.expected_refusal:
        return ""
    if one.expected_refusal is not other.expected_refusal:
        return _refusal_against(one, other)
    if _agree(one, other) or folded(one.gold) == folded(other.gold):
        return ""
    return f"{one.gold!r} and {other.gold!r}"


def _other_value(one: GoldCase, other: GoldCase) -> str:
    if one.expected_refusal is not other.expected_refusal:
        return _refusal_against(one, other)
    kinds = [{quantity.kind for quantity in stated(case.gold)} for case in (one, other)]
    if one.expected_refusal or not kinds[0] & kinds[1] or _agree(one, other):
        return ""
    return f"{one.gold!r} and {other.gold!r}"


def _refusal_against(one: GoldCase, other: GoldCase) -> str:
    answered = other if one.expected_refusal else one
    return f"a refusal is expected, and {answered.gold!r}"


def _agree(one: GoldCase, other: GoldCase) -> bool:
    """Whether one gold holds all that the other says: a longer gold may say more."""
    stances = {stance_of(one.gold), stance_of(other.gold)}
    if stances == {Stance.YES, Stance.NO} and not (stated(one.gold) or stated(other.gold)):
        return False
    texts = ((one, other), (other, one))
    return any(is_still_right(text, case) for case, answer in texts for text in (answer.gold, *answer.alternatives))
