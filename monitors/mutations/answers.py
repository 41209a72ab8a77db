"""Answers that are known to be right or wrong, made from a case's own gold.

A mutant differs from the gold in one thing that nobody can miss: every quantity is another one, the yes is a no,
the statement is denied, or it refuses where it should not. No model is asked to make them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from monitors.facts.quantities.fact import FactKind
from monitors.facts.quantities.scan import read_facts
from monitors.facts.refusals.detect import read_refusal
from monitors.mutations.quantities import in_another_currency
from monitors.records.base import Language
from monitors.records.cases import GoldCase


class AnswerMutation(StrEnum):
    """What was done to the gold. ``NONE`` is the only one that leaves it right."""

    NONE = "none"
    QUANTITY = "quantity"
    CURRENCY = "currency"
    YES_FOR_NO = "yes_for_no"
    DENIAL = "denial"
    REFUSAL = "refusal"
    NO_REFUSAL = "no_refusal"


def right_answer(case: GoldCase) -> str:
    """The gold as an application would say it, with its source; for an expected refusal, a refusal."""
    said = _refusal_in(case.language) if case.expected_refusal else case.gold
    return f"{said} [Source: {case.expected_citation}]" if case.expected_citation else said


def wrong_answers(case: GoldCase) -> Mapping[AnswerMutation, str]:
    """All mutants that a case has, each with its source as the right answer has it. Never empty."""
    if case.expected_refusal:
        return {AnswerMutation.NO_REFUSAL: _invented_in(case.language)}
    accepted = {_key(text) for text in (case.gold, *case.alternatives)}
    source = f" [Source: {case.expected_citation}]" if case.expected_citation else ""
    mutants = {twist: make(case.gold) for twist, make in _TWINS.items()}
    found = {twist: mutant + source for twist, mutant in mutants.items() if mutant and _key(mutant) not in accepted}
    if not any(read_refusal(text).refused for text in (case.gold, *case.alternatives)):
        found[AnswerMutation.REFUSAL] = _refusal_in(case.language)
    return found or {AnswerMutation.NO_REFUSAL: _invented_in(case.language)}


_REFUSALS = {
    Language.ENGLISH: "I'm sorry, I cannot answer that: the documents I have do not say.",
    Language.HINDI: "क्षमा करें, मैं इसका उत्तर नहीं दे सकता: मेरे दस्तावेज़ों में इसकी जानकारी नहीं है।",
    Language.HINGLISH: "Maaf kijiye, main iska jawab nahi de sakta: mere documents mein iski jaankari nahi hai.",
}
_INVENTED = {
    Language.ENGLISH: "Yes, certainly. It is included in full from the first day, and here is how you get it.",
    Language.HINDI: "हाँ, बिल्कुल। यह पहले दिन से पूरी तरह शामिल है, और इसे ऐसे पाया जा सकता है।",
    Language.HINGLISH: "Haan, bilkul. Yeh pehle din se poori tarah included hai, aur aise mil jayega.",
}


def _refusal_in(language: Language) -> str:
    return _REFUSALS.get(language, _REFUSALS[Language.ENGLISH])


def _invented_in(language: Language) -> str:
    return _INVENTED.get(language, _INVENTED[Language.ENGLISH])


def _key(text: str) -> str:
    return " ".join(text.lower().split()).strip(" .।!")


_OTHER_DIGIT = str.maketrans("123456789१२३४५६७८९", "394281657३९४२८१६५७")
"""Another digit for each but zero, so that a number has the same length: ``24`` becomes ``92``."""

_OTHER_WORD = {
    "one": "seven", "two": "nine", "three": "eight", "four": "ten", "five": "two", "six": "one", "seven": "three",
    "eight": "four", "nine": "five", "ten": "six", "twelve": "twenty", "thirty": "ninety", "sixty": "fifteen",
    "ninety": "thirty", "half": "double", "zero": "forty",
    "ek": "saat", "do": "nau", "teen": "aath", "char": "das", "paanch": "do", "chhe": "ek",
    "एक": "सात", "दो": "नौ", "तीन": "आठ", "चार": "दस", "पाँच": "दो", "पांच": "दो", "छह": "एक",
}  # fmt: skip
_WORD = re.compile(r"[^\W\d_][\w\u0900-\u0963]*")


def _other_quantities(gold: str) -> str:
    """The gold with every quantity changed; empty where it states none that can be."""
    facts = read_facts(gold)
    changed = gold
    for fact in sorted(facts, key=lambda one: one.start, reverse=True):
        other = _other(gold[fact.start : fact.end])
        if not other:
            return ""
        changed = changed[: fact.start] + other + changed[fact.end :]
    return changed if facts else ""


def _other(quantity: str) -> str:
    digits = quantity.translate(_OTHER_DIGIT)
    if digits != quantity:
        return digits
    for word in _WORD.findall(quantity):
        if word.lower() in _OTHER_WORD:
            return quantity.replace(word, _OTHER_WORD[word.lower()], 1)
    return ""


def _other_currency(gold: str) -> str:
    """The gold with every amount in another currency; empty where it names none."""
    changed = gold
    for fact in sorted(read_facts(gold), key=lambda one: one.start, reverse=True):
        other = in_another_currency(fact.text) if fact.kind is FactKind.MONEY else ""
        changed = changed[: fact.start] + other + changed[fact.end :] if other else changed
    return changed if changed != gold else ""


_YES_NO = {
    "yes": "No.", "no": "Yes.", "haan": "Nahi.", "han": "Nahi.", "nahi": "Haan.", "nahin": "Haan.",
    "हाँ": "नहीं।", "हां": "नहीं।", "नहीं": "हाँ।",
}  # fmt: skip


def _other_polarity(gold: str) -> str:
    first = re.match(r"\s*([^\W\d_][\w\u0900-\u0963]*)(?=[\s,.!।;:]|$)", gold)
    return _YES_NO.get(first[1].lower(), "") if first else ""


_IS_NOT = re.compile(r"\b(is|are|was|were|can|will|does|do|has|have|must|may|should)(?: not|n't)\b", re.IGNORECASE)
_CANNOT = re.compile(r"\bcannot\b", re.IGNORECASE)
_IS = re.compile(r"\b(is|are|was|were|can|will|must|may|should)\b(?! not)", re.IGNORECASE)


def _denied(gold: str) -> str:
    if _other_polarity(gold) or _DOUBLE.search(gold):
        return ""  # a no inside would make it neither
    for pattern, instead in ((_CANNOT, "can"), (_IS_NOT, r"\1"), (_IS, r"\1 not")):
        denied, count = pattern.subn(instead, gold, count=1)
        if count:
            return denied
    return ""


_DOUBLE = re.compile(r"\b(?:no|never|none|nothing|nobody|neither|nor|without)\b", re.IGNORECASE)

_TWINS: Mapping[AnswerMutation, Callable[[str], str]] = {
    AnswerMutation.QUANTITY: _other_quantities,
    AnswerMutation.CURRENCY: _other_currency,
    AnswerMutation.YES_FOR_NO: _other_polarity,
    AnswerMutation.DENIAL: _denied,
}
