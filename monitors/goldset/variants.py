"""Generate other wordings of a question that have the same expected answer, by rules and without a model.

There are three kinds of variants:

- A paraphrase has another word order, a synonym, or a sentence around the question.
- A code switch mixes languages as people do: English with Hindi words, or Hindi with English words.
- A typo changes letters of one or two words. It never changes a number, a unit or a name.

A variant must be in the expected language, have the same numbers as the original, and contain no new personal data.
The words come from ``variants.json``. A seed decides the random choices. The same seed always gives the same
variants.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict

from monitors.facts.disclosures.find import find_disclosures
from monitors.facts.language import identify_language
from monitors.facts.quantities.lexicon import NUMBER_WORDS
from monitors.facts.quantities.scan import read_facts
from monitors.facts.quantities.units import UNIT_KEYS
from monitors.facts.text import to_word_key
from monitors.records.base import Language
from monitors.records.cases import GoldCase

T = TypeVar("T")


class SeededChoice:
    """Makes random choices. The same seed words always give the same choices."""

    def __init__(self, *words: str | int) -> None:
        self._key = "\0".join(map(str, words)).encode()
        self._count = 0

    def pick_number(self, limit: int) -> int:
        """Return a random number from 0 to ``limit`` - 1."""
        self._count += 1
        digest = hashlib.sha256(self._key + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(digest[:8], "big") % limit

    def choose(self, options: Sequence[T]) -> T:
        """Return one of the options, chosen at random."""
        return options[self.pick_number(len(options))]

    def shuffle(self, options: Sequence[T]) -> list[T]:
        """Return the options in a random order."""
        remaining, shuffled = list(options), list[T]()
        while remaining:
            shuffled.append(remaining.pop(self.pick_number(len(remaining))))
        return shuffled


Pair = tuple[str, str]


class Switches(BaseModel):
    """The rules for mixing languages in a question: patterns, sentences around the question, and single words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    en: tuple[Pair, ...]
    any: tuple[str, ...]
    hi: tuple[Pair, ...]
    hinglish: tuple[Pair, ...]


class VariantLexicon(BaseModel):
    """The words of ``variants.json``.

    Typos are not allowed in the words of ``unchanged``. In Hindi, typos are allowed only in the words of
    ``slipping_hi``, because Hindi has no capital letters that show which words are names.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    frames: dict[str, tuple[str, ...]]
    greetings: dict[str, tuple[str, ...]]
    synonyms: dict[str, tuple[Pair, ...]]
    switches: Switches
    unchanged: dict[str, tuple[str, ...]]
    slipping_hi: tuple[str, ...]


@lru_cache(maxsize=1)
def load_variant_words() -> VariantLexicon:
    """Load the words in ``variants.json``."""
    text = files("monitors.goldset").joinpath("variants.json").read_text(encoding="utf-8")
    return VariantLexicon.model_validate_json(text)


def is_protected_from_typos(word: str, language: str) -> bool:
    """Return whether a typo in ``word`` could change the meaning, for example in a number, a unit or a negation."""
    key = to_word_key(word)
    return (
        key in UNIT_KEYS or key in NUMBER_WORDS or word.lower() in load_variant_words().unchanged.get(language, ())
    )


_NAME = r"[A-Z][\w-]*(?: [A-Z][\w-]*)*"
_NAME_BEHIND = re.compile(
    rf"^(?P<head>(?:.*[.!?] )?)(?P<first>[A-Z][a-z]*)(?P<rest> [^.?!]+?) (?P<at>under|in|with) (?P<name>{_NAME})\?$"
)
_TWO_NAMES = re.compile(r"[A-Z][\w-]* [A-Z]")
_FIRST_WORDS = frozenset({
    "What", "Which", "How", "Is", "Are", "Does", "Do", "Can", "Will", "Would", "Could", "May", "Must", "Up", "From",
    "Within", "By", "After", "For", "Till", "Until",
})  # fmt: skip


def reword_question(question: str, language: Language, pick: SeededChoice) -> str | None:
    """Return another wording of the question, or ``None`` if no rule applies."""
    methods = pick.shuffle(["order", "synonym", "frame"])
    for method in methods:
        variant = {"order": _move_name_first, "synonym": _replace_synonym, "frame": _add_surrounding_sentence}[
            method
        ](question, language, pick)
        if variant is not None and variant != question:
            return variant
    return None


def _move_name_first(question: str, language: Language, _: SeededChoice) -> str | None:
    """Move the policy's name to the front: "What is the limit under Gold?" → "Under Gold, what is the limit?"."""
    match = _NAME_BEHIND.match(question) if language is Language.ENGLISH else None
    if match is None or match["first"] not in _FIRST_WORDS:
        return None
    if _TWO_NAMES.search(match["rest"]) or match["rest"].endswith((" or", " and", " than")):
        return None
    return f"{match['head']}{match['at'].capitalize()} {match['name']}, {match['first'].lower()}{match['rest']}?"


def _replace_synonym(question: str, language: Language, pick: SeededChoice) -> str | None:
    for word, synonym in pick.shuffle(load_variant_words().synonyms.get(language.value, ())):
        match = re.search(rf"(?<![\w\u0900-\u097f]){re.escape(word)}(?![\w\u0900-\u097f])", question)
        if match is not None:
            return f"{question[: match.start()]}{synonym}{question[match.end() :]}"
    return None


def _add_surrounding_sentence(question: str, language: Language, pick: SeededChoice) -> str | None:
    asks = question.rstrip().endswith("?")
    frames = (load_variant_words().frames if asks else load_variant_words().greetings).get(language.value)
    if not frames:
        return None
    frame = pick.choose(frames)
    if ", {q}" in frame and question.startswith("Kya "):
        question = f"k{question[1:]}"
    return frame.replace("{q}", question)


_MULTI_WORD_NAME = r"[A-Z][\w-]*(?: [A-Z][\w-]*)+"
_ARTICLE = re.compile(r"^(?:the|an|a) ")
_SENTENCE = re.compile(r"(?<=[.!?]) ")
_MIN_SWITCHED_WORDS, _MAX_SWITCHED_WORDS = 1, 3
"""Minimum and maximum number of words that are replaced in one question."""


def mix_languages(question: str, language: Language, pick: SeededChoice) -> str | None:
    """Return the question with mixed languages, or ``None`` if no rule applies."""
    match language:
        case Language.ENGLISH:
            return _mix_hindi_into_english(question, pick)
        case Language.HINDI:
            return _replace_some_words(question, load_variant_words().switches.hi, pick)
        case Language.HINGLISH:
            return _replace_some_words(question, load_variant_words().switches.hinglish, pick)
        case _:
            return None


def _mix_hindi_into_english(question: str, pick: SeededChoice) -> str | None:
    """Write the last sentence in Hinglish if a pattern matches, or put a Hindi sentence around the question.

    Return ``None`` for a text that is not a question and matches no pattern.
    """
    *before, last = _SENTENCE.split(question)
    for pattern, template in _compile_code_switch_patterns():
        match = pattern.match(last)
        if match is not None and pick.pick_number(4):
            switched = template.format(n=match["n"], x=_ARTICLE.sub("", match["x"]))
            return " ".join((*before, switched))
    if not last.endswith("?"):
        return None
    return pick.choose(load_variant_words().switches.any).replace("{q}", question)


@lru_cache(maxsize=1)
def _compile_code_switch_patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    names = rf"{_MULTI_WORD_NAME}(?:, {_MULTI_WORD_NAME})*(?: and {_MULTI_WORD_NAME})?"
    return tuple(
        (re.compile(pattern.replace("NAMES", names).replace("NAME", _MULTI_WORD_NAME)), template)
        for pattern, template in load_variant_words().switches.en
    )


def _replace_some_words(question: str, pairs: tuple[Pair, ...], pick: SeededChoice) -> str | None:
    present_pairs = [pair for pair in pairs if _find_whole_word(question, pair[0])]
    if not present_pairs:
        return None
    for word, replacement in pick.shuffle(present_pairs)[
        : _MIN_SWITCHED_WORDS + pick.pick_number(_MAX_SWITCHED_WORDS)
    ]:
        match = _find_whole_word(question, word)
        if match is not None:
            question = f"{question[: match.start()]}{replacement}{question[match.end() :]}"
    return question


def _find_whole_word(question: str, word: str) -> re.Match[str] | None:
    return re.search(rf"(?<![\w\u0900-\u097f-]){re.escape(word)}(?![\w\u0900-\u097f-])", question)


MIN_TYPO_LETTERS = 5
"""A word gets a typo only if it has at least this many letters.

A typo in a shorter word could make another word.
"""
ONE_TYPO_MAX_CHARACTERS = 60
"""A question with at most this many characters gets one typo. A longer question gets two typos."""

_LATIN = re.compile(r"(?<![\w'-])[a-z]+(?![\w'-])")
"""Matches words in lower case. It does not match names, abbreviations and the parts of "34-year-old"."""
_DEVANAGARI = re.compile(r"(?<![\w\u0900-\u097f-])[\u0900-\u0963\u0970-\u097f]+(?![\w\u0900-\u097f-])")
_SLIPS = {"ि": "ी", "ी": "ि", "ु": "ू", "ू": "ु", "ँ": "ं", "ण": "न", "श": "ष"}
"""Letters of the Devanagari script, each with the letter that people often write instead."""
_TRAILING_DIGIT = re.compile(r"[\d०-९][\s-]*$")


def add_typos(question: str, language: Language, pick: SeededChoice, names: frozenset[str]) -> str | None:
    """Return the question with one or two typos, or ``None`` if no word allows a typo.

    ``names`` are words in lower case that get no typo.
    """
    pattern = _DEVANAGARI if language is Language.HINDI else _LATIN
    words = [
        match
        for match in pattern.finditer(question)
        if match[0] not in names and _can_have_typo(question, match, language)
    ]
    if not words:
        return None
    count = 1 if len(question) <= ONE_TYPO_MAX_CHARACTERS else 2
    chosen = sorted(pick.shuffle(words)[:count], key=lambda match: -match.start())
    for match in chosen:
        mistyped = (
            _make_devanagari_typo(match[0], pick)
            if language is Language.HINDI
            else _make_latin_typo(match[0], pick)
        )
        question = f"{question[: match.start()]}{mistyped}{question[match.end() :]}"
    return question


def _can_have_typo(question: str, match: re.Match[str], language: Language) -> bool:
    """Return whether a typo in the word of ``match`` cannot change the meaning of the question.

    A word after a digit is a unit and gets no typo.
    """
    word = match[0]
    behind_digit = _TRAILING_DIGIT.search(question[: match.start()])
    if behind_digit or is_protected_from_typos(word, language.value):
        return False
    if language is Language.HINDI:
        return word in load_variant_words().slipping_hi and any(letter in _SLIPS for letter in word[1:])
    return len(word) >= MIN_TYPO_LETTERS


def _make_latin_typo(word: str, pick: SeededChoice) -> str:
    """Swap two letters of a word, drop one letter, or double one letter.

    The first and the last letter are never changed.
    """
    swaps = [index for index in range(1, len(word) - 2) if word[index] != word[index + 1]]
    index = pick.choose(range(1, len(word) - 1))
    match pick.pick_number(3):
        case 0 if swaps:
            index = pick.choose(swaps)
            return f"{word[:index]}{word[index + 1]}{word[index]}{word[index + 2 :]}"
        case 1:
            return f"{word[:index]}{word[index + 1 :]}"
        case _:
            return f"{word[:index]}{word[index]}{word[index:]}"


def _make_devanagari_typo(word: str, pick: SeededChoice) -> str:
    indices = [index for index, letter in enumerate(word) if index and letter in _SLIPS]
    index = pick.choose(indices)
    return f"{word[:index]}{_SLIPS[word[index]]}{word[index + 1 :]}"


_WORD = re.compile(r"[^\W\d_]+")

MAX_TRIES = 12
"""Maximum number of attempts to make one variant. An attempt fails if it changes a name or a number."""


class VariantKind(StrEnum):
    """The kind of difference between a variant and its case."""

    PARAPHRASE = "paraphrase"
    TYPO = "typo"
    CODE_SWITCH = "code_switch"


Generator = Callable[[str, Language, SeededChoice], str | None]


class VariantSet(NamedTuple):
    """The variants of a suite.

    ``without`` lists each kind and case id for which no variant was possible.
    """

    cases: tuple[GoldCase, ...]
    without: tuple[tuple[VariantKind, str], ...]

    @property
    def counts(self) -> Counter[str]:
        """Return the number of variants of each kind."""
        return Counter(case.id.rpartition("+")[2].split("-")[0] for case in self.cases)


def make_variants(
    cases: Sequence[GoldCase], kinds: Sequence[VariantKind], *, seed: int, per_kind: int = 1
) -> VariantSet:
    """Make ``per_kind`` variants of each kind for each case, in the order of the cases."""
    generators = _build_generators(collect_protected_names(cases))
    all_variants: list[GoldCase] = []
    without: list[tuple[VariantKind, str]] = []
    for case in cases:
        questions = {case.question}
        for kind in kinds:
            variants = [
                variant
                for number in range(per_kind)
                if (variant := _make_variant(case, kind, generators[kind], (seed, number), questions))
            ]
            all_variants += variants
            if not variants:
                without.append((kind, case.id))
    return VariantSet(tuple(all_variants), tuple(without))


def collect_protected_names(cases: Sequence[GoldCase]) -> frozenset[str]:
    """Return the words of document names, clusters and expected citations, in lower case.

    These words get no typos.
    """
    names = (
        name
        for case in cases
        for name in (case.provenance.document or "", case.cluster or "", *case.accepted_citations)
    )
    named = " ".join(names)
    return frozenset(_WORD.findall(named.lower()))


def _build_generators(names: frozenset[str]) -> dict[VariantKind, Generator]:
    return {
        VariantKind.PARAPHRASE: reword_question,
        VariantKind.TYPO: lambda question, language, pick: add_typos(question, language, pick, names),
        VariantKind.CODE_SWITCH: mix_languages,
    }


def _make_variant(
    case: GoldCase, kind: VariantKind, generator: Generator, seed_and_number: tuple[int, int], questions: set[str]
) -> GoldCase | None:
    seed, number = seed_and_number
    for attempt in range(MAX_TRIES):
        pick = SeededChoice(seed, case.id, kind.value, number, attempt)
        text = generator(case.question, case.language, pick)
        language = (
            _find_language_if_valid_variant(case, kind, text)
            if text is not None and text not in questions
            else None
        )
        if text is None or language is None:
            continue
        questions.add(text)
        return case.derive_variant(f"{case.id}+{kind.value}-{seed}-{number + 1}", text, language)
    return None


def _find_language_if_valid_variant(case: GoldCase, kind: VariantKind, text: str) -> Language | None:
    """Return the language of the reworded question ``text``.

    Return ``None`` if the text is not a valid variant of the case.
    """
    if count_each_quantity(text) != count_each_quantity(case.question):
        return None
    if len(find_disclosures(text)) != len(find_disclosures(case.question)):
        return None
    language = identify_language(text)
    if kind is VariantKind.CODE_SWITCH and case.language is Language.ENGLISH:
        return language if language is Language.HINGLISH else None
    return language if language is case.language else None


def count_each_quantity(text: str) -> Counter[tuple[str, str, str | None, str]]:
    """Count the quantities in a question. Equal quantities have the same kind, value, unit and bound."""
    return Counter((fact.kind.value, fact.value, fact.unit, fact.bound.value) for fact in read_facts(text))
