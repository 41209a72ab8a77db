"""Test Prefect's automations on a real server: they are created once, and alert about missing and crashed runs."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
import uuid

import httpx
import pytest

from flows.runtime.slack import build_bot_endpoint, build_webhook_endpoint
from flows.server.registration import Change, Expectation, ensure_automations
from monitors.config.file import PREFECT_TAG
from tests.conftest import ROOT
from tests.polling import wait_until
from tests.prefect_home import with_tables
from tests.servers.slack import TOKEN, SlackServer
from tests.stable_text import replace_volatile

AUTOMATIONS = f"{PREFECT_TAG}: "

pytestmark = pytest.mark.prefect

NIGHTLY = Expectation(deployment="nightly", within_s=26 * 3600)


@pytest.fixture
def slack():
    with SlackServer() as server:
        yield server


@pytest.fixture
async def client(prefect_environment):
    from prefect.client.orchestration import PrefectClient  # seconds to import

    async with PrefectClient(prefect_environment["PREFECT_API_URL"]) as client:
        yield client
        for automation in await client.read_automations():
            if automation.name.startswith(AUTOMATIONS):
                await client.delete_automation(automation.id)


def by_bot(slack: SlackServer):
    return build_bot_endpoint(token=TOKEN, api_url=slack.api_url, channel="C0MONITOR")


@pytest.mark.whole_only
async def test_they_are_made_once_and_updated_when_something_changes(client, slack):
    first = await ensure_automations(client, by_bot(slack), expected=[NIGHTLY])
    assert set(first.values()) == {Change.CREATED}
    assert len(first) == 4
    again = await ensure_automations(client, by_bot(slack), expected=[NIGHTLY])
    assert set(again.values()) == {Change.UNCHANGED}

    later = NIGHTLY.model_copy(update={"within_s": 30 * 3600.0})
    changed = await ensure_automations(client, build_webhook_endpoint(slack.webhook_url), expected=[later])
    assert changed[f"{AUTOMATIONS}no run of nightly"] is Change.UPDATED
    assert len([one for one in await client.read_automations() if one.name.startswith(AUTOMATIONS)]) == 4


async def test_disabled_automations_stay_off_and_unexpected_ones_are_removed(client, slack):
    await ensure_automations(client, by_bot(slack), expected=[NIGHTLY])
    (crashes,) = await client.read_automations_by_name(f"{AUTOMATIONS}a run crashed")
    await client.pause_automation(crashes.id)
    changes = await ensure_automations(client, by_bot(slack), expected=[])
    assert changes[f"{AUTOMATIONS}no run of nightly"] is Change.REMOVED
    (crashes,) = await client.read_automations_by_name(f"{AUTOMATIONS}a run crashed")
    assert not crashes.enabled


async def test_a_run_that_the_watcher_starts_again_sends_no_message_when_it_is_stopped(client, slack):
    """There is no alert about crashed runs of flows that the watcher starts again anyway, such as `follow-log`.

    Such runs are still marked as crashed if they send no heartbeat.
    """
    await ensure_automations(client, by_bot(slack), expected=[])
    (crashes,) = await client.read_automations_by_name(f"{AUTOMATIONS}a run crashed")
    (marks,) = await client.read_automations_by_name(f"{AUTOMATIONS}a run sends no heartbeat")
    assert "verify-deploy" in str(crashes.trigger.match_related)
    assert "follow-log" not in str(crashes.trigger.match_related)
    assert "follow-log" in str(marks.trigger.match_related)


@pytest.mark.whole_only
async def test_without_credentials_lost_runs_are_still_marked(client):
    (name,) = await ensure_automations(client, None, expected=[NIGHTLY])
    (automation,) = await client.read_automations_by_name(name)
    assert [action.type for action in automation.actions] == ["change-flow-run-state"]


async def test_the_secrets_are_in_no_automation_and_not_shown_by_the_block(client, slack):
    await ensure_automations(client, by_bot(slack), expected=[NIGHTLY])
    shown = "".join(one.model_dump_json() for one in await client.read_automations())
    blocks = await client.request("POST", "/block_documents/filter", json={})
    assert "lookout-alerts" in blocks.text
    assert TOKEN not in shown + blocks.text


@pytest.mark.whole_only
async def test_missing_and_crashed_runs_are_alerted(client, slack):
    """A deployment without a run, and a run that stops sending heartbeats, cause an alert.

    The run is marked Crashed.
    """
    from prefect import flow  # seconds to import
    from prefect.events.schemas.events import Event
    from prefect.states import Running

    @flow(name=f"lost-{uuid.uuid4().hex[:8]}")
    def lost() -> None: ...

    expected = Expectation(deployment=f"nobody-{uuid.uuid4().hex[:8]}", within_s=10)
    await ensure_automations(client, by_bot(slack), expected=[expected], flows=[lost.name], crashed_after_s=10)
    run = await client.create_flow_run(lost, state=Running())
    beat = Event(
        event="prefect.flow-run.heartbeat",
        resource={"prefect.resource.id": f"prefect.flow-run.{run.id}"},
        related=[
            {
                "prefect.resource.id": f"prefect.flow.{run.flow_id}",
                "prefect.resource.role": "flow",
                "prefect.resource.name": lost.name,
            }
        ],
        payload={},
    )
    sent = await client.request("POST", "/events", json=[beat.model_dump(mode="json")])
    sent.raise_for_status()

    def both() -> bool:
        sent_text = " ".join(message.text for message in slack.messages)
        return expected.deployment in sent_text and run.name in sent_text

    assert await asyncio.to_thread(slack.wait_until, both, 120.0)
    assert (await client.read_flow_run(run.id)).state_name == "Crashed"
    assert {message.channel for message in slack.messages} == {"C0MONITOR"}
    assert all(message.rings == [] for message in slack.messages)


BROKEN = """
import sys
from prefect import flow
from monitors.errors import ConfigError

@flow(name=sys.argv[1])
def broken(number: int) -> None:
    raise ConfigError("lookout.toml: no such file") if number else RuntimeError("a disk is full")

broken(sys.argv[2], return_state=True)
"""


@pytest.mark.whole_only
async def test_only_runs_that_could_not_start_are_alerted_by_the_server(client, slack, prefect_environment):
    """Prefect's server alerts about failed runs only if they could not start, for example without a configuration.

    Other failed runs send their alerts themselves.
    """
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName  # seconds to import

    flow = f"broken-{uuid.uuid4().hex[:8]}"
    await ensure_automations(client, by_bot(slack), expected=[], flows=[flow])
    for number in ("0", "1", "many"):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", BROKEN, flow, number, env=prefect_environment | {"PYTHONPATH": str(ROOT)}
        )
        assert await process.wait() == 0
    of_this_flow = FlowFilter(name=FlowFilterName(any_=[flow]))
    runs = {run.parameters["number"]: run for run in await client.read_flow_runs(flow_filter=of_this_flow)}
    assert [run.state_type.value for run in runs.values()] == ["FAILED"] * 3

    def alerted_runs() -> set[str]:
        text = " ".join(message.text for message in slack.messages)
        return {number for number, run in runs.items() if f"run {run.name} of {flow}" in text}

    assert await asyncio.to_thread(slack.wait_until, lambda: len(alerted_runs()) == 2, 120.0), runs
    assert alerted_runs() == {"1", "many"}
    assert all("could not start" in message.text for message in slack.messages)


INTERRUPTED = """
import os, signal, sys, time
from prefect import flow

@flow(name=sys.argv[1])
def interrupted() -> None:
    os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    time.sleep(60)

interrupted()
"""


@pytest.mark.parametrize("ended_by", ["SIGINT", "SIGTERM"])
@pytest.mark.whole_only
async def test_a_run_cancelled_by_a_user_is_reported_once_and_not_as_a_fault(
    client, slack, prefect_environment, ended_by, snapshot
):
    flow = f"interrupted-{uuid.uuid4().hex[:8]}"
    await ensure_automations(client, by_bot(slack), expected=[], flows=[flow])
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", INTERRUPTED, flow, ended_by, env=prefect_environment | {"PYTHONPATH": str(ROOT)}
    )
    assert await process.wait() != 0
    assert await asyncio.to_thread(slack.wait_until, lambda: bool(slack.messages), 120.0)
    await asyncio.sleep(3)  # the event comes a second time by another way, within a second
    (message,) = slack.messages
    assert flow in message.text
    assert re.sub(r"run \S+ of", "run NAME of", replace_volatile(message.text, flow=flow)) == snapshot


@pytest.mark.whole_only
async def test_a_server_that_does_not_know_its_pages_names_the_command_that_shows_the_run(slack, tmp_path):
    """If the URL of the Prefect UI is unknown, an alert contains the command that shows the run.

    In this test, the server listens on all addresses, and `PREFECT_UI_URL` is not set.
    """
    from prefect.client.orchestration import PrefectClient  # seconds to import

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = with_tables(tmp_path / "home")
    api = f"http://127.0.0.1:{port}/api"
    variables = {name: text for name, text in os.environ.items() if not name.startswith("PREFECT_")}
    variables |= {"PREFECT_HOME": str(home), "PREFECT_SERVER_ANALYTICS_ENABLED": "false"}
    command = (sys.executable, "-m", "prefect", "server", "start", "--host", "0.0.0.0", "--port", str(port))
    server = await asyncio.create_subprocess_exec(
        *command, env=variables, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await asyncio.to_thread(
            wait_until, lambda: answers(f"{api}/health"), timeout_s=180, what="the server answers"
        )
        flow = f"broken-{uuid.uuid4().hex[:8]}"
        async with PrefectClient(api) as client:
            await ensure_automations(client, by_bot(slack), expected=[], flows=[flow])
            runner = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", BROKEN, flow, "1"),
                env=variables | {"PYTHONPATH": str(ROOT), "PREFECT_API_URL": api},
            )
            assert await runner.wait() == 0
            assert await asyncio.to_thread(slack.wait_until, lambda: bool(slack.messages), 120.0)
            (run,) = await client.read_flow_runs()
        (message,) = slack.messages
        assert message.text.endswith(f"The state of the run shows the error: prefect flow-run inspect {run.id}")
    finally:
        server.terminate()
        await server.wait()


def answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).is_success
    except httpx.HTTPError:
        return False
