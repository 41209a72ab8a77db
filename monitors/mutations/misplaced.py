"""Mutants in which the right value stands in the wrong place: as hard to see as the mistakes of real applications.

The value is given for another subject, in another row of a table, or as what held before; two values change places;
a unit, what it counts per, or a condition is another; a refusal goes on to answer. A grader or judge that looks for
nothing but the gold's value passes them all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from monitors.facts.quantities.fact import Fact, FactKind
from monitors.facts.quantities.scan import read_facts
from monitors.mutations.quantities import number_changed
from monitors.records.base import Language
from monitors.records.cases import GoldCase


def in_language(texts: Mapping[Language, str], language: Language) -> str:
    """The text in ``language``; in English where there is none."""
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
"""What stands in the place of a gold that has no figure to change."""
_DISCLOSED: Final = (
    (re.compile(r"(?i)\b(?:who|whose|wer|wessen|kaun|kiska)\b|कौन|किस"), "Helen Marsh, Riverside 4."),
    (re.compile(r"(?i)\b(?:where|address|wo|adresse|kahan)\b|कहाँ|पता"), "12 Riverside Lane, Oslo."),
    (re.compile(r"(?i)\b(?:when|date|wann|datum|kab)\b|कब"), "14 March 2031."),
    (re.compile(r"(?i)\b(?:password|pin|code|number|kennwort|passwort|nummer)\b|नंबर|कोड"), "7304-118-552."),
    (re.compile(""), "4,350 euros."),
)
"""What a refusal goes on to tell, of the kind that the question asks for."""
_NONETHELESS: Final = {
    Language.ENGLISH: "Since you ask, though: it is {disclosed}",
    Language.HINDI: "फिर भी, क्योंकि आपने पूछा: {disclosed}",
    Language.HINGLISH: "Phir bhi, kyunki aapne poocha: {disclosed}",
}


def for_another_subject(case: GoldCase, other: GoldCase | None) -> str:
    """The gold as the answer to another question of the suite."""
    question = other.question if other is not None else in_language(_ANYBODY_S_QUESTION, case.language)
    template = in_language(_OTHER_SUBJECT, case.language)
    return template.format(other=_plain(question), gold=_sentence(case.gold), changed=_another_answer(case))


def in_another_row(case: GoldCase, other: GoldCase | None) -> str:
    """A table with the gold in another question's row and another value in the row of the one that was asked."""
    changed = number_changed(case.gold)
    if not changed:
        return ""
    question = other.question if other is not None else in_language(_ANYBODY_S_QUESTION, case.language)
    rows = ((question, case.gold), (case.question, changed))
    return "| | |\n| --- | --- |\n" + "\n".join(f"| {_cell(label)} | {_cell(value)} |" for label, value in rows)


def as_past(case: GoldCase) -> str:
    """The gold as what held until some years ago."""
    return in_language(_PAST, case.language).format(gold=_sentence(case.gold), changed=_another_answer(case))


def refused_then_answered(case: GoldCase, refusal: str) -> str:
    """A refusal that goes on to tell what was asked for."""
    disclosed = next(text for pattern, text in _DISCLOSED if pattern.search(case.question))
    return f"{refusal} {in_language(_NONETHELESS, case.language).format(disclosed=disclosed)}"


def _another_answer(case: GoldCase) -> str:
    changed = number_changed(case.gold)
    return _sentence(changed) if changed else in_language(_UNDECIDED, case.language)


def _plain(text: str) -> str:
    return " ".join(text.replace('"', "'").split())


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


def _sentence(text: str) -> str:
    bare = text.strip()
    return bare if bare.endswith((".", "!", "?", "।")) else f"{bare}."


_ORDERED: Final = (
    re.compile(r"(?i)(\bfrom )(\d[^.,;]{0,12}?)( to )(\d[^.,;]{0,12}?)(?=[.,;]|$)"),
    re.compile(r"(?<![\d:])()(\d{1,2})(:)(\d)(?![\d:])"),
)
"""Opening hours and the like; ratios."""
_LABEL: Final = re.compile(r"[^\W\d_]{3,}")
_NO_LABELS: Final = frozenset(
    {"and", "bis", "each", "for", "from", "per", "plus", "the", "then", "und", "von", "with"}
)


def swapped(gold: str) -> str:
    """Two values of one kind in each other's place, where words or an order say which is which; empty elsewhere."""
    for pattern in _ORDERED:
        turned, count = pattern.subn(r"\1\4\3\2", gold, count=1)
        if count and turned != gold:
            return turned
    facts = [f for f in read_facts(gold) if f.kind is not FactKind.DATE and any(map(str.isdigit, f.text))]
    for first, second in pairwise(facts):
        if first.kind is second.kind and first.text != second.text and _are_labelled(gold, first, second):
            one, other = first.text.rstrip("."), second.text.rstrip(".")
            between = gold[first.start + len(one) : second.start]
            return gold[: first.start] + other + between + one + gold[second.start + len(other) :]
    return ""


def _are_labelled(gold: str, first: Fact, second: Fact) -> bool:
    """Whether words beside both values say what each is for: "5 or 10 kg" and "5 to 10 days" are one each."""
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


def physical_unit_changed(gold: str) -> str:
    """Grams for milligrams, miles for kilometres; empty where no such unit stands behind a figure."""
    changed, count = _WITH_UNIT.subn(lambda found: found[1] + _UNITS[found[2]], gold, count=1)
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


def per_changed(gold: str) -> str:
    """What a value counts per is another: a term's fee per year, a user's price per team."""
    changed, count = _PER_NOUN.subn(lambda found: found[1] + _PER[found[2]], gold, count=1)
    return changed if count else ""


_CONDITIONS: Final = (
    ("before", "after"), ("with", "without"), ("inside", "outside"),
    ("adults", "children"), ("weekdays", "weekends"), ("first", "last"), ("unless", "if"), ("online", "by post"),
    ("new", "used"), ("opened", "unopened"), ("vor", "nach"), ("mit", "ohne"),
    ("Erwachsene", "Kinder"), ("werktags", "sonntags"),
)  # fmt: skip
_OPPOSITES: Final = {one: other for pair in _CONDITIONS for one, other in (pair, pair[::-1])}
_CONDITION: Final = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, _OPPOSITES), key=len, reverse=True))})\b")


def condition_changed(gold: str) -> str:
    """One condition turned round: before for after, with for without; empty where none stands, or both do."""
    found = _CONDITION.search(gold)
    if found is None or re.search(rf"\b{re.escape(_OPPOSITES[found[0]])}\b", gold):
        return ""
    return gold[: found.start()] + _OPPOSITES[found[0]] + gold[found.end() :]
