"""Find names of people by the words beside them (`names.toml`): a greeting, a title, "belongs to", a label.

The rules have no list of names. A name without such a word is not found. Two kinds of names are skipped, because
they are not names of private persons: a name that contains a word for an organisation ("museum"), and a name beside
a word for a work of an author or artist ("novel").
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, NamedTuple

from monitors.facts.disclosures.candidates import (
    HIDDEN,
    DisclosureCandidate,
    DisclosureKind,
    DisclosureText,
    Strength,
)
from monitors.facts.disclosures.phrases import LABELS, NAMES, CuePhrase

_STOP: Final = frozenset(NAMES["stop"]) | {word for phrase in NAMES["greeting"] for word in phrase.split()}
_ORGANISATION: Final = frozenset(NAMES["organisation"])
_PARTICLES: Final = frozenset(NAMES["particle"])
_TITLES: Final = frozenset(NAMES["title"])
WHOSE: Final = frozenset(word.split()[0] for word in NAMES["whose"])
"""Words that show the owner of something: "your", "Ihre", "aapka"."""
_WORKS: Final = frozenset(NAMES["work"])
_LABEL_WORDS: Final = frozenset(
    word for table in LABELS["identifier"] for label in table["labels"] for word in label.split()
)
"""Words of labels. Before a masked number, they form a label and not a name: "Aadhaar Number [Aadhaar]"."""
_LOWERCASE_TITLES: Final = frozenset(
    {"mr", "mrs", "ms", "mx", "dr", "prof", "shri", "smt", "mme", "mlle", "sr", "sra"}
)
"""Titles that are also recognised in lower case."""

_NAME_WORD: Final = re.compile(
    r"[\u0900-\u0963\u0970-\u097f]+|[^\W\d_]\.(?=[ \w])|[^\W\d_]+(?:['’\-][^\W\d_]+)*(?![\d_@])"
)
_BETWEEN: Final = re.compile(r" ?(?=[^\W\d_])|(?<=\.)")
_FIRST_DEVANAGARI, _LAST_DEVANAGARI = "\u0900", "\u097f"
_MAX_NAME_WORDS: Final = 4
_MAX_TITLES: Final = 2
_MAX_DEVANAGARI_WORDS: Final = 2
_MAX_CODE_LENGTH: Final = 3
"""A word in capitals with at most this many letters is an abbreviation and not a name: NHS, ID."""
_MAX_NAMES: Final = 40
"""Further mentions are searched for at most this many names of a text."""
_MIN_REPEATED: Final = 4
_ROLES: Final = frozenset((*NAMES["role"], *NAMES["relation"]))
"""Words for a role or a relation. They are not names: the "Driver" in "Driver ka number"."""


_FRENCH_ARTICLES: Final = frozenset({"le", "la"})
"""The particles "le" and "la", which may be capitalised inside a name: Thibault Le Guennec."""
_HEADER: Final = re.compile(r"^(?:to|from|cc|attn|an|von|à|para) ?: ?(?=[^\W\d_])", re.IGNORECASE | re.MULTILINE)
"""The beginning of a line in a letter or mail that names the sender or the recipient, such as "From:"."""


class _Name(NamedTuple):
    start: int
    end: int
    word_count: int
    """The number of words in the name, not counting particles such as "von"."""


def find_names(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find the names of people, and all other mentions of each name.

    The evidence is always weak: a name is masked, but sends no alert.
    """
    names: dict[tuple[int, int], None] = {}
    for phrase in reading.phrases:
        if phrase.topic in _READERS and (name := _READERS[phrase.topic](reading, phrase)):
            names[name.start, name.end] = None
    for name in (*_find_names_before_masks(reading), *_find_names_in_headers(reading)):
        names[name.start, name.end] = None
    spans = [*names]
    for start, end in (*spans, *_find_other_mentions(reading.text, spans)):
        yield DisclosureCandidate(DisclosureKind.PERSON, start, end, Strength.WEAK)


def _is_devanagari(character: str) -> bool:
    return _FIRST_DEVANAGARI <= character <= _LAST_DEVANAGARI


def _is_name_word(word: str) -> bool:
    lowered = word.lower().rstrip(".")
    if lowered in _STOP:
        return False
    if _is_devanagari(word[0]):
        return len(word) > 1
    if not word[0].isupper() or (len(word) == 1):
        return False
    return not (word.isupper() and len(word) <= _MAX_CODE_LENGTH and "." not in word)


def _skip_titles(text: str, at: int) -> int:
    for _ in range(_MAX_TITLES):
        match = _NAME_WORD.match(text, at)
        if match is None or match[0].lower().rstrip(".") not in _TITLES:
            break
        at = match.end() + (text[match.end() : match.end() + 1] == ".")
        at += text[at : at + 1] == " "
    return at


def _read_name(text: str, at: int) -> _Name | None:
    """Return the name that begins at offset ``at``, without its titles, or ``None`` if no name begins there."""
    start = end = None
    position, count, devanagari = _skip_titles(text, at), 0, 0
    while count < _MAX_NAME_WORDS and (match := _NAME_WORD.match(text, position)):
        word, lowered = match[0], match[0].lower().rstrip(".").removesuffix("'s").removesuffix("’s")
        is_particle = lowered in _PARTICLES and (word.islower() if count else word[0].isupper())
        is_particle |= bool(count and lowered in _FRENCH_ARTICLES)
        if is_particle and count == 0 and start is not None:
            break
        if is_particle:
            start = match.start() if start is None else start
        elif _is_name_word(word):
            devanagari += _is_devanagari(word[0])
            if devanagari > _MAX_DEVANAGARI_WORDS:
                break
            if lowered in _ORGANISATION:
                return None
            start = match.start() if start is None else start
            end, count = match.end(), count + 1
        else:
            break
        position = match.end() + (text[match.end() : match.end() + 1] == " ")
        if position == match.end() and not word.endswith("."):
            break
    if start is None or end is None:
        return None
    if text[max(0, end - 2) : end] in {"'s", "’s"}:
        end -= 2
    return _Name(start, end, count)


def _read_name_before(reading: DisclosureText, last: int, *, max_words: int = _MAX_NAME_WORDS) -> _Name | None:
    """Return the name whose last word is word number ``last``, or ``None`` if there is no name."""
    words, starts, ends = reading.words_of_text
    first, count, between = None, 0, ""
    for index in range(last, max(-1, last - max_words * 2), -1):
        if index < last:
            between = reading.text[ends[index] : starts[index + 1]]
            if between not in {" ", "-", "'", "’", ". "}:
                break
        written = reading.text[starts[index] : ends[index]]
        if words[index] in _PARTICLES and written.islower() and first is not None:
            continue
        initial = len(written) == 1 and written.isupper() and reading.text[ends[index] : ends[index] + 1] in ".-'’"
        if (
            not (initial or _is_name_word(written))
            or words[index] in _TITLES
            or words[index] in _ROLES
            or (not written.isalpha() and not _is_devanagari(written[0]))
        ):
            break
        if words[index] in _ORGANISATION:
            return None
        first, count = index, count + (index == last or " " in between)
        if count == max_words:
            break
    return _Name(starts[first], ends[last], count) if first is not None else None


def _is_author_or_artist(reading: DisclosureText, name: _Name) -> bool:
    """Return whether a name belongs to an author or artist: a word for a work ("novel") is beside the name."""
    words, starts, _ = reading.words_of_text
    first = bisect_left(starts, name.start)
    for _ in range(_MAX_TITLES):
        first -= first > 0 and words[first - 1] in _TITLES
    before = words[max(0, first - 2) : first]
    if before and (
        before[-1] in _WORKS or (before[-1] in {"by", "of", "von", "par", "por", "de"} and before[0] in _WORKS)
    ):
        return True
    after = bisect_left(starts, name.end)
    is_possessive = reading.text[name.end : name.end + 2] in {"'s", "’s", "s'", "' "}
    following = words[after : after + 3]
    return is_possessive and any(word in _WORKS for word in following)


def _skip_blanks(text: str, at: int, characters: str = " ") -> int:
    while text[at : at + 1] and text[at] in characters:
        at += 1
    return at


def _read_name_after_title(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    text, (words, starts, ends) = reading.text, reading.words_of_text
    written = text[starts[phrase.first]]
    if not written.isupper() and not _is_devanagari(written) and words[phrase.first] not in _LOWERCASE_TITLES:
        return None
    at = ends[phrase.end - 1]
    at += text[at : at + 1] == "."
    if text[at : at + 1] != " " and text[at - 1] != ".":
        return None
    name = _read_name(text, at + (text[at : at + 1] == " "))
    if name and text[starts[phrase.first] : at] == _SHIP and not text[name.start : name.end].isupper():
        return None
    return name if name and not _is_author_or_artist(reading, name) else None


_SHIP: Final = "MS"
_AFTER_ADDRESSED: Final = re.compile(
    r"\s*(?:$|[,.!?:;\n…–—।(]|-\s| ?(?:ji|bhai|जी|and|und|et|y|&)(?!\w))", re.IGNORECASE
)


def _read_name_after_greeting(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    text, (_, _, ends) = reading.text, reading.words_of_text
    at = ends[phrase.end - 1]
    gap = text[at : at + 2]
    begin = _skip_blanks(text, at, " ,")
    if begin == at or begin > at + 2 or (gap[:1] == "," and gap != ", "):
        return None
    name = _read_name(text, begin)
    if name is None or not _AFTER_ADDRESSED.match(text, name.end):
        return None
    return name


_AFTER_CLOSING: Final = re.compile(r"[ \t]*(?:$|[,\n(.|–—]|-\s|from |of |at |aus |von |bei )")
_ON_BEHALF: Final = re.compile(r"(?:i\. ?[AV]\.|ppa\.|p\.? ?p\.|pp|p\. ?o\.) ", re.IGNORECASE)
_CLOSING_GAP: Final = re.compile(r"[,!.]?[ \t]*\n\s{0,4}|[,!] ?[–—-]? ?|[ \t]*[–—-] ?")


def _read_name_after_closing(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    text, (_, starts, ends) = reading.text, reading.words_of_text
    gap = _CLOSING_GAP.match(text, ends[phrase.end - 1])
    if gap is None:
        return None
    if "\n" not in gap[0]:
        line_start = text.rfind("\n", 0, starts[phrase.first]) + 1
        before = text[max(line_start, starts[phrase.first] - 3) : starts[phrase.first]].rstrip()
        if before and before[-1] not in ".!?।":
            return None
    at = gap.end()
    if proxy := _ON_BEHALF.match(text, at):
        at = proxy.end()
    match = _NAME_WORD.match(text, at)
    if match and match[0].lower() in WHOSE | {"yours", "your"}:
        at = _skip_blanks(text, match.end())
    name = _read_name(text, at)
    return name if name and _AFTER_CLOSING.match(text, name.end) else None


_COLON: Final = re.compile(r"(?: [a-zäöüß()\d.\u0900-\u097f]{1,14}){0,3} ?[:=] {0,3}[\"'“„]?")
_SHOP: Final = re.compile(r"['’]s [A-Z]")


def _is_possessive_of_company_name(text: str, name: _Name) -> bool:
    """Return whether a name is the first word of a company name: "Oliver's Wheels"."""
    return _SHOP.search(text, name.start, name.end + 3) is not None


_BEING: Final = re.compile(
    r"(?:'s name)?(?: [a-z]{1,9}){0,4} (?:is|was|ist|war|heißt|est|es|se llama|s'appelle|will be|hai|named|called)"
    r"(?: called| named| now)? "
)
_DIRECT: Final = re.compile(r",? ")
_AFTER_SINGLE: Final = re.compile(r"\s*(?:$|[,.;\n()|।!]|[–—-]\s)")


def _read_name_after_role(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    text, (words, starts, ends) = reading.text, reading.words_of_text
    at = ends[phrase.end - 1]
    before = words[phrase.first - 1] if phrase.first else ""
    if text[max(0, starts[phrase.first] - 1) : starts[phrase.first]] == "(" and phrase.first:
        name = _read_name_before(reading, phrase.first - 1)
        return name if name and name.word_count > 1 else None
    if colon := _COLON.match(text, at):
        name = _read_name(text, colon.end())
        if name and _is_possessive_of_company_name(text, name):
            return None
        if name and (name.word_count > 1 or _AFTER_SINGLE.match(text, name.end)):
            return name
    if being := _BEING.match(text, at):
        name = _read_name(text, being.end())
        if (
            name
            and not _is_author_or_artist(reading, name)
            and not _is_possessive_of_company_name(text, name)
            and (name.word_count > 1 or (before in WHOSE and _AFTER_SINGLE.match(text, name.end)))
        ):
            return name
    if (direct := _DIRECT.match(text, at)) and (
        text[starts[phrase.first]].islower() or _is_possibly_german_phrase(words, phrase)
    ):
        name = _read_name(text, direct.end())
        if name and name.word_count > 1 and direct[0] == " " and not _is_author_or_artist(reading, name):
            return name
        is_named = name and (before in WHOSE or name.word_count > 1)
        if name and is_named and direct[0] == ", " and text[name.end : name.end + 1] in ",.":
            return name
    return None


def _is_possibly_german_phrase(words: list[str], phrase: CuePhrase) -> bool:
    """Return whether the phrase may be German.

    A capitalised word beside a German phrase may be an ordinary noun, because German capitalises all nouns.
    """
    return (
        words[phrase.end - 1].endswith(("er", "in", "de", "glied", "ast", "arzt", "kontakt", "barn"))
        and phrase.first > 0
    )


_RELATION_GAP: Final = re.compile(r",? (?:called |named |heißt |is |ist |namens )?")


def _read_name_after_relation(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    text, (words, starts, ends) = reading.text, reading.words_of_text
    if text[max(0, starts[phrase.first] - 1) : starts[phrase.first]] == "(" and phrase.first:
        return _read_name_before(reading, phrase.first - 1)
    if not phrase.first or words[phrase.first - 1] not in WHOSE | {"s"}:
        return None
    gap = _RELATION_GAP.match(text, ends[phrase.end - 1])
    name = _read_name(text, gap.end()) if gap else None
    if name and _is_devanagari(text[name.start]):
        return name if name.word_count <= 1 or not _is_author_or_artist(reading, name) else None
    return name


_OWNER_GAP: Final = re.compile(
    r"[ :]{1,2}(?:(?:the |our |your |a )?(?:customer|member|tenant|user|patient|guest|neighbour)s? )?[\"'“„]?"
)


def _read_name_of_owner(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    gap = _OWNER_GAP.match(reading.text, reading.words_of_text.ends[phrase.end - 1])
    name = _read_name(reading.text, gap.end()) if gap else None
    return name if name and not _is_author_or_artist(reading, name) else None


def _read_full_name_of_recipient(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    name = _read_name_of_owner(reading, phrase)
    return name if name and name.word_count > 1 else None


def _read_name_before_honorific(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    words, starts, ends = reading.words_of_text
    if not phrase.first or reading.text[ends[phrase.first - 1] : starts[phrase.first]] != " ":
        return None
    last = phrase.first - 1
    if name := _read_name_before(reading, last, max_words=2):
        return name
    is_greeted = last > 0 and words[last - 1] in {"namaste", "namaskar", "hello", "hi", "dear", "hey", "pranam"}
    if is_greeted and words[last] not in _STOP and words[last].isalpha() and words[last].isascii():
        return _Name(starts[last], ends[last], 1)
    return None


def _read_name_before_possession(reading: DisclosureText, phrase: CuePhrase) -> _Name | None:
    _, starts, ends = reading.words_of_text
    if not phrase.first or reading.text[ends[phrase.first - 1] : starts[phrase.first]] != " ":
        return None
    name = _read_name_before(reading, phrase.first - 1, max_words=3)
    if name is None:
        return None
    if _is_devanagari(reading.text[name.start]):
        return _read_name_before(reading, phrase.first - 1, max_words=2)
    return name


_READERS: Final = {
    "title": _read_name_after_title,
    "greeting": _read_name_after_greeting,
    "closing": _read_name_after_closing,
    "role": _read_name_after_role,
    "relation": _read_name_after_relation,
    "owner": _read_name_of_owner,
    "recipient": _read_full_name_of_recipient,
    "honorific": _read_name_before_honorific,
    "possession": _read_name_before_possession,
}

_BEFORE_MASK: Final = re.compile(
    r"[ ,;(<–-]{1,3}(?:(?:at|on|under|unter|tel\.?|phone|mobile|mobil|e-?mail|handy)[ :]{1,2})?"
    r"|['’]s (?:[a-z]{2,9}[ -]){0,2}(?:mobile|number|phone|cell|e-?mail|line|address|home|birthday)"
    r"(?: number| address)?(?: is| was|:)? ",
    re.IGNORECASE,
)
_MAX_BEFORE_MASK: Final = 40
_WORD_PARTS: Final = re.compile(r"[\s\-]+")


def _find_names_before_masks(reading: DisclosureText) -> Iterator[_Name]:
    """Yield names of at least two words before a masked value: "Ana Silva's mobile is [phone]"."""
    text, (_, _, ends) = reading.text, reading.words_of_text
    at = text.find(HIDDEN)
    while at >= 0:
        for index in range(bisect_left(ends, at + 1) - 1, -1, -1):
            if at - ends[index] > _MAX_BEFORE_MASK:
                break
            if not _BEFORE_MASK.fullmatch(text, ends[index], at):
                continue
            name = _read_name_before(reading, index)
            words = _WORD_PARTS.split(text[name.start : name.end].lower()) if name else []
            if name and name.word_count > 1 and _LABEL_WORDS.isdisjoint(words):
                yield name
                break
        at = text.find(HIDDEN, at + 1)


def _find_names_in_headers(reading: DisclosureText) -> Iterator[_Name]:
    for header in _HEADER.finditer(reading.text) if ":" in reading.text else ():
        name = _read_name(reading.text, header.end())
        if name and name.word_count > 1 and _AFTER_SINGLE.match(reading.text, name.end):
            yield name


def _find_other_mentions(text: str, names: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield other mentions of names in the text: the complete name, or one of its words."""
    mentions: dict[str, None] = {}
    for start, end in names[:_MAX_NAMES]:
        whole = text[start:end]
        mentions[whole] = None
        for word in whole.replace("-", " ").split():
            if len(word) >= _MIN_REPEATED and word[0].isupper() and _is_name_word(word):
                mentions[word] = None
    covered = set(names)
    for mention in [*mentions][:_MAX_NAMES]:
        at = text.find(mention)
        while at >= 0:
            end = at + len(mention)
            is_whole = not text[max(0, at - 1) : at].isalnum() and not text[end : end + 1].isalnum()
            if is_whole and (at, end) not in covered:
                covered.add((at, end))
                yield at, end
            at = text.find(mention, end)
