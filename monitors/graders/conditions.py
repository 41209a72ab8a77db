"""What a reply says beside the right answer that may turn it into a wrong one.

"Within 48 hours after booking" has the figure of "48 hours before", "it was ₹3,500 last year, it is now ₹4,200"
that of "₹3,500", and "yes, but only with chicken stock" the yes. None of these is surely wrong: it is not settled,
and goes to a judge or a person. Only the sentence with the right figure counts, and words of the question that it
repeats turn nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Final

from monitors.facts.quantities.fact import FactKind, QuantityReading
from monitors.facts.quantities.locales import PLAIN
from monitors.facts.quantities.scan import Scan
from monitors.facts.quantities.units import UNIT_KEYS
from monitors.facts.refusals.lexicon import SENTENCE
from monitors.facts.text import keys_of, normalise, tokenise
from monitors.facts.weekdays import stretches_of_days
from monitors.graders.golds import scanned_gold, scanned_reply, stems_of
from monitors.graders.statements import FUNCTION_WORDS, LIMITS, NO_WORDS, STOP_WORDS, YES_WORDS
from monitors.records.cases import GoldCase
from monitors.records.grades import Span

OTHER_COUNT: Final = "the reply has another number of what the gold counts"
OTHER_DAYS: Final = "the figures agree, but the days of the week are not those of the gold"
LIMITED: Final = "the reply says yes or no as the gold does, but with a condition that the gold does not have"
EARLIER: Final = "the right figure stands in the reply as what was so earlier"
FOR_ANOTHER: Final = "the right figure stands in the reply, but what was asked stands beside another figure"

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PIECE: Final = re.compile(r"[;–—]|,\s|\b(?:and|but|while|whereas|though)\b", re.IGNORECASE)
"""Where a sentence goes on to something else; a comma inside a number ends nothing."""

_OPPOSITES: Final = tuple(
    (keys_of(one), keys_of(other))
    for one, other in (
        ("before prior ahead advance beforehand", "after following afterwards later since"),
        ("free complimentary gratis", "paid payable chargeable charged"),
        ("included including includes inclusive", "excluded excluding excludes exclusive extra"),
        ("arrival arriving arrive arrives", "departure departing depart departs"),
        ("check-in checkin", "check-out checkout"),
        ("adult adults", "child children kids kid"),
        ("weekday weekdays", "weekend weekends"),
        ("domestic", "international"),
        ("inside indoor indoors", "outside outdoor outdoors"),
        ("opens opening", "closes closing"),
        ("deposit", "withdrawal"),
        ("buying", "selling"),
        ("minimum", "maximum"),
    )
)
_COUNTED_DAYS: Final = re.compile(r"\b(working|business|banking|calendar)[\s-]days?\b", re.IGNORECASE)
_ONCE: Final = re.compile(
    r"\blast (?:year|month|season|week|summer|winter)\b|\bused to (?:be|cost|have|charge|offer|take|last)\b"
    r"|\b(?:formerly|previously|originally|until recently|in the past|no longer)\b",
    re.IGNORECASE,
)
_WAS: Final = re.compile(r"\b(?:was|were|had been)\b", re.IGNORECASE)
_NOW: Final = re.compile(r"\b(?:now|currently|today|nowadays|meanwhile)\b[^.!?\n]{0,60}\d", re.IGNORECASE)
_VALUES: Final = {
    word: value
    for value, word in enumerate(("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), 1)
}
_COUNT: Final = re.compile(
    rf"(?<![\w.,:/$€£₹-])(\d{{1,5}}|{'|'.join(_VALUES)}) ([^\W\d_]{{3,}})(?: ([^\W\d_]{{3,}}))?"
    r"(?: ([^\W\d_]{3,}))?(?!\w)"
)
_SMALL: Final = FUNCTION_WORDS | STOP_WORDS | keys_of("am pm percent per each more less")
_FOR_ALL: Final = re.compile(
    rf"\bfor (?:all |the )?(?:\d{{1,4}}|{'|'.join(list(_VALUES)[1:])}) (?:[^\W\d_]+ )??([^\W\d_]{{3,}}?)s?\b",
    re.IGNORECASE,
)
_FOR_EACH: Final = re.compile(r"\b(?:per|each|every|an?) ([^\W\d_]{3,}?)s?\b", re.IGNORECASE)
_IRREGULAR: Final = {"people": "person", "children": "child", "kid": "child", "adults": "adult"}
_BARE: Final = 3
"""Words of a gold that says yes or no and hardly more."""
_LIMITS: Final = LIMITS - keys_of("without otherwise instead")
"""What follows these is as often the rest of a plain answer: "Yes, without a ticket"."""
_ANSWERS: Final = YES_WORDS | NO_WORDS
_NEXT_WORD: Final = re.compile(r" ?([^\W\d_]+)")
_NUMERAL: Final = re.compile(r"\d")


def why_unsettled(case: GoldCase, reply: str, evidence: Sequence[Span]) -> str | None:
    """Why a reply that has the gold's figure, or its yes or no, is not settled by it; ``None`` where it is.

    ``evidence`` are the spans of the grade that passed: where in ``reply`` the figure stands.
    """
    golds = (case.gold, *case.alternatives)
    if _names_other_days(golds, reply):
        return OTHER_DAYS
    if _counts_otherwise(golds, reply):
        return OTHER_COUNT
    said = [span for span in evidence if span.where != "gold"]
    figures = [span for span in said if _NUMERAL.search(reply[span.start : span.end])]
    scanned = scanned_reply(reply, PLAIN)
    for span in figures:
        reason = _turned_figure(case, golds, scanned, span)
        if reason is not None:
            return reason
    if figures:
        return None
    if _is_limited(golds, case.question, reply):
        return LIMITED
    known = " ".join(golds)
    opposites = (_opposite(known, reply[slice(*_sentence_around(reply, span.start))]) for span in said)
    return next((_said_opposite(*found) for found in opposites if found), None)


def _said_opposite(known: str, said: str) -> str:
    return f"the answer agrees, but the reply says “{said}” instead of “{known}”"


def _counts_otherwise(golds: Sequence[str], reply: str) -> bool:
    """Whether the reply has another number of what each gold counts: five cars for fifteen."""
    said = _counted(reply)
    counts = [_counted(gold) for gold in golds]
    return bool(counts) and all(
        any(noun in said and said[noun].isdisjoint(numbers) for noun, numbers in gold.items()) for gold in counts
    )


def _counted(text: str) -> dict[str, set[int]]:
    """Each noun behind a whole number, with its numbers; units of time and money are compared elsewhere."""
    found: dict[str, set[int]] = {}
    for number, *nouns in _COUNT.findall(text.lower()):
        if UNIT_KEYS.isdisjoint(nouns) and nouns[0] not in _SMALL:
            for noun in filter(None, nouns):
                found.setdefault(noun.removesuffix("s"), set()).add(_VALUES.get(number) or int(number))
    return found


def _names_other_days(golds: Sequence[str], reply: str) -> bool:
    """Whether gold and reply each name a stretch of days, and no stretch is in both."""
    said = stretches_of_days(reply)
    wanted = frozenset(chain.from_iterable(map(stretches_of_days, golds)))
    return bool(said and wanted) and said.isdisjoint(wanted)


def _turned_figure(case: GoldCase, golds: Sequence[str], reply: Scan, span: Span) -> str | None:
    said = next((one for one in reply.readings if _is_at(reply, one, span)), None)
    text = reply.normalised.text
    start, end = _sentence_around(text, span.start if said is None else said.start)
    sentence, known = text[start:end], " ".join((*golds, case.question))
    opposite = _opposite(known, sentence)
    if opposite is not None:
        return _said_opposite(*opposite)
    if _counts_other_days(known, sentence):
        return "the figures agree, but of working days and calendar days the reply names the other"
    if _is_for_each_or_all(golds, sentence):
        return "the figures agree, but one is for each and the other for all of them"
    if said is None or said.kind is FactKind.DATE:
        return None
    if said.kind is not FactKind.NUMBER and _is_earlier(
        known, _piece_at(sentence, said.start - start), text[said.end :]
    ):
        return EARLIER
    return FOR_ANOTHER if _is_beside_another(case.question, golds, reply, said, (start, end)) else None


def _is_at(reply: Scan, reading: QuantityReading, span: Span) -> bool:
    start, end = reply.normalised.original_span(reading.start, reading.end)
    return start <= span.start < end


def _sentence_around(text: str, at: int) -> tuple[int, int]:
    return next((found.span() for found in SENTENCE.finditer(text) if found.end() > at), (0, len(text)))


def _piece_at(sentence: str, at: int) -> str:
    """The part of a sentence around ``at``."""
    start, end = 0, len(sentence)
    for joint in _PIECE.finditer(sentence):
        if joint.end() <= at:
            start = joint.end()
        elif joint.start() > at:
            end = joint.start()
            break
    return sentence[start:end]


def _vocabulary(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _opposite(known: str, sentence: str) -> tuple[str, str] | None:
    """A word of gold or question and the one of the sentence that says its opposite, where neither has both."""
    wanted, said = _vocabulary(known), _vocabulary(sentence)
    for pair in _OPPOSITES:
        for one, other in (pair, pair[::-1]):
            here, there = wanted & one, said & other
            if here and there and not wanted & other and not said & one and not said & {"not", "no", "without"}:
                return min(here), min(there)
    return None


def _counts_other_days(known: str, sentence: str) -> bool:
    """Seven days are not seven working days; business days are working days."""
    kinds = [
        {
            "working" if kind.lower() in {"business", "banking"} else kind.lower()
            for kind in _COUNTED_DAYS.findall(text)
        }
        - {"calendar"}
        for text in (known, sentence)
    ]
    return bool(re.search(r"\bdays?\b", known, re.IGNORECASE)) and kinds[0] != kinds[1]


def _is_earlier(known: str, piece: str, rest: str) -> bool:
    if _WAS.search(known) or _ONCE.search(known):
        return False
    return bool(_ONCE.search(piece) or (_WAS.search(piece) and _NOW.search(rest)))


def _is_for_each_or_all(golds: Sequence[str], sentence: str) -> bool:
    """Either way round: "12,000 rupees for 8 sessions" against "₹12,000 per session"."""
    for first, second in ((_FOR_ALL, _FOR_EACH), (_FOR_EACH, _FOR_ALL)):
        wanted = _nouns(first, " ".join(golds))
        if wanted & _nouns(second, sentence) - _nouns(first, sentence):
            return True
    return False


def _nouns(counted: re.Pattern[str], text: str) -> frozenset[str]:
    nouns = (found[1].lower() for found in counted.finditer(text))
    return frozenset(_IRREGULAR.get(noun, noun) for noun in nouns)


def _is_beside_another(
    question: str, golds: Sequence[str], reply: Scan, said: QuantityReading, sentence: tuple[int, int]
) -> bool:
    """Whether words of the question stand beside another figure in that measure, and fewer beside the right one.

    In one sentence, asked for Economy: "in Business 23 kg, in Economy 20 kg". In two, asked for a female cat:
    "Neutering a male cat costs €129. Spaying a female cat costs €189."; a sentence that has nothing of the question
    goes on from the one before it, and of a gold with several figures each sentence may have one.
    """
    text, measure = reply.normalised.text, _measure(said, reply.normalised.text)
    if measure is None:
        return False
    right = {one.value for gold in golds for one in scanned_gold(gold).readings} | {said.value}
    others = [one for one in reply.readings if one.value not in right and _measure(one, text) == measure]
    if not others:
        return False
    (start, end), asked = sentence, _stems(question) - _stems(" ".join(golds))
    here, whole = text[start:end], asked & _stems(text[start:end])
    beside = asked & _stems(_piece_at(here, said.start - start))
    several = all(len({one.value for one in scanned_gold(gold).readings}) > 1 for gold in golds)
    for other in others:
        if start <= other.start < end:
            if asked & _stems(_piece_at(here, other.start - start)) > beside:
                return True
        elif whole and not several and asked & _stems(text[slice(*_sentence_around(text, other.start))]) > whole:
            return True
    return False


def _measure(reading: QuantityReading, text: str) -> tuple[FactKind, str] | None:
    """What a figure counts in: its unit, or the word behind a bare number (kg, episodes)."""
    if reading.kind is not FactKind.NUMBER:
        return reading.kind, reading.unit or ""
    behind = _NEXT_WORD.match(text, reading.end)
    return (reading.kind, behind[1].lower()) if behind and behind[1].lower() not in _SMALL else None


def _stems(text: str) -> frozenset[str]:
    return stems_of(tokenise(normalise(text).text))


def _is_limited(golds: Sequence[str], question: str, reply: str) -> bool:
    """Whether a yes or no that stands alone in the gold has a condition in the reply's first sentence."""
    known = frozenset[str]().union(*(_vocabulary(text) for text in (*golds, question)))
    if known & _LIMITS or not known & _ANSWERS or any(len(_WORD.findall(gold)) > _BARE for gold in golds):
        return False
    first = next((found.group() for found in SENTENCE.finditer(reply) if _vocabulary(found.group()) - _ANSWERS), "")
    return bool(_vocabulary(first) & _LIMITS)
