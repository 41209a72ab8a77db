"""Short golds without a quantity: names, titles, lists.

A gold phrase that stands in the reply, as whole words after folding, is met. A reply that shares nothing with any
accepted name is wrong. All in between is left to the judge, and so is a gold that makes a statement.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from monitors.facts.text import keys_of, normalise
from monitors.graders.base import SENTENCE, STATEMENT, UNREAD_GOLD, abstained, judged, unread
from monitors.graders.statements import NO_CHARGE
from monitors.records.base import Language
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.records.grades import Abstained, Aspect, FailureKind, Judged, Span

_WORD = re.compile(r"[^\W_]+(?:[\u0900-\u097f]+)*")
_ASIDE = re.compile(r"\([^\s()]{0,40}(?:\s[^\s()]{1,40}){0,2}\)")
"""Up to three words in brackets distinguish namesakes ("(2016 film)"); more may be what the gold is about."""
_DENIALS = frozenset({"not", "isn", "wasn", "never", "except", "excluding"})
_NONE = frozenset({"no", "none", "not", "never", "without"})
_DENYING = _NONE | {"don", "doesn", "isn", "aren", "can", "cannot", "won", "neither", "nor", "nothing", "nobody"}
"""A gold of "No checks" may be said in other words: "we don't accept them". Words end at an apostrophe."""
_DENIALS_BEHIND = frozenset({"नहीं", "nahi", "nahin"})
_ARTICLES = keys_of("the a an of and & in on at to for by")
_LONGEST_GOLD = 8
"""Words; a longer gold is a sentence, and sentences are not compared word by word."""
_LONGEST_NAME = 5
"""Words; a reply that shares none of a longer gold may say it in words of its own."""
_VERBS = (
    keys_of(
        "is are was were be been has have had can could may might must shall should will would does do did "
        "है हैं था थे थी hai hain tha the hota hoti"
    )
    - _ARTICLES
)
"""A gold with one of these is a statement, and a statement can be made in other words."""
_SHORT_STEM = 4


class _FoldedText:
    """The folded words of a text with their places in it."""

    def __init__(self, text: str) -> None:
        folded = normalise(text)
        plain = _without_accents(folded.text)
        self.words: list[str] = []
        self.spans: list[tuple[int, int]] = []
        same_length = len(plain) == len(folded.text)
        for match in _WORD.finditer(plain):
            self.words.append(match.group())
            span = match.span() if same_length else (0, len(folded.text))
            self.spans.append(folded.original_span(*span))

    def find(self, phrase: list[str]) -> tuple[int, int] | None:
        """The first and last word of a phrase that stands in a row, articles and small words aside."""
        first = phrase[0]
        for place, word in enumerate(self.words):
            if word != first:
                continue
            end = self._match(place, phrase)
            if end is not None:
                return place, end
        return None

    def span(self, found: tuple[int, int]) -> tuple[int, int]:
        """The place in the text of the words from the first to the last of ``found``."""
        return self.spans[found[0]][0], self.spans[found[1]][1]

    def is_denied(self, found: tuple[int, int]) -> bool:
        """``not Lotus Clinic``, ``Lotus Clinic नहीं``."""
        first, last = found
        return bool(_DENIALS.intersection(self.words[max(0, first - 2) : first])) or bool(
            _DENIALS_BEHIND.intersection(self.words[last + 1 : last + 2])
        )

    def _match(self, place: int, phrase: list[str]) -> int | None:
        at, last = place, place
        for word in phrase:
            while at < len(self.words) and self.words[at] != word and self.words[at] in _ARTICLES:
                at += 1
            if at >= len(self.words) or self.words[at] != word:
                return None
            last = at
            at += 1
        return last


def _without_accents(text: str) -> str:
    if text.isascii():
        return text.lower()
    parts: list[str] = []
    for character in text.lower():
        decomposed = unicodedata.normalize("NFD", character)
        parts.append(decomposed[0] if decomposed else character)
    return "".join(parts)


@lru_cache(maxsize=256)
def phrase_words(text: str) -> tuple[str, ...]:
    """The words of a gold phrase that must stand in the reply: folded, without asides and articles."""
    core = _ASIDE.sub(" ", text)
    words = _FoldedText(core).words or _FoldedText(text).words
    content = [word for word in words if word not in _ARTICLES]
    return tuple(content or words)


class PhrasesGrader:
    """Containment of whole phrases; it passes what stands there, fails what shares nothing, abstains in between."""

    name = "phrases"
    version = "4"
    aspect = Aspect.FACTUAL_MATCH

    def grade(self, case: GoldCase, exchange: Exchange) -> Judged | Abstained:
        """Search the graded text for the gold or one of its alternatives."""
        if case.language is Language.OTHER:
            return unread(self, UNREAD_GOLD)
        golds = [words for text in (case.gold, *case.alternatives) if (words := phrase_words(text))]
        short = [words for words in golds if len(words) <= _LONGEST_GOLD]
        if not short:
            return abstained(self, SENTENCE)
        reply, asked = _FoldedText(exchange.graded_text), frozenset(_FoldedText(case.question).words)
        for words in short:
            found = reply.find(list(words))
            if found is None:
                continue
            if asked.issuperset(words):
                return abstained(self, "the gold repeats the question, so that the reply may do no more")
            if reply.is_denied(found):
                return abstained(self, "the reply denies the gold phrase, or something near it")
            return self._passed(reply.span(found), exchange)
        if ("free",) in short and (free := NO_CHARGE.search(exchange.graded_text)) is not None:
            return self._passed(free.span(), exchange)
        said, stems = frozenset(reply.words), frozenset(word[:_SHORT_STEM] for word in reply.words)
        if any(_shares(words, said, stems, asked) for words in golds):
            return abstained(self, "the reply shares words with the gold, but not the phrase")
        if any(_is_statement(text) for text in (case.gold, *case.alternatives)):
            return abstained(self, STATEMENT)
        return judged(self, FailureKind.MISSING_FACT, "nothing of the gold or its alternatives stands in the reply")

    def _passed(self, found: tuple[int, int], exchange: Exchange) -> Judged:
        span = Span(where=exchange.graded_channel, start=found[0], end=found[1], label="gold phrase")
        return Judged(
            grader=self.name,
            version=self.version,
            aspect=self.aspect,
            passed=True,
            reason="the gold stands in the reply",
            evidence=(span,),
        )


@lru_cache(maxsize=256)
def _is_statement(text: str) -> bool:
    phrase = phrase_words(text)
    return len(phrase) > _LONGEST_NAME or bool(_VERBS.intersection(phrase))


def _shares(words: tuple[str, ...], said: frozenset[str], stems: frozenset[str], asked: frozenset[str]) -> bool:
    """Whether any content word of a gold stands in the reply, whole or by its first letters."""
    if not _NONE.isdisjoint(words) and not said.isdisjoint(_DENYING):
        return True
    telling = [word for word in words if word not in asked and word not in _ARTICLES] or list(words)
    return any(word in said or (len(word) >= _SHORT_STEM and word[:_SHORT_STEM] in stems) for word in telling)
