"""Test the commit status. The status has the name of the gate and keeps the verdict of the newest run.

If GitHub refuses the status, the error says what to do.
"""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from monitors.errors import NotifyRejected
from monitors.github.api import open_github_api
from monitors.github.pull_requests import (
    MAX_NAME_CHARACTERS,
    CommitStatus,
    State,
    build_gate_name,
    is_git_commit,
    set_final_status_unless_newer,
    set_pending_status,
)
from tests.monitors.github.waits import Waits
from tests.servers.github import HEAD, READING_TOKEN, REPOSITORY, WORKFLOW_TOKEN, GitHub

LOG = "https://github.com/acme/helpdesk/actions/runs/7"


def status(state: State = State.SUCCESS, **changes: str) -> CommitStatus:
    values = {"repository": REPOSITORY, "commit": HEAD, "name": "demo", "description": "PASS: weighted 1.000"}
    return CommitStatus(state=state, **(values | {"link": LOG} | changes))


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


async def say(github, one, token=WORKFLOW_TOKEN):
    async with open_github_api(github.url, token, Waits().patience) as api:
        await set_pending_status(api, one)


async def settle(github, verdict):
    async with open_github_api(github.url, WORKFLOW_TOKEN, Waits().patience) as api:
        await set_final_status_unless_newer(api, verdict)


async def test_every_state_is_taken_under_the_gate_s_name(github):
    for state in State:
        await say(github, status(state))
    assert github.states == [("lookout/demo", state) for state in State]
    assert {one["sha"] for one in github.statuses} == {HEAD}


RUNS = ("20260301T120000Z-demo-0a", "20260301T120001Z-demo-0a")
"""The id of the older run and the id of the newer run."""


@pytest.mark.parametrize("newer_first", [True, False])
async def test_the_newer_run_s_verdict_stays_whichever_ends_last(github, newer_first):
    verdicts = [status(State.SUCCESS, run_id=RUNS[0]), status(State.FAILURE, run_id=RUNS[1])]
    for verdict in reversed(verdicts) if newer_first else verdicts:
        await settle(github, verdict)
    assert github.current(HEAD) == {"lookout/demo": "failure"}
    assert github.statuses[-1]["target_url"] == f"{LOG}#lookout-run={RUNS[1]}"


async def test_a_stopped_run_gives_the_commit_its_verdict_back(github):
    await settle(github, status(State.SUCCESS, run_id=RUNS[0]))
    await say(github, status(State.PENDING))
    await settle(github, status(State.ERROR, description="the run was stopped"))
    assert github.statuses[-1] == github.statuses[0]
    await settle(github, status(State.ERROR, name="other", description="the run was stopped"))
    assert github.current(HEAD) == {"lookout/demo": "success", "lookout/other": "error"}


async def test_a_verdict_that_is_set_between_reading_and_writing_is_set_again(github):
    """If an older verdict overwrites a newer one, the newer verdict is set again.

    In this test, another gate writes the newer verdict just before the older verdict is written.
    """
    newer = status(State.FAILURE, run_id=RUNS[1])

    def interfere(asked):
        if asked.method == "POST" and not github.statuses:
            body = {"context": newer.context, "state": newer.state.value, "description": newer.description}
            github.statuses.append(body | {"target_url": newer.target_url, "sha": HEAD})

    github.wrong.before_answering = interfere
    await settle(github, status(State.SUCCESS, run_id=RUNS[0]))
    assert github.states[-2:] == [("lookout/demo", "success"), ("lookout/demo", "failure")]


async def test_a_read_only_token_names_the_missing_permission(github):
    with pytest.raises(NotifyRejected, match="statuses: write"):
        await say(github, status(), READING_TOKEN)


async def test_a_commit_of_another_repository_is_reported(github):
    with pytest.raises(NotifyRejected, match="Check that the commit"):
        await say(github, status(commit="abc1234"))


def test_more_than_github_takes_is_no_status():
    with pytest.raises(ValidationError):
        status(description="x" * 141)


@pytest.mark.parametrize(
    ("commit", "is_one"), [(HEAD, True), ("a" * 64, True), (HEAD[:12], False), ("v1.2", False), (None, False)]
)
def test_only_a_full_commit_can_have_a_status(commit, is_one):
    assert is_git_commit(commit) is is_one


def test_a_gate_name_that_is_too_long_for_github_is_cut_and_stays_unique(tmp_path):
    """The cut names of two suites in the same folder differ, because each ends with a hash of the whole name."""
    suites = [tmp_path / ("x" * MAX_NAME_CHARACTERS) / f"{name}.jsonl" for name in ("first", "second", "first")]
    first, second, again = (
        build_gate_name("demo", suite, config_folder=tmp_path, workspace=tmp_path) for suite in suites
    )
    assert len(first) == len(second) == MAX_NAME_CHARACTERS
    assert first == again != second
    assert first[:190] == second[:190]
