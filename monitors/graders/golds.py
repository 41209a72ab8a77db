"""Scan gold texts and replies for quantities and content words.

Scans are cached: each text is scanned once for all graders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from monitors.domains.pack import Domain
from monitors.facts.quantities.lexicon import NUMBER_WORDS, WEEKDAYS
from monitors.facts.quantities.locales import PLAIN, Locale, Writing
from monitors.facts.quantities.scan import ReadLimits, Scan, apply_locale, scan, scan_without_locale
from monitors.facts.quantities.units import UNIT_KEYS
from monitors.facts.text import WORD, Token, normalise_and_tokenise, replace_spans_with_spaces, split_into_word_keys
from monitors.graders.statements import FUNCTION_WORDS, find_quantity_role_at

_CITATION = re.compile(r"\[[^\[\]\n]{0,300}\]")
"""A source in square brackets. Page numbers of a source are not facts of the reply."""


@lru_cache(maxsize=256)
def scan_case_text(text: str, locale: Locale = PLAIN) -> Scan:
    """Return the quantities and tokens of a gold or a question.

    The result is cached, because suites repeat texts.
    """
    return scan(text, locale=locale)


@lru_cache(maxsize=8)
def scan_reply_without_citations(text: str, locale: Locale) -> Scan:
    """Return the quantities and tokens of a reply without its citations. Spans are character offsets in the reply.

    The result is cached for each locale, because only some graders use the locale of the app.
    """
    return apply_locale(_scan_reply_without_locale(text, locale.writing), locale)


@lru_cache(maxsize=8)
def _scan_reply_without_locale(text: str, writing: Writing) -> Scan:
    read = normalise_and_tokenise(text, REPLY_LIMITS.tokens)
    citations = [
        match.span() for match in _CITATION.finditer(text) if any(word in match[0].lower() for word in _MARKS)
    ]
    if citations and (read.normalised.places is not None or len(text) > (REPLY_LIMITS.tokens or 0)):
        read = normalise_and_tokenise(replace_spans_with_spaces(text, citations), REPLY_LIMITS.tokens)
    elif citations:
        read = read.copy_with_blanked_spans(citations)
    return scan_without_locale(read, writing, limits=REPLY_LIMITS)


REPLY_LIMITS = ReadLimits(tokens=6_000, readings=400)
"""The maximum size of a reply that is graded: about ten pages of text.

A longer reply is not graded, because it may contain every possible number. tests/bench/bench_grading.py measures
the time for a reply of this size.
"""

FLOOD = "the reply has too many words or quantities to be graded by rules"
"""The reason for the abstention if a reply exceeds `REPLY_LIMITS`."""


_MARKS = ("source", "page", "p.", "pp.", "doc", "ref", "स्रोत", "section", "clause")


@lru_cache(maxsize=256)
def collect_stems_without_quantities(text: str, domain: Domain, locale: Locale = PLAIN) -> frozenset[str]:
    """Return the stems (first letters) of the content words of a gold, without quantities and role words.

    A role word states what a quantity measures, for example "waiting period".
    """
    gold = scan_case_text(text, locale)
    reader = gold.reader
    inside = {at for reading in gold.readings for at in range(reading.first, reading.last + 1)}
    for at in range(reader.size):
        role = find_quantity_role_at(reader, at, domain)
        if role is not None:
            inside.update(range(at, at + role[1]))
    return collect_content_word_stems(token for at, token in enumerate(reader.tokens) if at not in inside)


def collect_content_word_stems(tokens: Iterable[Token]) -> frozenset[str]:
    """Return the stems (first letters) of the content words. All names of one weekday have the same stem."""
    return frozenset(
        f"weekday {WEEKDAYS[token.key]}" if token.key in WEEKDAYS else token.key[:STEM]
        for token in tokens
        if token.kind == WORD
        and len(token.key) > 2  # noqa: PLR2004 - shorter words join others
        and token.key not in _SMALL_WORDS
        and token.key not in FUNCTION_WORDS
        and token.key not in _JOINING_WORDS
        and token.key not in UNIT_KEYS
        and token.key not in NUMBER_WORDS
    )


STEM = 4
_SMALL_WORDS = split_into_word_keys(
    "the a an of in on at to from for and or until till by about around circa approximately early late "
    "mid total only between through during since after before is are was were it has have than more less "
    "up least most c ad bc को में से तक और का के की me mein se tak ka ke ki hai है"
)
_JOINING_WORDS = split_into_word_keys("per every each under against within plus also both respectively प्रति हर har")
