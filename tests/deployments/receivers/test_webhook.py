"""A delivery is stored, acknowledged at once, and becomes one run, on a real Prefect server over real HTTP."""

from __future__ import annotations

import asyncio
import random
import socket

import pytest

from tests.deployments.deploy_receiver import receiver
from tests.deployments.triggers.senders import (
    COMMIT,
    OTHER_COMMIT,
    announced,
    by_github,
    deployed,
    github,
    github_headers,
    raw,
    space_pushed,
    trigger,
)
from tests.flows.deploys.sample_deploys import commits, registered
from tests.flows.operator_actions import Clock

DELIVERIES = 1_000
COMMITS = 10


@pytest.fixture
async def prefect(prefect_environment):
    async with registered(prefect_environment["PREFECT_API_URL"]) as found:
        yield found


@pytest.fixture
def api(prefect_environment):
    return lambda: prefect_environment["PREFECT_API_URL"]


@pytest.mark.prefect
async def test_a_delivery_becomes_a_run(tmp_path, prefect, api):
    async with receiver(tmp_path, prefect_api=api, deployment=prefect.name) as door:
        answer = await door.by_github(deployed())
        assert (answer.status_code, answer.text) == (202, "accepted")
        await door.starter.wait_until_idle()
        assert await door.metric("lookout_deploy_runs_total") == 1
        assert door.commits() == []
    assert await prefect.commits() == [COMMIT]


@pytest.mark.prefect
async def test_f28_the_same_commit_again_by_whomever_is_200_and_one_run(tmp_path, prefect, api):
    async with receiver(tmp_path, prefect_api=api, deployment=prefect.name) as door:
        ways = [
            lambda: door.by_github(deployed()),
            lambda: door.by_hub(space_pushed()),
            lambda: door.by_standard(announced()),
        ]
        first = [(await way()).status_code for way in ways]
        await door.starter.wait_until_idle()
        after = [(await way()).status_code for way in ways]
        await door.starter.wait_until_idle()
        assert (first, after) == ([202, 200, 200], [200, 200, 200])
        assert await door.metric('lookout_webhook_duplicate_total{provider="huggingface"}') == 2
    async with receiver(tmp_path, prefect_api=api, deployment=prefect.name) as restarted:
        assert (await restarted.by_github(deployed())).status_code == 200
        await restarted.starter.wait_until_idle()
    assert await prefect.commits() == [COMMIT]


@pytest.mark.whole_only
@pytest.mark.prefect
async def test_f34_a_thousand_deliveries_make_one_run_for_each_commit(tmp_path, prefect, api):
    chance = random.Random(34)
    bodies = [raw(deployed(sha=commit)) for commit in commits(COMMITS)] * (DELIVERIES // COMMITS)
    chance.shuffle(bodies)
    async with receiver(tmp_path, prefect_api=api, deployment=prefect.name) as door:
        at_once = asyncio.Semaphore(20)

        async def sent(body):
            async with at_once:
                return (await door.post("github", body, github_headers(body))).status_code

        statuses = await asyncio.gather(*(sent(body) for body in bodies))
        await door.starter.wait_until_idle()
    assert (statuses.count(202), statuses.count(200)) == (COMMITS, DELIVERIES - COMMITS)
    assert await prefect.commits() == commits(COMMITS)


@pytest.mark.whole_only
@pytest.mark.prefect
async def test_prefect_away_is_waited_for_and_nobody_who_sends_notices(tmp_path, prefect, api):
    away = True
    tried = asyncio.Event()
    loop = asyncio.get_running_loop()

    def where():
        loop.call_soon_threadsafe(tried.set)
        return None if away else api()

    async with receiver(tmp_path, prefect_api=where, deployment=prefect.name) as door:
        assert (await door.by_github(deployed())).status_code == 202
        await tried.wait()
        assert (await door.by_github(deployed(sha=OTHER_COMMIT))).status_code == 202
        assert (await door.client.get(f"{door.url}/readyz")).json() == {
            "keeps_deploys": True,
            "journal_writable": True,
            "prefect_answers": False,
            "deployment_registered": False,
            "runner_alive": False,
            "secrets": True,
        }
        assert await door.metric("lookout_deploys_waiting") == 2
        away = False
        await door.starter.wait_until_idle()
        assert await door.metric("lookout_deploy_run_failures_total") >= 1
        assert await door.metric("lookout_deploys_waiting") == 0
    assert await prefect.commits() == sorted([COMMIT, OTHER_COMMIT])


@pytest.mark.prefect
async def test_one_repository_feeds_two_targets_a_run_each(tmp_path, prefect, api):
    both = github(trigger(), trigger(target="staging"))
    assert len(both.verify_and_parse(by_github(deployed())).deploys) == 2
    async with receiver(tmp_path, parsers=[both], prefect_api=api, deployment=prefect.name) as door:
        assert (await door.by_github(deployed())).status_code == 202
        await door.starter.wait_until_idle()
    assert {run.parameters["request"]["target"] for run in await prefect.runs()} == {"bot", "staging"}


@pytest.mark.whole_only
@pytest.mark.prefect
async def test_the_receiver_is_ready_only_with_a_runner_for_the_deployment(tmp_path, prefect, api):
    """The receiver is ready only if the Prefect server has the deployment and a runner that polls for runs.

    Three servers are tested: one without the deployment, one with it, and one with it and a runner.
    """
    async with receiver(tmp_path, prefect_api=api) as door:
        nothing = await door.client.get(f"{door.url}/readyz")
    async with receiver(tmp_path, prefect_api=api, deployment=prefect.name) as door:
        nobody = await door.client.get(f"{door.url}/readyz")
    await prefect.polled()
    async with receiver(tmp_path, prefect_api=api, deployment=prefect.name) as door:
        served = await door.client.get(f"{door.url}/readyz")
    standing = [
        [one.json()[key] for key in ("prefect_answers", "deployment_registered", "runner_alive")]
        for one in (nothing, nobody, served)
    ]
    assert standing == [[True, False, False], [True, True, False], [True, True, True]]
    assert [one.status_code for one in (nothing, nobody, served)] == [503, 503, 200]


async def test_the_receiver_is_not_ready_without_a_writable_queue_and_journal(tmp_path):
    for folder in ("deploys", "journal"):
        (tmp_path / folder).write_text("", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/api"
    async with receiver(tmp_path, prefect_api=lambda: url) as door:
        answer = await door.client.get(f"{door.url}/readyz")
        assert (await door.client.get(f"{door.url}/healthz")).text == "ok"
    assert answer.status_code == 503
    assert [key for key, holds in answer.json().items() if holds] == ["secrets"]


async def test_queue_length_and_age_are_metrics(tmp_path):
    clock = Clock()
    async with receiver(tmp_path, now=clock) as door:
        assert await door.metric("lookout_oldest_waiting_deploy_seconds") == 0
        await door.by_hub(space_pushed())
        clock.skip(seconds=90)
        await door.by_hub(space_pushed(("refs/heads/main", OTHER_COMMIT)))
        assert await door.metric("lookout_oldest_waiting_deploy_seconds") == 90
        assert await door.metric("lookout_deploys_waiting") == 2
        assert await door.metric('lookout_webhook_accepted_total{provider="huggingface"}') == 2
        count = 'lookout_webhook_acknowledgement_seconds_count{provider="huggingface"}'
        assert await door.metric(count) == 2
