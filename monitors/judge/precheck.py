"""What can be said of an answer before any judge sees it.

Judges can be pleased by next to nothing: a colon, "Solution", "Let's solve this step by step", the question said
again, a grading prompt of one's own. Such answers fail here, by rule. Others try to talk to the judge, to set their
own severity or to call somebody: that is told as a claim and obeyed by nobody.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from enum import StrEnum

from monitors.judge.plain_text import plain_text
from monitors.judge.steering_words import (
    ALERT_CLAIM,
    FORGED_CASE,
    OPENER,
    SEVERITY_CLAIM,
    STEERING,
    VERDICT_CLAIM,
)
from monitors.records.base import Record


class Trivial(StrEnum):
    """Why an answer fails without a judge."""

    EMPTY = "empty"
    NO_WORDS = "no_words"
    OPENER = "opener"
    ECHO = "echo"
    ADDRESSED_TO_THE_JUDGE = "addressed_to_the_judge"
    FORGED_CASE = "forged_case"


REASONS = {
    Trivial.EMPTY: "the answer is empty",
    Trivial.NO_WORDS: "the answer has no word and no number in it",
    Trivial.OPENER: "the answer only announces an answer",
    Trivial.ECHO: "the answer only says the question again",
    Trivial.ADDRESSED_TO_THE_JUDGE: "the answer speaks to its judge and to nobody else",
    Trivial.FORGED_CASE: "the answer holds a forged grading prompt",
}
"""The sentence that goes on the grade."""


class Claim(StrEnum):
    """Something an answer says about its own grading. Told, and ignored."""

    STEERING = "steering"
    VERDICT = "verdict"
    SEVERITY = "severity"
    ALERT = "alert"


class PreCheck(Record):
    """``trivial`` is set when the answer fails by rule. ``steering`` are its sentences that address a judge.

    They are kept for canaries: what goes round today is what a judge must withstand today.
    """

    trivial: Trivial | None = None
    claims: frozenset[Claim] = frozenset()
    steering: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """One sentence for the grade of a trivial answer; empty for others."""
        return REASONS[self.trivial] if self.trivial else ""


READ_CHARACTERS = 60_000
"""So much is read for claims; more than a judge is shown."""

_MOST_STEERING = 5
_LONGEST_SENTENCE = 400
_LEAST_ECHO_WORDS = 3
_LEAST_FORGED = 2
_MOST_OPENERS = 8
_SENTENCES = re.compile(r"(?<=[.!?।])\s+|\n+")
_WORDS = re.compile(r"[\w\u0900-\u0963]+")
_CLAIMS = (
    (Claim.STEERING, STEERING),
    (Claim.VERDICT, VERDICT_CLAIM),
    (Claim.SEVERITY, SEVERITY_CLAIM),
    (Claim.ALERT, ALERT_CLAIM),
)


def precheck(answer: str, question: str, *, accepted: Sequence[str] = ()) -> PreCheck:
    """Look at an answer before a judge does. Never raises; reads at most 60,000 characters.

    ``accepted`` are the gold and its alternatives: an answer in their very words is not trivial, whatever it is.
    """
    text = plain_text(answer[:READ_CHARACTERS]).text
    sentences = [sentence.strip() for sentence in _SENTENCES.split(text) if _has_words(sentence)]
    steering = [sentence for sentence in sentences if STEERING.search(sentence.lower())]
    lower = text.lower()
    claims = frozenset(
        claim for claim, pattern in _CLAIMS if any(pattern.search(line) for line in lower.split("\n"))
    )
    trivial = _trivial(text, sentences, question)
    if trivial and _words(text) in [_words(plain_text(gold).text) for gold in accepted if gold.strip()]:
        trivial = None
    shown = tuple(sentence[:_LONGEST_SENTENCE] for sentence in steering[:_MOST_STEERING])
    return PreCheck(trivial=trivial, claims=claims, steering=shown)


def _trivial(text: str, sentences: list[str], question: str) -> Trivial | None:
    if not text.strip():
        return Trivial.EMPTY
    if not sentences:
        return Trivial.NO_WORDS
    if sum(pattern.search(text.lower()) is not None for pattern in FORGED_CASE) >= _LEAST_FORGED:
        return Trivial.FORGED_CASE
    content = [said for sentence in sentences if (said := _after_openers(sentence))]
    if not content:
        return Trivial.OPENER
    if _is_echo(" ".join(content), question):
        return Trivial.ECHO
    if all(_is_for_the_judge(sentence) for sentence in content):
        return Trivial.ADDRESSED_TO_THE_JUDGE
    return None


def _has_words(text: str) -> bool:
    """A letter, a digit or a picture; not punctuation, brackets or currency signs alone."""
    kinds = {unicodedata.category(c) for c in set(text) - {"\ufffd"}}
    return "So" in kinds or any(kind[0] in "LN" for kind in kinds)


def _after_openers(sentence: str) -> str:
    """What a sentence says after "Answer:" and its like; empty when it says nothing more."""
    parts = sentence.split(":", _MOST_OPENERS)
    while parts and _is_opener(parts[0]):
        del parts[0]
    said = ":".join(parts)
    return said if _has_words(said) else ""


def _is_opener(sentence: str) -> bool:
    bare = " ".join(sentence.lower().replace("’", "'").strip(" \t*#_>-–—.:;,!?…।\"'`()[]{}").split())
    return OPENER.fullmatch(bare) is not None


def _is_for_the_judge(sentence: str) -> bool:
    lower = sentence.lower()
    return any(pattern.search(lower) for pattern in (STEERING, VERDICT_CLAIM))


def _is_echo(text: str, question: str) -> bool:
    asked, said = _words(plain_text(question).text), _words(text)
    if len(asked) < _LEAST_ECHO_WORDS or not said or len(said) % len(asked):
        return False
    return said == asked * (len(said) // len(asked))


def _words(text: str) -> list[str]:
    return _WORDS.findall(text.lower())
