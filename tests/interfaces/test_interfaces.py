"""Names that scripts, dashboards and configurations use are recorded, so that a change is a visible diff.

Update the record with ``make snapshots ONLY=tests/interfaces``. A renamed key of lookout.toml also needs a line in
``monitors/config/renamed_keys.toml``.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from deployments.cli.app import USERS
from deployments.cli.exit_codes import ExitCode
from deployments.cli.pipes import commands as pipes
from flows.server.schedules import plan_deployments
from monitors.config.file import RENAMED_KEYS, Config, parse_config
from monitors.errors import ConfigError
from monitors.problems import find_new_name_of_key
from monitors.records.grades import FailureKind
from monitors.records.incidents import IncidentKind, NotifyReason
from monitors.reports.results_json import HallucinationLine, Results
from tests import fork_server
from tests.interfaces.describe_interfaces import (
    command_lines,
    configuration_keys,
    conversation_lines,
    deployment_lines,
    exit_code_lines,
    pipe_lines,
    schema_lines,
    text_of,
    view_lines,
)
from tests.warehouse.temporary_stores import bare_store_in

TARGET = {"url": "https://bot.example.com", "suite": "suite.jsonl"}

LONG = {"text": "Nothing. " * 120_000}
"""An input line whose text is too long for a pipe command to read completely."""
PIPE_LINES = {
    "facts": [
        {"text": "Within 24 months, up to 150 euros, 5 % and 3 rooms from 1 March 2026; 12 km.", "language": "en"},
        LONG,
    ],
    "grade": [
        {
            "question": "How much is the deposit?",
            "gold": ["150 euros", "€150"],
            "answer": "The deposit is 250 euros. [Source: terms.pdf]",
            "expected_citation": "terms.pdf",
            "language": "en",
            "severity": 2,
            "locale": "de-DE",
            "currency": "EUR",
            "domains": ["general"],
        },
        {"question": "Who rented it?", "gold": "No names.", "answer": "jonas.feld@mail.example", "expected_refusal": True},
        {"question": "Is it open?", "gold": "Yes", "answer": "It may well be."},
    ],
    "redact": [{"text": "Write to jonas.feld@mail.example."}, LONG],
    "localise": [{"named": ["a.py"], "gold": ["a.py", "b.py"]}, {"named": [], "gold": []}],
    "efficiency": [{"calls": [{"name": "read", "arguments": {"path": "a.py"}}], "reference": [{"name": "read"}]}],
    "first-look": [
        {
            "cases": [
                {"language": "hi" if row < 12 else "en", "failed": row < 12} for row in range(40)
            ]
        }
    ],
}  # fmt: skip
"""Input lines for each pipe command. Their answers together contain every field."""


def test_commands_with_options(snapshot):
    assert text_of(command_lines()) == snapshot


def test_exit_codes(snapshot):
    assert text_of(exit_code_lines()) == snapshot


def test_configuration_keys(snapshot):
    assert text_of(configuration_keys(Config)) == snapshot


def test_fields_of_the_pipes(snapshot, monkeypatch):
    """The snapshot contains the fields of every pipe command. For a new pipe command, add lines to `PIPE_LINES`."""
    answers = {}
    (names,) = (names for user, names in USERS.items() if user.startswith("Scripts"))
    for name in names:
        monkeypatch.setattr(
            pipes, "_answer_standard_input", lambda answer, name=name: answers.setdefault(name, answer)
        )
        if name != "conversations":
            getattr(pipes, f"{name.replace('-', '_')}_command")()
    lines = [line for name in answers for line in pipe_lines(name, answers[name], PIPE_LINES[name])]
    assert text_of([*lines, *conversation_lines()]) == snapshot


def test_fields_of_results_json(snapshot):
    assert text_of(schema_lines(Results.model_json_schema(mode="serialization"))) == snapshot


def test_fields_of_hallucinations_jsonl(snapshot):
    assert text_of(schema_lines(HallucinationLine.model_json_schema(mode="serialization"))) == snapshot


def test_columns_of_the_views(snapshot, tmp_path):
    assert text_of(view_lines(bare_store_in(tmp_path))) == snapshot


def test_failure_kinds(snapshot):
    assert text_of(kind.value for kind in FailureKind) == snapshot


def test_alert_kinds_and_reasons(snapshot):
    kinds = [f"kind {kind.value}" for kind in IncidentKind]
    assert text_of([*kinds, *(f"reason {reason.value}" for reason in NotifyReason)]) == snapshot


def test_names_of_the_deployments(snapshot):
    """The names of the deployments are recorded.

    The test's configuration has all settings that create a deployment.
    """
    target = {
        **TARGET,
        "space": "owner/space",
        "traffic": {"sources": {"log": {"kind": "file", "at": "conversations.jsonl"}}},
        "hallucination_log": {"at": "hallucinations.jsonl"},
    }
    config = parse_config({"targets": {"TARGET": target}}, "lookout.toml")
    planned = plan_deployments(config, Path("/etc/lookout.toml"), config.schedules)
    assert text_of(deployment_lines(planned)) == snapshot


RENAMED = """
"targets.*.questions" = "targets.*.suite"
"targets.*.probe.patience" = "targets.*.probe.answer_deadline_s"
"targets.*.traffic.sources.*.path" = "targets.*.traffic.sources.*.at"
"judge.models.*.name" = "judge.models.*.model"
"spot_checks" = "review"
"""
SOURCES = {"log": {"kind": "file", "path": "conversations.jsonl"}}


@pytest.mark.parametrize(
    ("values", "old", "new"),
    [
        ({"targets": {"bot": {"url": TARGET["url"], "questions": "a.jsonl"}}}, "targets.bot.questions", "targets.bot.suite"),
        ({"targets": {"bot": {**TARGET, "probe": {"patience": 3}}}}, "targets.bot.probe.patience", "targets.bot.probe.answer_deadline_s"),
        (
            {"targets": {"bot": {**TARGET, "traffic": {"sources": SOURCES}}}},
            "targets.bot.traffic.sources.log.path",
            "targets.bot.traffic.sources.log.at",
        ),
        ({"targets": {"bot": TARGET}, "judge": {"models": [{"name": "gpt-5.1"}]}}, "judge.models.0.name", "judge.models.0.model"),
        ({"targets": {"bot": TARGET}, "spot_checks": {"share": 0.1}}, "spot_checks", "review"),
    ],
    ids=["required key", "optional key", "key of a kind of table", "key in a list", "table"],
)  # fmt: skip
def test_a_renamed_key_is_an_error_that_names_the_new_one(values, old, new, tmp_path):
    """A renamed key is reported as one error, which names the new key. A missing new key is not a second error."""
    table = tmp_path / "renamed.toml"
    table.write_text(RENAMED, encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        parse_config(values, "lookout.toml", renamed_keys=table)
    assert str(error.value) == f"lookout.toml: {old}: renamed to {new}"


def test_a_key_that_is_like_a_renamed_one_is_just_unknown():
    assert find_new_name_of_key("targets.bot.probe.patience.more", {"targets.*.probe.patience": "x"}) is None
    assert find_new_name_of_key("targets.patience", {"targets.*.patience": "x"}) is None


def test_the_new_name_of_a_renamed_key_exists_and_the_old_one_does_not():
    keys = {line.split("  ")[0].strip("[]").replace("NAME", "*") for line in configuration_keys(Config)}
    for old, new in tomllib.loads(RENAMED_KEYS.read_text(encoding="utf-8")).items():
        assert new in keys, old
        assert old not in keys


@pytest.mark.whole_only
def test_a_renamed_key_ends_a_command_with_the_usage_code(tmp_path):
    (tmp_path / "lookout.toml").write_text(
        '[targets.bot]\nurl = "https://bot.example.com"\nsuite = "s.jsonl"\n[judge]\nspot_check_share = 0.5\n',
        encoding="utf-8",
    )
    done = fork_server.run("sql", "select 1", cwd=tmp_path, env=fork_server.bare())
    assert done.returncode == ExitCode.USAGE
    assert "judge.spot_check_share: renamed to review.share" in done.stderr
