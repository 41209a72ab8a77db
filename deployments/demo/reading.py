"""Reads a question: its language, policies, concepts, and the words that nobody knows."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from deployments.demo.policies import Policy, PolicyBook, Vocabulary
from monitors.records.base import Language

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
HINDI_WORDS_NEEDED = 2
"""One may be a name, or a word that English has too ("main", "par")."""


def normalise(text: str) -> str:
    """Lower-case tokens joined by single spaces, compatibility forms folded."""
    folded = unicodedata.normalize("NFKC", text).lower().replace("\u200d", "").replace("\u200c", "")
    return " ".join(_TOKEN.findall(folded))


def language_of(text: str, hinglish_words: Collection[str]) -> Language:
    """Hindi with two words in Devanagari, Hinglish with two Hindi words in Latin letters, otherwise English."""
    tokens = normalise(text).split()
    if sum(bool(_DEVANAGARI.match(token)) for token in tokens) >= HINDI_WORDS_NEEDED:
        return Language.HINDI
    hindi_in_latin = sum(token in hinglish_words for token in tokens)
    return Language.HINGLISH if hindi_in_latin >= HINDI_WORDS_NEEDED else Language.ENGLISH


@dataclass(frozen=True)
class Question:
    """A question as the bot understood it; neither a concept nor plain speech explains the ``unknown`` words."""

    text: str
    language: Language
    normal: str
    policies: tuple[Policy, ...]
    concepts: frozenset[str]
    topics: tuple[str, ...]
    unknown: tuple[str, ...]

    @cached_property
    def asks_yes_or_no(self) -> bool:
        """Whether "yes" or "no" would be an answer to its last sentence."""
        sentences = [normalise(part) for part in re.split(r"[?!।;]\s*|\.\s", self.text)]
        last = next((part for part in reversed(sentences) if part), "")
        opening = re.sub(r"^(?:so|and|but|hi|hello|ok|okay|please|aur|और)\s+", "", last)
        return bool(_ASKING_YES_NO.search(opening)) and not _ASKING_WHAT.search(opening)


@dataclass(frozen=True)
class _Spans:
    names: frozenset[str]
    left_over: tuple[str, ...]


class Reader:
    """Turns text into a `Question` by the vocabulary and the policies' names."""

    def __init__(self, book: PolicyBook, vocabulary: Vocabulary) -> None:
        self._policies = tuple((policy, _pattern(policy.aliases)) for policy in book.policies)
        self._concepts = {name: _pattern(phrases) for name, phrases in vocabulary.concepts.items()}
        self._topics = {name: _pattern(topic.phrases) for name, topic in vocabulary.topics.items()}
        self._hinglish = frozenset(vocabulary.hinglish_words)
        said = " ".join(fact.text for policy in book.policies for fact in policy.facts)
        self._plain = frozenset(vocabulary.plain_words).union(normalise(said).split())

    def read(self, text: str) -> Question:
        """Understand one message on its own, without the conversation before it."""
        normal = normalise(text)
        policies = tuple(policy for policy, pattern in self._policies if pattern.search(normal))
        sentences = [self._without_names(normalise(part)) for part in _SENTENCE.split(text)]
        spoken = " ".join(sentences)
        topics = tuple(name for name, pattern in self._topics.items() if pattern.search(spoken))
        found = [self._concepts_in(sentence) for sentence in sentences]
        telling = [spans for spans in found if spans.names] or found
        unknown = dict.fromkeys(
            token for spans in telling for token in spans.left_over if self._says_something(token)
        )
        concepts = frozenset(name for spans in found for name in spans.names)
        language = language_of(text, self._hinglish)
        return Question(text, language, normal, policies, concepts, topics, tuple(unknown))

    def _without_names(self, sentence: str) -> str:
        for _, pattern in self._policies:
            sentence = pattern.sub(" ", sentence)
        return sentence

    def _concepts_in(self, sentence: str) -> _Spans:
        """The concepts of a sentence; one inside a longer one ("ambulance" in "air ambulance") does not count."""
        matches = [
            (name, *match.span())
            for name, pattern in self._concepts.items()
            for match in pattern.finditer(sentence)
        ]
        names = {name for name, start, end in matches if not any(_inside(start, end, s, e) for _, s, e in matches)}
        covered = {i for _, start, end in matches for i in range(start, end)}
        rest = "".join(" " if i in covered else character for i, character in enumerate(sentence))
        return _Spans(frozenset(names), tuple(rest.split()))

    def _says_something(self, token: str) -> bool:
        return not token.isdigit() and token not in self._plain and token.removesuffix("s") not in self._plain


def _inside(start: int, end: int, outer_start: int, outer_end: int) -> bool:
    return outer_start <= start and end <= outer_end and end - start < outer_end - outer_start


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted((normalise(phrase) for phrase in phrases), key=len, reverse=True)
    alternatives = "|".join(re.escape(phrase) for phrase in longest_first if phrase)
    return re.compile(rf"(?<![a-z0-9\u0900-\u097f])(?:{alternatives})(?:e?s)?(?![a-z0-9\u0900-\u097f])")
