"""`lookout gold review` shows a case with its clause and reads one key.

An accepted case is added to the suite exactly once, even if the process is killed at any step.
"""

from __future__ import annotations

import io
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from deployments.cli.exit_codes import ExitCode
from deployments.cli.gold.review import review_command
from monitors.errors import ConfigError, GoldSetError
from monitors.goldset.drafts import append_new_drafts, read_drafts
from monitors.goldset.lines import format_case_line
from monitors.goldset.load import load_suite
from monitors.records.base import Language, Severity
from monitors.records.cases import DraftState, Pipeline, Provenance
from tests import fork_server
from tests.builders import gold_case
from tests.conftest import ROOT
from tests.deployments.gold_drafts import CLAUSE, draft_gold_case, gold_draft
from tests.deployments.gold_process import gold


@pytest.fixture
def drafts(tmp_path):
    """Write three drafts that have not been reviewed yet. Return the path of their file."""
    path = tmp_path / "drafts.jsonl"
    append_new_drafts(path, [gold_draft(number) for number in (1, 2, 3)])
    return path


@pytest.fixture
def review(monkeypatch, capsys, tmp_path):
    """Return a function that runs the command in this process and returns its output.

    Keys are read as from a pipe.
    """

    def run(drafts: Path, keys: str, *, by: str | None = "asha", columns: int = 160, **options) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stdin", io.StringIO(keys))
        monkeypatch.chdir(tmp_path)  # so that paths are short, and no line with a path is wrapped
        paths = {"suite": Path("suite.jsonl"), "config": Path("lookout.toml")}
        code = review_command(drafts.relative_to(tmp_path), by=by, **paths, **options)
        assert code is ExitCode.PASS
        return capsys.readouterr().out

    return run


def test_yes_joins_no_does_not_and_a_later_session_asks_what_is_left(tmp_path, drafts, review, snapshot):
    first = review(drafts, "y\nn\nsays nothing about the second eye\nq\n")
    assert first == snapshot
    one, two, three = read_drafts(drafts)
    assert (one.state, two.state, three.state) == (DraftState.ACCEPTED, DraftState.REJECTED, DraftState.DRAFTED)
    assert (one.reviewed_by, two.note) == ("asha", "says nothing about the second eye")
    (case,) = load_suite(tmp_path / "suite.jsonl").cases
    assert case.provenance.reviewed_by == "asha"
    assert case.provenance.reviewed_at == one.reviewed_at
    second = review(drafts, "s\n", by="bina")
    assert "1 of 1" in second
    assert "suite.jsonl: 0." in second
    assert "Left in drafts.jsonl: 1." in second


def test_the_clause_stands_beside_the_case_where_there_is_room_and_under_it_where_not(drafts, review):
    wide = review(drafts, "q\n").splitlines()
    assert any("question" in line and "Suraksha Gold, from" in line for line in wide)
    narrow = review(drafts, "q\n", columns=60).splitlines()
    assert all(len(line) <= 60 for line in narrow)
    question = next(at for at, line in enumerate(narrow) if line.startswith("question"))
    clause = next(at for at, line in enumerate(narrow) if "from character 100" in line)
    assert clause > question
    assert CLAUSE in " ".join(" ".join(narrow).split())


def test_a_person_changes_the_severity_and_the_words_before_the_yes(tmp_path, drafts, review):
    shown = review(drafts, "3\ne\nHow much for one eye's cataract under Suraksha Gold?\n\n\ny\nq\n")
    assert "3, set by asha" in shown
    (case,) = load_suite(tmp_path / "suite.jsonl").cases
    assert case.severity is Severity.CRITICAL
    assert case.question == "How much for one eye's cataract under Suraksha Gold?"
    assert case.gold == "₹60,000 per eye"


@pytest.mark.parametrize(
    "typed",
    [
        "\n₹80,000 per eye\n\n",
        "सुरक्षा गोल्ड में मोतियाबिंद पर कितना मिलता है?\n\n\n",
        "What may asha.rao@example.com claim for a cataract?\n\n\n",
    ],
    ids=["other amount", "other language", "personal data"],
)
def test_an_edit_that_the_checks_refuse_does_not_join(tmp_path, drafts, review, snapshot, typed):
    shown = review(drafts, f"e\n{typed}y\nq\n")
    assert shown == snapshot
    assert not (tmp_path / "suite.jsonl").exists()
    assert read_drafts(drafts)[0].state is DraftState.DRAFTED


def test_the_targets_own_numbers_are_personal_data(tmp_path, drafts, review):
    """The account numbers in a draft are recognised by the settings of the suite's target.

    Each target has account numbers of another format.
    """
    typed = "e\nWhat does SRK-204417 get for a cataract under Suraksha Gold?\n\n\ny\nq\n"
    target = '[targets.one]\nurl = "http://127.0.0.1:9"\nsuite = "suite.jsonl"\n'
    patterns = "graders = { account_patterns = ['SRK-\\d{6}'] }\n"
    (tmp_path / "lookout.toml").write_text(target + patterns, encoding="utf-8")
    assert "contains personal data" in review(drafts, typed)
    assert not (tmp_path / "suite.jsonl").exists()


def test_the_name_is_remembered_and_without_one_nothing_is_accepted(tmp_path, drafts, review):
    folder = tmp_path / "data"
    folder.mkdir()
    review(drafts, "y\nq\n", data_folder=folder)
    review(drafts, "y\nq\n", by=None, data_folder=folder)
    assert {case.provenance.reviewed_by for case in load_suite(tmp_path / "suite.jsonl").cases} == {"asha"}
    with pytest.raises(ConfigError, match="--as"):
        review(drafts, "", by=None)


def test_a_translation_joins_with_its_pair_and_the_original_gets_it_too(tmp_path, drafts, review):
    """An accepted translation is added as the pair of its original, and the original gets the same pair name.

    A translation whose figures differ from those of the original cannot be accepted.
    """
    suite = tmp_path / "suite.jsonl"
    original = gold_case(
        "bonus", turns=("How large is the bonus of Suraksha Gold after 1 claim-free year?",), gold="20%"
    )
    suite.write_text(format_case_line(original) + "\n", encoding="utf-8")
    case = draft_gold_case(
        9,
        turns=("1 claim-free saal ke baad Suraksha Gold ka bonus kitna hai?",),
        gold="50%",
        language=Language.HINGLISH,
        pair="bonus",
        provenance=Provenance(pipeline=Pipeline.BILINGUAL),
    )
    path = tmp_path / "translations.jsonl"
    append_new_drafts(path, [gold_draft(9, case=case, quote=None, original=original)])
    assert "50% is added" in review(path, "y\nq\n")
    review(path, "e\n\n20%\n\ny\n")
    there = load_suite(suite).cases
    assert [(one.id, one.pair) for one in there] == [("bonus", "bonus"), ("draft-9", "bonus")]


def test_an_unreviewed_draft_does_not_load_as_gold(tmp_path):
    """A draft that was manually copied into a suite is an error, with its line and the missing field."""
    path = tmp_path / "suite.jsonl"
    for pipeline in (Pipeline.DRAFT, Pipeline.BILINGUAL, Pipeline.GROWTH):
        lines = [
            format_case_line(gold_case("fine")),
            format_case_line(draft_gold_case(provenance=Provenance(pipeline=pipeline))),
        ]
        path.write_text("\n".join(lines), encoding="utf-8")
        with pytest.raises(GoldSetError, match=r"line 2: .*reviewed_by.* is missing"):
            load_suite(path)
    lines[1] = format_case_line(draft_gold_case(provenance=Provenance(pipeline=Pipeline.DRAFT, reviewed_by="  ")))
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(GoldSetError, match="reviewed_by"):
        load_suite(path)


@pytest.mark.parametrize("step", ["in_suite", "between", "in_drafts"])
def test_killed_at_any_step_a_case_joins_once(tmp_path, drafts, review, step):
    """If the review is killed at any step, each case is added once.

    SIGKILL ends a real process. The next session detects the completed steps and does the remaining ones.
    """
    suite = tmp_path / "suite.jsonl"
    suite.write_text(format_case_line(gold_case("first")) + "\n", encoding="utf-8")
    killed = fork_server.run(
        *(step, str(drafts), str(suite)),
        module="tests.deployments.cli.review_killed",
        cwd=ROOT,
        env=os.environ | fork_server.WARM,
        given="y\n",
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    joined = step != "in_suite"
    assert len(load_suite(suite).cases) == 1 + joined
    assert all(draft.state is DraftState.DRAFTED for draft in read_drafts(drafts))
    shown = review(drafts, "y\ny\ny\n", by="bina")
    assert ("interrupted session" in shown) is joined
    cases = load_suite(suite).cases
    assert [case.id for case in cases] == ["first", "draft-1", "draft-2", "draft-3"]
    first = read_drafts(drafts)[0]
    assert first.state is DraftState.ACCEPTED
    assert first.reviewed_by == ("asha" if joined else "bina")
    assert cases[1].provenance.reviewed_by == first.reviewed_by


def test_a_foreign_case_under_a_drafts_id_is_not_taken_for_it(tmp_path, drafts, review):
    (tmp_path / "suite.jsonl").write_text(format_case_line(gold_case("draft-1")) + "\n", encoding="utf-8")
    with pytest.raises(GoldSetError, match="draft-1"):
        review(drafts, "y\n")


def test_as_a_process_drafts_are_listed_and_reviewed(tmp_path, drafts, snapshot):
    ask = ("review", str(drafts), "--suite", "suite.jsonl")
    done = gold(*ask, "--as", "asha", cwd=tmp_path, keys="y\nq\n")
    assert done.returncode == 0, done.stderr
    assert CLAUSE in done.stdout
    listed = gold(*ask, "--json", cwd=tmp_path)
    assert len(listed.stdout.splitlines()) == 2
    missing = gold("review", "nothing.jsonl", "--suite", "suite.jsonl", cwd=tmp_path)
    assert missing.returncode == 2
    assert missing.stderr == snapshot


def test_at_a_terminal_one_key_is_enough(tmp_path, drafts):
    """On a terminal, one key is enough for a decision.

    In a real pseudo-terminal, the name is read as a line, and then single keys without Enter.
    """
    driver, terminal = pty.openpty()
    process = fork_server.start(
        *("gold", "review", str(drafts), "--suite", "suite.jsonl"),
        cwd=tmp_path,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | fork_server.WARM,
    )
    try:
        os.write(driver, b"asha\n")
        for asked, key in ((1, b"y"), (2, b"q")):
            shown = b""
            while b"[q]uit" not in shown:
                more = os.read(process.stdout.fileno(), 4096)
                assert more, (asked, process.stderr.read())
                shown += more
            os.write(driver, key)
        rest, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        os.close(driver)
        os.close(terminal)
        process.wait(30)
    assert "suite.jsonl: 1." in rest
    (case,) = load_suite(tmp_path / "suite.jsonl").cases
    assert case.provenance.reviewed_by == "asha"
