"""The graders for a suite use the settings of its target."""

from __future__ import annotations

from deployments.cli.gold.draft import load_suite_grader_settings

TARGET = '[targets.{0}]\nurl = "http://127.0.0.1:9"\nsuite = "{0}.jsonl"\n[targets.{0}.graders]\naccount_patterns = ["{0}-\\\\d+"]\n'


def test_the_target_whose_suite_it_is_else_the_only_one_else_the_defaults(tmp_path):
    config = tmp_path / "lookout.toml"
    config.write_text(TARGET.format("one"), encoding="utf-8")
    assert load_suite_grader_settings(config, None)[0].account_patterns == ("one-\\d+",)
    assert load_suite_grader_settings(config, tmp_path / "other.jsonl")[0].account_patterns == ("one-\\d+",)
    config.write_text(TARGET.format("one") + TARGET.format("two"), encoding="utf-8")
    assert load_suite_grader_settings(config, tmp_path / "two.jsonl")[0].account_patterns == ("two-\\d+",)
    assert load_suite_grader_settings(config, tmp_path / "other.jsonl")[0].account_patterns == ()
    assert load_suite_grader_settings(tmp_path / "none.toml", None)[0].account_patterns == ()
