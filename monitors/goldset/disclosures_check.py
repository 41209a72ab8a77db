"""Personal data in a suite: it is read by many, sent to models and shown in alerts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from monitors.facts.disclosure import Strength
from monitors.facts.disclosures import find_disclosures
from monitors.facts.masking import LABELS
from monitors.goldset.findings import Check, GoldFinding, Weight
from monitors.goldset.numbered import NumberedCase
from monitors.records.cases import GoldCase


def leaks(
    cases: Sequence[NumberedCase],
    *,
    account_patterns: Sequence[str] = (),
    public_contacts: Sequence[str] = (),
) -> Iterator[GoldFinding]:
    """What is likely or certain personal data, by kind and place, never the data.

    In a clause, and in a question that the app must decline, it may be meant (a public address, an invented
    number): there a person only has to look. ``public_contacts`` are what anyone may know.
    """
    for one in cases:
        for part, text, weight in _parts(one.case):
            kinds = _kinds(text, account_patterns, public_contacts)
            if kinds:
                yield GoldFinding(
                    check=Check.DISCLOSURE,
                    weight=weight,
                    places=(one.place,),
                    what=f"the {part} holds {', '.join(kinds)}",
                    do="replace it by an invented one, or mask it with `lookout redact`"
                    if weight is Weight.MUST
                    else "make sure that it is public or invented",
                )


def _parts(case: GoldCase) -> Iterator[tuple[str, str, Weight]]:
    asked = Weight.SHOULD if case.expected_refusal else Weight.MUST
    yield from (("question", turn, asked) for turn in case.turns)
    yield from (("gold", text, Weight.MUST) for text in (case.gold, *case.alternatives))
    if case.provenance.clause:
        yield "clause", case.provenance.clause, Weight.SHOULD


def _kinds(text: str, account_patterns: Sequence[str], public_contacts: Sequence[str]) -> list[str]:
    found = (
        one
        for one in find_disclosures(text, account_patterns=account_patterns)
        if one.strength >= Strength.LIKELY and not _is_public(text[one.start : one.end], public_contacts)
    )
    return list(dict.fromkeys(LABELS[one.kind] for one in found))


def _is_public(value: str, public_contacts: Sequence[str]) -> bool:
    plain = _plain(value)
    return bool(plain) and any(plain in _plain(contact) for contact in public_contacts)


def _plain(text: str) -> str:
    return "".join(character.lower() for character in text if character.isalnum())
