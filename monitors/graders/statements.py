"""Read the statement around a quantity: its role, and whether the sentence negates it.

The role of a quantity is what it measures, for example a waiting period. A time before an event has another role:
"36 months prior to diagnosis" does not answer "waiting period 36 months". The domain pack contains the words for
each role. The role of a quantity comes from the nearest of these words in its clause. One word can stand for
several roles. Two quantities have different roles if each has at least one role and they share none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from monitors.domains.pack import Domain
from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.number_reader import NumberReader
from monitors.facts.quantities.units import PERCENT_WORDS, TIME_UNITS
from monitors.facts.text import END, split_into_word_keys

YES_WORDS = split_into_word_keys(
    "yes yeah yep yup haan haa han हां हाँ bilkul बिल्कुल बिलकुल correct absolutely certainly"
)
NO_WORDS = split_into_word_keys("no nope nahi nahin नहीं ना नही")
FILLERS = split_into_word_keys("ji जी well so oh in short answer the sir madam * # _ > - : , . ! \" '")

_OUTSIDE = split_into_word_keys("बाहर bahar")
OUT_OF = frozenset({("से", "बाहर"), ("se", "bahar")})
"""Pairs of words that mean "out of". After a word for cover, such a pair means "not covered": "cover se bahar"."""
_OF_A_PLACE = split_into_word_keys("के ke")


def is_excluding_word(key: str, before: str, domain: Domain) -> bool:
    """Return whether a word excludes something from cover. ``before`` is the preceding word.

    Return True for बाहर in कवर से बाहर ("out of cover"), but not in भारत के बाहर ("outside of India").
    """
    return key in domain.no and not (key in _OUTSIDE and before in _OF_A_PLACE)


PREDICATES: dict[str, frozenset[str]] = {
    "have": split_into_word_keys(
        "have has having there any exist exists apply applies applied applicable lagu लागू"
    ),
    "available": split_into_word_keys("available availed avail uplabdh उपलब्ध"),
    "allow": split_into_word_keys(
        "allow allows allowed permit permits permitted possible can may able sakta sakte sakti सकता सकते सकती"
    ),
    "need": split_into_word_keys(
        "need needs needed require requires required mandatory compulsory must zaroori jaruri जरूरी चाहिए chahiye"
    ),
    "eligible": split_into_word_keys("eligible qualify qualifies entitled ineligible"),
    "limit": split_into_word_keys("cap capped caps limit limited limits restricted restriction seema सीमा"),
    "offer": split_into_word_keys("offer offers offered provide provides provided give gives"),
}
"""Groups of words that answer a question with yes. A group counts only if the question has one of its words."""

NEGATIONS = split_into_word_keys(
    "not no never cannot can't isn't aren't doesn't don't won't wasn't neither nor without none नहीं नही "
    "न ना nahi nahin nhi na"
)
NEGATIONS_BEHIND = split_into_word_keys("नहीं नही nahi nahin nhi")
"""Hindi negations that come after the verb: नहीं in कवर नहीं है."""

MODALS = split_into_word_keys("can could may might must able")
"""English words whose negation directly follows them: "may" in "you may not", "can" in "they can no longer"."""
FORBIDS = split_into_word_keys(
    "cannot can't couldn't mustn't forbidden prohibited banned disallowed barred mana मना वर्जित"
)
"""Single words that forbid an action."""
SPEAKERS = frozenset({"i", "we"})
"""Words after which "cannot" is not an answer: "I cannot say", "we cannot help"."""

LATER = split_into_word_keys("until till unless before first initial during within तक पहले pehle tak")
"""Words that limit a "no" to a time: "not until 24 months" is a "no" only at first."""

LIMITS = split_into_word_keys(
    "only except excluding unless without instead otherwise provided केवल सिर्फ बिना sirf keval bina tabhi warna"
)
"""Words that add a condition to an answer: "Only with an adult" is neither a plain yes nor a plain no."""

STOP_WORDS = split_into_word_keys(
    "is are was were does do did can could will would has have had should may the a an of for in on under "
    "this my i me we it to and or if by with from any there be at as that kya क्या hai है mein में ke ka ki के "
    "का की में से what which how when where who much many long your you"
)
"""Words that never name the topic of a question."""

OPENERS = split_into_word_keys(
    "is are was were does do did can could will would has have had should may am kya क्या"
)
QUESTION_WORDS = split_into_word_keys(
    "what which how when where who why whose kitna kitne kitni kaun kab kahan कितना कितने कितनी कौन कब कहां"
)


LOOK_BACK: Final = "look-back"
"""The role of a time before an event: "36 months prior to diagnosis"."""
REFERENCE: Final = "reference"
"""The role of a number that refers to a place in a document: "Section 4.2"."""

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
_LOOK_BACK_FIRST = frozenset(words[0] for words in _LOOK_BACK)
_REFERENCES = split_into_word_keys(
    "section sections clause clauses page pages p pp para paragraph annexure article excl schedule "
    "chapter line lines version ticket build commit port धारा पृष्ठ खंड"
)
_CLAUSE_ENDS = frozenset(".;!?\n•|।:")
_ROLE_REACH = 12
_LOOK_BACK_REACH = 2


def find_quantity_role_at(reader: NumberReader, at: int, domain: Domain) -> tuple[str, int] | None:
    """Return the role that the words at token ``at`` express, and the number of these words.

    If several phrases match, the longest phrase decides.
    """
    entries = domain.roles.get(reader.token(at).key)
    if entries is None:
        return None
    for words, role in entries:
        if all(reader.token(at + offset).key == word for offset, word in enumerate(words)):
            return role, len(words)
    return None


def list_quantity_roles(reader: NumberReader, domain: Domain) -> frozenset[str]:
    """Return all roles that a text mentions."""
    return frozenset(
        role[0] for at in range(reader.size) if (role := find_quantity_role_at(reader, at, domain)) is not None
    )


def find_roles(reader: NumberReader, reading: QuantityReading, domain: Domain) -> frozenset[str]:
    """Return the roles of a quantity: `REFERENCE`, `LOOK_BACK`, or the nearest roles in its clause."""
    if is_document_reference(reader, reading):
        return frozenset({REFERENCE})
    if reading.kind is FactKind.DURATION and is_time_before_event(reader, reading.last + 1, domain):
        return frozenset({LOOK_BACK})
    before = _find_nearest_quantity_role(
        reader, range(reading.first - 1, reading.first - 1 - _ROLE_REACH, -1), domain
    )
    after = _find_nearest_quantity_role(reader, range(reading.last + 1, reading.last + 1 + _ROLE_REACH), domain)
    sides = [side for side in (before, after) if side is not None]
    if reading.kind is FactKind.PERCENT:
        sides = [side for side in sides if side.role not in domain.percent_of]
    sides = [side for side in sides if not side.beyond_joint] or sides
    if not sides:
        return frozenset()
    nearest = min(side.distance for side in sides)
    return frozenset(side.role for side in sides if side.distance <= nearest + 1)


class _Side(NamedTuple):
    """The nearest role before or after a quantity.

    ``beyond_joint`` is True if an "and" is between the role and the quantity. In this case, the role probably
    belongs to another quantity.
    """

    distance: int
    role: str
    beyond_joint: bool


_JOINTS = split_into_word_keys("and but while whereas , और aur लेकिन lekin जबकि जबकि")


def _find_nearest_quantity_role(reader: NumberReader, places: Sequence[int], domain: Domain) -> _Side | None:
    beyond = False
    for distance, place in enumerate(places):
        token = reader.token(place)
        if token is END or token.key in _CLAUSE_ENDS:
            return None
        beyond = beyond or token.key in _JOINTS
        role = find_quantity_role_at(reader, place, domain)
        if role is not None:
            return _Side(distance, role[0], beyond)
    return None


def is_time_before_event(reader: NumberReader, at: int, domain: Domain) -> bool:
    """Return whether the words at ``at`` put a time before an event: "prior to" in "36 months prior to diagnosis".

    Return False if the domain pack lists the event.
    """
    for place in range(at, at + _LOOK_BACK_REACH):
        if reader.token(place).key not in _LOOK_BACK_FIRST:
            continue
        for words in _LOOK_BACK:
            if all(reader.token(place + offset).key == word for offset, word in enumerate(words)):
                rest = {reader.token(later).key for later in range(place + 1, place + 7)}
                return not rest & domain.events
    return False


_BEFORE = split_into_word_keys("prior before preceding previous advance पहले pehle पूर्व")


def has_word_for_before(reader: NumberReader) -> bool:
    """Return whether a text contains a word such as "before" or "prior"."""
    return any(token.key in _BEFORE for token in reader.tokens)


def is_document_reference(reader: NumberReader, reading: QuantityReading) -> bool:
    """Return whether a number is a reference to a place in a document: ``Section 4.2``, ``p. 9``, ``clause 3``."""
    if reading.kind is not FactKind.NUMBER:
        return False
    before = reader.token(reading.first - 1)
    if before.text in {".", "-", "#"}:
        before = reader.token(reading.first - 2)
    return before.key in _REFERENCES


def is_quantity_negated(reader: NumberReader, reading: QuantityReading) -> bool:
    """Return whether a quantity is negated: ``not 24 months``, ``24 महीने नहीं``.

    Return False for "not more than 24 months", because this is a bound.
    """
    before = reader.token(reading.first - 1)
    if before.key in {"just", "only", "exactly", "a", "the"}:
        before = reader.token(reading.first - 2)
    if before.key in _NOT:
        return reader.token(reading.first - 2).key != "exceed"  # "ne dépasse pas 6" is a bound
    return reader.token(reading.last + 1).key in _NOT_BEHIND or _is_counted_noun_negated(reader, reading)


def is_always_open_negated(reader: NumberReader, reading: QuantityReading) -> bool:
    """Return whether "24/7" is negated: ``never available 24/7``.

    Return False for "not only by day but around the clock".
    """
    for at in range(reading.first - 1, reading.first - 1 - _OPEN_REACH, -1):
        token = reader.token(at)
        if token is END or token.key in _CLAUSE_ENDS or token.key in {",", "but", "only", "just"}:
            return False
        if token.key in NEGATIONS:
            return True
    return False


_OPEN_REACH = 4
"""Maximum number of words between a negation and "24/7": "not yet open for calls 24/7"."""
_NOT = frozenset({"not", "isn't", "wasn't", "aren't"})
_NOT_BEHIND = split_into_word_keys("नहीं nahi nahin nhi")
_IS_BEHIND = split_into_word_keys("है हैं hai hain")
_PER = split_into_word_keys("per प्रति")
_LIMITS = split_into_word_keys("up upto to within at most least maximum minimum of a the")


def _is_counted_noun_negated(reader: NumberReader, reading: QuantityReading) -> bool:
    """Return whether a negation follows the counted noun: ``6,200 अस्पताल नहीं हैं``.

    Another example is ``₹4,000 प्रति दिन नहीं है``.
    """
    noun = reading.last + 1
    if reader.token(noun).key in _PER:
        noun += 1
    elif reading.kind is not FactKind.NUMBER:
        return False
    return reader.token(noun + 1).key in _NOT_BEHIND and reader.token(noun + 2).key in _IS_BEHIND


def is_limit_negated(reader: NumberReader, reading: QuantityReading) -> bool:
    """Return whether a limit is negated: ``not up to 65 years``, ``not within 2 hours``, ``65 साल तक नहीं है``.

    Call this function only if the gold is such a limit. A waiting period may correctly be "not within 30 days".
    """
    place = reading.first - 1
    while reader.token(place).key in _LIMITS:
        place -= 1
    if place < reading.first - 1 and reader.token(place).key in _NOT:
        return True
    after = [reader.token(reading.last + step).key for step in (1, 2, 3)]
    return after[0] in {"तक", "tak"} and after[1] in _NOT_BEHIND and after[2] in _IS_BEHIND


FUNCTION_WORDS = split_into_word_keys(
    "the a an is are was were be will would shall of for in on to and or with from at by as this that it "
    "its there has have had does do not only also actually really so then in fact however but you your we "
    "our they their must may can है हैं का के की को में से और यह वह hai hain ka ke ki ko mein me se aur "
    "yeh woh ye wo"
)
_AGES = split_into_word_keys("age ages aged old older oldest young younger youngest उम्र आयु umar umra aayu")
_RATES = split_into_word_keys("per a an each every / प्रति हर har")
"""Words that make the next unit a rate: the "a" in "how many claims a year"."""


def find_asked_units(reader: NumberReader) -> frozenset[str]:
    """Return the units that a question asks for.

    Examples are months for "how many months", years for a question about an age, and percent.
    """
    units = {
        unit.name
        for at, token in enumerate(reader.tokens)
        if (unit := TIME_UNITS.get(token.key)) is not None and reader.token(at - 1).key not in _RATES
    }
    if any(token.key in _AGES for token in reader.tokens):
        units.add("year")
    if any(token.key in PERCENT_WORDS or token.text == "%" for token in reader.tokens):
        units.add(FactKind.PERCENT)
    return frozenset(units)
