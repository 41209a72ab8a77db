"""Test that the poll finds a GitHub deployment once if its webhook was lost or failed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from flows.deploys.flow import SUBJECT, DeployPoller, poll_targets_and_store_results
from flows.deploys.github_deployments import select_triggers_polled_at_github
from flows.deploys.queue import DeployQueue
from flows.server.schedules import plan_deployments
from monitors.config.file import parse_config
from monitors.config.sections import ScheduleSettings
from tests.flows.alerting_testbed import AlertingTestbed
from tests.servers.github import PERSON_TOKEN, REPOSITORY, GitHub
from tests.servers.slack import SlackServer

OLD, NEW, OTHER = "1" * 40, "2" * 40, "3" * 40


@pytest.fixture
def github():
    with GitHub() as server:
        yield server


@pytest.fixture
def testbed(tmp_path):
    with SlackServer() as slack:
        yield AlertingTestbed(tmp_path, slack)


def config_of(github, folder, **trigger):
    row = {"provider": "github", "repository": REPOSITORY, "target": "bot"} | trigger
    target = {"url": "http://127.0.0.1:1", "suite": "suite.jsonl"}
    values = {"data_folder": str(folder), "github": {"api_url": github.url}, "targets": {"bot": target}}
    return parse_config(values | {"deploys": {"triggers": [row]}}, "the test")


def watch_of(github, folder, testbed, token=PERSON_TOKEN, **trigger):
    config = config_of(github, folder, **trigger)
    return DeployPoller(
        config=config,
        settings=config.deploys,
        deploys=DeployQueue(folder),
        notifier=lambda: replace(testbed.notifier(), target=SUBJECT),
        hub_token=None,
        now=testbed,
        variables={"GITHUB_TOKEN": token} if token else {},
    )


def waiting(folder):
    return [one.deploy.event.commit for one in DeployQueue(folder).list_waiting_deploys()]


async def test_a_deployment_without_a_webhook_gets_one_run(github, tmp_path, testbed):
    watch = watch_of(github, tmp_path, testbed)
    github.deploys(OLD, "success")
    await poll_targets_and_store_results(watch)
    assert waiting(tmp_path) == []  # it was deployed before anybody watched
    github.deploys(NEW, "success")
    await poll_targets_and_store_results(watch)
    await poll_targets_and_store_results(watch)
    assert waiting(tmp_path) == [NEW]


async def test_the_first_deployment_of_all_is_verified(github, tmp_path, testbed):
    watch = watch_of(github, tmp_path, testbed)
    await poll_targets_and_store_results(watch)
    github.deploys(NEW, "success")
    await poll_targets_and_store_results(watch)
    assert waiting(tmp_path) == [NEW]


@pytest.mark.parametrize("state", ["in_progress", "failure", "error", "inactive"])
async def test_one_that_does_not_serve_is_passed_over(github, tmp_path, testbed, state):
    watch = watch_of(github, tmp_path, testbed)
    github.deploys(OLD, "success")
    await poll_targets_and_store_results(watch)
    github.deploys(NEW, state)
    await poll_targets_and_store_results(watch)
    assert waiting(tmp_path) == []


async def test_environment_and_branch_of_the_trigger_count(github, tmp_path, testbed):
    watch = watch_of(github, tmp_path, testbed, environment="production", branch="main")
    await poll_targets_and_store_results(watch)
    github.deploys(OLD, "success", environment="staging")
    github.deploys(OTHER, "success", ref="refs/heads/feature")
    await poll_targets_and_store_results(watch)
    assert waiting(tmp_path) == []
    github.deploys(NEW, "success", ref="refs/heads/main")
    await poll_targets_and_store_results(watch)
    assert waiting(tmp_path) == [NEW]


async def test_a_token_that_is_refused_is_said_after_some_looks(github, tmp_path, testbed):
    watch = watch_of(github, tmp_path, testbed, token="ghp_wrong")
    (looked,) = await poll_targets_and_store_results(watch)
    assert looked.error is not None
    assert "401" in looked.error
    assert "ghp_wrong" not in looked.error


async def test_without_a_token_nothing_is_asked(github, tmp_path, testbed):
    assert await poll_targets_and_store_results(watch_of(github, tmp_path, testbed, token=None)) == ()
    assert github.asked == []


@pytest.mark.parametrize(("event", "polled"), [(None, True), ("deployment_status", True), ("push", False)])
def test_only_deployments_are_asked_for_and_the_poll_is_planned(github, tmp_path, event, polled):
    config = config_of(github, tmp_path, event=event)
    assert bool(select_triggers_polled_at_github(config)) is polled
    planned = {one.name for one in plan_deployments(config, Path("/x/lookout.toml"), ScheduleSettings())}
    assert ("watch-deploys" in planned) is polled
