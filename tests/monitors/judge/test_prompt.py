"""Test that the prompt contains judged text only between fences, and its own instructions only outside them."""

from __future__ import annotations

import pytest

from monitors.judge.prompt import (
    CRITERIA_TOKENS,
    Task,
    build_judge_prompt,
    build_subject_for_judge,
    load_instructions,
)
from tests.builders import exchange, gold_case
from tests.monitors.asking import GOLD, NONCE, RIGHT, ask
from tests.servers.anthropic_rules import CUSTOM_ID
from tests.servers.anthropic_tokens import MIN_PREFIX_TOKENS, Prompt
from tests.servers.anthropic_verdicts import read_prompt
from tests.tools.fences import unfenced


@pytest.mark.parametrize("task", list(Task))
def test_each_task_has_instructions_with_a_hash_of_their_own(task):
    others = {load_instructions(other).sha256 for other in Task if other is not task}
    assert len(load_instructions(task).text) > 2_000
    assert load_instructions(task).sha256 not in others
    assert load_instructions(task).sha256 == load_instructions(task).sha256


def test_only_a_report_asks_for_criteria_and_has_room_for_them():
    answer, report = ask().prompt, ask(report=True).prompt
    assert ["criteria" in prompt.reply_schema["properties"] for prompt in (answer, report)] == [False, True]
    assert report.max_tokens - answer.max_tokens == CRITERIA_TOKENS


def test_question_gold_and_answer_are_fenced_and_nothing_of_them_is_outside():
    asked = ask(RIGHT, turns=("Hello", "Is cataract covered?"))
    outside = unfenced(asked.prompt.material, NONCE)
    assert not any(text in outside for text in (RIGHT, GOLD, "Is cataract covered?", "Hello"))
    found = read_prompt(asked.prompt.material)
    assert found is not None
    assert (found.answer, found.golds, found.question) == (RIGHT, (GOLD,), "Hello\n\nIs cataract covered?")


def test_every_accepted_gold_is_shown():
    case = gold_case(alternatives=("two years", "do saal"))
    asked = build_judge_prompt(
        build_subject_for_judge(case, exchange(case).graded_text), prompt_id="x", nonce=NONCE
    )
    found = read_prompt(asked.prompt.material)
    assert found is not None
    assert found.golds == ("24 months", "two years", "do saal")


@pytest.mark.parametrize(
    ("refusal", "expectation"), [(True, "Expected: a refusal"), (False, "Expected: an answer")]
)
def test_the_expectation_stands_outside_the_fences(refusal, expectation):
    assert expectation in unfenced(ask(expects_refusal=refusal).prompt.material, NONCE)


def test_without_gold_the_answer_is_held_against_the_passages():
    asked = ask(expected=(), passages=("Covered after two years.", "Limits apply."))
    assert asked.prompt.instructions == load_instructions(Task.GROUNDED).text
    found = read_prompt(asked.prompt.material)
    assert found is not None
    assert found.documents == ("Covered after two years.", "Limits apply.")


def test_tricks_in_the_answer_are_named_and_not_shown():
    asked = ask("It is\u202e covered\u200b after two years.")
    outside = unfenced(asked.prompt.material, NONCE)
    assert "bidirectional, invisible" in outside
    assert "\u202e" not in asked.prompt.material


def test_the_instructions_are_long_enough_to_be_cached_by_the_default_model():
    """The instructions plus 300 tokens exceed the default model's minimum length for the prompt cache.

    The provider does not cache a shorter prefix and does not report this.
    """
    body = {
        "system": [
            {"type": "text", "text": load_instructions(Task.FACTUAL).text, "cache_control": {"type": "ephemeral"}}
        ],
        "messages": [],
    }
    found = Prompt.of(body).cacheable()
    assert found is not None
    assert found[1] + 300 > MIN_PREFIX_TOKENS["sonnet"]


def test_the_id_is_one_that_a_batch_takes():
    assert CUSTOM_ID.match(ask(prompt_id="k" + "0" * 40).prompt.id)
