"""Cases that ask the same thing twice: they weigh double, and nobody learns more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from monitors.facts.scan import read_facts
from monitors.goldset.findings import Check, GoldFinding, Weight
from monitors.goldset.numbered import NumberedCase
from monitors.goldset.overlap import alike_pairs, folded, grams
from monitors.records.cases import GoldCase

NEAR = 0.8
"""Overlap from which two questions of one policy, language and gold are near-duplicates. A typo in a question of
sixty letters leaves 0.88. Overlap alone does not tell: two right questions of one policy ("pre-hospitalization",
"post-hospitalization") overlap by up to 0.86 in a real suite, so the words that differ are looked at too."""

_SAME_WORD = 0.9
"""Likeness (`difflib`) from which two words that differ are two spellings of one: "waiting", "wating" 0.92,
"limit", "limits" 0.91; but "maternity", "paternity" 0.89."""

_SMALL = 3
"""Letters below which a word tells two questions apart by accident only: "is", "of", "me"."""


def duplicates(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Ids given twice, questions asked twice, questions that nearly are."""
    yield from _ids(cases)
    seen: dict[tuple[str, ...], NumberedCase] = {}
    groups: dict[tuple[str, ...], list[NumberedCase]] = {}
    for one in cases:
        asked = (*_about(one.case), *(folded(turn) for turn in one.case.turns))
        first = seen.setdefault(asked, one)
        if first is one:
            groups.setdefault(_about(one.case), []).append(one)
        elif _gold(first.case) == _gold(one.case):
            yield _same(first, one)
    for group in groups.values():
        yield from _near(group)


def _ids(cases: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    seen: dict[str, NumberedCase] = {}
    for one in cases:
        first = seen.setdefault(one.case.id, one)
        if first is not one:
            yield GoldFinding(
                check=Check.DUPLICATE,
                weight=Weight.MUST,
                places=(first.place, one.place),
                what="the same id stands twice; the suite does not load",
                do="give the second an id of its own",
            )


def _about(case: GoldCase) -> tuple[str, str]:
    return case.cluster or "", case.language.value


def _gold(case: GoldCase) -> tuple[str | bool, ...]:
    return case.expected_refusal, "" if case.expected_refusal else folded(case.gold)


def _same(first: NumberedCase, second: NumberedCase) -> GoldFinding:
    return GoldFinding(
        check=Check.DUPLICATE,
        weight=Weight.MUST,
        places=(first.place, second.place),
        what="the same question with the same gold; its failure would count twice",
        do="remove one of them",
    )


def _near(group: Sequence[NumberedCase]) -> Iterator[GoldFinding]:
    """Questions with other quantities ("after 12 months") or each with a word of its own are two, however alike."""
    for first, second, share in alike_pairs([grams(" ".join(one.case.turns)) for one in group], NEAR):
        one, other = group[first], group[second]
        alike = _quantities(one.case) == _quantities(other.case) and _gold(one.case) == _gold(other.case)
        if alike and not _each_has_its_own(one.case, other.case):
            yield GoldFinding(
                check=Check.DUPLICATE,
                weight=Weight.SHOULD,
                places=(one.place, other.place),
                what=f"nearly the same question ({share:.0%} of its letters in a row) with the same gold",
                do="keep one, or make them ask two things",
            )


def _quantities(case: GoldCase) -> frozenset[tuple[str, str, str | None]]:
    return frozenset((fact.kind, fact.value, fact.unit) for fact in read_facts(" ".join(case.turns)))


def _each_has_its_own(first: GoldCase, second: GoldCase) -> bool:
    one, other = (frozenset(folded(" ".join(case.turns)).replace("-", " ").split()) for case in (first, second))
    return _own(one - other, other - one) and _own(other - one, one - other)


def _own(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether one of the words is no other spelling of any of the others, and more than a small word."""
    return any(
        len(word) >= _SMALL
        and not any(SequenceMatcher(None, word, other).ratio() >= _SAME_WORD for other in others)
        for word in words
    )
