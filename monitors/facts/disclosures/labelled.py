"""Find personal numbers, codes, passwords and dates of birth next to a label (`labels.toml`).

A value may follow its label within a short sentence: "the passport used for the crossing was 731048826". The
nearest label decides, and a label of a thing ("order", "invoice") ends the search. A value may also precede its
label with only a few words in between: "40927 as one-time passcode". Digits may be separate or in words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from monitors.facts.disclosures.candidates import (
    HIDDEN,
    DisclosureCandidate,
    DisclosureKind,
    DisclosureText,
    Strength,
)
from monitors.facts.disclosures.phrases import (
    BIRTH,
    IDENTIFIER,
    LABELS,
    PASSWORD,
    THING,
    CuePhrase,
    TextWords,
    list_words,
)
from monitors.facts.disclosures.secrets import is_secret_like

MAX_GAP: Final = 48
"""Maximum number of characters between a label and its value."""
_MAX_WORDS_BETWEEN: Final = 9
_MAX_LINKS: Final = 5
_MAX_VALUE_WORDS: Final = 24
_MAX_VALUE_LENGTH: Final = 34
_MAX_SEPARATOR: Final = 3
_GLUE: Final = frozenset("-./:")
_MIN_SPACED_WORDS: Final = 7
_DEFAULT_MIN_DIGITS: Final = 5


class _Identifier(NamedTuple):
    kind: DisclosureKind
    form: re.Pattern[str]
    min_digits: int
    is_spaced: bool


def _compile_value_form(forms: Sequence[str]) -> re.Pattern[str]:
    """Compile the value forms of `labels.toml` to a pattern.

    The pattern matches a value in capitals without separators.
    """
    letters = {"A": "[A-Z]", "9": "[0-9]", "X": "[A-Z0-9]", "?": "?"}
    alternatives: list[str] = []
    for form in forms:
        pieces: list[str] = re.findall(r"\[[^\]]*\]|\{[\d,]*\}|.", form)
        alternatives.append("".join(letters.get(piece, piece) for piece in pieces))
    return re.compile("|".join(f"(?:{alternative})" for alternative in alternatives))


_IDENTIFIERS: Final = {
    f"{IDENTIFIER}{number}": _Identifier(
        DisclosureKind(table["kind"]),
        _compile_value_form(table["forms"]),
        table.get("min_digits", _DEFAULT_MIN_DIGITS),
        table.get("spaced", False),
    )
    for number, table in enumerate(LABELS["identifier"])
}
SPACED_TOPICS: Final = frozenset(topic for topic, identifier in _IDENTIFIERS.items() if identifier.is_spaced)
_ABBREVIATIONS: Final = frozenset(LABELS["abbreviations"]["words"])
_LINKS: Final = frozenset(LABELS["links"]["words"])
_UNSURE_BIRTH: Final = frozenset(LABELS["birth"]["unsure"])
_SENTENCE_END: Final = re.compile(rf"[.!?।](?=\s|$)|\n\s*\n|{HIDDEN}")
SPOKEN_DIGITS: Final = {
    word: digit for digit, words in LABELS["spoken"].items() if digit.isdigit() for word in words.split()
}
SPOKEN_TIMES: Final = {
    word: times for name, times in (("double", 2), ("triple", 3)) for word in LABELS["spoken"][name].split()
}


def read_spoken_digits(words: Sequence[str]) -> str:
    """Return the digits of a number in words: "nine eight seven".

    The result is empty if any word is not a digit.
    """
    digits, times = "", 1
    for word in words:
        if word in SPOKEN_TIMES:
            times = SPOKEN_TIMES[word]
        elif word in SPOKEN_DIGITS or word.isdigit():
            digits += SPOKEN_DIGITS.get(word, word) * times
            times = 1
        else:
            return ""
    return digits


def find_labelled_values(reading: DisclosureText) -> Iterator[DisclosureCandidate]:
    """Find identifiers, one-time codes, passwords and dates of birth next to their labels."""
    labels = [
        phrase
        for phrase in reading.phrases
        if phrase.topic in (THING, PASSWORD, BIRTH) or phrase.topic.startswith(IDENTIFIER)
    ]
    first_words = {phrase.first for phrase in labels if phrase.topic not in SPACED_TOPICS}
    for phrase in labels:
        if phrase.topic == BIRTH:
            yield from _find_birth_dates(reading, phrase)
        elif phrase.topic == PASSWORD:
            yield from _find_passwords(reading, phrase)
        elif phrase.topic != THING:
            identifier = _IDENTIFIERS[phrase.topic]
            span = _find_value_after(reading, phrase, identifier, first_words) or _find_value_before(
                reading, phrase, identifier
            )
            if span is not None:
                yield DisclosureCandidate(identifier.kind, *span, Strength.LIKELY)


def _find_value_after(
    reading: DisclosureText, phrase: CuePhrase, identifier: _Identifier, labels: set[int]
) -> tuple[int, int] | None:
    words, starts, ends = reading.words_of_text
    label_end = ends[phrase.end - 1]
    for index in range(phrase.end, min(phrase.end + _MAX_WORDS_BETWEEN, len(words))):
        if starts[index] - label_end > MAX_GAP or (index in labels and index > phrase.end):
            return None
        is_abbreviated = index == phrase.end or words[index - 1] in _ABBREVIATIONS
        if not is_abbreviated and _SENTENCE_END.search(reading.text, ends[index - 1], starts[index]):
            return None
        between = reading.text[ends[index - 1] : starts[index]]
        if HIDDEN in between:
            return None
        if between in _GLUE and words[index - 1][-1].isdigit():
            continue  # within a date or a time
        if end := _find_value_end(reading, index, identifier):
            return starts[index], ends[end - 1]
    return None


def _find_value_end(reading: DisclosureText, first: int, identifier: _Identifier) -> int | None:
    """Return the index of the word after the value that begins at word number ``first``.

    Return ``None`` if no value begins there.
    """
    words, starts, ends = reading.words_of_text
    compact, times, best = "", 1, None
    for index in range(first, min(first + _MAX_VALUE_WORDS, len(words))):
        if index > first and not _is_separator(reading.text[ends[index - 1] : starts[index]]):
            break
        characters = _read_characters_of_word(reading, index)
        if characters is None or (best is not None and not _continues_value(reading.words_of_text, index)):
            break
        if words[index] in SPOKEN_TIMES:
            times = SPOKEN_TIMES[words[index]]
            continue
        compact += characters * times
        times = 1
        if len(compact) > _MAX_VALUE_LENGTH:
            break
        if _is_complete_value(compact, identifier) and (
            not identifier.is_spaced or index - first >= _MIN_SPACED_WORDS - 1
        ):
            best = index + 1
    if best is None or _is_amount_or_date(reading.text, starts[first], ends[best - 1]):
        return None
    return best


def _read_characters_of_word(reading: DisclosureText, index: int) -> str | None:
    """Return the characters that word number ``index`` adds to a value, in capitals.

    For example, "nine" adds "9". Return ``None`` if the word cannot be part of a value.
    """
    words, starts, ends = reading.words_of_text
    word = words[index]
    if word in SPOKEN_TIMES:
        return ""
    if word in SPOKEN_DIGITS and (len(word) > 1 or not word.isascii()):
        return SPOKEN_DIGITS[word]
    written = reading.text[starts[index] : ends[index]]
    if not written.isascii() or (written.isalpha() and not written.isupper() and len(written) > 1):
        return None
    return written.upper()


def _is_separator(between: str) -> bool:
    return (
        len(between) <= _MAX_SEPARATOR
        and not between.strip(" -./–'\"")
        and not (between[:1] in ".:" and " " in between)
    )


def _continues_value(text_words: TextWords, index: int) -> bool:
    """Return whether word number ``index`` continues the value before it.

    Return False for a single digit that follows a longer word and a space.
    """
    words, starts, ends = text_words
    return (
        len(words[index]) > 1
        or len(words[index - 1]) == 1
        or words[index].isalpha()
        or starts[index] - ends[index - 1] == 0
    )


def _is_complete_value(compact: str, identifier: _Identifier) -> bool:
    return (
        sum(map(str.isdigit, compact)) >= identifier.min_digits and identifier.form.fullmatch(compact) is not None
    )


_DATE_OR_AMOUNT: Final = re.compile(
    r"(?:\d{1,2}[./]\d{1,2}[./](?:19|20)?\d\d|\d{1,2}-\d{1,2}-(?:19|20)\d\d|(?:19|20)\d\d-\d\d-\d\d)|\d{1,3}(?:[.,]\d{3})*[.,]\d\d"
)
_MONEY: Final = frozenset("$€£₹¥%")


def _is_amount_or_date(text: str, start: int, end: int) -> bool:
    neighbours = text[max(0, start - 2) : start] + text[end : end + 2]
    return bool(_DATE_OR_AMOUNT.fullmatch(text, start, end) or _MONEY & {*neighbours.split("\n")[0]})


def _find_value_before(
    reading: DisclosureText, phrase: CuePhrase, identifier: _Identifier
) -> tuple[int, int] | None:
    words, starts, ends = reading.words_of_text
    last = phrase.first - 1
    while (
        last >= 0
        and phrase.first - last <= _MAX_LINKS
        and words[last] in _LINKS
        and words[last] not in "0123456789"
    ):
        last -= 1
    if last < 0 or _SENTENCE_END.search(reading.text, ends[last], starts[phrase.first]):
        return None
    if last == phrase.first - 1 and "(" not in reading.text[ends[last] : starts[phrase.first]]:
        return None
    compact, best = "", None
    for index in range(last, max(-1, last - _MAX_VALUE_WORDS), -1):
        if index < last and not _is_separator(reading.text[ends[index] : starts[index + 1]]):
            break
        characters = _read_characters_of_word(reading, index)
        if characters is None or words[index] in SPOKEN_TIMES or len(compact) > _MAX_VALUE_LENGTH:
            break
        compact = characters + compact
        if _is_complete_value(compact, identifier):
            best = index
    if best is None or _is_amount_or_date(reading.text, starts[best], ends[last]):
        return None
    return starts[best], ends[last]


_LINK: Final = re.compile(
    rf"(?:[:=]|[-–]\s|[\"'“„(]|\b(?:{'|'.join(LABELS['password']['links'])})(?!\w))\s{{0,2}}", re.IGNORECASE
)
_CHUNK: Final = re.compile(rf"[\"'“„]?([^\s\"'“”„,;<>()\[\]{HIDDEN}]{{5,64}})")
_LETTER_AND_DIGIT: Final = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]")
_FILE_OR_DIGITS: Final = re.compile(r"\w+\.[a-z]{2,4}|\d{1,5}|\d{17,}", re.IGNORECASE)


def _find_passwords(reading: DisclosureText, phrase: CuePhrase) -> Iterator[DisclosureCandidate]:
    """Find passwords after the label ``phrase``: directly after it, or after "is" or a colon in the same sentence.

    A password contains a digit or a sign.
    """
    label_end = reading.words_of_text.ends[phrase.end - 1]
    until = label_end + MAX_GAP
    sentence_end = _SENTENCE_END.search(reading.text, label_end, until)
    links = _LINK.finditer(reading.text, label_end, sentence_end.start() if sentence_end else until)
    for start in (label_end + 1, *(link.end() for link in links)):
        match = _CHUNK.match(reading.text, start)
        if match is None or (start == label_end + 1 and not _LETTER_AND_DIGIT.search(match[1])):
            continue
        value = match[1].rstrip(".)!?:।") or match[1]
        if (value.isdigit() or is_secret_like(value)) and not _FILE_OR_DIGITS.fullmatch(value):
            yield DisclosureCandidate(
                DisclosureKind.SECRET, match.start(1), match.start(1) + len(value), Strength.LIKELY
            )
            return


_MONTH: Final = "|".join(
    sorted((name for names in LABELS["birth"]["months"] for name in names.split()), key=len, reverse=True)
)
_BIRTH_DATE: Final = re.compile(
    rf"\d{{1,2}}(?:st|nd|rd|th|er|\.)?(?: of| de| -)?[ ./-]{{1,2}}(?:\d{{1,2}}|(?:{_MONTH})(?!\w)\.?)"
    r"(?:(?:,| of| de| del)?[ ./-]{1,2}(?:\d{4}|\d{2})(?!\d))?"
    r"|\d{4}[./-]\d{1,2}[./-]\d{1,2}(?!\d)"
    rf"|(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?!\d)",
    re.IGNORECASE,
)
_YEAR: Final = re.compile(r"(?<!\d)\d{4}(?!\d)")
_FIRST_YEAR: Final = 1905
"""The first year of birth that is personal data. Earlier years belong to historical persons."""


def _find_birth_dates(reading: DisclosureText, phrase: CuePhrase) -> Iterator[DisclosureCandidate]:
    text, (words, starts, ends) = reading.text, reading.words_of_text
    label = " ".join(words[phrase.first : phrase.end])
    after = ends[phrase.end - 1]
    match = _BIRTH_DATE.search(text, after, after + MAX_GAP + 24)
    if match and (
        match.start() - after > MAX_GAP or _SENTENCE_END.search(text, after + (label == "geb"), match.start())
    ):
        match = None
    if match is None:
        before = starts[phrase.first]
        earlier_dates = list(_BIRTH_DATE.finditer(text, max(0, before - MAX_GAP), before))
        match = earlier_dates[-1] if earlier_dates else None
        if match is None or text[match.end() : before].strip(" (,") not in _LINKS_BEFORE_BIRTH:
            return
    year = _YEAR.search(match[0])
    if year is None and re.search(r"\d{1,2}(?:[./-]\d{1,2})?$", match[0]) and label in _UNSURE_BIRTH:
        return
    if year is None or int(year[0]) >= _FIRST_YEAR:
        strength = Strength.WEAK if label in _UNSURE_BIRTH else Strength.LIKELY
        yield DisclosureCandidate(DisclosureKind.BIRTH_DATE, *match.span(), strength)


_LINKS_BEFORE_BIRTH: Final = frozenset(
    {
        "",
        "is the",
        "your",
        "is your",
        "is his",
        "is her",
        "as",
        "as your",
        "as his",
        "as her",
        "ist das",
        "als",
        "ist ihr",
    }
)


_MONTH_NUMBERS: Final = {
    name: number for number, names in enumerate(LABELS["birth"]["months"], start=1) for name in names.split()
}
_DATE_PARTS: Final = 3


def build_date_key(text: str) -> str:
    """Return the numbers of a date, sorted and with hyphens between them.

    3/4/1990 and 4/3/1990 therefore have the same key. The result is empty if the text is not a date.
    """
    numbers = [int(word) for word in re.findall(r"\d+", text)]
    month = next((_MONTH_NUMBERS[word] for word in list_words(text.lower()) if word in _MONTH_NUMBERS), None)
    parts = [*numbers, *([month] if month else [])]
    return "-".join(map(str, sorted(parts))) if len(parts) == _DATE_PARTS else ""
