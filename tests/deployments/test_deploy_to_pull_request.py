"""Tests of the way from a signed delivery that names a pull request to the comment on this pull request.

Each part is its own process.
"""

from __future__ import annotations

import sys

import httpx
import pytest

from tests.deployments.triggers.senders import COMMIT, deployed, github_headers, raw
from tests.deployments.up_process import up
from tests.flows.chat import Chat, watched
from tests.servers.github import BOT, PULL, REPOSITORY, WORKFLOW_TOKEN, GitHub

TRIGGER = f'[[deploys.triggers]]\nprovider = "github"\nrepository = "{REPOSITORY}"\nenvironment = "staging"\ntarget = "demo"\n'


@pytest.mark.prefect
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are adopted on Linux only")
@pytest.mark.whole_only
def test_a_staging_deploy_that_names_its_pull_request_has_its_results_there_without_being_asked(tmp_path):
    with (
        Chat("The waiting period is 36 months. [Source: Gold, clause 4.2]") as chat,
        GitHub() as github,
        up(
            watched(tmp_path, chat, cases=2, more=TRIGGER), GITHUB_TOKEN=WORKFLOW_TOKEN, GITHUB_API_URL=github.url
        ) as running,
    ):
        running.until(running.receives, "the receiver answers")
        running.until(running.serves, "the runner serves")
        body = raw(deployed(environment="staging", workflow_run={"pull_requests": [{"number": PULL}]}))

        def deliver() -> int:
            address = f"{running.url}/deploys/github"
            return httpx.post(address, content=body, headers=github_headers(body), trust_env=False).status_code

        assert deliver() == 202
        assert deliver() == 200
        running.until(lambda: len(github.states) > 1, "the verdict is a status")
    assert github.states == [("lookout/demo/suite", "pending"), ("lookout/demo/suite", "failure")]
    assert {one["sha"] for one in github.statuses} == {COMMIT}
    (comment,) = github.by(BOT)
    assert "### ✕ FAIL: demo" in comment.body
    assert f"deploy `{COMMIT[:39]}" in comment.body
    stored = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "data" / "deploys").rglob("*.json"))
    assert WORKFLOW_TOKEN not in stored + running.said()
