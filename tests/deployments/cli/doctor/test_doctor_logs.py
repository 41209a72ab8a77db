"""The doctor checks whether the sources besides the page can be read, and gives advice if not."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from deployments.cli.doctor.services import DoctorContext, Health, check_hallucination_logs, check_traffic_settings
from monitors.config.file import load_config

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
FIRST_SUITE = Path(__file__).parents[4] / "deployments" / "cli" / "init" / "first_suite.jsonl"


@pytest.fixture
def around(tmp_path):
    (tmp_path / "s.jsonl").write_bytes(FIRST_SUITE.read_bytes())

    def make(text: str) -> DoctorContext:
        file = tmp_path / "lookout.toml"
        file.write_text(f'[targets.bot]\nurl = "http://127.0.0.1:9"\nsuite = "s.jsonl"\n{text}', encoding="utf-8")
        return DoctorContext(config_path=file, config=load_config(file), environment={}, now=NOW)

    return make


def test_a_log_that_is_there_is_shown_with_its_size(around, tmp_path):
    (tmp_path / "h.jsonl").write_text("{}\n" * 1_000, encoding="utf-8")
    (tmp_path / "h.jsonl.1").touch()
    (check,) = check_hallucination_logs(around('[targets.bot.hallucination_log]\nat = "h.jsonl"'))
    assert (check.health, check.name) == (Health.GOOD, "log of bot")
    assert "3,000 bytes, and 1 rotated" in check.found


@pytest.mark.parametrize(("may", "health"), [("false", Health.DOUBTFUL), ("true", Health.GOOD)])
def test_a_log_that_is_not_there_is_doubtful_unless_its_first_entry_makes_it(around, may, health):
    (check,) = check_hallucination_logs(
        around(f'[targets.bot.hallucination_log]\nat = "h.jsonl"\nmay_be_missing = {may}')
    )
    assert check.health is health
    assert ("may_be_missing" in check.to_do) is (may == "false")


def test_a_log_that_nobody_serves_is_broken(around):
    (check,) = check_hallucination_logs(
        around('[targets.bot.hallucination_log]\nat = "http://127.0.0.1:9/h.jsonl"')
    )
    assert check.health is Health.BROKEN
    assert "127.0.0.1" in check.found


def test_a_source_that_lacks_its_secret_is_broken_and_names_the_variable(around):
    source = (
        '[targets.bot.traffic.sources.export]\nkind = "http"\nurl = "https://x.example"\ntoken_env = "EXPORT_KEY"'
    )
    (check,) = check_traffic_settings(around(source))
    assert check.health is Health.BROKEN
    assert "EXPORT_KEY" in check.found


def test_a_source_that_has_all_it_needs_is_named(around):
    (check,) = check_traffic_settings(
        around('[targets.bot.traffic.sources.turns]\nkind = "file"\nat = "turns.jsonl"')
    )
    assert check.health is Health.GOOD
    assert "lookout nightly bot --plan" in check.found


def test_a_night_whose_suite_is_not_there_is_broken_and_names_it(around, tmp_path):
    """If a target's suite file does not exist, the check is an error that names the file.

    The target is not treated as one without a suite. A nightly run needs the suite: its golds grade replies in live
    traffic to questions of the suite.
    """
    (tmp_path / "s.jsonl").unlink()
    (check,) = check_traffic_settings(
        around('[targets.bot.traffic.sources.turns]\nkind = "file"\nat = "turns.jsonl"')
    )
    assert check.health is Health.BROKEN
    assert "s.jsonl" in check.found
