"""The pull request and the commit of a job are found for every event that starts the job."""

from __future__ import annotations

import json

import pytest

from monitors.errors import ConfigError
from monitors.github.actions import is_ci, is_github_actions, parse_job
from monitors.records.targets import PullRequest
from tests.servers.github import HEAD, REPOSITORY

MERGE = "f" * 40


def job(tmp_path, event=None, **variables):
    path = tmp_path / "event.json"
    path.write_text(event if isinstance(event, str) else json.dumps(event or {}), encoding="utf-8")
    return parse_job(
        {
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_SHA": MERGE,
            "GITHUB_EVENT_PATH": str(path),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_RUN_ID": "77",
        }
        | variables
    )


@pytest.mark.parametrize(
    ("event", "ref", "number", "commit"),
    [
        ({"pull_request": {"number": 12, "head": {"sha": HEAD}}}, "refs/pull/12/merge", 12, HEAD),
        ({}, "refs/pull/12/merge", 12, MERGE),
        ({"issue": {"number": 12, "pull_request": {"url": "x"}}}, "refs/heads/main", 12, None),
        ({"issue": {"number": 12}}, "refs/heads/main", None, MERGE),
        ({"workflow_run": {"head_sha": HEAD, "pull_requests": [{"number": 12}]}}, "refs/heads/main", 12, HEAD),
        ({"workflow_run": {"head_sha": HEAD, "pull_requests": []}}, "refs/heads/main", None, HEAD),
        (
            {"merge_group": {"head_sha": HEAD, "base_ref": "refs/heads/main"}},
            "refs/heads/gh-readonly-queue/x",
            None,
            HEAD,
        ),
        ({"deployment": {"sha": HEAD, "ref": "refs/pull/12/head"}}, "topic", 12, HEAD),
        ({"after": HEAD}, "refs/heads/main", None, MERGE),
        ({"pull_request": {"number": 0}}, "refs/heads/main", None, MERGE),
        ("[[[", "refs/pull/12/merge", 12, MERGE),
    ],
    ids=[
        "pull request",
        "ref alone",
        "comment",
        "issue",
        "workflow run",
        "of a fork",
        "merge group",
        "deployment",
        "push",
        "number 0",
        "no JSON",
    ],
)
def test_the_pull_request_and_its_own_commit_are_found(tmp_path, event, ref, number, commit):
    """The pull request and its head commit are found.

    GitHub's test merge commit is not used, because nobody would see a status on it.
    """
    found = job(tmp_path, event, GITHUB_REF=ref)
    assert found.pull_request == (PullRequest(repository=REPOSITORY, number=number) if number else None)
    assert found.change.head == commit


@pytest.mark.parametrize(
    ("event", "variables", "branch", "target"),
    [
        ({"pull_request": {"number": 12, "head": {"ref": "x"}, "base": {"ref": "release"}}}, {}, "x", "release"),
        ({"pull_request": {"number": 12}}, {"GITHUB_HEAD_REF": "x", "GITHUB_BASE_REF": "main"}, "x", "main"),
        ({"repository": {"default_branch": "main"}}, {"GITHUB_REF": "refs/heads/x/y"}, "x/y", "main"),
        ({"merge_group": {"base_ref": "refs/heads/main"}}, {"GITHUB_REF": "refs/heads/queue"}, "queue", "main"),
        ({"repository": {"default_branch": "main"}}, {"GITHUB_REF": "refs/pull/12/merge"}, None, None),
        ({}, {"GITHUB_REF": "refs/heads/main"}, "main", None),
    ],
    ids=["pull request", "its variables", "push", "merge group", "ref alone", "no event"],
)
def test_both_branches_are_known_where_the_event_names_them(tmp_path, event, variables, branch, target):
    change = job(tmp_path, event, **variables).change
    assert (change.branch, change.target_branch) == (branch, target)


def test_the_log_is_what_a_person_opens(tmp_path):
    assert job(tmp_path).log == "https://github.com/acme/helpdesk/actions/runs/77"
    assert job(tmp_path, GITHUB_RUN_ID="").log is None


def test_the_public_api_is_asked_unless_another_is_named(tmp_path):
    assert job(tmp_path).api_url == "https://api.github.com"
    assert (
        job(tmp_path, GITHUB_API_URL="https://git.acme.example/api/v3").api_url == "https://git.acme.example/api/v3"
    )


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"GITHUB_REPOSITORY": ""}, "GITHUB_REPOSITORY"),
        ({"GITHUB_REPOSITORY": "../x"}, "GITHUB_REPOSITORY"),
        ({"GITHUB_API_URL": "ftp://x"}, "GITHUB_API_URL"),
    ],
)
def test_missing_parts_are_named(tmp_path, variables, named):
    with pytest.raises(ConfigError, match=named):
        job(tmp_path, **variables)


@pytest.mark.parametrize(
    ("environment", "ci", "actions"),
    [
        ({}, False, False),
        ({"CI": "true"}, True, False),
        ({"CI": "1"}, True, False),
        ({"CI": "false"}, False, False),
        ({"CI": "0"}, False, False),
        ({"CI": ""}, False, False),
        ({"GITHUB_ACTIONS": "true"}, True, True),
    ],
)
def test_ci_is_known_by_what_everybody_sets(environment, ci, actions):
    assert is_ci(environment) is ci
    assert is_github_actions(environment) is actions
