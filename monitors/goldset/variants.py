"""Pipeline C: other wordings of a case with the same expectation. By rule and seed, no model, nobody's guess.

A generator proposes; its proposal is a variant only when the question states the same quantities, holds no personal
data, and is in the language that its label says. Otherwise there is none, and the report says so.

There are three kinds. A rewording asks the same question in another order, with a synonym, or with a frame around
it. A mix follows how people mix their languages: English into Hinglish, English words into Hindi. A typo alters
only words that carry no figure, unit or name, so that the question stays what it was.

The words come from a file of data: frames, synonyms, switches. A seed decides the choices: the same on every
machine and in every version of Python.
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
from monitors.facts.language import identify
from monitors.facts.quantities.lexicon import NUMBER_WORDS
from monitors.facts.quantities.scan import read_facts
from monitors.facts.quantities.units import UNIT_KEYS
from monitors.facts.text import word_key
from monitors.records.base import Language
from monitors.records.cases import GoldCase, Pipeline

T = TypeVar("T")


class Pick:
    """A row of choices. Two with the same words choose alike; one choice does not change the next."""

    def __init__(self, *words: str | int) -> None:
        self._key = "\0".join(map(str, words)).encode()
        self._count = 0

    def below(self, most: int) -> int:
        """A whole number from 0 to below ``most``."""
        self._count += 1
        digest = hashlib.sha256(self._key + self._count.to_bytes(8, "big")).digest()
        return int.from_bytes(digest[:8], "big") % most

    def one(self, options: Sequence[T]) -> T:
        """One of them."""
        return options[self.below(len(options))]

    def mixed(self, options: Sequence[T]) -> list[T]:
        """All of them in another order."""
        left, row = list(options), list[T]()
        while left:
            row.append(left.pop(self.below(len(left))))
        return row


Pair = tuple[str, str]


class Switches(BaseModel):
    """How a question changes its language: whole patterns, sentences around it, single words."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    en: tuple[Pair, ...]
    any: tuple[str, ...]
    hi: tuple[Pair, ...]
    hinglish: tuple[Pair, ...]


class VariantLexicon(BaseModel):
    """``variants.json``. ``stored`` are words that no typo may touch, besides numbers, units and names.

    Devanagari has no capitals that would show a name, so there typos stand in the words of ``slipping_hi`` alone.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    frames: dict[str, tuple[str, ...]]
    greetings: dict[str, tuple[str, ...]]
    synonyms: dict[str, tuple[Pair, ...]]
    switches: Switches
    unchanged: dict[str, tuple[str, ...]]
    slipping_hi: tuple[str, ...]


@lru_cache(maxsize=1)
def wordings() -> VariantLexicon:
    """The file that comes with the package."""
    text = files("monitors.goldset").joinpath("variants.json").read_text(encoding="utf-8")
    return VariantLexicon.model_validate_json(text)


def is_unchangeable(word: str, language: str) -> bool:
    """Whether a typo in ``word`` could change what is asked: a number, a unit, a word that turns the meaning."""
    key = word_key(word)
    return key in UNIT_KEYS or key in NUMBER_WORDS or word.lower() in wordings().unchanged.get(language, ())


_NAME = r"[A-Z][\w-]*(?: [A-Z][\w-]*)*"
_BEHIND = re.compile(
    rf"^(?P<head>(?:.*[.!?] )?)(?P<first>[A-Z][a-z]*)(?P<rest> [^.?!]+?) (?P<at>under|in|with) (?P<name>{_NAME})\?$"
)
_TWO_NAMES = re.compile(r"[A-Z][\w-]* [A-Z]")
_FIRST_WORDS = frozenset({
    "What", "Which", "How", "Is", "Are", "Does", "Do", "Can", "Will", "Would", "Could", "May", "Must", "Up", "From",
    "Within", "By", "After", "For", "Till", "Until",
})  # fmt: skip


def paraphrased(question: str, language: Language, pick: Pick) -> str | None:
    """Another wording, or ``None`` where this pick gives none.

    A frame stands around questions only: around an order ("cancel my policy") it would ask something else.
    """
    ways = pick.mixed(["order", "synonym", "frame"])
    for way in ways:
        found = {"order": _reordered, "synonym": _with_synonym, "frame": _framed}[way](question, language, pick)
        if found is not None and found != question:
            return found
    return None


def _reordered(question: str, language: Language, _: Pick) -> str | None:
    """The policy's name in front: of "What is the limit under Gold?" comes "Under Gold, what is the limit?"."""
    match = _BEHIND.match(question) if language is Language.ENGLISH else None
    if match is None or match["first"] not in _FIRST_WORDS:
        return None
    if _TWO_NAMES.search(match["rest"]) or match["rest"].endswith((" or", " and", " than")):
        return None
    return f"{match['head']}{match['at'].capitalize()} {match['name']}, {match['first'].lower()}{match['rest']}?"


def _with_synonym(question: str, language: Language, pick: Pick) -> str | None:
    for said, other in pick.mixed(wordings().synonyms.get(language.value, ())):
        found = re.search(rf"(?<![\w\u0900-\u097f]){re.escape(said)}(?![\w\u0900-\u097f])", question)
        if found is not None:
            return f"{question[: found.start()]}{other}{question[found.end() :]}"
    return None


def _framed(question: str, language: Language, pick: Pick) -> str | None:
    asks = question.rstrip().endswith("?")
    frames = (wordings().frames if asks else wordings().greetings).get(language.value)
    if not frames:
        return None
    frame = pick.one(frames)
    if ", {q}" in frame and question.startswith("Kya "):
        question = f"k{question[1:]}"
    return frame.replace("{q}", question)


_LONG_NAME = r"[A-Z][\w-]*(?: [A-Z][\w-]*)+"
_ARTICLE = re.compile(r"^(?:the|an|a) ")
_SENTENCE = re.compile(r"(?<=[.!?]) ")
_FEWEST, _MOST = 1, 3
"""Words that are switched in one question."""


def code_switched(question: str, language: Language, pick: Pick) -> str | None:
    """The question with its languages mixed, or ``None`` where there is nothing to switch."""
    match language:
        case Language.ENGLISH:
            return _from_english(question, pick)
        case Language.HINDI:
            return _words_switched(question, wordings().switches.hi, pick)
        case Language.HINGLISH:
            return _words_switched(question, wordings().switches.hinglish, pick)
        case _:
            return None


def _from_english(question: str, pick: Pick) -> str | None:
    """Its last sentence turned round where a pattern knows it, else a sentence in Hindi around it.

    What is not a question, and does not fit a pattern, is an order: a sentence around it would ask something else.
    """
    *before, last = _SENTENCE.split(question)
    for pattern, template in _patterns():
        match = pattern.match(last)
        if match is not None and pick.below(4):
            said = template.format(n=match["n"], x=_ARTICLE.sub("", match["x"]))
            return " ".join((*before, said))
    if not last.endswith("?"):
        return None
    return pick.one(wordings().switches.any).replace("{q}", question)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    names = rf"{_LONG_NAME}(?:, {_LONG_NAME})*(?: and {_LONG_NAME})?"
    return tuple(
        (re.compile(pattern.replace("NAMES", names).replace("NAME", _LONG_NAME)), template)
        for pattern, template in wordings().switches.en
    )


def _words_switched(question: str, pairs: tuple[Pair, ...], pick: Pick) -> str | None:
    there = [pair for pair in pairs if _find(question, pair[0])]
    if not there:
        return None
    for said, other in pick.mixed(there)[: _FEWEST + pick.below(_MOST)]:
        found = _find(question, said)
        if found is not None:
            question = f"{question[: found.start()]}{other}{question[found.end() :]}"
    return question


def _find(question: str, said: str) -> re.Match[str] | None:
    return re.search(rf"(?<![\w\u0900-\u097f-]){re.escape(said)}(?![\w\u0900-\u097f-])", question)


SHORTEST = 5
"""Letters: in a shorter word a slip may make another word."""
ONE_IN_CHARACTERS = 60
"""A question of so many characters gets a typo in one word, a longer one in two."""

_LATIN = re.compile(r"(?<![\w'-])[a-z]+(?![\w'-])")
"""All in small letters and alone: no name, no abbreviation, no part of "34-year-old"."""
_DEVANAGARI = re.compile(r"(?<![\w\u0900-\u097f-])[\u0900-\u0963\u0970-\u097f]+(?![\w\u0900-\u097f-])")
_SLIPS = {"ि": "ी", "ी": "ि", "ु": "ू", "ू": "ु", "ँ": "ं", "ण": "न", "श": "ष"}
"""What people mix up in Devanagari: short and long vowel signs, nasal marks, sibilants."""
_TRAILING_DIGIT = re.compile(r"[\d०-९][\s-]*$")


def mistyped(question: str, language: Language, pick: Pick, names: frozenset[str]) -> str | None:
    """The question with a slip or two; ``None`` where no word may be touched. ``names`` are in small letters."""
    words = [
        match
        for match in _words(question, language)
        if match[0] not in names and _may_slip(question, match, language)
    ]
    if not words:
        return None
    count = 1 if len(question) <= ONE_IN_CHARACTERS else 2
    chosen = sorted(pick.mixed(words)[:count], key=lambda match: -match.start())
    for match in chosen:
        slipped = _devanagari_slip(match[0], pick) if language is Language.HINDI else _latin_slip(match[0], pick)
        question = f"{question[: match.start()]}{slipped}{question[match.end() :]}"
    return question


def _words(question: str, language: Language) -> list[re.Match[str]]:
    pattern = _DEVANAGARI if language is Language.HINDI else _LATIN
    return list(pattern.finditer(question))


def _may_slip(question: str, match: re.Match[str], language: Language) -> bool:
    """Whether the word carries no meaning that a slip could change; what stands behind a digit is a unit."""
    word = match[0]
    behind_digit = _TRAILING_DIGIT.search(question[: match.start()])
    if behind_digit or is_unchangeable(word, language.value):
        return False
    if language is Language.HINDI:
        return word in wordings().slipping_hi and any(letter in _SLIPS for letter in word[1:])
    return len(word) >= SHORTEST


def _latin_slip(word: str, pick: Pick) -> str:
    """Two neighbours swapped, a letter left out, a letter doubled; first and last letter stay."""
    swaps = [at for at in range(1, len(word) - 2) if word[at] != word[at + 1]]
    at = pick.one(range(1, len(word) - 1))
    match pick.below(3):
        case 0 if swaps:
            at = pick.one(swaps)
            return f"{word[:at]}{word[at + 1]}{word[at]}{word[at + 2 :]}"
        case 1:
            return f"{word[:at]}{word[at + 1 :]}"
        case _:
            return f"{word[:at]}{word[at]}{word[at:]}"


def _devanagari_slip(word: str, pick: Pick) -> str:
    places = [at for at, letter in enumerate(word) if at and letter in _SLIPS]
    at = pick.one(places)
    return f"{word[:at]}{_SLIPS[word[at]]}{word[at + 1 :]}"


_WORD = re.compile(r"[^\W\d_]+")

TRIES = 12
"""Proposals of one generator for one variant: names or figures may rule out the first few."""


class VariantKind(StrEnum):
    """How a wording differs from its case."""

    PARAPHRASE = "paraphrase"
    TYPO = "typo"
    CODE_SWITCH = "code_switch"


Generator = Callable[[str, Language, Pick], str | None]


class VariantSet(NamedTuple):
    """The variants of a suite, and the cases that have none of a kind."""

    cases: tuple[GoldCase, ...]
    without: tuple[tuple[VariantKind, str], ...]

    @property
    def counts(self) -> Counter[str]:
        """How many there are of each kind."""
        return Counter(case.id.rpartition("+")[2].split("-")[0] for case in self.cases)


def vary(cases: Sequence[GoldCase], kinds: Sequence[VariantKind], *, seed: int, each: int = 1) -> VariantSet:
    """``each`` variants of every kind for every case, in the order of the cases."""
    generators = _generators(names_in(cases))
    made: list[GoldCase] = []
    without: list[tuple[VariantKind, str]] = []
    for case in cases:
        seen = {case.question}
        for kind in kinds:
            found = [
                variant
                for number in range(each)
                if (variant := _variant(case, kind, generators[kind], (seed, number), seen))
            ]
            made += found
            if not found:
                without.append((kind, case.id))
    return VariantSet(tuple(made), tuple(without))


def names_in(cases: Sequence[GoldCase]) -> frozenset[str]:
    """Words of the documents' names, in small letters: in a chat they are not always written with capitals."""
    sources = (case.provenance.document or "" for case in cases)
    named = " ".join(
        (*sources, *(case.cluster or "" for case in cases), *(case.expected_citation or "" for case in cases))
    )
    return frozenset(_WORD.findall(named.lower()))


def _generators(names: frozenset[str]) -> dict[VariantKind, Generator]:
    return {
        VariantKind.PARAPHRASE: paraphrased,
        VariantKind.TYPO: lambda question, language, pick: mistyped(question, language, pick, names),
        VariantKind.CODE_SWITCH: code_switched,
    }


def _variant(
    case: GoldCase, kind: VariantKind, generator: Generator, which: tuple[int, int], seen: set[str]
) -> GoldCase | None:
    seed, number = which
    for attempt in range(TRIES):
        pick = Pick(seed, case.id, kind.value, number, attempt)
        text = generator(case.question, case.language, pick)
        language = _label(case, kind, text) if text is not None and text not in seen else None
        if text is None or language is None:
            continue
        seen.add(text)
        return case.model_copy(
            update={
                "id": f"{case.id}+{kind.value}-{seed}-{number + 1}",
                "turns": (*case.turns[:-1], text),
                "language": language,
                "pair": None,
                "provenance": case.provenance.model_copy(
                    update={"pipeline": Pipeline.ADVERSARIAL, "reviewed_by": None, "reviewed_at": None}
                ),
            }
        )
    return None


def _label(case: GoldCase, kind: VariantKind, text: str) -> Language | None:
    """The language of a proposal, when it may stand for the case; ``None`` when it may not."""
    if quantities(text) != quantities(case.question):
        return None
    if len(find_disclosures(text)) != len(find_disclosures(case.question)):
        return None
    found = identify(text)
    if kind is VariantKind.CODE_SWITCH and case.language is Language.ENGLISH:
        return found if found is Language.HINGLISH else None
    return found if found is case.language else None


def quantities(text: str) -> Counter[tuple[str, str, str | None, str]]:
    """What a question states: kinds, values, units and bounds, each as often as it stands there."""
    return Counter((fact.kind.value, fact.value, fact.unit, fact.bound.value) for fact in read_facts(text))
