"""The answers that `lookout init` accepts. All accepted answers lead to files that work."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from deployments.cli.init.answers import (
    Answers,
    Prompter,
    parse_family_or_model,
    parse_slack_channel,
    parse_target,
    parse_target_environment,
)
from deployments.cli.init.files import FIRST_SUITE, format_init_files, write_init_files
from deployments.demo.configuration import find_free_port
from deployments.up.parts import raise_for_incomplete_installation
from flows.runtime.judge import build_judge_plan
from monitors.config.file import FILE_NAME, load_config, parse_config
from monitors.errors import ConfigError
from monitors.goldset.load import load_suite
from monitors.records.cases import Pipeline
from monitors.records.targets import Target

ADDRESSES = [
    ("https://chat.example.com/support?x=1", "chat-example-com", None),
    ("http://127.0.0.1:7860", "bot", None),
    ("http://[::1]:7860/", "bot", None),
    ("http://localhost:7860", "bot", None),
    ("https://owner-name.hf.space", "owner-name", None),
    ("https://www.example.com", "example-com", None),
    ("https://huggingface.co/spaces/acme/Support_Bot?logs=build", "support-bot", "acme/Support_Bot"),
    ("acme/Support_Bot", "support-bot", "acme/Support_Bot"),
]


@pytest.mark.parametrize(("answer", "name", "space"), ADDRESSES)
def test_a_page_or_a_space_gets_a_name(answer, name, space):
    target = parse_target(answer)
    assert (target.name, target.space) == (name, space)
    assert target.url == (None if space else answer)


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (parse_target, "chat.example.com/support"),
        (parse_target, "localhost:7860/x"),
        (parse_target, "support"),
        (parse_target, "http://"),
        (parse_target, "http://[1/"),
        (parse_target, "https://me:pass-word@example.com"),
        (parse_target, "https://example.com/\x7f"),
        (parse_target_environment, "prod"),
        (parse_family_or_model, "our own"),
        (parse_family_or_model, "sk-ant-123456"),
        (parse_slack_channel, "#two words"),
        (parse_slack_channel, "#" + "a" * 81),
        (parse_slack_channel, "https://hooks.slack.com/services/T0/B0/s3cr3t"),
        (parse_slack_channel, "xoxb-1-2-s3cr3t"),
    ],
    ids=[
        *(
            "no scheme",
            "no scheme and a port",
            "no address",
            "no host",
            "broken host",
            "a password",
            "control character",
        ),
        *("environment", "family", "a key as family", "words as channel", "long channel", "webhook", "token"),
    ],
)
def test_a_wrong_answer_is_refused_and_a_secret_in_it_is_not_repeated(check, answer, snapshot):
    with pytest.raises(ConfigError) as error:
        check(answer)
    assert str(error.value) == snapshot
    assert "s3cr3t" not in str(error.value)
    assert "pass-word" not in str(error.value)
    assert "123456" not in str(error.value)


@pytest.mark.parametrize(
    ("answer", "channel"),
    [
        ("#alerts", "#alerts"),
        ("alerts-2", "#alerts-2"),
        ("C0123456789", "C0123456789"),
        ("None", None),
        ("#चैट", "#चैट"),
    ],
)
def test_a_channel_is_a_name_an_id_or_none(answer, channel):
    assert parse_slack_channel(answer) == channel


FAMILIES = st.sampled_from([None, "llama", "claude-sonnet-4-5", "Anthropic", "gpt", "qwen2.5-72b"])
TARGETS = st.sampled_from([address for address, _, _ in ADDRESSES])


def switched_on(config: str) -> str:
    """Return the text of the configuration file with its commented-out TOML lines activated."""
    return re.sub(r"^# (?=\[|\w+ = )", "", config, flags=re.MULTILINE)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(target=TARGETS, family=FAMILIES, channel=st.sampled_from([None, "#alerts"]))
def test_whatever_is_answered_the_files_load_and_so_do_the_lines_that_are_off(tmp_path, target, family, channel):
    """Whatever the user answers, the files load, also with the ``#`` removed from their commented-out lines."""
    answered = parse_target(target).model_copy(update={"model_family": family})
    written = format_init_files(Answers(target=answered, channel=channel))
    for name, text in written.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    config = load_config(tmp_path / FILE_NAME)
    configured = config.require_target(answered.name)
    assert (configured.url, configured.space) == (answered.url, answered.space)
    assert (configured.model_family, config.alerts.slack_channel) == (family, channel)
    assert load_suite(configured.suite).cases
    build_judge_plan(config.judge, answered, {})

    whole = parse_config(tomllib.loads(switched_on(written[FILE_NAME])), FILE_NAME)
    assert whole.judge is not None
    assert {trigger.target for trigger in whole.deploys.triggers} == {answered.name}
    build_judge_plan(whole.judge, answered.model_copy(update={"model_family": family or "llama"}), {})


@pytest.mark.parametrize("family", [None, "llama", "claude"])
def test_lookout_up_finds_nothing_missing_in_what_was_written(tmp_path, family):
    """`lookout up` accepts the written files without any secret.

    Settings that need a secret are commented out.
    """
    answered = parse_target("acme/bot").model_copy(update={"model_family": family})
    write_init_files(tmp_path / FILE_NAME, Answers(target=answered, channel="#alerts"), force=False)
    config = load_config(tmp_path / FILE_NAME)
    raise_for_incomplete_installation(config, host="127.0.0.1", port=find_free_port("127.0.0.1", 0), environment={})


def test_the_first_suite_has_every_severity_and_says_that_it_is_to_be_replaced():
    suite = load_suite(FIRST_SUITE)
    assert {case.severity for case in suite.cases} == {1, 2, 3}
    assert {case.type for case in suite.cases if case.severity == 3} >= {
        "personal_data",
        "destructive_action",
        "financial_claim",
    }
    for case in suite.cases:
        assert case.id.startswith("example-")
        assert case.provenance.pipeline is Pipeline.MANUAL
        assert "replace it" in (case.provenance.document or "")


def test_the_text_about_webhooks_names_address_secret_and_events():
    text = format_init_files(Answers(target=Target(name="bot", space="acme/bot")))["webhooks.md"]
    for words in (
        "/deploys/huggingface",
        "/deploys/github",
        "LOOKOUT_HUGGINGFACE_WEBHOOK_SECRET",
        "LOOKOUT_GITHUB_WEBHOOK_SECRET",
        "deployment_status",
        "acme/bot",
    ):
        assert words in text


def asked(*lines: str, take_defaults: bool = False, **given: str) -> tuple[Answers, str]:
    """Return the answers that the prompts read from ``lines``, and the complete output."""
    said: list[str] = []
    flags = {f"--{flag.replace('_', '-')}": answer for flag, answer in given.items()}
    read = iter([*(f"{line}\n" for line in lines), "", "", "", ""])
    asker = Prompter(flags, take_defaults=take_defaults, say=said.append, line=lambda: next(read), is_typed=True)
    return asker.ask_all(), "".join(said)


def test_a_wrong_answer_is_asked_again_with_what_is_accepted():
    answers, said = asked("bot", "https://example.com", "", "PRODUCTION", "", "", "#x")
    assert answers.target.environment.value == "staging"  # the empty line; PRODUCTION is the next answer
    assert said.count("Accepted: ") == 2  # for "bot", and "PRODUCTION" as a model
    assert "is not a known family" in said
    assert answers.channel == "#x"


def test_values_on_the_command_line_are_not_asked():
    answers, said = asked(
        "llama", target="acme/bot", environment="production", domains="none", slack_channel="none"
    )
    assert said.count("   > ") == 1
    assert answers.target.model_family == "llama"


def test_with_yes_nothing_is_asked_and_the_target_is_needed():
    answers, said = asked(take_defaults=True, target="acme/bot")
    assert (said, answers.channel, answers.target.model_family) == ("", None, None)
    with pytest.raises(ConfigError, match="--yes needs --target"):
        asked(take_defaults=True)


def test_a_wrong_flag_is_an_error_before_anything_is_asked():
    with pytest.raises(ConfigError, match="--slack-channel: 'a b'"):
        asked(slack_channel="a b")


def test_when_answers_run_out_it_says_which_is_missing():
    with pytest.raises(ConfigError, match="--slack-channel"):
        asked("acme/bot", "staging", "llama", "general")
