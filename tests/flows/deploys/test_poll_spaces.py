"""Test that the poll finds a Space's deploy once if its webhook was lost, and alerts if the Hub is unreachable."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler

import pytest

from flows.deploys.flow import SUBJECT, DeployPoller, poll_targets_and_store_results
from flows.deploys.queue import DeployQueue
from monitors.config.file import parse_config
from monitors.config.sections import DeploySettings, FirstPoll
from monitors.records.incidents import NotifyReason
from tests import fork_server
from tests.conftest import COMMAND_S
from tests.deployments.deploy_receiver import receiver
from tests.deployments.triggers.senders import COMMIT, OTHER_COMMIT, space_pushed
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.deploys.sample_deploys import queued, registered
from tests.flows.messages import format_messages
from tests.servers.hub import Hub
from tests.servers.slack import SlackServer

OLD, NEW = OTHER_COMMIT, COMMIT


def stage(sha, name="RUNNING"):
    return {"stage": name, "sha": sha}


@contextmanager
def hub_says(*runtimes):
    server = Hub(*runtimes)
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
def testbed(tmp_path, slack):
    return AlertingTestbed(tmp_path, slack)


def toml(hub, folder, name="bot"):
    return {
        "data_folder": str(folder),
        "targets": {
            name: {
                "space": "acme/helpdesk-space",
                "suite": "suite.jsonl",
                "probe": {"readiness": {"hub_url": hub.address}},
            },
            "page": {"url": "http://127.0.0.1:1", "suite": "suite.jsonl"},
        },
    }


def watch_of(hub, folder, testbed, **settings):
    return DeployPoller(
        config=parse_config(toml(hub, folder), "the test"),
        settings=DeploySettings(**settings),
        deploys=DeployQueue(folder),
        notifier=lambda: replace(testbed.notifier(), target=SUBJECT),
        hub_token="hf_of_the_test",
        now=testbed,
    )


def waiting(folder):
    return [one.deploy.event.commit for one in DeployQueue(folder).list_waiting_deploys()]


async def test_the_very_first_look_is_noted_and_starts_nothing(tmp_path, testbed):
    with hub_says(stage(OLD)) as hub:
        watch = watch_of(hub, tmp_path, testbed)
        for _ in range(3):
            (looked,) = await poll_targets_and_store_results(watch)
            assert (looked.target, looked.commit) == ("bot", OLD)
    assert waiting(tmp_path) == []
    assert watch.deploys.find_newest_reported_commit("bot") == OLD
    assert set(hub.tokens) == {"Bearer hf_of_the_test"}


async def test_the_first_look_is_verified_where_it_is_wished(tmp_path, testbed):
    with hub_says(stage(OLD)) as hub:
        await poll_targets_and_store_results(watch_of(hub, tmp_path, testbed, first_poll=FirstPoll.VERIFY))
    assert waiting(tmp_path) == [OLD]


async def test_f36_a_commit_without_a_webhook_is_queued_once(tmp_path, testbed):
    with hub_says(stage(OLD), stage(OLD), stage(NEW), stage(NEW, "RUNNING_BUILDING")) as hub:
        watch = watch_of(hub, tmp_path, testbed)
        for _ in range(6):
            await poll_targets_and_store_results(watch)
    (found,) = DeployQueue(tmp_path).list_waiting_deploys()
    assert (found.deploy.event.commit, found.deploy.event.reported_by) == (NEW, "poll")


async def test_a_space_that_is_rolled_back_is_verified_once_more(tmp_path, testbed):
    """Each time a Space is rolled back to an earlier commit, this commit is verified again.

    The Hub does not report deployments, so the poll must detect that an earlier commit is running again.
    """
    course = (OLD, NEW, NEW, OLD, OLD, NEW, OLD)
    with hub_says(*(stage(commit) for commit in course)) as hub:
        watch = watch_of(hub, tmp_path, testbed)
        for _ in course:
            await poll_targets_and_store_results(watch)
            testbed.skip(minutes=1)
    assert waiting(tmp_path) == [NEW, OLD, NEW, OLD]


async def test_a_known_commit_that_is_on_its_way_is_not_a_rollback(tmp_path, testbed):
    """If the webhook of a commit arrives while the Space still builds this commit, the poll reports no rollback."""
    with hub_says(stage(OLD), stage(NEW), stage(NEW)) as hub:
        watch = watch_of(hub, tmp_path, testbed)
        await poll_targets_and_store_results(watch)
        testbed.skip(minutes=1)
        watch.deploys.save_if_new(queued(NEW).model_copy(update={"stored_at": testbed.now}))
        for _ in range(2):
            await poll_targets_and_store_results(watch)
            testbed.skip(minutes=1)
    assert waiting(tmp_path) == [NEW]


async def test_a_deploy_announced_before_the_first_poll_keeps_its_own_run(tmp_path, testbed):
    with hub_says(stage(NEW)) as hub:
        watch = watch_of(hub, tmp_path, testbed)
        watch.deploys.save_if_new(queued(NEW))
        await poll_targets_and_store_results(watch)
    (found,) = DeployQueue(tmp_path).list_waiting_deploys()
    assert found.deploy.event.reported_by == "github"


@pytest.mark.parametrize("sha", [None, "", "main", "../../x", "abc1234"])
@pytest.mark.a_slice(2)
async def test_an_abbreviated_commit_starts_nothing(tmp_path, testbed, sha):
    with hub_says(stage(OLD), stage(sha)) as hub:
        watch = watch_of(hub, tmp_path, testbed)
        for _ in range(3):
            await poll_targets_and_store_results(watch)
    assert waiting(tmp_path) == []


@pytest.mark.whole_only
async def test_the_hub_away_alerts_once_after_several_polls_and_recovers(tmp_path, testbed, slack, snapshot):
    with hub_says(*[503] * 13, stage(OLD)) as hub:
        watch = watch_of(hub, tmp_path, testbed, failures_before_alert=5)
        for _ in range(4):
            (looked,) = await poll_targets_and_store_results(watch)
            assert "503" in looked.error
        assert slack.messages == []
        for _ in range(9):
            await poll_targets_and_store_results(watch)
            testbed.skip(minutes=1)
        assert [alert.reason for alert in testbed.alerts()] == [NotifyReason.FIRST_SEEN]
        for _ in range(3):
            await poll_targets_and_store_results(watch)
        assert [alert.reason for alert in testbed.alerts()] == [NotifyReason.FIRST_SEEN, NotifyReason.RECOVERED]
        assert format_messages(slack.messages) == snapshot
        count = len(slack.messages)
        await poll_targets_and_store_results(watch)
        assert len(slack.messages) == count
    assert waiting(tmp_path) == []


async def test_a_space_invisible_to_the_token_is_reported_as_such(tmp_path, testbed, slack):
    with hub_says(404) as hub:
        watch = watch_of(hub, tmp_path, testbed, failures_before_alert=2)
        for _ in range(2):
            await poll_targets_and_store_results(watch)
    (message,) = slack.messages
    assert "HTTP 404 for acme/helpdesk-space" in str(message.blocks)


@pytest.mark.parametrize("reply", [b"[1]", b"[" * 200_000, b"\xff"], ids=["list", "deep", "bytes"])
async def test_f95_a_hub_that_answers_nonsense_does_not_end_the_poll_of_the_other(tmp_path, testbed, slack, reply):
    class Nonsense(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

    with hub_says(stage(OLD)) as hub, hub_says(stage(OLD)) as confused_hub:
        confused_hub.RequestHandlerClass = Nonsense
        tables = toml(hub, tmp_path)
        tables["targets"] |= {"away": toml(confused_hub, tmp_path, "away")["targets"]["away"]}
        watch = replace(
            watch_of(hub, tmp_path, testbed, failures_before_alert=2), config=parse_config(tables, "the test")
        )
        for _ in range(2):
            polled_targets = {poll.target: poll for poll in await poll_targets_and_store_results(watch)}
            assert polled_targets["bot"].commit == OLD
            assert polled_targets["away"].error
    (message,) = slack.messages
    assert "away" in str(message.blocks)


async def test_a_hub_that_answers_in_between_is_no_silence(tmp_path, testbed, slack):
    with hub_says(503, stage(OLD), 503, stage(OLD), 503, stage(OLD)) as hub:
        watch = watch_of(hub, tmp_path, testbed, failures_before_alert=2)
        for _ in range(6):
            await poll_targets_and_store_results(watch)
    assert slack.messages == []


def polls(folder, environment, *tables):
    """Run the poll flow in a separate process, once for each ``[deploys]`` table.

    Return the final states of the runs.
    """
    lines = "".join(json.dumps([str(folder / "lookout.toml"), table]) + "\n" for table in tables)
    done = fork_server.run(
        module="tests.flows.deploys.watch_worker",
        cwd=folder,
        env=environment | fork_server.WARM,
        given=lines,
        timeout_s=COMMAND_S,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


def figures(message):
    """Return the numbers in the message of a flow run, in the order in which they appear."""
    return [int(number) for number in re.findall(r"\d+", message)]


def configure(folder, target):
    (folder / "lookout.toml").write_text(f'data_folder = "."\n[targets.bot]\nsuite = "s.jsonl"\n{target}', "utf-8")


@pytest.mark.whole_only
@pytest.mark.prefect
async def test_f36_poll_and_webhook_together_make_one_run(tmp_path, prefect_environment):
    """If the poll finds a commit before its late webhook arrives, only one run is created for the commit."""
    api, far = prefect_environment["PREFECT_API_URL"], tmp_path / "elsewhere"
    far.mkdir()
    async with registered(api) as prefect:
        with hub_says(stage(OLD), stage(NEW)) as hub:
            configure(tmp_path, f'space = "acme/bot"\n[targets.bot.probe.readiness]\nhub_url = "{hub.address}"\n')
            table = {"deployment": prefect.name}
            ends = await asyncio.to_thread(polls, tmp_path, prefect_environment, table, table, table)
        assert [end[:2] for end in ends] == [("COMPLETED", "Watched")] * 3
        polled, silent, started = zip(*(figures(end[2]) for end in ends), strict=True)
        assert (polled, silent, started) == ((1, 1, 1), (0, 0, 0), (0, 1, 0))
        async with receiver(tmp_path, prefect_api=lambda: api, deployment=prefect.name) as door:
            assert (await door.by_hub(space_pushed())).status_code == 200
        async with receiver(far, prefect_api=lambda: api, deployment=prefect.name) as door:
            assert (await door.by_hub(space_pushed())).status_code == 202, "another machine, another folder"
            await door.starter.wait_until_idle()
        assert await prefect.commits() == [NEW]


@pytest.mark.prefect
@pytest.mark.whole_only
async def test_a_run_that_cannot_be_made_fails_the_look_and_the_next_tries_again(tmp_path, prefect_environment):
    configure(tmp_path, 'url = "http://127.0.0.1:1"\n')
    DeployQueue(tmp_path).save_if_new(queued())
    async with registered(prefect_environment["PREFECT_API_URL"]) as prefect:
        tables = {"deployment": "nobody/nothing"}, {"deployment": prefect.name}
        first, second = await asyncio.to_thread(polls, tmp_path, prefect_environment, *tables)
        assert first[:2] == ("FAILED", "Waiting")
        assert "no deployment nobody/nothing" in first[2]
        assert second[:2] == ("COMPLETED", "Watched")
        assert figures(second[2]) == [0, 0, 1], "targets polled, without an answer, runs started"
        assert await prefect.commits() == [COMMIT]
