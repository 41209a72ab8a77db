"""The bot's fictional policies and vocabulary, and the parser of questions.

A question is parsed into its language, its policies, its concepts, and its unknown words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from monitors.records.base import Language

HERE = Path(__file__).parent
POLICIES_PATH = HERE / "policies.json"
VOCABULARY_PATH = HERE / "vocabulary.json"


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PolicyFact(_Frozen):
    """A fact of a policy, with its clause.

    The quantity is ``amount`` with ``unit`` (``inr``, ``percent``, ``hour``, ``day``, ``month``, ``year`` or a
    noun), and ``per`` is its reference, such as "eye". ``covered`` answers a yes-or-no question. ``text`` is the
    clause in English. ``hi`` and ``hinglish`` replace the standard sentence where it would be clumsy.
    """

    field: str
    clause: str
    amount: Decimal | None = None
    unit: str | None = None
    per: str | None = None
    bound: str | None = None
    covered: bool | None = None
    text: str
    hi: str | None = None
    hinglish: str | None = None


class Policy(_Frozen):
    """A fictional policy with its names and its facts."""

    id: str
    name: str
    kind: str
    aliases: tuple[str, ...]
    facts: tuple[PolicyFact, ...]

    def find_fact(self, field: str) -> PolicyFact | None:
        """Find the fact about ``field``. Returns ``None`` if there is no such fact."""
        return next((fact for fact in self.facts if fact.field == field), None)

    def format_citation(self, fact: PolicyFact) -> str:
        """Format the citation in the form that the bot's replies use."""
        return f"[Source: {self.name}, clause {fact.clause}]"


class PolicyBook(_Frozen):
    """All policies of the fictional insurer."""

    insurer: str
    note: str
    policies: tuple[Policy, ...]


class Label(_Frozen):
    """The name of a policy field, such as the room rent, in three languages."""

    en: str
    hi: str
    hinglish: str


class Field(_Frozen):
    """The concepts by which the bot recognises that a question is about this field, such as the room rent.

    The question must contain a concept from each group in ``needs``. Concepts in ``boost`` add a little to the
    score.
    """

    label: Label
    needs: tuple[tuple[str, ...], ...]
    boost: tuple[str, ...]


class Topic(_Frozen):
    """A subject other than health policies. If ``hard`` is true, even a question with a known answer is refused."""

    name: str
    hard: bool
    phrases: tuple[str, ...]


class Actions(_Frozen):
    """The words that ask the bot to do something."""

    verbs: tuple[str, ...]
    objects: tuple[str, ...]
    hindi: tuple[str, ...]


class Vocabulary(_Frozen):
    """Words in three languages: concepts, other subjects, private data, actions, and filler words."""

    fields: dict[str, Field]
    concepts: dict[str, tuple[str, ...]]
    topics: dict[str, Topic]
    private: tuple[str, ...]
    actions: Actions
    hinglish_lexicon: tuple[str, ...]
    plain_lexicon: tuple[str, ...]


def load_policies(path: Path = POLICIES_PATH) -> PolicyBook:
    """Read the policies from JSON."""
    return PolicyBook.model_validate_json(path.read_bytes())


def load_vocabulary(path: Path = VOCABULARY_PATH) -> Vocabulary:
    """Read the vocabulary from JSON."""
    return Vocabulary.model_validate_json(path.read_bytes())


_TOKEN = re.compile(r"[a-z0-9]+|[\u0900-\u0963\u0966-\u097f]+")
_SENTENCE = re.compile(r"[.?!।:;]\s+|[?!।]$")
_DEVANAGARI = re.compile(r"[\u0900-\u097f]")
_ASKING_YES_NO = re.compile(
    r"^(?:is|are|does|do|can|will|am|would|could|has|have|did|isn|doesn|kya|क्या)(?= |$)"
    r"|(?<!\S)(?:kya|right|correct|क्या)$|(?<!\S)(?:whether|tell me if)(?!\S)"
)
_ASKING_WHAT = re.compile(
    r"(?<!\S)(?:what|how|when|which|who|where|kitna|kitni|kitne|kab|kaun|kis|kya hai|kya hoga"
    r"|कितना|कितनी|कितने|कब|कौन|किस|क्या है|क्या होगी|क्या होगा)(?!\S)(?! kya$| क्या$)"
)
MIN_HINDI_WORDS = 2
"""Minimum number of Hindi words in a Hindi or Hinglish text.

A single word may be a name, or an English word such as "main".
"""


def normalise(text: str) -> str:
    """Return the tokens in lower case, joined by single spaces.

    Full-width and similar letters become plain letters.
    """
    folded = unicodedata.normalize("NFKC", text).lower().replace("\u200d", "").replace("\u200c", "")
    return " ".join(_TOKEN.findall(folded))


def detect_language(text: str, hinglish_lexicon: Collection[str]) -> Language:
    """Return the language of a text: Hindi, Hinglish or English.

    Two or more words in Devanagari make a text Hindi. Two or more Hindi words in Latin letters make it Hinglish.
    Any other text is English.
    """
    tokens = normalise(text).split()
    if sum(bool(_DEVANAGARI.match(token)) for token in tokens) >= MIN_HINDI_WORDS:
        return Language.HINDI
    hindi_in_latin = sum(token in hinglish_lexicon for token in tokens)
    return Language.HINGLISH if hindi_in_latin >= MIN_HINDI_WORDS else Language.ENGLISH


@dataclass(frozen=True)
class ParsedQuestion:
    """A parsed question. ``unknown`` contains the words that are neither part of a concept nor common."""

    text: str
    language: Language
    normal: str
    policies: tuple[Policy, ...]
    concepts: frozenset[str]
    topics: tuple[str, ...]
    unknown: tuple[str, ...]

    @cached_property
    def asks_yes_or_no(self) -> bool:
        """Return whether "yes" or "no" could answer the last sentence of the question."""
        sentences = [normalise(part) for part in re.split(r"[?!।;]\s*|\.\s", self.text)]
        last = next((part for part in reversed(sentences) if part), "")
        opening = re.sub(r"^(?:so|and|but|hi|hello|ok|okay|please|aur|और)\s+", "", last)
        return bool(_ASKING_YES_NO.search(opening)) and not _ASKING_WHAT.search(opening)


@dataclass(frozen=True)
class _Spans:
    names: frozenset[str]
    left_over: tuple[str, ...]


class QuestionReader:
    """A parser that uses the vocabulary and the names of the policies to turn a text into a `ParsedQuestion`."""

    def __init__(self, book: PolicyBook, vocabulary: Vocabulary) -> None:
        self._policies = tuple((policy, _compile_phrases(policy.aliases)) for policy in book.policies)
        self._concepts = {name: _compile_phrases(phrases) for name, phrases in vocabulary.concepts.items()}
        self._topics = {name: _compile_phrases(topic.phrases) for name, topic in vocabulary.topics.items()}
        self._hinglish = frozenset(vocabulary.hinglish_lexicon)
        policy_texts = " ".join(fact.text for policy in book.policies for fact in policy.facts)
        self._plain = frozenset(vocabulary.plain_lexicon).union(normalise(policy_texts).split())

    def read(self, text: str) -> ParsedQuestion:
        """Parse one message, without the earlier conversation."""
        normal = normalise(text)
        policies = tuple(policy for policy, pattern in self._policies if pattern.search(normal))
        sentences = [self._remove_policy_names(normalise(part)) for part in _SENTENCE.split(text)]
        without_names = " ".join(sentences)
        topics = tuple(name for name, pattern in self._topics.items() if pattern.search(without_names))
        spans_by_sentence = [self._find_concepts_and_other_words(sentence) for sentence in sentences]
        telling = [spans for spans in spans_by_sentence if spans.names] or spans_by_sentence
        unknown = dict.fromkeys(
            token
            for spans in telling
            for token in spans.left_over
            if not token.isdigit() and token not in self._plain and token.removesuffix("s") not in self._plain
        )
        concepts = frozenset(name for spans in spans_by_sentence for name in spans.names)
        language = detect_language(text, self._hinglish)
        return ParsedQuestion(text, language, normal, policies, concepts, topics, tuple(unknown))

    def _remove_policy_names(self, sentence: str) -> str:
        for _, pattern in self._policies:
            sentence = pattern.sub(" ", sentence)
        return sentence

    def _find_concepts_and_other_words(self, sentence: str) -> _Spans:
        """Find the concepts of a sentence, and its other words.

        A concept inside a longer concept is ignored ("ambulance" in "air ambulance").
        """
        matches = [
            (name, *match.span())
            for name, pattern in self._concepts.items()
            for match in pattern.finditer(sentence)
        ]
        names = {
            name for name, start, end in matches if not any(_is_inside(start, end, s, e) for _, s, e in matches)
        }
        covered = {i for _, start, end in matches for i in range(start, end)}
        rest = "".join(" " if i in covered else character for i, character in enumerate(sentence))
        return _Spans(frozenset(names), tuple(rest.split()))


def _is_inside(start: int, end: int, outer_start: int, outer_end: int) -> bool:
    return outer_start <= start and end <= outer_end and end - start < outer_end - outer_start


def _compile_phrases(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted((normalise(phrase) for phrase in phrases), key=len, reverse=True)
    alternatives = "|".join(re.escape(phrase) for phrase in longest_first if phrase)
    return re.compile(rf"(?<![a-z0-9\u0900-\u097f])(?:{alternatives})(?:e?s)?(?![a-z0-9\u0900-\u097f])")
