"""`lookout review` shows one answer at a time. The judge's verdict appears only after the person has decided.

Each label is stored at once, and a session can be resumed.
"""

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

from deployments.cli.exit_codes import ExitCode
from deployments.cli.reviews.answers import review_command
from monitors.errors import ConfigError
from monitors.records.operator_actions import CaseDraft
from monitors.records.reviews import AnswerVerdict
from tests import fork_server
from tests.flows.chat import Chat, watched
from tests.in_process import run_in_process
from tests.stable_text import replace_volatile
from tests.warehouse.queries.test_reviews import judged
from tests.warehouse.sample_rows import NOON, exchange, run_report, suite
from tests.warehouse.temporary_stores import store_in
from warehouse.journal.rows import AssessmentRow, ResultRow, RunRow

ROOT = Path(__file__).parents[3]
PERSONAL = "Mail asha.rao@example.com: two years.\x1b[2J"
SINCE_NOON = (datetime.now(UTC) - NOON).days + 2
JUDGES_WORD = "the judge says so"


@pytest.fixture
def folder(tmp_path):
    """Return a folder with six judged answers. The judge passed all except case-0.

    One answer contains personal data and a terminal command.
    """
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
    """Return a function that runs the command in this process and returns its output.

    Keys are read as from a pipe.
    """
    monkeypatch.setenv("COLUMNS", "200")

    def run(folder: Path, *, keys: str = "", **options) -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        chosen = {"days": SINCE_NOON} | options
        code = review_command(config=folder / "lookout.toml", data_folder=folder, **chosen)
        assert code is ExitCode.PASS
        return capsys.readouterr().out

    return run


def labels(folder: Path):
    store = store_in(folder)
    store.load_pending(1)
    return store.query("select case_id, answer, done_by, failure_kind, note from labels order by case_id").rows


def test_answers_are_shown_one_by_one_and_the_session_is_resumed(folder, review, snapshot):
    """Answers are shown one by one, and the next session shows the remaining ones.

    The keys are those for right, wrong with kind and note, unsure, skip and quit.
    """
    first = review(folder, share=1, by="asha", keys="x\ny\nn\n1\nno such clause\nu\ns\nq\n")
    assert first == snapshot
    assert len(labels(folder)) == 3
    second = review(folder, share=1, keys="y\ny\ny\n")
    assert "1 of 3" in second
    stored = labels(folder)
    assert len(stored) == 6
    assert {row[2] for row in stored} == {"asha"}
    assert sorted(row[1] for row in stored) == ["right"] * 4 + ["unsure", "wrong"]
    (wrong,) = [row for row in stored if row[1] == AnswerVerdict.WRONG]
    assert wrong[3:] == ("wrong_fact", "no such clause")


def test_the_judges_word_is_shown_only_after_the_persons(folder, review):
    before = review(folder, share=1, by="asha", keys="")
    assert "question" in before
    assert JUDGES_WORD not in before
    assert labels(folder) == ()
    after = review(folder, share=1, by="asha", keys="u\nq\n")
    assert after.index("question") < after.index(JUDGES_WORD)


def test_a_second_reviewer_reads_who_answered_before(folder, review):
    """A second reviewer sees that another person has already reviewed the answer. Both verdicts are stored."""
    first = review(folder, share=1, by="asha", keys="y\nq\n")
    assert "Already answered" not in first
    second = review(folder, share=1, by="ben", keys="u\nq\n")
    assert "Already reviewed by asha. Your verdict is the second one." in second
    assert [row[1:3] for row in labels(folder)] == [("right", "asha"), ("unsure", "ben")]


def test_texts_are_redacted_and_inert_unless_raw_is_asked_for(folder, review):
    shown = review(folder, share=1, by="asha", keys="s\n" * 6)
    assert "asha.rao@example.com" not in shown
    assert "[e-mail]" in shown
    assert "\x1b[2J" not in shown
    assert "[U+001B]" in shown
    raw = review(folder, share=1, by="asha", raw=True, keys="s\n" * 6)
    assert "asha.rao@example.com" in raw
    assert "\x1b[2J" not in raw


def test_disagreements_become_drafts_redacted_and_once(folder, review):
    """Labels that contradict the judge become redacted drafts, each once.

    All six answers are labelled wrong. Five of these labels contradict the judge. The label of case-0 does not.
    """
    review(folder, share=1, by="asha", keys="n\nx\n\n" * 6)
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


def test_an_answer_that_two_runs_brought_is_reviewed_once(folder, review):
    """An answer that occurs in two runs is reviewed once.

    In the second run, all answers except one are the same.
    """
    store = store_in(folder, seed=2)
    texts = ["Another answer." if n == 3 else PERSONAL if n == 1 else f"Answer {n}." for n in range(6)]
    results = [
        ResultRow(row=exchange(case_id=f"case-{n}", text=text, run_id="run-2")) for n, text in enumerate(texts)
    ]
    grades = [AssessmentRow(row=judged(f"case-{n}", run_id="run-2")) for n in range(6)]
    store.journal.append([*results, *grades, RunRow(row=run_report(run_id="run-2"))], run_id="run-2")
    store.load_pending(1)
    assert len(review(folder, share=1, by="asha", as_json=True).splitlines()) == 7
    review(folder, share=1, by="asha", keys="y\n" * 7)
    assert len(labels(folder)) == 7
    assert review(folder, share=1, by="asha", as_json=True) == ""


def test_a_rate_needs_five_reviews(folder, review):
    """A rate is shown only after at least five reviews.

    Otherwise, one false fail among four right answers would already give a rate of 25 %.
    """
    review(folder, share=1, by="asha", keys="y\n" * 4)
    assert json.loads(review(folder, figures=True, as_json=True).splitlines()[1])["false_fail_rate"] is None
    review(folder, share=1, keys="y\n")
    assert json.loads(review(folder, figures=True, as_json=True).splitlines()[1])["false_fail_rate"] is not None


def test_figures_are_weighted_and_say_when_they_are_few(folder, review, snapshot):
    review(folder, share=1, by="asha", keys="y\n" * 6)
    assert review(folder, figures=True) == snapshot
    rule, found = [json.loads(line) for line in review(folder, figures=True, as_json=True).splitlines()]
    assert (rule["grader"], rule["reviewed"], rule["false_fails"]["errors"]) == ("quantities", 6, 0)
    assert found["both_graded"] == 6
    assert found["false_pass_rate"] is None
    assert found["false_fail_rate"]["value"] == pytest.approx(1 / 6)


def test_five_percent_are_sampled_by_default(folder, review):
    """By default, 5 % of the answers are sampled.

    Of the six answers, one passed answer and the only failed answer are sampled.
    """
    assert len(review(folder, by="asha", as_json=True).splitlines()) == 2


def test_without_a_name_nothing_is_stored(folder, review):
    with pytest.raises(ConfigError, match="--as"):
        review(folder, share=1)
    assert labels(folder) == ()


def test_answers_judged_long_ago_are_not_reviewed(folder, review):
    assert review(folder, share=1, by="asha", days=1, as_json=True) == ""


def test_without_graded_answers_it_says_so(tmp_path, review, snapshot):
    store_in(tmp_path).load_pending(1)
    assert review(tmp_path, by="asha") == snapshot(name="review")
    assert review(tmp_path, figures=True) == snapshot(name="figures")


def test_without_a_warehouse_it_says_what_makes_one(tmp_path, review, snapshot):
    with pytest.raises(ConfigError) as refusal:
        review(tmp_path)
    assert replace_volatile(str(refusal.value), tmp_path) == snapshot


def test_at_a_terminal_one_key_is_enough(folder):
    """On a terminal, one key is enough for a review.

    In a pseudo-terminal, the command reads the reviewer's name as a line, and then single keys without Enter.
    """
    driver, terminal = pty.openpty()
    process = fork_server.start(
        *("review", "--data-folder", str(folder), "--share", "1", "--days", str(SINCE_NOON)),
        cwd=folder,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | fork_server.WARM,
    )
    try:
        os.write(driver, b"asha\n")
        shown = b""
        while b"[q]uit" not in shown:
            more = os.read(process.stdout.fileno(), 4096)
            assert more, process.stderr.read()
            shown += more
        os.write(driver, b"y")
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
    assert "reviewed 1 answer" in rest
    assert len(labels(folder)) == 1


LET_THROUGH = "The waiting period is 24 months for plan five. [Source: Gold, clause 4.2]"
"""An answer that matches the gold.

The reviewer still labels it wrong, because the plan in question has changed.
"""
TURNED_DOWN = "The waiting period is a quarter of eight years. [Source: Gold, clause 4.2]"
WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"


@pytest.fixture(scope="module")
def without_judge(tmp_path_factory, lookout):
    """Return the folder of a suite that was verified without a judge.

    Six of 16 answers are wrong. The rules pass one wrong answer and fail one right answer.
    """
    folder = tmp_path_factory.mktemp("rules")
    with Chat() as chat:
        watched(folder, chat, cases=16)
        questions = [f"What is the waiting period of plan {number}?" for number in range(16)]
        chat.by_question = dict.fromkeys(questions[:5], WRONG)
        chat.by_question |= {questions[5]: LET_THROUGH, questions[6]: TURNED_DOWN}
        done = lookout("verify", "demo", cwd=folder)
    assert done.returncode == ExitCode.FAIL, done.stdout + done.stderr
    return folder


@pytest.mark.whole_only
@pytest.mark.prefect
def test_people_see_what_rules_passed_and_each_rule_gets_its_error_rates(without_judge, snapshot):
    """Without a judge, people review the verdicts of rules, and each rule's errors are counted."""

    def run(*options, given="", columns="160"):
        environment = fork_server.bare(COLUMNS=columns)
        return run_in_process("review", *options, cwd=without_judge, env=environment, given=given).stdout

    listed = run("--json", "--share", "1", "--as", "asha").splitlines()
    answers = [json.loads(line)["answer"] for line in listed]
    assert len(answers) == 16
    typed = ["n\n1\n\n" if answer in {WRONG, LET_THROUGH} else "y\n" for answer in answers]
    keys = "".join(typed)
    shown = run("--share", "1", "--as", "asha", given=keys, columns="80")
    assert "reviewed 16 answers" in shown
    assert max(map(len, shown.splitlines())) <= 80
    first = shown[: shown.index("2 of 16")]
    assert "factual" not in first[: first.index("[y] ")], "no verdict before the person's"
    assert "factual" in first[first.index("[y] ") :]

    figures, records = run("--figures", columns="80"), run("--figures", "--json").splitlines()
    rules = {record["grader"]: record for record in map(json.loads, records)}
    factual, language = rules["factual"], rules["language"]
    assert (factual["false_passes"]["errors"], factual["false_fails"]["errors"]) == (1, 1)
    assert (language["false_passes"]["reviewed"], language["false_fails"]["errors"]) == (0, 0), (
        "a wrong fact is no wrong language"
    )
    assert figures == snapshot
    assert max(map(len, figures.splitlines())) <= 80
    drafts = (without_judge / "data" / "drafts" / "review.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(drafts) == 2, "the wrong one that passed, and the right one that failed"


@pytest.mark.whole_only
@pytest.mark.prefect
def test_the_share_is_a_setting_of_its_own_table(without_judge):
    """The share of sampled answers is set by ``review.share``. The error for the former key names both keys.

    By default, one of 10 passes and one of 6 failures are sampled.
    """

    def listed(*options):
        arguments = ("review", "--json", "--as", "ravi", *options)
        return run_in_process(*arguments, cwd=without_judge, env=fork_server.bare())

    assert len(listed().stdout.splitlines()) == 2
    config = (without_judge / "lookout.toml").read_text(encoding="utf-8")
    (without_judge / "half.toml").write_text(f"{config}\n[review]\nshare = 0.5\n", encoding="utf-8")
    assert len(listed("--config", "half.toml").stdout.splitlines()) == 8
    (without_judge / "old.toml").write_text(f"{config}\n[judge]\nspot_check_share = 0.5\n", encoding="utf-8")
    old = listed("--config", "old.toml")
    assert old.returncode == ExitCode.USAGE
    assert "old.toml: judge.spot_check_share" in old.stderr
    assert "review.share" in old.stderr
