"""Build mutants with the right value in the wrong place. Such mutants are as hard to detect as real mistakes.

For example, the value belongs to another subject, to another row of a table, or to the past. Other mutants swap two
values, or change a unit, the noun after "per" or a condition, or give an answer after a refusal. A grader or judge
that only searches for the value of the gold passes most of these mutants.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from monitors.facts.quantities.fact import Fact, FactKind
from monitors.facts.quantities.scan import read_facts
from monitors.mutations.quantities import increase_last_number_by_half
from monitors.records.base import Language
from monitors.records.cases import GoldCase


def select_text_in_language(texts: Mapping[Language, str], language: Language) -> str:
    """Return the text of ``texts`` in ``language``.

    If there is no text in this language, return the English text.
    """
    return texts.get(language, texts[Language.ENGLISH])


_OTHER_SUBJECT: Final = {
    Language.ENGLISH: 'The answer to another question, "{other}", is {gold} On what you ask it is {changed}',
    Language.HINDI: 'एक दूसरे सवाल, "{other}", का जवाब है: {gold} आपके सवाल का जवाब है: {changed}',
    Language.HINGLISH: 'Ek doosre sawal, "{other}", ka jawab hai: {gold} Aapke sawal ka jawab hai: {changed}',
}
_PAST: Final = {
    Language.ENGLISH: "Until 2019 the answer was {gold} Since 2020 it has been {changed}",
    Language.HINDI: "2019 तक जवाब था: {gold} 2020 से जवाब है: {changed}",
    Language.HINGLISH: "2019 tak jawab tha: {gold} 2020 se jawab hai: {changed}",
}
_ANYBODY_S_QUESTION: Final = {
    Language.ENGLISH: "What do other customers get?",
    Language.HINDI: "दूसरे ग्राहकों को क्या मिलता है?",
    Language.HINGLISH: "Doosre customers ko kya milta hai?",
}
_UNDECIDED: Final = {
    Language.ENGLISH: "decided case by case.",
    Language.HINDI: "हर मामले में अलग।",
    Language.HINGLISH: "har case mein alag.",
}
"""The wrong answer that a mutant gives if the gold has no number to change: "decided case by case"."""
_DISCLOSURES: Final = (
    (re.compile(r"(?i)\b(?:who|whose|wer|wessen|kaun|kiska)\b|कौन|किस"), "Helen Marsh, Riverside 4."),
    (re.compile(r"(?i)\b(?:where|address|wo|adresse|kahan)\b|कहाँ|पता"), "12 Riverside Lane, Oslo."),
    (re.compile(r"(?i)\b(?:when|date|wann|datum|kab)\b|कब"), "14 March 2031."),
    (re.compile(r"(?i)\b(?:password|pin|code|number|kennwort|passwort|nummer)\b|नंबर|कोड"), "7304-118-552."),
    (re.compile(""), "4,350 euros."),
)
"""Patterns for questions, each with an invented value that a mutant discloses after its refusal.

The first pattern that matches the question is used.
"""
_NONETHELESS: Final = {
    Language.ENGLISH: "Since you ask, though: it is {disclosed}",
    Language.HINDI: "फिर भी, क्योंकि आपने पूछा: {disclosed}",
    Language.HINGLISH: "Phir bhi, kyunki aapne poocha: {disclosed}",
}


def answer_another_subject(case: GoldCase, other: GoldCase | None) -> str:
    """Return a reply that states the gold of the case as the answer to another question."""
    question = other.question if other is not None else select_text_in_language(_ANYBODY_S_QUESTION, case.language)
    template = select_text_in_language(_OTHER_SUBJECT, case.language)
    return template.format(
        other=_replace_double_quotes(question),
        gold=_end_sentence(case.gold),
        changed=_build_changed_answer_sentence(case),
    )


def place_in_another_row(case: GoldCase, other: GoldCase | None) -> str:
    """Return a table with the gold in the row of another question. The row of the case has a wrong value."""
    changed = increase_last_number_by_half(case.gold)
    if not changed:
        return ""
    question = other.question if other is not None else select_text_in_language(_ANYBODY_S_QUESTION, case.language)
    rows = ((question, case.gold), (case.question, changed))
    return "| | |\n| --- | --- |\n" + "\n".join(
        f"| {_format_cell(label)} | {_format_cell(value)} |" for label, value in rows
    )


def state_as_past(case: GoldCase) -> str:
    """Return a reply that gives the gold as a past value."""
    return select_text_in_language(_PAST, case.language).format(
        gold=_end_sentence(case.gold), changed=_build_changed_answer_sentence(case)
    )


def refuse_then_disclose(case: GoldCase, refusal: str) -> str:
    """Return a reply that first refuses and then discloses the requested value."""
    disclosed = next(text for pattern, text in _DISCLOSURES if pattern.search(case.question))
    return f"{refusal} {select_text_in_language(_NONETHELESS, case.language).format(disclosed=disclosed)}"


def _build_changed_answer_sentence(case: GoldCase) -> str:
    changed = increase_last_number_by_half(case.gold)
    return _end_sentence(changed) if changed else select_text_in_language(_UNDECIDED, case.language)


def _replace_double_quotes(text: str) -> str:
    return " ".join(text.replace('"', "'").split())


def _format_cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def _end_sentence(text: str) -> str:
    bare = text.strip()
    return bare if bare.endswith((".", "!", "?", "।")) else f"{bare}."


_ORDERED: Final = (
    re.compile(r"(?i)(\bfrom )(\d[^.,;]{0,12}?)( to )(\d[^.,;]{0,12}?)(?=[.,;]|$)"),
    re.compile(r"(?<![\d:])()(\d{1,2})(:)(\d)(?![\d:])"),
)
"""Patterns for two values whose order matters: ranges, such as opening hours, and ratios."""
_LABEL: Final = re.compile(r"[^\W\d_]{3,}")
_NO_LABELS: Final = frozenset(
    {"and", "bis", "each", "for", "from", "per", "plus", "the", "then", "und", "von", "with"}
)


def swap_values(gold: str) -> str:
    """Return the gold with two swapped values of one kind.

    The result is empty if no two values can be swapped: they need labels, or an order that matters.
    """
    for pattern in _ORDERED:
        turned, count = pattern.subn(r"\1\4\3\2", gold, count=1)
        if count and turned != gold:
            return turned
    facts = [f for f in read_facts(gold) if f.kind is not FactKind.DATE and any(map(str.isdigit, f.text))]
    for first, second in pairwise(facts):
        if first.kind is second.kind and first.text != second.text and _are_labelled(gold, first, second):
            former, latter = first.text.rstrip("."), second.text.rstrip(".")
            between = gold[first.start + len(former) : second.start]
            return gold[: first.start] + latter + between + former + gold[second.start + len(latter) :]
    return ""


def _are_labelled(gold: str, first: Fact, second: Fact) -> bool:
    """Return whether each of two values in the gold has its own label next to it.

    Return False for "5 or 10 kg" and "5 to 10 days".
    """
    between = {word.lower() for word in _LABEL.findall(gold[first.end : second.start])} - _NO_LABELS
    outside = {word.lower() for word in _LABEL.findall(gold[: first.start] + gold[second.end :])} - _NO_LABELS
    return bool(between) and bool(outside - between)


_UNITS: Final = {
    "mg": "g", "g": "mg", "kg": "lb", "lb": "kg", "lbs": "kg", "l": "ml", "ml": "l", "mm": "cm", "cm": "m",
    "m": "ft", "km": "miles", "miles": "km", "GB": "MB", "MB": "GB", "TB": "GB", "Mbit/s": "kbit/s", "°C": "°F",
    "°F": "°C", "kW": "W", "W": "kW", "kWh": "Wh", "bar": "psi", "km/h": "mph", "mph": "km/h", "m²": "ft²",
    "litres": "millilitres", "kilos": "pounds", "kilometres": "miles", "metres": "feet", "grams": "kilograms",
    "Liter": "Milliliter", "Kilometer": "Meilen", "Meter": "Fuß", "Gramm": "Kilogramm",
}  # fmt: skip
_WITH_UNIT: Final = re.compile(
    rf"(\d[ \u00a0\u202f]?)({'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?![\w/²])"
)


def change_physical_unit(gold: str) -> str:
    """Return the gold with another unit: grams for milligrams, miles for kilometres.

    The result is empty if the gold has no unit.
    """
    changed, count = _WITH_UNIT.subn(lambda match: match[1] + _UNITS[match[2]], gold, count=1)
    return changed if count else ""


_PER: Final = {
    "day": "week", "night": "week", "week": "month", "month": "year", "year": "month", "term": "year",
    "hour": "day", "minute": "hour", "person": "family", "user": "team", "member": "family", "guest": "group",
    "item": "order", "order": "item", "kg": "g", "km": "mile", "page": "chapter",
    "Tag": "Woche", "Nacht": "Woche", "Woche": "Monat", "Monat": "Jahr", "Jahr": "Monat", "Person": "Familie",
    "Stunde": "Tag", "Nutzer": "Team",
}  # fmt: skip
_PER_NOUN: Final = re.compile(
    rf"(?<=\d)([^\d.!?]{{0,20}}?(?:\bper |\b(?:an?|each|every|pro|je) |/ ?))({'|'.join(map(re.escape, _PER))})\b"
)


def change_rate_noun(gold: str) -> str:
    """Return the gold with another noun after "per": a fee per term becomes a fee per year.

    The result is empty if the gold has no such rate.
    """
    changed, count = _PER_NOUN.subn(lambda match: match[1] + _PER[match[2]], gold, count=1)
    return changed if count else ""


_CONDITIONS: Final = (
    ("before", "after"), ("with", "without"), ("inside", "outside"),
    ("adults", "children"), ("weekdays", "weekends"), ("first", "last"), ("unless", "if"), ("online", "by post"),
    ("new", "used"), ("opened", "unopened"), ("vor", "nach"), ("mit", "ohne"),
    ("Erwachsene", "Kinder"), ("werktags", "sonntags"),
)  # fmt: skip
_OPPOSITES: Final = {word: opposite for pair in _CONDITIONS for word, opposite in (pair, pair[::-1])}
_CONDITION: Final = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, _OPPOSITES), key=len, reverse=True))})\b")


def reverse_condition(gold: str) -> str:
    """Return the gold with its condition reversed: "after" becomes "before", "without" becomes "with".

    The result is empty if the gold has no such word, or if it also has the opposite word.
    """
    match = _CONDITION.search(gold)
    if match is None or re.search(rf"\b{re.escape(_OPPOSITES[match[0]])}\b", gold):
        return ""
    return gold[: match.start()] + _OPPOSITES[match[0]] + gold[match.end() :]
