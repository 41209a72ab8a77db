"""Test that a run determines whether it has a judge before it asks any question."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from flows.runtime.judge import NOT_CONFIGURED, build_judge_plan
from monitors.errors import ConfigError
from monitors.judge.settings import JudgeSettings
from tests.builders import TARGET

TARGET_GPT = TARGET.model_copy(update={"model_family": "gpt"})
KEYS = {"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b"}
QWEN = {"provider": "openai", "model": "qwen3-32b", "base_url": "http://127.0.0.1:9/v1"}
PRICE = {"model": "qwen3*", "input": 1, "output": 2, "as_of": "2026-11-22", "source": "a test"}


def settings(*models: dict, **more) -> JudgeSettings:
    return JudgeSettings.model_validate({"models": models or [{}], **more})


def test_a_judge_with_a_key_is_on():
    plan = build_judge_plan(settings(), TARGET_GPT, KEYS)
    assert plan.why_off == ""
    assert plan.models == ("claude-sonnet-5-5",)


def test_without_a_table_or_a_key_it_is_off_and_says_why():
    assert build_judge_plan(None, TARGET_GPT, KEYS).why_off == NOT_CONFIGURED
    assert build_judge_plan(settings(), TARGET_GPT, {}).why_off == "ANTHROPIC_API_KEY is not set"
    assert (
        build_judge_plan(settings(), TARGET_GPT, {"ANTHROPIC_API_KEY": ""}).why_off
        == "ANTHROPIC_API_KEY is not set"
    )


def test_all_keys_that_are_missing_are_named():
    three = settings({}, QWEN, {"key_variable": "SECOND_KEY"}, prices=[PRICE])
    plan = build_judge_plan(three, TARGET_GPT, {"ANTHROPIC_API_KEY": "a"})
    assert [name in plan.why_off for name in ("OPENAI_API_KEY", "SECOND_KEY", "ANTHROPIC_API_KEY")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("family", "error"), [("claude", "to the same model family"), (None, "is unknown, so the judge may belong")]
)
@pytest.mark.parametrize("keys", [KEYS, {}], ids=["with keys", "without"])
def test_the_family_is_looked_at_even_without_a_key(family, error, keys):
    with pytest.raises(ConfigError, match=error):
        build_judge_plan(settings(), TARGET.model_copy(update={"model_family": family}), keys)


def test_every_judge_must_be_of_another_family():
    models = ({}, QWEN, {"provider": "openai", "model": "gpt-5.1"})
    with pytest.raises(ConfigError, match=r"gpt-5\.1"):
        build_judge_plan(settings(*models, prices=[PRICE]), TARGET_GPT, KEYS)


def test_only_a_budget_in_money_needs_a_price():
    plan = build_judge_plan(settings(QWEN), TARGET_GPT, KEYS)
    assert (plan.settings.unpriced_models, plan.settings.limit_usd) == (("qwen3-32b",), None)
    assert settings({}).limit_usd == 5
    with pytest.raises(ValidationError, match=r"the price of qwen3-32b is unknown; .*\[\[judge\.prices\]\]"):
        settings(QWEN, budget_usd=5)


def test_two_judges_are_refused():
    with pytest.raises(ValidationError, match="two judges"):
        settings({}, QWEN)


def test_no_plan_holds_a_key():
    assert (
        "sk-" not in build_judge_plan(settings(), TARGET_GPT, {"ANTHROPIC_API_KEY": "sk-secret"}).model_dump_json()
    )
