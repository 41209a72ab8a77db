"""Test that each commit of a target gets one run on a real Prefect server, even if many requests arrive at once."""

from __future__ import annotations

import asyncio
import json
import socket
from datetime import timedelta
from uuid import UUID

import pytest

from flows.deploys.queue import DeployQueue, QueuedDeploy
from flows.deploys.runs import (
    RunNotMade,
    RunPlan,
    build_run_idempotency_key,
    create_runs_of_waiting_deploys,
    ensure_verification_run,
    restart_crashed_runs,
)
from monitors.records.targets import PullRequest
from tests.deployments.triggers.senders import COMMIT, NOW
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.deploys.sample_deploys import commits, queued, registered, reported
from tests.flows.messages import format_messages
from tests.servers.slack import SlackServer
from tests.warehouse.temporary_stores import count, store_in

pytestmark = pytest.mark.prefect


@pytest.fixture
async def prefect(prefect_environment):
    async with registered(prefect_environment["PREFECT_API_URL"]) as found:
        yield found


def plan(prefect, folder):
    return RunPlan(deployment=prefect.name, config_path=folder / "lookout.toml")


async def made(client, deploy, wanted):
    """Create the runs of a deploy as the receiver and the poll do. Retry if the server does not respond in time."""
    while True:
        try:
            return await ensure_verification_run(client, deploy, wanted)
        except RunNotMade as late:
            if "does not answer" not in str(late):
                raise


@pytest.mark.whole_only
async def test_f28_receiver_and_poll_that_ask_at_once_get_the_same_run(prefect, tmp_path):
    asked = [reported(by=by) for by in ("github", "huggingface", "poll", "standard")] * 2
    ids = await asyncio.gather(*(made(prefect.client, one, plan(prefect, tmp_path)) for one in asked))
    assert len(set(ids)) == 1
    assert await prefect.commits() == [COMMIT]


async def test_the_run_gets_only_the_parameters_it_needs(prefect, tmp_path):
    pull = PullRequest(repository="acme/helpdesk", number=12)
    await ensure_verification_run(prefect.client, reported(pull_request=pull), plan(prefect, tmp_path))
    (run,) = await prefect.runs()
    config = str(tmp_path / "lookout.toml")
    asked = {"target": "bot", "config_path": config, "commit": COMMIT, "pull_request": pull.model_dump()}
    assert run.parameters == {"request": asked}
    assert run.name == f"bot {COMMIT[:12]}"
    assert set(run.tags) == {"deploy", "target:bot", "reported-by:github", "pull-request:acme/helpdesk#12"}
    assert run.idempotency_key == build_run_idempotency_key(reported())
    assert run.state_name == "Scheduled"


def test_no_two_deploys_share_a_key():
    assert len({build_run_idempotency_key(reported(deployment=number)) for number in (None, "7", "8")}) == 3
    assert build_run_idempotency_key(reported()) != build_run_idempotency_key(reported(), tag="lookout-team-a")
    assert build_run_idempotency_key(reported("b:c", target="a")) != build_run_idempotency_key(
        reported("c", target="a:b")
    )


async def test_all_that_waits_gets_its_run_and_the_warehouse_hears_of_it(prefect, tmp_path):
    deploys, store = DeployQueue(tmp_path), store_in(tmp_path)
    for commit in commits(5):
        deploys.save_if_new(queued(commit))
    for expected in (5, 0):
        started = await create_runs_of_waiting_deploys(
            prefect.client, deploys, store.journal, plan(prefect, tmp_path), now=lambda: NOW
        )
        assert (len(started.runs), started.failed) == (expected, ())
    assert await prefect.commits() == commits(5)
    store.load_pending(5)
    assert count(store, "deploys") == 5


async def test_f35_killed_before_it_noted_the_run_it_gets_the_same_one(prefect, tmp_path):
    deploys, store = DeployQueue(tmp_path), store_in(tmp_path)
    deploys.save_if_new(queued())
    before = await ensure_verification_run(prefect.client, queued().deploy, plan(prefect, tmp_path))
    started = await create_runs_of_waiting_deploys(
        prefect.client, deploys, store.journal, plan(prefect, tmp_path), now=lambda: NOW
    )
    assert started.runs == (before,)
    assert await prefect.commits() == [COMMIT]


async def test_a_deployment_that_is_not_there_is_named_and_the_deploy_waits(prefect, tmp_path):
    deploys, store = DeployQueue(tmp_path), store_in(tmp_path)
    deploys.save_if_new(queued())
    nobody = RunPlan(deployment="verify-deploy/nobody", config_path=tmp_path)
    started = await create_runs_of_waiting_deploys(prefect.client, deploys, store.journal, nobody, now=lambda: NOW)
    assert started.runs == ()
    assert "no deployment verify-deploy/nobody" in str(started.failed[0])
    assert deploys.list_waiting_deploys() == (queued(),)


async def test_an_unreachable_server_is_reported_and_the_deploy_waits(tmp_path):
    from prefect.client.orchestration import PrefectClient  # seconds to import

    with socket.create_server(("127.0.0.1", 0)) as nobody:
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}/api"
    deploys, store = DeployQueue(tmp_path), store_in(tmp_path)
    deploys.save_if_new(queued())
    async with PrefectClient(url) as client:
        with pytest.raises(RunNotMade, match="does not answer"):
            await ensure_verification_run(client, queued().deploy, RunPlan(deployment="a/b", config_path=tmp_path))
        started = await create_runs_of_waiting_deploys(
            client, deploys, store.journal, RunPlan(deployment="a/b", config_path=tmp_path), now=lambda: NOW
        )
    assert len(started.failed) == 1
    assert deploys.list_waiting_deploys() == (queued(),)


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


async def crash_and_check(prefect, run_id, deploys, wanted, testbed):
    """Report a killed run process as Prefect's runner does, and then let the receiver check the run."""
    from prefect.states import Crashed  # seconds to import

    await prefect.client.set_flow_run_state(UUID(run_id), Crashed(message="killed"), force=True)
    return await restart_crashed_runs(prefect.client, deploys, wanted, build_notifier=testbed.notifier)


@pytest.mark.whole_only
async def test_f98_a_crashed_run_is_started_again_twice_and_then_alerted_with_the_command(
    prefect, tmp_path, slack, snapshot
):
    deploys, store, testbed = DeployQueue(tmp_path), store_in(tmp_path), AlertingTestbed(tmp_path, slack)
    wanted = plan(prefect, tmp_path)
    deploys.save_if_new(queued())
    ((run_id,), _) = await create_runs_of_waiting_deploys(
        prefect.client, deploys, store.journal, wanted, now=lambda: NOW
    )
    for attempt in (2, 3):
        started = await crash_and_check(prefect, run_id, deploys, wanted, testbed)
        (run_id,) = started.runs
        assert [(latest.number, latest.run_id) for _, latest in deploys.list_unfinished_attempts()] == [
            (attempt, run_id)
        ]
    assert await crash_and_check(prefect, run_id, deploys, wanted, testbed) == ((), ())
    keys = {run.idempotency_key for run in await prefect.runs()}
    assert keys == {build_run_idempotency_key(reported(), number) for number in (1, 2, 3)}
    assert format_messages(slack.messages) == snapshot
    assert not deploys.has_unfinished_attempts()


@pytest.mark.whole_only
@pytest.mark.parametrize("change", ["another configuration", "a newer deploy"])
async def test_f98_a_crashed_run_is_not_started_again_when_it_would_ask_something_else(
    prefect, tmp_path, slack, change
):
    deploys, store, testbed = DeployQueue(tmp_path), store_in(tmp_path), AlertingTestbed(tmp_path, slack)
    wanted, (newer,) = plan(prefect, tmp_path), commits(1)
    deploys.save_if_new(queued())
    ((run_id,), _) = await create_runs_of_waiting_deploys(
        prefect.client, deploys, store.journal, wanted, now=lambda: NOW
    )
    if change == "a newer deploy":
        deploys.save_if_new(QueuedDeploy(deploy=reported(newer), stored_at=NOW + timedelta(hours=1)))
    else:
        (tmp_path / "lookout.toml").write_text("# changed", encoding="utf-8")
    assert await crash_and_check(prefect, run_id, deploys, wanted, testbed) == ((), ())
    (message,) = slack.messages
    assert f"--commit {COMMIT}" in json.dumps(message.blocks)
    assert (newer in json.dumps(message.blocks)) is (change == "a newer deploy")
    assert await prefect.commits() == [COMMIT]
    assert not deploys.has_unfinished_attempts()


async def test_a_run_that_ended_is_not_looked_at_again(prefect, tmp_path, slack):
    from prefect.states import Failed  # seconds to import

    deploys, store, testbed = DeployQueue(tmp_path), store_in(tmp_path), AlertingTestbed(tmp_path, slack)
    wanted = plan(prefect, tmp_path)
    deploys.save_if_new(queued())
    ((run_id,), _) = await create_runs_of_waiting_deploys(
        prefect.client, deploys, store.journal, wanted, now=lambda: NOW
    )
    for state, is_open in ((None, True), (Failed(), False)):
        if state is not None:
            await prefect.client.set_flow_run_state(UUID(run_id), state, force=True)
        report = await restart_crashed_runs(prefect.client, deploys, wanted, build_notifier=testbed.notifier)
        assert (report, deploys.has_unfinished_attempts()) == (((), ()), is_open)
    assert slack.messages == []
