"""`lookout review`: one answer at a time, the judge's word hidden until told, every label durable, taken up again."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deployments.exit_codes import ExitCode
from deployments.review_command import review_command
from monitors.errors import ConfigError
from monitors.records.people import CaseDraft
from monitors.records.reviews import AnswerVerdict
from tests.warehouse.places import store_in
from tests.warehouse.sample_rows import NOON, exchange, run_report, suite
from tests.warehouse.test_reviews import judged
from warehouse.rows import AssessmentRow, ResultRow, RunRow

ROOT = Path(__file__).parents[2]
PERSONAL = "Mail asha.rao@example.com: two years.\x1b[2J"
SINCE_NOON = (datetime.now(UTC) - NOON).days + 1
JUDGES_WORD = "the judge says so"


@pytest.fixture
def folder(tmp_path):
    """Six judged answers: the judge passed all but case-0; one holds personal data and a terminal command."""
    store = store_in(tmp_path)
    store.journal.append_suite(suite(6))
    results = [
        ResultRow(row=exchange(case_id=f"case-{n}", text=PERSONAL if n == 1 else f"Answer {n}.")) for n in range(6)
    ]
    grades = [AssessmentRow(row=judged(f"case-{n}", passed=n > 0)) for n in range(6)]
    store.journal.append([*results, *grades, RunRow(row=run_report())], run_id="run-1")
    store.load_pending(1)
    return tmp_path


@pytest.fixture
def review(monkeypatch, capsys):
    """Run the command in this process, with keys as from a pipe; all that it printed."""
    monkeypatch.setenv("COLUMNS", "200")

    def run(folder: Path, *, keys: str = "", **options) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        chosen = (
            dict.fromkeys(("target", "by", "share"))
            | dict.fromkeys(("figures", "raw", "as_json"), False)
            | {"days": SINCE_NOON}
        )
        code = review_command(folder / "lookout.toml", data_folder=folder, **(chosen | options))
        assert code is ExitCode.PASS
        return capsys.readouterr().out

    return run


def labels(folder: Path):
    store = store_in(folder)
    store.load_pending(1)
    return store.query("select case_id, answer, done_by, failure_kind, note from labels order by case_id").rows


def test_answers_are_told_one_by_one_and_the_session_is_taken_up_again(folder, review):
    """Right, wrong with kind and note, unsure, skip, quit; the next session asks what is left."""
    first = review(folder, share=1, by="asha", keys="x\nr\nw\n1\nno such clause\nu\ns\nq\n")
    assert "1 of 6" in first
    assert "3 told, 3 left for asha" in first
    assert len(labels(folder)) == 3
    second = review(folder, share=1, keys="r\nr\nr\n")
    assert "1 of 3" in second
    assert "3 told, 0 left for asha" in second
    told = labels(folder)
    assert len(told) == 6
    assert {row[2] for row in told} == {"asha"}
    assert sorted(row[1] for row in told) == ["right"] * 4 + ["unsure", "wrong"]
    (wrong,) = [row for row in told if row[1] == AnswerVerdict.WRONG]
    assert wrong[3:] == ("wrong_fact", "no such clause")


def test_the_judges_word_is_shown_only_after_the_persons(folder, review):
    before = review(folder, share=1, by="asha", keys="")
    assert "question" in before
    assert JUDGES_WORD not in before
    assert "0 told, 6 left" in before
    after = review(folder, share=1, by="asha", keys="u\nq\n")
    assert after.index("question") < after.index(JUDGES_WORD)


def test_texts_are_redacted_and_inert_unless_somebody_wants_them_raw(folder, review):
    shown = review(folder, share=1, by="asha", keys="s\n" * 6)
    assert "asha.rao@example.com" not in shown
    assert "[e-mail]" in shown
    assert "\x1b[2J" not in shown
    assert "[U+001B]" in shown
    raw = review(folder, share=1, by="asha", raw=True, keys="s\n" * 6)
    assert "asha.rao@example.com" in raw
    assert "\x1b[2J" not in raw


def test_disagreements_become_drafts_redacted_and_once(folder, review):
    """All are said to be wrong: five contradict the judge, case-0 does not."""
    review(folder, share=1, by="asha", keys="w\nx\n\n" * 6)
    lines = (folder / "drafts" / "review.jsonl").read_text(encoding="utf-8").splitlines()
    drafts = [CaseDraft.model_validate_json(line) for line in lines]
    assert sorted(draft.source_id for draft in drafts) == [f"case-{n}" for n in range(1, 6)]
    text = "\n".join(lines)
    assert "asha.rao@example.com" not in text
    assert all(draft.bad_reply and draft.gold == "Two years." for draft in drafts)


def test_the_list_for_scripts_has_no_verdict_of_the_judge(folder, review):
    lines = review(folder, share=1, by="asha", as_json=True).splitlines()
    listed = [json.loads(line) for line in lines]
    assert len(listed) == 6
    assert {"run_id", "case_id", "turns", "gold", "answer", "inclusion_probability"} <= set(listed[0])
    text = "\n".join(lines)
    assert JUDGES_WORD not in text
    assert "judge" not in text
    assert "asha.rao@example.com" not in text


def test_figures_are_weighted_and_say_when_they_are_few(folder, review):
    review(folder, share=1, by="asha", keys="r\n" * 6)
    shown = review(folder, figures=True)
    assert "people and judge say the same of 5 of 6 answers; fewer than 30" in shown
    assert "fails right answers: 16.7 %" in shown
    (found,) = [json.loads(line) for line in review(folder, figures=True, as_json=True).splitlines()]
    assert found["both_told"] == 6
    assert found["false_pass_rate"] is None
    assert found["false_fail_rate"]["value"] == pytest.approx(1 / 6)


def test_five_percent_are_drawn_unless_somebody_wants_more(folder, review):
    """Of six answers one of each kind: one that the judge passed, and the one that it failed."""
    assert len(review(folder, by="asha", as_json=True).splitlines()) == 2


def test_without_a_name_nothing_is_kept(folder, review):
    with pytest.raises(ConfigError, match="--by"):
        review(folder, share=1)
    assert labels(folder) == ()


def test_what_was_judged_long_ago_is_not_asked_about(folder, review):
    assert "nothing to review" in review(folder, share=1, by="asha", days=1)


def test_without_judged_answers_it_says_so(tmp_path, review):
    store_in(tmp_path).load_pending(1)
    assert "nothing to review" in review(tmp_path, by="asha")
    assert "No judge" in review(tmp_path, figures=True)


def test_without_a_warehouse_it_says_what_makes_one(tmp_path, review):
    with pytest.raises(ConfigError, match="no warehouse here yet"):
        review(tmp_path)


def test_at_a_terminal_one_key_is_enough(folder):
    """A real pseudo-terminal: the name by line, then single keys without Enter."""
    driver, terminal = pty.openpty()
    command = [
        sys.executable,
        "-m",
        "deployments.cli",
        "review",
        "--data-folder",
        str(folder),
        "--share",
        "1",
        "--days",
        str(SINCE_NOON),
    ]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "200"},
    )
    try:
        os.write(driver, b"asha\n")
        shown = b""
        while b"[q]uit" not in shown:
            more = os.read(process.stdout.fileno(), 4096)
            assert more, process.stderr.read()
            shown += more
        os.write(driver, b"r")
        while shown.count(b"[q]uit") < 2:
            more = os.read(process.stdout.fileno(), 4096)
            assert more, process.stderr.read()
            shown += more
        os.write(driver, b"q")
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(driver)
        os.close(terminal)
        process.wait(30)
    assert b"1 told, 5 left for asha" in rest
    assert len(labels(folder)) == 1
