"""The status of a commit: said under one name for each target, refused with what to do."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from monitors.errors import NotifyRejected
from monitors.github.api import open_github_api
from monitors.github.pull_requests import CommitStatus, State, is_git_commit, set_status
from tests.monitors.github.waits import Waits
from tests.servers.github import HEAD, READING_TOKEN, REPOSITORY, WORKFLOW_TOKEN, GitHub


def status(state: State = State.SUCCESS, **changes: str) -> CommitStatus:
    values = {"repository": REPOSITORY, "commit": HEAD, "target": "demo", "description": "PASS: weighted 1.000"}
    return CommitStatus(state=state, **(values | changes))


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


async def say(github, one, token=WORKFLOW_TOKEN):
    async with open_github_api(github.url, token, Waits().patience) as api:
        await set_status(api, one)


async def test_every_state_is_taken_under_the_target_s_name(github):
    for state in State:
        await say(github, status(state))
    assert github.states == [("lookout/demo", state) for state in State]
    assert {one["sha"] for one in github.statuses} == {HEAD}


async def test_a_link_is_there_when_there_is_one(github):
    await say(github, status())
    await say(github, status(link="https://github.com/acme/helpdesk/actions/runs/7"))
    assert [one.get("target_url") for one in github.statuses] == [
        None,
        "https://github.com/acme/helpdesk/actions/runs/7",
    ]


async def test_a_read_only_token_names_the_missing_permission(github):
    with pytest.raises(NotifyRejected, match="statuses: write"):
        await say(github, status(), READING_TOKEN)


async def test_a_commit_of_another_repository_is_reported(github):
    with pytest.raises(NotifyRejected, match="is the commit in that repository"):
        await say(github, status(commit="abc1234"))


def test_more_than_github_takes_is_no_status():
    with pytest.raises(ValidationError):
        status(description="x" * 141)


@pytest.mark.parametrize(
    ("commit", "is_one"), [(HEAD, True), ("a" * 64, True), (HEAD[:12], False), ("v1.2", False), (None, False)]
)
def test_only_a_full_commit_can_have_a_status(commit, is_one):
    assert is_git_commit(commit) is is_one
