"""The doctor's checks of the judge: its family, its key, and two known answers graded through the real SDK."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import pytest

from deployments.cli.doctor.services import DoctorContext, Health, check_judge
from monitors.config.file import parse_config
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.anthropic_verdicts import RuleJudge

MODEL = "claude-sonnet-5-5"


@pytest.fixture
def provider():
    with AnthropicServer() as server:
        yield server


def checked(provider=None, *, key=KEY, ask=True, families=("llama",), **settings):
    """Return the doctor's checks of judges, keyed by name."""
    names = [f"bot{number}" for number in range(len(families))]
    targets = {
        name: {"url": "http://x/", "suite": "suite.jsonl", **({"model_family": family} if family else {})}
        for name, family in zip(names, families, strict=True)
    }
    values = {"targets": targets}
    if provider is not None:
        models = [{"model": MODEL, "base_url": provider.url}]
        values["judge"] = {"models": models, "deadline_s": 20, "try_s": 10, "tries": 1} | settings
    config = parse_config(json.loads(json.dumps(values)), "lookout.toml")
    environment = {"ANTHROPIC_API_KEY": key} if key else {}
    around = DoctorContext(
        config_path=None, config=config, environment=environment, now=datetime.now(UTC), ask_judges=ask
    )
    return {check.name: check for check in check_judge(around)}


def test_a_judge_that_tells_right_from_wrong_is_good_and_its_price_is_shown(provider):
    check = checked(provider)[f"judge {MODEL}"]
    assert check.health is Health.GOOD, check
    price = re.search(r"\$(0\.\d{4})", check.found)
    assert price is not None, check.found
    assert 0 < float(price[1]) < 0.1
    assert len(provider.messages) == 2


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [({"passes_all": True}, "passed the wrong answer"), ({"fails_all": True}, "failed the right answer")],
)
def test_a_judge_that_misses_a_known_answer_is_broken(provider, verdicts, words):
    provider.judge.passes_all = verdicts.get("passes_all", False)
    provider.judge.fails_all = verdicts.get("fails_all", False)
    assert isinstance(provider.judge, RuleJudge)
    check = checked(provider)[f"judge {MODEL}"]
    assert (check.health, words in check.found) == (Health.BROKEN, True), check
    assert "another model" in check.to_do


@pytest.mark.parametrize("fault", ["401", "500", "html", "refusal"])
def test_a_judge_that_gives_no_verdict_is_broken_and_it_says_why(provider, fault):
    provider.always = fault
    check = checked(provider)[f"judge {MODEL}"]
    assert check.health is Health.BROKEN, check
    assert "judge's key, the name of the model" in check.to_do
    assert KEY not in check.found


def test_nothing_is_spent_where_it_is_not_wanted(provider):
    check = checked(provider, ask=False)["judge"]
    assert (check.health, check.found.partition(":")[0]) == (Health.GOOD, MODEL)
    assert provider.asked == []


def test_without_its_key_it_is_off_and_the_variable_is_named(provider):
    check = checked(provider, key=None)["judge"]
    assert (check.health, "ANTHROPIC_API_KEY is not set" in check.found) == (Health.DOUBTFUL, True)


def test_the_same_family_or_an_unknown_one_is_broken_for_that_target_alone(provider):
    found = checked(provider, ask=False, families=("claude", None, "llama"))
    assert {name: check.health for name, check in found.items()} == {
        "judge of bot0": Health.BROKEN,
        "judge of bot1": Health.BROKEN,
        "judge": Health.GOOD,
    }
    assert "model_family" in found["judge of bot1"].found


def test_without_a_judge_that_is_said():
    assert checked()["judge"].health is Health.GOOD
    assert "stay ungraded" in checked()["judge"].found
