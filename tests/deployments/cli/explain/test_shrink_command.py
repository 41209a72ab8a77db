"""`lookout shrink` as a user runs it, against the demo's bot with and without faults.

The bot is behind a page and an API.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from monitors.records.exchanges import Origin
from monitors.records.grades import FailureKind
from tests import fork_server
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.explain.demo_builds import CASE, DemoBuild, written_target
from tests.in_process import run_in_process
from tests.stable_text import replace_volatile
from tests.warehouse.temporary_stores import store_in
from warehouse.queries.operator_actions import list_waiting_drafts

WRONG = "₹80,000"


def run(folder: Path, *arguments: str, code: int = 0, runner=run_in_process) -> str:
    """Run a command to its end, check that its exit code is ``code``, and return its output."""
    done = runner(*arguments, cwd=folder, env=fork_server.bare())
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + (done.stderr if code == 2 else "")


@pytest.fixture(scope="module")
def faulty():
    """Start a build with the planted faults."""
    with DemoBuild("4f2a91c", faults=True) as build:
        yield build


@pytest.mark.whole_only
def test_on_a_real_page_the_smallest_question_becomes_a_draft_and_a_command(tmp_path, faulty):
    """On a real page, the shortest question whose reply still has the wrong amount becomes a draft.

    The printed command reproduces the failure, and `lookout gold grow` lists the draft.
    """
    written_target(tmp_path, faulty.url)
    before = len(faulty.asked)
    said = run(tmp_path, "shrink", CASE, runner=fork_server.run)
    question = said.split("failed in 3 of 3 answers:\n  ", 1)[1].split("\n", 1)[0]
    assert WRONG in faulty.says(question)
    assert len(question.split()) <= 3
    assert len(faulty.asked) - before <= 40
    command = shlex.split(said.split("To reproduce the failure: ", 1)[1])
    assert "3 of 3 answers failed" in run(tmp_path, *command[1:], code=1, runner=fork_server.run)
    assert faulty.asked[-3:] == [question] * 3
    listed = run(tmp_path, "gold", "grow")
    assert question in listed
    assert WRONG in listed


def test_the_draft_is_what_gold_grow_reads(tmp_path, faulty):
    """The draft contains the question, the gold and the wrong reply. Shrinking again creates no second draft."""
    written_target(tmp_path, faulty.url, driver="json")
    shrunk = [json.loads(run(tmp_path, "shrink", CASE, "--json")) for _ in range(2)]
    store = store_in(tmp_path / "data", seed=9)
    store.load_pending(1)
    (draft,) = list_waiting_drafts(store, target="demo", wait_s=10)
    assert {one["draft"] for one in shrunk} == {draft.id}
    assert list(draft.turns) == shrunk[0]["shrunk"]["turns"]
    assert (draft.source_id, draft.origin, draft.failure_kind) == (CASE, Origin.PROBE, FailureKind.WRONG_FACT)
    assert draft.gold == "Up to ₹40,000 per eye"
    assert WRONG in str(draft.bad_reply)


def test_a_shrunk_question_passes_where_the_case_passes(tmp_path, faulty):
    """With ``--right-at``, a shorter question counts only if the build at that address answers it correctly.

    Both builds are asked.
    """
    with DemoBuild("0f2a91c", faults=False) as healthy:
        written_target(tmp_path, faulty.url, driver="json")
        said = run(tmp_path, "shrink", CASE, "--right-at", healthy.url)
        question = said.split("failed in 3 of 3 answers:\n  ", 1)[1].split("\n", 1)[0]
        assert question in healthy.asked
        assert "₹40,000" in healthy.says(question)


def test_a_case_that_passes_is_said_to_pass(tmp_path, snapshot):
    """If the case passes, no failure is reported, no draft is stored, and the exit code is 3."""
    with DemoBuild("0f2a91c", faults=False) as healthy:
        written_target(tmp_path, healthy.url, driver="json")
        assert replace_volatile(run(tmp_path, "shrink", CASE, code=3), tmp_path) == snapshot(name="shrink")
        assert len(healthy.asked) == 3
        again = run(tmp_path, "shrink", CASE, "--ask", "2")
        assert replace_volatile(again, tmp_path) == snapshot(name="ask again")
    assert not (tmp_path / "data").exists()


def test_an_application_that_is_away_is_said_to_be_away(tmp_path, snapshot):
    """If the application gives no answer at all, no failure is reported, and the output states the reason."""
    with Chat() as chat:
        watched(tmp_path, chat)
    assert replace_volatile(run(tmp_path, "shrink", "waiting-0", code=3), tmp_path) == snapshot


def test_another_wrong_fact_is_not_the_same_failure(tmp_path):
    """If the reply to a shorter question has a different wrong figure, this does not count as the same failure."""
    with Chat() as chat:
        watched(tmp_path, chat)
        whole = "What is the waiting period of plan 0?"
        chat.answers = (RIGHT.replace("24", "12"),)
        chat.by_question = {whole: RIGHT.replace("24", "36"), "of plan 0?": RIGHT.replace("24", "36")}
        report = json.loads(run(tmp_path, "shrink", "waiting-0", "--json"))
        assert report["shrunk"]["turns"] in ([whole], ["of plan 0?"])
        assert "36 months" in run(tmp_path, "shrink", "waiting-0", "--ask", "1", code=1)


@pytest.mark.parametrize("arguments", [("shrink", "nobody"), ("shrink", "waiting-0", "--target", "other")])
def test_wrong_use_is_one_line(tmp_path, arguments, snapshot):
    """A missing case or target is reported by name. The exit code is 2."""
    with Chat() as chat:
        watched(tmp_path, chat)
    assert replace_volatile(run(tmp_path, *arguments, code=2), tmp_path) == snapshot
