"""Several gates on one repository: each has its own status and comment, with the right commit and baseline."""

from __future__ import annotations

import json

import pytest

from tests.deployments.cli.gate.jobs import (
    MAIN_HEAD,
    OTHER_HEAD,
    comment_event,
    job_variables,
    merge_group_event,
    pull_event,
    push_event,
    start_gate,
)
from tests.flows.chat import RIGHT, Chat, watched
from tests.servers.github import BOT, HEAD, PULL, GitHub, broken

pytestmark = pytest.mark.prefect

WRONG = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
GATE = ("gate", "--target", "demo", "--github")


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


def test_two_folders_with_the_same_target_have_a_status_and_a_comment_each(tmp_path, lookout, github):
    """Two data folders with the same target have a status and a comment each.

    The success of the second gate does not hide the failure of the first.
    """
    variables = job_variables(tmp_path, github)
    for name, answer, code in (("shop", WRONG, 1), ("help", RIGHT, 0)):
        with Chat(answer) as chat:
            (tmp_path / name).mkdir()
            watched(tmp_path / name, chat, cases=2)
            done = lookout(*GATE, cwd=tmp_path / name, **variables)
        assert done.returncode == code, done.stderr
    assert github.current(HEAD) == {"lookout/shop/demo/suite": "failure", "lookout/help/demo/suite": "success"}
    titles = [comment.body.splitlines()[2] for comment in github.by(BOT)]
    assert titles == ["### ✕ FAIL: shop/demo/suite", "### ✓ PASS: help/demo/suite"]


@pytest.mark.whole_only
def test_a_matrix_over_suites_has_one_of_each_and_a_name_of_your_own_is_taken(tmp_path, lookout, github):
    variables = job_variables(tmp_path, github)
    with Chat() as chat:
        watched(tmp_path, chat, cases=1)
        (tmp_path / "suites").mkdir()
        (tmp_path / "suite.jsonl").rename(tmp_path / "suites" / "first.jsonl")
        (tmp_path / "other.jsonl").write_bytes((tmp_path / "suites" / "first.jsonl").read_bytes())
        for options in (("--suite", "suites/first.jsonl"), ("--suite", "other.jsonl", "--name", "checkout")):
            assert lookout(*GATE, *options, cwd=tmp_path, **variables).returncode == 0
    assert set(github.current(HEAD)) == {"lookout/demo/suites/first", "lookout/checkout"}
    assert len(github.by(BOT)) == 2


@pytest.mark.whole_only
@pytest.mark.parametrize("is_pull", [True, False], ids=["pull request", "push"])
def test_of_two_gates_on_one_commit_the_newer_one_s_verdict_stays(
    tmp_path, lookout, prefect_environment, github, is_pull
):
    """If two gates run on one commit, the commit has the status and the comment of the newer gate.

    In this test, the older gate ends last, with PASS.
    """
    event, ref = (pull_event(), f"refs/pull/{PULL}/merge") if is_pull else (push_event(HEAD), "refs/heads/main")
    (tmp_path / "older").mkdir()
    (tmp_path / "newer").mkdir()
    with Chat(RIGHT) as slow, Chat(WRONG) as quick:
        watched(tmp_path / "older", slow, cases=2)
        watched(tmp_path / "newer", quick, cases=2)
        slow.held_from = 1
        variables = job_variables(tmp_path / "older", github, event, ref=ref)
        older = start_gate(tmp_path / "older", prefect_environment | variables)
        assert slow.wait_for(1), older.communicate()
        variables = job_variables(tmp_path / "newer", github, event, ref=ref, run=78)
        newer = lookout(*GATE, cwd=tmp_path / "newer", **variables)
        assert newer.returncode == 1, newer.stderr
        slow.released.set()
        _, printed = older.communicate(timeout=240)
    assert older.returncode == 0, printed
    assert github.current(HEAD) == {"lookout/demo/suite": "failure"}
    assert "/runs/78#" in [status for status in github.statuses if status["sha"] == HEAD][-1]["target_url"]
    assert ["FAIL" in comment.body for comment in github.by(BOT)] == [True] * is_pull


@pytest.mark.whole_only
def test_a_comment_s_job_sets_the_status_of_the_pull_request_s_head(tmp_path, lookout, github):
    """A job of a comment event sets the status of the pull request's head.

    The event itself contains only the head of main.
    """
    with Chat() as chat:
        watched(tmp_path, chat, cases=1)
        variables = job_variables(tmp_path, github, comment_event(), ref="refs/heads/main", sha=MAIN_HEAD)
        github.pull_head = OTHER_HEAD
        assert lookout(*GATE, cwd=tmp_path, **variables).returncode == 0
        assert github.current(MAIN_HEAD) == {}
        assert github.current(OTHER_HEAD) == {"lookout/demo/suite": "success"}
        github.statuses.clear()
        github.wrong.faults = [broken(404)]
        unknown = lookout(*GATE, cwd=tmp_path, **variables)
    assert unknown.returncode == 0
    assert github.statuses == []
    assert "acme/helpdesk#12 (HTTP 404)" in unknown.stderr
    assert "Lookout sets no commit status" in unknown.stderr
    assert len(github.by(BOT)) == 1


@pytest.mark.whole_only
def test_the_baseline_of_a_pull_request_is_of_its_target_branch(tmp_path, lookout, github):
    """The baseline of a pull request is the last run on its target branch.

    In this test, it is the run on main with both cases right, not the run on the feature branch with one case
    right.
    """

    def run_gate(event, ref, *answers):
        with Chat(*answers) as chat:
            watched(tmp_path, chat, cases=2, more="[gate.targets]\nfactual_accuracy = 0\n")
            text = (tmp_path / "suite.jsonl").read_text("utf-8").replace('"severity": 3', '"severity": 1')
            (tmp_path / "suite.jsonl").write_text(text, "utf-8")
            variables = job_variables(tmp_path, github, event, ref=ref)
            done = lookout(*GATE, "--min-score", "0", "--json", cwd=tmp_path, **variables)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    pull = f"refs/pull/{PULL}/merge"
    on_main = run_gate(push_event(MAIN_HEAD), "refs/heads/main", RIGHT)
    on_feature = run_gate(push_event(OTHER_HEAD), "refs/heads/feature", RIGHT, WRONG)
    queue = "refs/heads/gh-readonly-queue/main/pr-12-abc"
    queued = run_gate(merge_group_event(OTHER_HEAD), queue, RIGHT, WRONG)
    assert github.current(OTHER_HEAD) == {"lookout/demo/suite": "success"}
    compared = [report["comparison"] for report in (on_feature, queued, run_gate(pull_event(), pull, RIGHT, WRONG))]
    assert {comparison["baseline_run_id"] for comparison in compared} == {on_main["run_id"]}
    assert [len(comparison["severities"][0]["newly_failing"]) for comparison in compared] == [1, 1, 1]

    event = pull_event()
    del event["pull_request"]["base"]
    github.wrong.faults = [broken(404)]
    unknown = run_gate(event, pull, RIGHT, WRONG)
    assert any("target branch of this change is unknown" in reason["text"] for reason in unknown["reasons"])
    released = run_gate(pull_event(base="release"), pull, RIGHT, WRONG)
    assert released["comparison"] is None
