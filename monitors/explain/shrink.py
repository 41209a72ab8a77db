"""Find the smallest question that still fails, by removing turns, sentences, clauses and words.

The method is delta debugging (A. Zeller and R. Hildebrandt, Simplifying and Isolating Failure-Inducing Input, 2002)
over the parts of a question, large parts first (G. Misherghi and Z. Su, HDD: Hierarchical Delta Debugging, 2006):
turns, sentences, clauses, words. Only complete words are removed, and the remaining words keep their order. At each
level the end is cut first, then the beginning, both by bisection. The remaining text then begins and ends with a
needed part. The middle is cut last.

An application may fail intermittently. The failure rate of the case is estimated from the answers. A shorter
question is asked repeatedly until one of two hypotheses is ten times likelier than the other (A. Wald, Sequential
Tests of Statistical Hypotheses, 1945): either the question fails as often as the case, or it fails only by chance.
The shortest question of each level is asked again. If it does not fail, it is discarded, and from then on a
question needs one more failure to count as failing.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from typing import Final, NamedTuple

from monitors.records.base import Record

Turns = tuple[str, ...]
AskQuestion = Callable[[Turns], Awaitable[bool | None]]
"""A function that asks a question once and returns whether the question fails like the case.

The function returns ``None`` if the answer was not graded.
"""

CHANCE_FAILURE_RATE: Final = 0.05
"""The assumed failure rate of a question from which the cause of the failure was removed."""
DECISION_ODDS: Final = 10.0
CONFIRMING_FAILURES: Final = 3
"""The number of failures after which the smallest question counts as confirmed."""
MIN_ASKS: Final = 3
MAX_ASKS: Final = 5
"""Maximum number of times that a question is asked.

A question that is still undecided after that counts as passing.
"""
MAX_UNANSWERED: Final = 3
"""The search ends after this many questions in a row without a graded answer."""
_FAILED_BEFORE, _ASKED_BEFORE = 3.8, 4.0
"""The prior for the failure rate of the case has the weight of 4 answers, of which 3.8 failed (a rate of 95 %)."""

_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
"""A word, or one character in Chinese and Japanese, which have no spaces."""
_SENTENCE_END: Final = re.compile(r"[.?!।॥؟。？！…]+[\"'”’)\]]*$")
_CLAUSE_END: Final = re.compile(r"[,;:،、，；：–—-]+[\"'”’)\]]*$")


class ShrinkLevel(StrEnum):
    """The size of the parts that are removed, one part at a time: turn, sentence, clause or word."""

    TURN = "turn"
    SENTENCE = "sentence"
    CLAUSE = "clause"
    WORD = "word"


class _Word(NamedTuple):
    """A word with the space before it, and four positions: of the word, its turn, its sentence and its clause."""

    text: str
    gap: str
    places: tuple[int, int, int, int]


def split_words(turns: Sequence[str]) -> Iterator[_Word]:
    """Yield the words of a conversation in order, with their turn, sentence and clause."""
    sentence = clause = count = 0
    for turn, text in enumerate(turns):
        end = 0
        for match in _WORD.finditer(text):
            yield _Word(match[0], text[end : match.start()], (turn, sentence, clause, count))
            end, count = match.end(), count + 1
            ends_sentence = _SENTENCE_END.search(match[0]) is not None
            sentence += ends_sentence
            clause += ends_sentence or _CLAUSE_END.search(match[0]) is not None
        sentence, clause = sentence + 1, clause + 1


def join_words_into_turns(words: Iterable[_Word]) -> Turns:
    """Join words to a conversation. Turns without words are omitted."""
    by_turn = groupby(words, key=lambda word: word.places[0])
    return tuple("".join(word.gap + word.text for word in same).strip() for _, same in by_turn)


class ShrinkEnd(StrEnum):
    """The reason why the search ended."""

    MINIMAL = "smallest"
    """The question is minimal: each shorter question passes."""
    BUDGET = "budget"
    """The budget of probes was used up."""
    PASSES = "passes"
    """The whole case does not fail, or fails too rarely."""
    SILENT = "silent"
    """No answer could be graded."""


class ShrunkQuestion(Record):
    """The smallest failing question that was found, and how often it failed.

    ``probes`` is how many times questions were asked in total. The whole case failed ``first_failed`` of
    ``first_asked`` times. ``length`` is the number of words in the question, and ``length_before`` the number of
    words in the whole case.
    """

    turns: Turns
    end: ShrinkEnd
    failed: int
    asked: int
    first_failed: int
    first_asked: int
    probes: int
    length: int
    length_before: int


class _SearchEnded(Exception):
    """Raised to end the search, with the reason."""

    def __init__(self, end: ShrinkEnd) -> None:
        super().__init__(end.value)
        self.end = end


@dataclass
class _AnswerCount:
    failed: int = 0
    passed: int = 0

    @property
    def asked(self) -> int:
        return self.failed + self.passed


async def shrink_question(turns: Sequence[str], ask: AskQuestion, *, budget: int) -> ShrunkQuestion:
    """Return the smallest question that was found to fail like ``turns``. At most ``budget`` questions are asked.

    If no shorter question fails, or if the whole case passes, the result is the whole case.
    """
    search = _QuestionSearch(tuple(split_words(turns)), ask, budget)
    try:
        await search.run()
        end = ShrinkEnd.MINIMAL
    except _SearchEnded as stop:
        end = stop.end
    return search.build_result(end)


@dataclass
class _QuestionSearch:
    words: tuple[_Word, ...]
    ask: AskQuestion
    budget: int
    probes: int = 0
    unanswered: int = 0
    min_failures: int = 1
    """The number of failures after which a question counts as failing.

    This number grows by 1 each time that the shortest question of a level is not confirmed.
    """
    counts: dict[Turns, _AnswerCount] = field(default_factory=dict[Turns, _AnswerCount])
    best: tuple[_Word, ...] = ()
    confirmed: tuple[_Word, ...] = ()
    failing: set[Turns] = field(default_factory=set[Turns])
    """The whole case and the shortest question of each level. Each of them fails as often as the whole case."""

    async def run(self) -> None:
        self.best = self.confirmed = self.words
        self.failing.add(join_words_into_turns(self.words))
        await self._ask_whole_case_or_end_search()
        while True:
            previous = self.confirmed
            for level in range(len(ShrinkLevel)):
                await self._shrink_level(level)
            if self.confirmed == previous and await self._confirm_failures(CONFIRMING_FAILURES):
                return

    async def _ask_whole_case_or_end_search(self) -> None:
        """Ask the whole case several times, and more often if it passes.

        End the search if the case does not fail more often than it passes.
        """
        count = self._get_or_create_answer_count(self.words)
        while count.asked < MIN_ASKS or (count.passed and count.asked < MAX_ASKS):
            await self._ask_once(self.words)
            if count.passed >= MIN_ASKS and not count.failed:
                break
        if count.failed <= count.passed:  # such a failure rate cannot be distinguished from chance
            raise _SearchEnded(ShrinkEnd.PASSES)

    async def _shrink_level(self, level: int) -> None:
        """Remove the parts that are not needed at one level, and confirm that the remaining text fails."""
        self.best = self.confirmed
        parts = [tuple(same) for _, same in groupby(self.confirmed, key=lambda word: word.places[level])]
        parts = await self._cut_side(parts, at_end=True)
        parts = await self._cut_side(parts, at_end=False)
        await self._shrink_middle(parts[:1], parts[1:-1], parts[1:][-1:], is_needed=False)
        if await self._confirm_failures(self.min_failures + 1):
            self.confirmed = self.best
            self.failing.add(join_words_into_turns(self.confirmed))
        else:
            self.min_failures += 1
            self.best = self.confirmed

    async def _cut_side(self, parts: list[tuple[_Word, ...]], *, at_end: bool) -> list[tuple[_Word, ...]]:
        """Cut as many parts as possible from one side, and return the remaining parts, which still fail."""
        low, high = 1, len(parts)

        def select_parts(count: int) -> list[tuple[_Word, ...]]:
            return parts[:count] if at_end else parts[len(parts) - count :]

        while low < high:
            middle = (low + high) // 2
            if await self._ask_and_store_if_failing(select_parts(middle)):
                high = middle
            else:
                low = middle + 1
        return select_parts(high)

    async def _shrink_middle(
        self,
        before: list[tuple[_Word, ...]],
        middle: list[tuple[_Word, ...]],
        after: list[tuple[_Word, ...]],
        *,
        is_needed: bool,
    ) -> list[tuple[_Word, ...]]:
        """Return the parts of ``middle`` that are needed between ``before`` and ``after``.

        ``is_needed`` is true if at least one part of ``middle`` is known to be needed.
        """
        if not middle or (not is_needed and await self._ask_and_store_if_failing([*before, *after])):
            return []
        if len(middle) == 1:
            return middle
        half = len(middle) // 2
        first_half = await self._shrink_middle(before, middle[:half], [*middle[half:], *after], is_needed=False)
        second_half = await self._shrink_middle(
            [*before, *first_half], middle[half:], after, is_needed=not first_half
        )
        return [*first_half, *second_half]

    async def _ask_and_store_if_failing(self, parts: Sequence[tuple[_Word, ...]]) -> bool:
        words = tuple(word for part in parts for word in part)
        count = self._get_or_create_answer_count(words)
        while count.asked < MAX_ASKS:
            odds = self._compute_odds_of_real_failure(count)
            if odds >= DECISION_ODDS and count.failed >= self.min_failures:
                self.best = words
                return True
            if odds <= 1 / DECISION_ODDS:
                return False
            await self._ask_once(words)
        return False

    def _compute_odds_of_real_failure(self, count: _AnswerCount) -> float:
        """Return how much likelier it is that the question fails as often as the case than only by chance."""
        failing_counts = [self.counts[turns] for turns in self.failing]
        failed, asked = (
            sum(failing_count.failed for failing_count in failing_counts),
            sum(failing_count.asked for failing_count in failing_counts),
        )
        rate = (failed + _FAILED_BEFORE) / (asked + _ASKED_BEFORE)
        return (rate / CHANCE_FAILURE_RATE) ** count.failed * (
            (1 - rate) / (1 - CHANCE_FAILURE_RATE)
        ) ** count.passed

    async def _confirm_failures(self, failures: int) -> bool:
        """Ask the best question repeatedly.

        Return True if the question has failed ``failures`` times, and False if it has passed too often.
        """
        count = self._get_or_create_answer_count(self.best)
        while count.failed < failures:
            await self._ask_once(self.best)
            if count.passed > 1 and count.passed >= count.failed:
                return False
        return True

    def _get_or_create_answer_count(self, words: tuple[_Word, ...]) -> _AnswerCount:
        return self.counts.setdefault(join_words_into_turns(words), _AnswerCount())

    async def _ask_once(self, words: tuple[_Word, ...]) -> None:
        if self.probes >= self.budget:
            raise _SearchEnded(ShrinkEnd.BUDGET)
        self.probes += 1
        failed = await self.ask(join_words_into_turns(words))
        self.unanswered = self.unanswered + 1 if failed is None else 0
        if self.unanswered >= MAX_UNANSWERED:
            raise _SearchEnded(ShrinkEnd.SILENT)
        count = self._get_or_create_answer_count(words)
        count.failed += failed is True
        count.passed += failed is not True

    def build_result(self, end: ShrinkEnd) -> ShrunkQuestion:
        words = (
            self.best
            if self._get_or_create_answer_count(self.best).failed
            > self._get_or_create_answer_count(self.best).passed
            else self.confirmed
        )
        turns, case_count, count = (
            join_words_into_turns(words),
            self._get_or_create_answer_count(self.words),
            self._get_or_create_answer_count(words),
        )
        return ShrunkQuestion(
            turns=turns,
            end=end,
            failed=count.failed,
            asked=count.asked,
            first_failed=case_count.failed,
            first_asked=case_count.asked,
            probes=self.probes,
            length=len(words),
            length_before=len(self.words),
        )
