"""``lookout gold`` as a user runs it: build, check, freeze, change, compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deployments.cli.gold.build import build_command
from deployments.cli.gold.check import check_command
from deployments.cli.gold.freeze import diff_command, freeze_command
from deployments.cli.gold.import_array import import_command
from deployments.cli.gold.mutants import load_target_grader_settings, mutants_command
from monitors.errors import ConfigError, GoldSetError
from monitors.goldset.checks import read_suite_with_bad_lines
from monitors.goldset.load import load_suite
from tests.monitors.goldset.fact_examples import SHEET, fact, row, sheet, written, written_rows
from tests.monitors.goldset.gold_cases import PLAIN
from tests.stable_text import replace_volatile


def build(facts: Path, out: Path, *languages: str, **options) -> int:
    return int(build_command(facts=facts, out=out, language=list(languages), **options))


def freeze(suite: Path, **options) -> int:
    return int(freeze_command(suite, **options))


def suite_file(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(PLAIN | row) + "\n" for row in rows))
    return path


def test_facts_become_a_suite_that_loads(tmp_path, capsys, snapshot):
    """Facts become a suite that loads.

    The output counts the cases, and gives the reasons why some facts did not become a case.
    """
    sheets = tmp_path / "facts"
    sheets.mkdir()
    written(sheets, SHEET, sheet(id="tara-plus", name="Tara Plus", facts=[fact(quote="as in the schedule")]))
    out = tmp_path / "suite.jsonl"
    assert build(sheets, out, "en", "hi") == 0
    said = capsys.readouterr().out
    suite = load_suite(out)
    assert suite.sha256 in said
    assert len(suite.cases) == 8
    assert replace_volatile(said, tmp_path) == snapshot(name="made")
    first = out.read_bytes()
    assert build(sheets, out, "en", "hi", why=True) == 0
    assert replace_volatile(capsys.readouterr().out, tmp_path) == snapshot(name="why")
    assert out.read_bytes() == first


def test_rows_are_read_too_and_json_holds_the_same(tmp_path, capsys):
    """Rows of a JSON Lines file are accepted as facts, and the JSON output counts the cases."""
    rows = written_rows(
        tmp_path / "rows.jsonl", row("grace_period", value=30), row("co_payment_pct", value=20, quote="20%")
    )
    build(rows, tmp_path / "suite.jsonl", as_json=True)
    made = json.loads(capsys.readouterr().out)
    assert (made["cases"], made["added"], made["not_asked"]) == (1, 1, [])


def test_facts_that_make_no_case_are_an_error_with_the_reason(tmp_path):
    """If no fact becomes a case, this is an error, because an empty suite would never alert."""
    rows = written_rows(tmp_path / "rows.jsonl", row("co_payment_pct", value=20))
    with pytest.raises(GoldSetError, match="no quote"):
        build(rows, tmp_path / "suite.jsonl")
    with pytest.raises(GoldSetError, match="Accepted: en, hi, hinglish"):
        build(rows, tmp_path / "suite.jsonl", "tamil")


def test_freezing_numbers_a_version_and_says_what_changed_since(tmp_path, capsys, snapshot):
    """The second freeze of a suite gets the next version number, and reports what changed since the first.

    ``--verify`` distinguishes a changed suite from an unchanged one.
    """
    path = suite_file(tmp_path / "core.jsonl", {"id": "a"}, {"id": "b", "question": "And for hernia?"})
    assert freeze(path) == 0
    assert replace_volatile(capsys.readouterr().out, tmp_path) == snapshot(name="first")
    suite_file(path, {"id": "a", "severity": 3}, {"id": "b", "question": "And for hernia?"})
    assert freeze(path, verify=True) == 1
    assert freeze(path) == 0
    assert replace_volatile(capsys.readouterr().out, tmp_path) == snapshot(name="second")
    assert freeze(path, verify=True) == 0


def test_a_suite_with_faults_is_not_frozen_unless_unchecked(tmp_path, capsys):
    """A suite with faults is not frozen, because a frozen mistake is hard to correct.

    ``--unchecked`` freezes it.
    """
    path = suite_file(tmp_path / "core.jsonl", {"id": "a"}, {"id": "b", "gold": "36 months"})
    assert freeze(path) == 1
    assert "Contradictions (1)" in capsys.readouterr().out
    assert not (tmp_path / "frozen").exists()
    assert freeze(path, unchecked=True) == 0


def test_two_versions_are_compared_in_words(tmp_path, capsys, snapshot):
    """Two suites, or two manifests of frozen versions, are compared. The output describes the changes in words."""
    path = suite_file(tmp_path / "core.jsonl", {"id": "a"})
    freeze(path)
    suite_file(path, {"id": "a", "gold": "36 months"})
    capsys.readouterr()
    assert diff_command(str(tmp_path / "frozen" / "core-v1.json"), str(path), most=5) == 0
    assert replace_volatile(capsys.readouterr().out, tmp_path) == snapshot
    diff_command(str(path), str(path), most=5, as_json=True)
    assert json.loads(capsys.readouterr().out)["same"] == 1


def test_a_bare_no_is_for_a_person_to_look_at(tmp_path, capsys, snapshot):
    path = suite_file(tmp_path / "core.jsonl", {"id": "a", "question": "Are you open on Mondays?", "gold": "No."})
    check_command(path)
    assert replace_volatile(capsys.readouterr().out, tmp_path) == snapshot
    suite_file(path, {"id": "a", "question": "Are you open on Mondays?", "gold": "No, we are closed on Mondays"})
    check_command(path)
    assert "a bare no" not in capsys.readouterr().out


def test_mutants_are_a_table_and_what_is_missed_is_listed(tmp_path, capsys):
    """The mutants of a suite are shown as a table, and the undetected ones are listed.

    Only a judge can detect evasive answers. Undetected evasive answers are counted separately and do not change the
    exit code.
    """
    path = suite_file(tmp_path / "core.jsonl", {"id": "a", "severity": 3, "expected_citation": "Suraksha Gold"})
    assert mutants_command(path, missed=3) == 0
    assert "number_changed" in capsys.readouterr().out
    long = "Whatever the treating doctor finds necessary and writes down in the papers that the hospital sends"
    suite_file(path, {"id": "a", "severity": 3, "gold": long})
    assert mutants_command(path, missed=3, as_json=True) == 0
    counted = json.loads(capsys.readouterr().out)
    assert counted["catches_enough"]
    assert {one["operator"] for one in counted["missed"]} >= {"evaded"}


ARRAY = [
    {"id": "a", "question": "Is it covered?", "expected_answer": "Yes", "question_type": "cover"},
    {"id": "a", "question": "How long?", "expected_answer": "24 months", "question_type": "waiting"},
]


def test_an_array_of_another_project_is_taken_over_with_severities_that_are_given(tmp_path, capsys):
    """A JSON array of another project is imported with severities that the user gives.

    The user gives a severity for some question types, and one for all other types. A repeated id gets a suffix and
    is reported.
    """
    array, out = tmp_path / "gold_qa.json", tmp_path / "core.jsonl"
    array.write_text(json.dumps(ARRAY))
    with pytest.raises(GoldSetError, match="'cover'"):
        import_command(array, out=out, severity=["waiting=3"])
    assert import_command(array, out=out, severity=["waiting=3", "1"]) == 0
    assert "a.2" in capsys.readouterr().out
    assert [case.id for case in load_suite(out).cases] == ["a", "a.2"]
    assert [int(case.severity) for case in load_suite(out).cases] == [1, 3]
    with pytest.raises(GoldSetError, match="already exists"):
        import_command(array, out=out, severity=["1"])
    with pytest.raises(GoldSetError, match="TYPE=1, 2 or 3"):
        import_command(array, out=tmp_path / "new.jsonl", severity=["severe"])


def test_an_array_is_no_suite_and_the_message_says_what_makes_one(tmp_path):
    """A JSON array instead of a suite is one error, which names the command that imports the array."""
    array = tmp_path / "gold_qa.json"
    array.write_text(json.dumps(ARRAY))
    with pytest.raises(GoldSetError, match="lookout gold import"):
        read_suite_with_bad_lines(array)


def test_a_targets_own_settings_are_used(tmp_path):
    """The graders use the settings of the suite's target, for example that no citation is required.

    If a configuration has several targets, the user must select one.
    """
    config = tmp_path / "lookout.toml"
    config.write_text(
        '[targets.one]\nurl = "http://127.0.0.1:1/"\nsuite = "s.jsonl"\n[targets.one.graders]\ncitation_required = false\n'
    )
    assert not load_target_grader_settings(config, None)[0].citation_required
    config.write_text(config.read_text() + '[targets.two]\nurl = "http://127.0.0.1:2/"\nsuite = "s.jsonl"\n')
    with pytest.raises(ConfigError, match="one, two"):
        load_target_grader_settings(config, None)
    with pytest.raises(ConfigError, match="--config"):
        load_target_grader_settings(None, "one")
