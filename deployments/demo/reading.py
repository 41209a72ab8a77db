"""What does a question talk about? Its language, policies, concepts, and the words nobody knows."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property

from deployments.demo.library import Policy, PolicyBook, Vocabulary
from monitors.records.base import Language

_TOKEN = re.compile(r"[a-z0-9]+|[\u0900-\u0963\u0966-\u097f]+")
_DEVANAGARI = re.compile(r"[\u0900-\u097f]")
_HINGLISH = frozenset(
    "hai hain kya kitna kitni kitne kab kaun kaise mein ka ki ke ko se hoga hogi milta milega milegi chahiye karna "
    "karne karo kar mera meri mere mujhe aur nahi nahin agar toh baad pehle bimari umar saal mahine din ghar par pe "
    "batao bataiye bata liye wala wali hota hoti sakta sakti sakte dijiye do apna apni lagta lagti lagega".split()
)
_ASKING_YES_NO = re.compile(
    r"^(?:is|are|does|do|can|will|am|would|could|has|have|did|isn|doesn|kya|क्या)\b"
    r"|(?:\bhai kya|\bkya$|\bright$|\bcorrect$|है क्या$|क्या$)|\b(?:whether|if it|is it|are they|tell me if)\b"
)
_ASKING_WHAT = re.compile(
    r"(?:\b(?:what|how|when|which|who|where|kitna|kitni|kitne|kab|kaun|kis|kya hai|kya hoga)\b"
    r"|कितन|कब|कौन|किस|क्या है|क्या होगी|क्या होगा)"
)


def normalise(text: str) -> str:
    """Lower-case tokens joined by single spaces, compatibility forms folded."""
    folded = unicodedata.normalize("NFKC", text).lower().replace("\u200d", "").replace("\u200c", "")
    return " ".join(_TOKEN.findall(folded))


def language_of(text: str) -> Language:
    """Hindi when a third of the letters are Devanagari, Hinglish when two Hindi words stand in Latin letters."""
    letters = [character for character in text if character.isalpha()]
    if letters and len(_DEVANAGARI.findall(text)) * 3 >= len(letters):
        return Language.HINDI
    tokens = normalise(text).split()
    if sum(token in _HINGLISH for token in tokens) >= 2:  # noqa: PLR2004 - one such word may be English ("do", "par", "main")
        return Language.HINGLISH
    return Language.ENGLISH


@dataclass(frozen=True)
class Question:
    """A question as the bot understood it. ``unknown`` are the words that neither a concept nor plain speech explains."""

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
        sentences = [normalise(part) for part in re.split(r"[.?!।;]\s*", self.text)]
        last = next((part for part in reversed(sentences) if part), "")
        opening = re.sub(r"^(?:so|and|but|hi|hello|ok|okay|please|aur|और)\s+", "", last)
        return bool(_ASKING_YES_NO.search(opening)) and not _ASKING_WHAT.search(opening)


class Reader:
    """Turns text into a `Question` by the vocabulary and the policies' names."""

    def __init__(self, book: PolicyBook, vocabulary: Vocabulary) -> None:
        self._policies = tuple((policy, _pattern(policy.aliases)) for policy in book.policies)
        self._concepts = {name: _pattern(phrases) for name, phrases in vocabulary.concepts.items()}
        self._topics = {name: _pattern(topic.phrases) for name, topic in vocabulary.topics.items()}
        self._plain = frozenset(vocabulary.plain_words)

    def read(self, text: str) -> Question:
        """Understand one message on its own, without the conversation before it."""
        normal = normalise(text)
        rest = normal
        policies = [policy for policy, pattern in self._policies if pattern.search(normal)]
        for _, pattern in self._policies:
            rest = pattern.sub(" ", rest)
        spoken = rest
        concepts = {name for name, pattern in self._concepts.items() if pattern.search(spoken)}
        for name in concepts:
            rest = self._concepts[name].sub(" ", rest)
        topics = tuple(name for name, pattern in self._topics.items() if pattern.search(spoken))
        unknown = tuple(dict.fromkeys(token for token in rest.split() if self._says_something(token)))
        return Question(text, language_of(text), normal, tuple(policies), frozenset(concepts), topics, unknown)

    def _says_something(self, token: str) -> bool:
        return not token.isdigit() and token not in self._plain and token.removesuffix("s") not in self._plain


def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted((normalise(phrase) for phrase in phrases), key=len, reverse=True)
    alternatives = "|".join(re.escape(phrase) for phrase in longest_first if phrase)
    return re.compile(rf"(?<![a-z0-9\u0900-\u097f])(?:{alternatives})(?:e?s)?(?![a-z0-9\u0900-\u097f])")
