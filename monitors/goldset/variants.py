"""Pipeline C: other wordings of a case that keep what is expected. By rule and seed, no model, nobody's guess.

A generator proposes; what it proposes is a variant only when the question states the same quantities, holds no
personal data, and is in the language that its label says. Otherwise there is none, and that is told.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from monitors.facts.disclosures import find_disclosures
from monitors.facts.language import identify
from monitors.facts.scan import read_facts
from monitors.goldset.code_switch import code_switched
from monitors.goldset.paraphrase import paraphrased
from monitors.goldset.pick import Pick
from monitors.goldset.typos import mistyped
from monitors.records.base import Language
from monitors.records.cases import GoldCase, Pipeline

_WORD = re.compile(r"[^\W\d_]+")

TRIES = 12
"""Proposals of one generator for one variant: names or figures may rule out the first few."""


class VariantKind(StrEnum):
    """How a wording differs from its case."""

    PARAPHRASE = "paraphrase"
    TYPO = "typo"
    CODE_SWITCH = "code_switch"


Generator = Callable[[str, Language, Pick], str | None]


class Varied(NamedTuple):
    """The variants of a suite, and the cases that have none of a kind."""

    cases: tuple[GoldCase, ...]
    without: tuple[tuple[VariantKind, str], ...]

    @property
    def counts(self) -> Counter[str]:
        """How many there are of each kind."""
        return Counter(case.id.rpartition("+")[2].split("-")[0] for case in self.cases)


def vary(cases: Sequence[GoldCase], kinds: Sequence[VariantKind], *, seed: int, each: int = 1) -> Varied:
    """``each`` variants of every kind for every case, in the order of the cases."""
    generators = _generators(names_in(cases))
    made: list[GoldCase] = []
    without: list[tuple[VariantKind, str]] = []
    for case in cases:
        seen = {case.question}
        for kind in kinds:
            found = [
                variant
                for number in range(each)
                if (variant := _variant(case, kind, generators[kind], (seed, number), seen))
            ]
            made += found
            if not found:
                without.append((kind, case.id))
    return Varied(tuple(made), tuple(without))


def names_in(cases: Sequence[GoldCase]) -> frozenset[str]:
    """Words of the documents' names, in small letters: in a chat they are not always written with capitals."""
    sources = (case.provenance.document or "" for case in cases)
    named = " ".join(
        (*sources, *(case.cluster or "" for case in cases), *(case.expected_citation or "" for case in cases))
    )
    return frozenset(_WORD.findall(named.lower()))


def _generators(names: frozenset[str]) -> dict[VariantKind, Generator]:
    return {
        VariantKind.PARAPHRASE: paraphrased,
        VariantKind.TYPO: lambda question, language, pick: mistyped(question, language, pick, names),
        VariantKind.CODE_SWITCH: code_switched,
    }


def _variant(
    case: GoldCase, kind: VariantKind, generator: Generator, which: tuple[int, int], seen: set[str]
) -> GoldCase | None:
    seed, number = which
    for attempt in range(TRIES):
        pick = Pick(seed, case.id, kind.value, number, attempt)
        text = generator(case.question, case.language, pick)
        language = _label(case, kind, text) if text is not None and text not in seen else None
        if text is None or language is None:
            continue
        seen.add(text)
        return case.model_copy(
            update={
                "id": f"{case.id}+{kind.value}-{seed}-{number + 1}",
                "turns": (*case.turns[:-1], text),
                "language": language,
                "pair": None,
                "provenance": case.provenance.model_copy(
                    update={"pipeline": Pipeline.ADVERSARIAL, "reviewed_by": None, "reviewed_at": None}
                ),
            }
        )
    return None


def _label(case: GoldCase, kind: VariantKind, text: str) -> Language | None:
    """The language of a proposal, when it may stand for the case; ``None`` when it may not."""
    if quantities(text) != quantities(case.question):
        return None
    if len(find_disclosures(text)) != len(find_disclosures(case.question)):
        return None
    found = identify(text)
    if kind is VariantKind.CODE_SWITCH and case.language is Language.ENGLISH:
        return found if found is Language.HINGLISH else None
    return found if found is case.language else None


def quantities(text: str) -> Counter[tuple[str, str, str | None, str]]:
    """What a question states: kinds, values, units and bounds, each as often as it stands there."""
    return Counter((fact.kind.value, fact.value, fact.unit, fact.bound.value) for fact in read_facts(text))
