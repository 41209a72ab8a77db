"""What a quantity is about: the words around it.

"36 months prior to diagnosis" does not answer "waiting period 36 months". Roles are named by words of the trade;
a quantity has the role that its own clause names, nearest first, or none. Two quantities are in different roles
when both have one and they share none.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from monitors.facts.fact import FactKind
from monitors.facts.normalise import keys_of
from monitors.facts.reading import Reading
from monitors.facts.tokens import END
from monitors.facts.words import Reader


class Role(StrEnum):
    """What a quantity can be about, where mixing two up misleads people."""

    WAITING = "waiting period"
    LOOK_BACK = "look-back"
    BEFORE_STAY = "before hospitalisation"
    AFTER_STAY = "after hospitalisation"
    GRACE = "grace period"
    FREE_LOOK = "free look"
    AGE = "age"
    SURVIVAL = "survival period"
    DEDUCTIBLE = "deductible"
    COPAY = "co-payment"
    DISCOUNT = "discount"
    BONUS = "bonus"
    ROOM = "room rent"
    ICU = "intensive care"
    AMBULANCE = "ambulance"
    SUM_INSURED = "sum insured"
    PREMIUM = "premium"
    NOTICE = "notice of claim"
    MORATORIUM = "moratorium"
    REFERENCE = "reference"


_PHRASES: dict[Role, str] = {
    Role.WAITING: "waiting|wait|cooling-off|cooling|वेटिंग|प्रतीक्षा|intezar|intezaar|इंतजार|pratiksha",
    Role.BEFORE_STAY: "pre-hospitalisation|pre-hospitalization|prehospitalisation|prehospitalization|pre-hospital|"
    "before hospitalisation|before hospitalization|before admission|prior to hospitalization|"
    "prior to hospitalisation|prior to admission|before the date of admission|before the date of hospitalization",
    Role.AFTER_STAY: "post-hospitalisation|post-hospitalization|posthospitalization|posthospitalisation|"
    "post-hospital|after discharge|from discharge|date of discharge|after hospitalization|after hospitalisation",
    Role.GRACE: "grace|ग्रेस|रियायती",
    Role.FREE_LOOK: "free look|free-look|freelook|फ्री लुक",
    Role.AGE: "age|aged|years old|years of age|entry age|आयु|उम्र|उमर|umar|umr|aayu",
    Role.SURVIVAL: "survival|survive",
    Role.DEDUCTIBLE: "deductible|deductibles|excess",
    Role.COPAY: "co-pay|copay|co-payment|copayment|co-payments|copayments|को-पे|कोपे|सह-भुगतान",
    Role.DISCOUNT: "discount|discounts|छूट",
    Role.BONUS: "bonus|cumulative|no-claim|ncb|बोनस",
    Role.ROOM: "room|rooms|कमरा|कमरे|रूम",
    Role.ICU: "icu|intensive",
    Role.AMBULANCE: "ambulance|एम्बुलेंस|एंबुलेंस",
    Role.SUM_INSURED: "sum insured|sum-insured|sum assured|si|बीमा राशि",
    Role.PREMIUM: "premium|premiums|प्रीमियम",
    Role.NOTICE: "intimation|intimate|intimated|notify|notified|notice|inform|informed|submit|submitted|सूचना|सूचित",
    Role.MORATORIUM: "moratorium",
}

_LOOK_BACK = (
    ("prior", "to"),
    ("preceding",),
    ("before",),
    ("previous",),
    ("पहले",),
    ("pehle",),
    ("पूर्व",),
    ("prior",),
)
_STAY = keys_of("hospitalisation hospitalization admission hospitalised hospitalized admitted भर्ती bharti hospital")
_REFERENCES = keys_of(
    "section sections clause clauses page pages p pp para paragraph annexure article excl schedule "
    "chapter धारा पृष्ठ खंड"
)
_CLAUSE_ENDS = frozenset(".;!?\n•|।:")
_REACH = 12
_LOOK_BACK_REACH = 2


def _compile() -> dict[str, list[tuple[tuple[str, ...], Role]]]:
    by_first: dict[str, list[tuple[tuple[str, ...], Role]]] = {}
    for role, phrases in _PHRASES.items():
        for phrase in phrases.split("|"):
            words = tuple(phrase.replace("-", " - ").split())
            by_first.setdefault(words[0], []).append((words, role))
    for entries in by_first.values():
        entries.sort(key=lambda entry: -len(entry[0]))
    return by_first


_BY_FIRST = _compile()


def role_at(reader: Reader, at: int) -> tuple[Role, int] | None:
    """The role named at token ``at`` and how many tokens name it; the longest phrase wins."""
    entries = _BY_FIRST.get(reader.token(at).key)
    if entries is None:
        return None
    for words, role in entries:
        if all(reader.token(at + offset).key == word for offset, word in enumerate(words)):
            return role, len(words)
    return None


def roles_in(reader: Reader) -> frozenset[Role]:
    """All roles that a text names: what a question asks about."""
    return frozenset(found[0] for at in range(reader.size) if (found := role_at(reader, at)) is not None)


def roles_of(reader: Reader, reading: Reading) -> frozenset[Role]:
    """The roles of a quantity from its own clause: a look-back right behind it decides, else the nearest named."""
    if is_reference(reader, reading):
        return frozenset({Role.REFERENCE})
    if reading.kind is FactKind.DURATION and looks_back(reader, reading.last + 1):
        return frozenset({Role.LOOK_BACK})
    before = _nearest(reader, range(reading.first - 1, reading.first - 1 - _REACH, -1))
    after = _nearest(reader, range(reading.last + 1, reading.last + 1 + _REACH))
    found = [side for side in (before, after) if side is not None]
    if reading.kind is FactKind.PERCENT:
        # "25 % of the sum insured" is about whatever the sentence is about.
        found = [side for side in found if side.role is not Role.SUM_INSURED]
    found = [side for side in found if not side.beyond_joint] or found
    if not found:
        return frozenset()
    nearest = min(side.distance for side in found)
    return frozenset(side.role for side in found if side.distance <= nearest + 1)


class _Side(NamedTuple):
    """A role named on one side of a quantity; ``beyond_joint`` is past an "and", so rather of the next quantity."""

    distance: int
    role: Role
    beyond_joint: bool


_JOINTS = keys_of("and but while whereas , और aur लेकिन lekin जबकि जबकि")


def _nearest(reader: Reader, places: Sequence[int]) -> _Side | None:
    beyond = False
    for distance, place in enumerate(places):
        token = reader.token(place)
        if token is END or token.key in _CLAUSE_ENDS:
            return None
        beyond = beyond or token.key in _JOINTS
        found = role_at(reader, place)
        if found is not None:
            return _Side(distance, found[0], beyond)
    return None


def looks_back(reader: Reader, at: int) -> bool:
    """``36 months prior to diagnosis``; before a hospital stay is a role of its own."""
    for place in range(at, at + _LOOK_BACK_REACH):
        for words in _LOOK_BACK:
            if all(reader.token(place + offset).key == word for offset, word in enumerate(words)):
                rest = {reader.token(later).key for later in range(place + 1, place + 7)}
                return not rest & _STAY
    return False


_BEFORE = keys_of("prior before preceding previous advance पहले pehle पूर्व")


def mentions_before(reader: Reader) -> bool:
    """Whether a text speaks of something before an event."""
    return any(token.key in _BEFORE for token in reader.tokens)


def is_reference(reader: Reader, reading: Reading) -> bool:
    """``Section 4.2``, ``p. 9``, ``clause 3``: where something stands, no quantity of its own."""
    if reading.kind is not FactKind.NUMBER:
        return False
    before = reader.token(reading.first - 1)
    if before.text in {".", "-", "#"}:
        before = reader.token(reading.first - 2)
    return before.key in _REFERENCES


def negated(reader: Reader, reading: Reading) -> bool:
    """``not 24 months``, ``24 महीने नहीं``; not "not more than 24 months" (a bound)."""
    before = reader.token(reading.first - 1)
    if before.key in {"just", "only", "exactly", "a", "the"}:
        before = reader.token(reading.first - 2)
    if before.key in _NOT:
        return True
    return reader.token(reading.last + 1).key in _NOT_BEHIND or _is_no_count(reader, reading)


_NOT = frozenset({"not", "isn't", "wasn't", "aren't"})
_NOT_BEHIND = keys_of("नहीं nahi nahin nhi")
_IS_BEHIND = keys_of("है हैं hai hain")
_PER = keys_of("per प्रति")
_LIMITS = keys_of("up upto to within at most least maximum minimum of a the")


def _is_no_count(reader: Reader, reading: Reading) -> bool:
    """``6,200 अस्पताल नहीं हैं``, ``₹4,000 प्रति दिन नहीं है``: what is counted stands before its denial."""
    noun = reading.last + 1
    if reader.token(noun).key in _PER:
        noun += 1
    elif reading.kind is not FactKind.NUMBER:
        return False
    return reader.token(noun + 1).key in _NOT_BEHIND and reader.token(noun + 2).key in _IS_BEHIND


def denies_limit(reader: Reader, reading: Reading) -> bool:
    """``not up to 65 years``, ``not within 2 hours``, ``65 साल तक नहीं है``: a limit itself is denied.

    Only against a gold that is such a limit: of a waiting period "not within 30 days" is a right account.
    """
    place = reading.first - 1
    while reader.token(place).key in _LIMITS:
        place -= 1
    if place < reading.first - 1 and reader.token(place).key in _NOT:
        return True
    after = [reader.token(reading.last + step).key for step in (1, 2, 3)]
    return after[0] in {"तक", "tak"} and after[1] in _NOT_BEHIND and after[2] in _IS_BEHIND
