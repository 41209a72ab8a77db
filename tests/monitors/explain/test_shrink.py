"""Tests of the search for the shortest failing question.

The words of the trigger remain in their order, and few other words remain. The search never exceeds its budget.
"""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.explain.shrink import MAX_UNANSWERED, ShrinkEnd, join_words_into_turns, shrink_question, split_words
from tests.monitors.explain.shrunk_questions import FATHER, PORTING, ROWS
from tests.tiers import scale_examples


def found(turns, ask, budget=40):
    """Shorten the failing conversation ``turns``. Return the result, and all conversations that were asked."""
    asked = []

    async def answer(candidate):
        asked.append(candidate)
        return ask(candidate)

    return asyncio.run(shrink_question(turns, answer, budget=budget)), asked


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_a_planted_trigger_remains_and_little_else(row):
    """After at most 40 probes, the question has the trigger, and at most 1.2 times as many words as the trigger."""
    assert row.is_met(row.shrunk())


words = st.sampled_from(["gold", "silver", "April,", "what", "is", "covered?", "रकम", "₹40,000", "and;", "no."])
texts = st.lists(st.lists(words, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=3)


@settings(max_examples=scale_examples(60), deadline=None)
@given(texts, st.data())
def test_a_shrunk_question_fails_and_is_minimal(turns, data):
    """A shortened question still fails, and no word can be removed from it.

    If the failure needs several words, exactly these words remain, in their order. Only failing questions are asked
    more than once.
    """
    all_words = list(split_words(turns))
    needed = data.draw(st.sets(st.integers(0, len(all_words) - 1), min_size=1, max_size=4))
    wanted = [all_words[at].text for at in sorted(needed)]

    def fails(candidate):
        left = iter(word.text for word in split_words(candidate))
        return all(word in left for word in wanted)

    result, asked = found(turns, fails, budget=300)
    assert result.end is ShrinkEnd.MINIMAL
    assert [word.text for word in split_words(result.turns)] == wanted
    repeated = {one for one in asked if asked.count(one) > 1}
    assert all(fails(one) for one in repeated)


@settings(max_examples=scale_examples(30), deadline=None)
@given(st.integers(3, 45), st.integers(0, 99))
def test_the_budget_is_never_exceeded_and_what_is_left_was_seen_to_fail(budget, seed):
    """The budget is never exceeded. The result is a question that failed at least once when it was asked."""
    row = ROWS[seed % len(ROWS)]
    result, asked = found(row.turns, row.trigger, budget)
    assert len(asked) == result.probes <= budget
    assert row.trigger(result.turns)
    assert 0 < result.failed <= result.asked == asked.count(result.turns)


def test_a_case_that_passes_is_said_to_pass():
    """If the case passes, nothing is removed, few questions are asked, and the result says that it passes."""
    result, asked = found((PORTING,), lambda _turns: False)
    assert (result.end, result.turns, result.first_failed) == (ShrinkEnd.PASSES, (PORTING,), 0)
    assert len(asked) == 3


def test_an_application_that_stops_answering_ends_the_search():
    """After three questions in a row without an answer, the search stops and returns its result so far."""
    result, asked = found((PORTING,), lambda _turns: None)
    assert (result.end, len(asked)) == (ShrinkEnd.SILENT, MAX_UNANSWERED)
    answers = iter([True] * 5)
    result, asked = found((PORTING,), lambda _turns: next(answers, None))
    assert result.end is ShrinkEnd.SILENT
    assert len(asked) == 5 + MAX_UNANSWERED


def test_each_level_is_left_out_whole_before_the_next():
    """Turns are removed before sentences, and sentences before words.

    Therefore the first shorter conversation consists of unchanged turns. A word is never split.
    """
    result, asked = found(FATHER, lambda turns: "67" in " ".join(turns))
    assert result.turns == ("67",)
    first = next(one for one in asked if one != FATHER)
    assert set(first) < set(FATHER)
    all_words = {word.text for word in split_words(FATHER)}
    assert all(word.text in all_words for one in asked for word in split_words(one))


@given(st.lists(st.text(min_size=1), min_size=1, max_size=3))
def test_a_conversation_is_its_words_and_what_stands_between(turns):
    """Joining the words of a conversation restores its turns, apart from white space and empty turns."""
    whole = tuple(turn.strip() for turn in turns if turn.strip())
    again = tuple(one for one in join_words_into_turns(split_words(turns)) if one)
    assert [one.split() for one in again] == [one.split() for one in whole]
