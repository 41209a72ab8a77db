"""Test that two machines with separate data folders and a shared Prefect server send one alert about a fault."""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import httpx
import pytest
from aiohttp import web

from flows.alerting.faults import Fault, notify_fault
from flows.alerting.notifier import store_operator_action
from flows.alerting.pipeline import notify
from flows.alerting.shared_server import SENT_ELSEWHERE, SharedServer
from flows.clock import utc_now
from flows.data_folder import get_prefect_home
from flows.runtime.secrets import generate_nonce
from flows.runtime.slack import build_shared_prefect_server
from flows.server import prefect_server
from flows.server.prefect_server import LocalServer
from monitors.config.file import load_config
from monitors.records.base import Severity
from monitors.records.incidents import ActionKind, ActionVia, IncidentKind
from monitors.records.operator_actions import OperatorAction
from tests.flows.alerting_testbed import AlertingTestbed
from tests.flows.few_cases import configured
from tests.monitors.alerts.sample_observations import compute_fingerprint, observation, outage, scope
from tests.prefect_home import with_tables
from tests.servers.threaded_server import ThreadedServer

pytestmark = pytest.mark.prefect

GONE = "http://127.0.0.1:9/api"
"""An address at which no server listens."""


class SilentServer(ThreadedServer):
    """A server that accepts every request and never responds."""

    requests = 0

    def application(self) -> web.Application:
        async def hang(_: web.Request) -> web.Response:
            self.requests += 1
            await self.closing.wait()
            return web.Response()

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", hang)
        return app


class Machine(AlertingTestbed):
    """A machine with its own data folder and incidents. Machines share Slack and the Prefect server at ``api``."""

    def __init__(self, folder, slack, api, *, destination="", interval_h=23.0, **options):
        folder.mkdir()
        super().__init__(folder, slack, reminder_interval_h=interval_h)
        self.now = utc_now()
        self.name = folder.name
        self.shared = SharedServer(
            api,
            folder=f"id-of-{self.name}",
            host=self.name,
            destination=destination or slack.api_url,
            addresses={"demo": "https://demo.example"},
            nonce=generate_nonce,
            **options,
        )

    def notifier(self, *arguments, **options):
        return replace(super().notifier(*arguments, **options), shared_server=self.shared)

    async def see(self, *observations, run_id="run-1", **changes):
        """Report ``observations``, by default one leak, in the run ``run_id``."""
        default = [observation(seen_at=self(), run_id=run_id, **changes)]
        await notify(self.notifier(run_id), observations or default)

    async def pass_case(self, run_id, case="leak-1"):
        """Report a run in which ``case`` is answered correctly."""
        right = scope(run_id, case, began_at=self.now, ended_at=self())
        await notify(self.notifier(run_id), [], scope=right)

    def resolve_by_hand(self):
        """Resolve the leak as a user does with a command."""
        action = OperatorAction(
            id=f"act-{uuid4().hex[:8]}",
            kind=ActionKind.RESOLVE,
            by="Ada",
            via=ActionVia.COMMAND,
            at=self(),
            fingerprints=(observation().fingerprint,),
        )
        store_operator_action(self.notifier().actions, action)

    @property
    def details(self):
        """Return the detail text of each delivery attempt, oldest first."""
        return [detail for _, detail in self.receipts()]


@pytest.fixture
def api(prefect_environment):
    return prefect_environment["PREFECT_API_URL"]


@pytest.fixture
def machines(tmp_path, slack, api):
    return [Machine(tmp_path / name, slack, api) for name in ("machine-a", "machine-b")]


def variables(api, like):
    body = {"variables": {"name": {"like_": like}}}
    return httpx.post(f"{api}/variables/filter", json=body, trust_env=False).raise_for_status().json()


async def test_two_machines_at_once_send_one_alert(machines, slack, api):
    held_before = len(variables(api, "lookout-lease"))
    await asyncio.gather(*(machine.see() for machine in machines))
    assert len(slack.messages) == 1
    (sent,), (other,) = sorted((machine.receipts() for machine in machines), key=lambda rows: rows[0][1])
    assert sent == ("sent", "")
    assert other[0] == "sent"
    assert other[1].startswith(f"{SENT_ELSEWHERE}, machine-")
    assert "as LK-" in other[1]
    assert len(variables(api, "lookout-lease")) == held_before, "the lease is returned"


@pytest.mark.whole_only
async def test_many_faults_at_once_are_one_message(machines, slack):
    """If two machines see the same 300 faults, only one message is sent.

    The shared data about so many faults needs several Prefect variables.
    """
    for machine in machines:
        await machine.see(*(observation(f"leak-{n}", seen_at=machine()) for n in range(300)))
    assert len(slack.messages) == 1


async def test_each_of_different_faults_is_sent(machines, slack):
    await asyncio.gather(*(machine.see(case_id=f"leak-{n}") for n, machine in enumerate(machines)))
    assert len(slack.messages) == 2


async def test_only_the_fault_that_the_other_machine_did_not_send_is_sent(machines, slack):
    first, second = machines
    await first.see()
    await second.see(*(observation(case, seen_at=second()) for case in ("leak-1", "leak-2")))
    assert len(slack.messages) == 2
    assert "leak-2" in str(slack.messages[1].blocks)
    assert "leak-1" not in str(slack.messages[1].blocks)


async def test_the_same_fault_is_sent_again_where_it_is_more_severe(machines, slack):
    first, second = machines
    await first.see(severity=Severity.MAJOR)
    await second.see(severity=Severity.CRITICAL)
    assert len(slack.messages) == 2
    await first.see(severity=Severity.CRITICAL, run_id="run-2")
    assert len(slack.messages) == 2, "the other machine has reported that it is worse"


async def test_a_failed_gate_is_sent_again_with_other_failed_cases(machines, slack):
    def fail_gate(machine, *cases):
        key = compute_fingerprint("demo", IncidentKind.GATE_FAIL)
        return outage(IncidentKind.GATE_FAIL, fingerprint=key, seen_at=machine(), failed_cases=cases)

    first, second = machines
    await first.see(fail_gate(first, "case-1", "case-2"))
    await second.see(fail_gate(second, "case-2"))
    assert len(slack.messages) == 1
    await second.see(fail_gate(second, "case-2", "case-3"), run_id="run-2")
    assert len(slack.messages) == 2


async def test_one_recovery_in_the_thread_and_a_new_incident_after_it(machines, slack):
    first, second = machines
    for machine in machines:
        await machine.see()
    for machine in reversed(machines):
        await machine.pass_case("run-2")
    opened, recovered = slack.messages
    assert recovered.thread_ts == opened.ts, "the machine that did not send it knows the thread"
    assert second.details[-1] == ""
    assert first.details[-1].startswith(SENT_ELSEWHERE)
    await second.see(run_id="run-3")
    assert len(slack.messages) == 3
    await first.see(run_id="run-3")
    assert len(slack.messages) == 3


async def test_a_fault_that_a_person_resolved_is_new_on_every_machine(machines, slack):
    first, second = machines
    await first.see()
    first.resolve_by_hand()
    await first.see(case_id="leak-2")
    assert len(slack.messages) == 2
    await second.see()
    assert len(slack.messages) == 3
    second.resolve_by_hand()
    await second.see(run_id="run-2")
    assert len(slack.messages) == 4


async def test_one_reminder_of_two_machines(machines, slack):
    for machine in machines:
        await machine.see()
        machine.skip(hours=24)
    for machine in machines:
        await machine.see(run_id="run-2")
    assert ["reminder" in str(message.blocks) for message in slack.messages] == [False, True]


async def test_what_was_sent_longer_ago_than_the_interval_is_sent_again(tmp_path, slack, api):
    first, second = (Machine(tmp_path / name, slack, api, interval_h=1 / 3600) for name in "ab")
    before = {row["id"] for row in variables(api, "lookout-alert")}
    await first.see()
    (old,) = {row["id"] for row in variables(api, "lookout-alert")} - before
    await asyncio.sleep(2.1)  # the server's clock runs by itself, and shows whole seconds
    await second.see()
    assert len(slack.messages) == 2
    assert old not in {row["id"] for row in variables(api, "lookout-alert")}, "old records are deleted"


async def test_each_machine_reports_its_own_faults(machines, slack):
    for machine in machines:
        await notify_fault(machine.notifier(), Fault("DiskFull", "the disk is full"))
    assert len(slack.messages) == 2


@pytest.mark.whole_only
async def test_a_machine_that_posts_elsewhere_sends_its_own(tmp_path, slack, api):
    for name in ("one", "two"):
        await Machine(tmp_path / name, slack, api, destination=f"{slack.api_url} #{name}").see()
    assert len(slack.messages) == 2


async def test_a_machine_without_slack_holds_nothing_back(machines, slack):
    first, second = machines
    await notify(first.notifier(paths=[first.terminal]), [observation(seen_at=first())])
    await second.see()
    assert len(slack.messages) == 1


@pytest.mark.whole_only
async def test_what_slack_refuses_from_one_machine_the_other_sends(machines, slack):
    first, second = machines
    slack.misbehave("500")
    await first.see()
    assert slack.messages == []
    await second.see()
    assert len(slack.messages) == 1
    first.skip(minutes=5)
    await notify(first.notifier("run-2"), [])
    assert len(slack.messages) == 1


async def test_after_the_lease_of_a_dead_machine_the_next_one_sends(tmp_path, slack, api):
    dead, living = (Machine(tmp_path / name, slack, api, lease_s=3.0) for name in ("dead", "living"))
    alert = (await _decide(dead))[0]
    holding = dead.shared.hold_target_lease(alert, timedelta(hours=23))
    await holding.__aenter__()  # and it never returns the lease
    began = time.monotonic()
    await living.see()
    assert 2 <= time.monotonic() - began < 8, "the server's clock shows whole seconds"
    assert len(slack.messages) == 1
    assert living.details == [""]
    await holding.__aexit__(None, None, None)


async def _decide(machine):
    with_terminal = replace(machine.notifier(paths=[machine.terminal]), shared_server=None)
    return await notify(with_terminal, [observation(seen_at=machine())])


@pytest.mark.whole_only
async def test_one_of_three_machines_takes_an_expired_lease(tmp_path, slack, api):
    """If a machine dies while it holds the lease, one of three other machines takes the lease and sends one alert.

    The lease is long enough for a busy computer, on which one alert may take some seconds.
    """
    dead, *living = (
        Machine(tmp_path / name, slack, api, lease_s=8.0, answer_timeout_s=30.0) for name in ("dead", "a", "b", "c")
    )
    holding = dead.shared.hold_target_lease((await _decide(dead))[0], timedelta(hours=23))
    await holding.__aenter__()
    await asyncio.gather(*(machine.see() for machine in living))
    await holding.__aexit__(None, None, None)
    assert len(slack.messages) == 1, [machine.details for machine in living]


@pytest.mark.parametrize("case", ["hangs", "gone"])
async def test_without_an_answer_every_machine_sends_and_waits_once(tmp_path, slack, case):
    with SilentServer() as silent:
        api = f"{silent.url}/api" if case == "hangs" else GONE
        machines = [Machine(tmp_path / name, slack, api, answer_timeout_s=1.0) for name in "ab"]
        for machine in machines:
            await machine.see(observation(seen_at=machine()), outage(seen_at=machine()))
        assert silent.requests == (2 if case == "hangs" else 0), "each machine asks once, not for every alert"
    assert len(slack.messages) == 4
    assert all(detail.startswith("sent without a lease") for machine in machines for detail in machine.details)


@pytest.mark.whole_only
async def test_a_changed_variable_loses_no_alert(machines, slack, api):
    first, second = machines
    before = {row["id"] for row in variables(api, "lookout-alert")}
    await first.see()
    async with httpx.AsyncClient(base_url=api, trust_env=False) as client:
        for row in variables(api, "lookout-alert"):
            if row["id"] not in before:
                changed = await client.patch(f"/variables/{row['id']}", json={"value": "changed by a person"})
                assert changed.is_success
    await second.see()
    assert len(slack.messages) == 2


@pytest.mark.whole_only
async def test_a_server_with_a_password_and_csrf_protection(tmp_path, slack):
    home = with_tables(tmp_path / "prefect")
    protected = dict(os.environ) | {
        "PREFECT_SERVER_API_AUTH_STRING": "ada:secret",
        "PREFECT_SERVER_CSRF_PROTECTION_ENABLED": "true",
    }
    try:
        prefect_server.connect_or_start(None, home, environment=protected, start_timeout_s=180, write_line=print)
        api = protected["PREFECT_API_URL"]
        for name in "ab":
            machine = Machine(tmp_path / name, slack, api, auth="ada:secret")
            await machine.see()
            assert "without a lease" not in str(machine.details)
        assert len(slack.messages) == 1
        await Machine(tmp_path / "c", slack, api, auth="ada:wrong").see()
        assert len(slack.messages) == 2, "refused, so it sends"
    finally:
        prefect_server.stop_server(home)


def test_only_a_configured_server_is_shared(tmp_path):
    """A configured Prefect server is shared, but not a server that Lookout started for this data folder.

    In both cases, PREFECT_API_URL contains the address of the server.
    """
    config = load_config(configured(tmp_path, "http://127.0.0.1:9", tmp_path / "suite.jsonl"))
    assert build_shared_prefect_server(config, {}) is None
    environment = {"PREFECT_API_URL": "http://127.0.0.1:4242/api"}
    assert build_shared_prefect_server(config, environment) is not None
    home = get_prefect_home(config)
    home.mkdir(parents=True)
    (home / "server.json").write_text(LocalServer(pid=1, port=4242).model_dump_json(), encoding="utf-8")
    assert build_shared_prefect_server(config, environment) is None
    assert build_shared_prefect_server(config, {"PREFECT_API_URL": "https://prefect.example/api"}) is not None
