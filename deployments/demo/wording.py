"""How the bot says things, in three languages."""

from __future__ import annotations

from decimal import Decimal

from deployments.demo.policies import Field, Policy, PolicyFact
from monitors.records.base import Language

_UNITS: dict[str, dict[Language, str]] = {
    "hour": {Language.HINDI: "घंटे", Language.HINGLISH: "ghante"},
    "day": {Language.HINDI: "दिन", Language.HINGLISH: "din"},
    "month": {Language.HINDI: "महीने", Language.HINGLISH: "mahine"},
    "year": {Language.HINDI: "साल", Language.HINGLISH: "saal"},
    "hospital": {Language.HINDI: "अस्पताल", Language.HINGLISH: "hospitals"},
    "illness": {Language.HINDI: "बीमारियाँ", Language.HINGLISH: "bimariyan"},
    "procedure": {Language.HINDI: "प्रक्रियाएँ", Language.HINGLISH: "procedures"},
    "delivery": {Language.HINDI: "प्रसव", Language.HINGLISH: "deliveries"},
    "child": {Language.HINDI: "बच्चे", Language.HINGLISH: "bachche"},
}
_PER: dict[str, dict[Language, str]] = {
    "eye": {Language.HINDI: "प्रति आँख", Language.HINGLISH: "per eye"},
    "joint": {Language.HINDI: "प्रति जोड़", Language.HINGLISH: "per joint"},
    "day": {Language.HINDI: "प्रति दिन", Language.HINGLISH: "per day"},
    "policy_year": {Language.HINDI: "प्रति पॉलिसी वर्ष", Language.HINGLISH: "har policy year"},
    "hospitalisation": {Language.HINDI: "प्रति भर्ती", Language.HINGLISH: "har bharti par"},
    "delivery": {Language.HINDI: "प्रति प्रसव", Language.HINGLISH: "har delivery par"},
    "pregnancy": {Language.HINDI: "प्रति गर्भावस्था", Language.HINGLISH: "har pregnancy mein"},
    "claim_free_year": {Language.HINDI: "हर क्लेम-मुक्त साल", Language.HINGLISH: "har claim-free saal"},
}
_YES_NO = {
    Language.ENGLISH: ("Yes. ", "No. "),
    Language.HINDI: ("हाँ, ", "नहीं, "),
    Language.HINGLISH: ("Haan, ", "Nahi, "),
}


def rupees(amount: Decimal) -> str:
    """An amount with Indian grouping: ``₹1,50,000``."""
    digits = f"{amount:.0f}"
    head, tail = digits[:-3], digits[-3:]
    groups: list[str] = []
    while head:
        groups.insert(0, head[-2:])
        head = head[:-2]
    return "₹" + ",".join([*groups, tail])


def value_words(fact: PolicyFact, language: Language) -> str:
    """The fact's quantity in Hindi or Hinglish: ``₹60,000 per eye``, ``24 mahine``."""
    if fact.amount is None or fact.unit is None:
        return ""
    if fact.unit == "inr":
        value = rupees(fact.amount)
    elif fact.unit == "percent":
        value = f"{fact.amount:f}%"
    else:
        value = f"{fact.amount:,.0f} {_UNITS[fact.unit][language]}"
    return f"{value} {_PER[fact.per][language]}" if fact.per else value


def answer(policy: Policy, fact: PolicyFact, field: Field, language: Language, *, yes_or_no: bool) -> str:
    """One fact as a sentence in the asker's language, without its citation."""
    lead = ""
    if yes_or_no and fact.covered is not None:
        lead = _YES_NO[_spoken(language)][0 if fact.covered else 1]
    match _spoken(language):
        case Language.HINDI:
            return f"{lead}{policy.name} में {_hindi(fact, field)}"
        case Language.HINGLISH:
            return f"{lead}{policy.name} mein {_hinglish(fact, field)}"
        case _:
            text = fact.text if fact.text[1].isupper() else fact.text[0].lower() + fact.text[1:]
            return f"{lead}Under {policy.name}, {text}"


def _spoken(language: Language) -> Language:
    return Language.ENGLISH if language is Language.OTHER else language


def _hindi(fact: PolicyFact, field: Field) -> str:
    if fact.hi is not None:
        return fact.hi
    label, value = field.label.hi, value_words(fact, Language.HINDI)
    if not value:
        return f"{label} कवर है।" if fact.covered else f"{label} कवर नहीं है।"
    up_to = " तक" if fact.bound == "at_most" else ""
    return f"{label} {value}{up_to} कवर है।" if fact.covered and up_to else f"{label} {value}{up_to} है।"


def _hinglish(fact: PolicyFact, field: Field) -> str:
    if fact.hinglish is not None:
        return fact.hinglish
    label, value = field.label.hinglish, value_words(fact, Language.HINGLISH)
    if not value:
        return f"{label} cover hota hai." if fact.covered else f"{label} cover nahi hota."
    up_to = " tak" if fact.bound == "at_most" else ""
    return f"{label} {value}{up_to} cover hai." if fact.covered and up_to else f"{label} {value}{up_to} hai."
