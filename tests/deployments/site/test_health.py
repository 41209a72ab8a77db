"""Tests of the monitor's own health on the page Now: healthy, unhealthy, or no data if it is unknown."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.states import Completed, Scheduled

from deployments.site.health import HealthChecker, build_monitor_health_lines
from deployments.site.page import Site
from deployments.site.serve import SiteEnvironment, open_site
from deployments.up.heartbeats import write_lock_file
from deployments.up.one_installation import LOCK_NAME, lock_data_folder
from flows.runtime.slack import build_recorded_heartbeat
from flows.server.schedule_state import ScheduleState, load_schedule_states
from flows.watching.polls import WatchPoll, write_polls
from monitors.alerts.liveness import Beat
from monitors.config.file import PREFECT_TAG
from monitors.records.incidents import DeliveryStatus
from monitors.records.self_checks import DrillReport, DrillStation, StationResult, StationState
from tests.deployments.site.site_server import config_of, filled, serving_site
from tests.polling import wait_until
from tests.servers.watchdog import Watchdog
from tests.warehouse.sample_rows import NOON, alert, exchange, receipt
from warehouse.journal.rows import AlertRow, DrillRow, ReceiptRow, ResultRow

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)


@contextmanager
def site_in(folder, *, at: datetime = AT) -> Iterator[Site]:
    """Build a site for ``folder`` whose time is ``at``, without a server."""
    config = config_of(folder)
    with open_site(config, SiteEnvironment(lambda: at, "me")) as (site, _):
        yield site


def lines(site) -> dict:
    return {line.what: line for line in build_monitor_health_lines(site)}


def test_cases_never_asked_are_no_data(tmp_path):
    """Before the first background check, the only known part of the monitor's health is the undelivered alerts.

    For everything else, the page shows "no data".
    """
    filled(tmp_path)
    with site_in(tmp_path) as site:
        found = lines(site)
    assert {what: line.ok for what, line in found.items()} == {
        "heartbeat": None,
        "last drill": None,
        "alerts not yet delivered": True,
        "journal segments not loaded": None,
        "schedules": None,
    }
    assert found["schedules"].command == "lookout up"
    assert found["last drill"].command == "lookout drill"


@pytest.mark.parametrize(
    ("station", "ok", "text", "command"),
    [
        (
            StationResult(station=DrillStation.SLACK, state=StationState.PASSED, took_s=1.2, found="ok"),
            True,
            "passed",
            "",
        ),
        (
            StationResult(
                station=DrillStation.SLACK,
                state=StationState.FAILED,
                took_s=1.2,
                found="the token was revoked",
                to_do="set a new one",
            ),
            False,
            "failed at Slack",
            "",
        ),
    ],
    ids=["passed", "failed"],
)
def test_the_last_drill_is_shown(tmp_path, station, ok, text, command):
    """The page shows that the last drill passed, or the station at which it failed, with advice."""
    store = filled(tmp_path)
    report = DrillReport(
        drill_id="drill-1",
        started_at=AT - timedelta(days=1),
        finished_at=AT - timedelta(days=1),
        stations=(station,),
        message_after_s=1.2 if ok else None,
        finished=True,
        version="0.1.0",
    )
    store.journal.append([DrillRow(row=report)], run_id=None)
    store.load_pending(5)
    with site_in(tmp_path) as site:
        line = lines(site)["last drill"]
    assert (line.ok, line.text.startswith(text), line.to_do, line.command) == (ok, True, station.to_do, command)


@pytest.mark.parametrize(("age_s", "ok"), [(30, True), (300, False)])
def test_a_watcher_that_is_down_is_shown(tmp_path, age_s, ok, snapshot):
    filled(tmp_path)
    polled_at = AT - timedelta(seconds=age_s)
    with site_in(tmp_path) as site:
        poll = WatchPoll(name="the log of bot", target="bot", at=polled_at, every_s=15)
        write_polls(site.config.data_folder, [poll])
        line = lines(site)["watching"]
    assert line.ok is ok
    assert (line.text, line.to_do) == snapshot


def test_unsent_messages_and_unloaded_segments_are_counted(tmp_path, snapshot):
    """Unsent messages and unloaded segments are counted.

    A segment that has not been loaded for an hour is unhealthy. A new segment is pending.
    """
    store = filled(tmp_path)
    refusals = [ReceiptRow(row=receipt(name, DeliveryStatus.REJECTED)) for name in ("refused", "refused-long-ago")]
    old = alert("refused-long-ago").model_copy(update={"created_at": NOON - timedelta(days=60)})
    alerts = [AlertRow(row=row) for row in (alert("never-sent"), alert("refused"), old)]
    store.journal.append_outbox([*alerts, *refusals])
    store.load_pending(5)
    store.journal.append([ResultRow(row=exchange("late", "case"))], run_id="late")
    written = store.journal.find_newest_segment_time()
    assert written is not None
    for later, well in ((timedelta(minutes=5), True), (timedelta(hours=2), False)):
        with site_in(tmp_path, at=written + later) as site:
            site.health.run_slow_checks_if_old(site)
            found = lines(site)
        waiting = found["journal segments not loaded"]
        assert (waiting.ok, waiting.at, found["alerts not yet delivered"].ok) == (well, written, False)
        assert [waiting.text, found["alerts not yet delivered"].text] == snapshot


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("address", "ok"),
    [(None, None), ("{url}", True), ("http://127.0.0.1:9/ping", False)],
    ids=["not configured", "sent", "did not arrive"],
)
async def test_the_last_heartbeat_is_shown(tmp_path, monkeypatch, address, ok, snapshot):
    """The page shows the last heartbeat as its run recorded it: sent, not arrived, or no address configured."""
    filled(tmp_path)
    monkeypatch.delenv("LOOKOUT_HEARTBEAT_URL", raising=False)
    with Watchdog() as dog:
        if address is not None:
            monkeypatch.setenv("LOOKOUT_HEARTBEAT_URL", address.format(url=dog.check))
        await build_recorded_heartbeat(config_of(tmp_path), "helpdesk").ping(Beat.PROVED, run_id="run-1")
    with site_in(tmp_path) as site:
        line = lines(site)["heartbeat of helpdesk"]
    assert line.ok is ok
    assert line.at is not None
    assert line.text == snapshot


@pytest.mark.parametrize(
    ("state", "ok"),
    [
        (None, False),
        (ScheduleState(name="digest", paused=True, paused_since=AT, resume="prefect api …"), False),
        (ScheduleState(name="digest", paused=False, next_at=AT + timedelta(hours=1)), True),
        (ScheduleState(name="digest", paused=False, last_at=AT, ended="Completed"), True),
        (ScheduleState(name="digest", paused=False, last_at=AT, ended="Crashed", broke=True), False),
        (ScheduleState(name="digest", paused=False, next_at=AT - timedelta(hours=1)), False),
    ],
    ids=["not registered", "paused", "new", "ran", "crashed", "overdue"],
)
def test_a_schedule_is_as_prefect_says(tmp_path, monkeypatch, state, ok, snapshot):
    """A schedule that Prefect reports as not registered, paused, overdue or crashed is unhealthy."""
    filled(tmp_path)
    known = () if state is None else (state,)
    monkeypatch.setattr("deployments.site.health.find_api_url", lambda *_: "http://prefect")
    monkeypatch.setattr("deployments.site.health.load_schedule_states", lambda *_: known)
    with site_in(tmp_path) as site:
        site.health.run_slow_checks_if_old(site)
        line = lines(site)["schedule digest"]
    assert line.ok is ok
    assert line.text == snapshot


@pytest.mark.parametrize(
    ("started_before", "shown", "hidden"),
    [
        (timedelta(seconds=40), "starting", "Lookout itself has faults: schedule"),
        (timedelta(minutes=20), "The runner of `lookout up` does not work", "To register and run it:"),
    ],
    ids=["just started", "its runner is away"],
)
def test_now_never_names_lookout_up_as_the_remedy_while_it_runs(
    tmp_path, monkeypatch, started_before, shown, hidden
):
    """While `lookout up` runs, the page Now does not suggest starting it.

    Prefect's server has none of the schedules in this test.
    """
    now = datetime.now(UTC)
    with lock_data_folder(tmp_path, lambda: now - started_before) as lock:
        holder = json.loads((tmp_path / LOCK_NAME).read_text(encoding="utf-8"))
        write_lock_file(lock, json.dumps(holder | {"alive_at": now.isoformat()}))  # as the heartbeats do
        page = now_page(tmp_path, monkeypatch, ())
    assert shown in page
    assert hidden not in page
    assert "not registered. <span" not in page


def test_without_lookout_up_its_command_is_named(tmp_path, monkeypatch):
    page = now_page(tmp_path, monkeypatch, ())
    assert "Lookout itself has faults: schedule" in page
    assert "not registered. <span" in page


def test_the_next_run_is_shown_in_the_zone_of_its_schedule(tmp_path, monkeypatch):
    """The next run is shown in the time zone of its schedule, and also in UTC, which all other times use."""
    soon = datetime.now(UTC).replace(month=1, day=3, hour=2, minute=15) + timedelta(days=366)
    state = ScheduleState(name="digest", paused=False, next_at=soon)
    page = now_page(tmp_path, monkeypatch, (state,), time_zone="Europe/Berlin")
    assert f"{soon:%Y}-01-0{soon.day} 03:15 Europe/Berlin (02:15 UTC)</time>" in page


def now_page(folder, monkeypatch, known, **schedules) -> str:
    """Request the page Now over HTTP, and return it as soon as its background data is loaded."""
    monkeypatch.setattr("deployments.site.health.find_api_url", lambda *_: "http://prefect")
    monkeypatch.setattr("deployments.site.health.load_schedule_states", lambda *_: known)
    store, config = filled(folder), config_of(folder)
    zoned = config.model_copy(update={"schedules": config.schedules.model_copy(update=schedules)})
    with serving_site(zoned, store) as site:
        return httpx.get(f"{site.address}/", timeout=60, trust_env=False).text


@pytest.mark.whole_only
@pytest.mark.prefect
def test_prefect_is_asked_when_a_schedule_runs(prefect_environment):
    """The site reads each schedule's last run, next run and pause from Prefect's server.

    Deployments without Lookout's tag are skipped. The command that the site suggests resumes a paused schedule.
    """
    api = prefect_environment["PREFECT_API_URL"]
    soon = datetime.now(UTC) + timedelta(hours=1)
    with SyncPrefectClient(api) as client:  # retries if the server's database is busy
        flow = client.create_flow_from_name("site-health")
        ours = client.create_deployment(flow, "site-health-ours", tags=["lookout"])
        strangers = client.create_deployment(flow, "site-health-strangers")
        try:
            client.create_flow_run_from_deployment(ours, state=Scheduled(scheduled_time=soon))
            ended = client.create_flow_run_from_deployment(ours)
            client.set_flow_run_state(ended.id, Completed(name="Pass"), force=True)
            states = wait_until(
                lambda: load_schedule_states(api, PREFECT_TAG), what="Prefect's server answers within the deadline"
            )
            before = datetime.now(UTC) - timedelta(seconds=1)
            httpx.post(f"{api}/deployments/{ours}/pause_deployment", timeout=60, trust_env=False)
            (paused,) = (row for row in load_schedule_states(api, PREFECT_TAG) if row.name == "site-health-ours")
            assert paused.paused_since >= before
            *variables, _prefect, call, method, place = paused.resume.split()
            assert variables == [f"PREFECT_API_URL={api}"]
            command = [sys.executable, "-m", "prefect", call, method, place]
            subprocess.run(command, env=prefect_environment, check=True, capture_output=True)
            (resumed,) = (row for row in load_schedule_states(api, PREFECT_TAG) if row.name == "site-health-ours")
            assert (paused.paused, resumed.paused, resumed.resume) == (True, False, "")
        finally:
            for deployment in (ours, strangers):
                client.delete_deployment(deployment)
    state = next(state for state in states if state.name == "site-health-ours")
    assert (state.paused, state.ended, state.broke) == (False, "Pass", False)
    assert state.next_at is not None
    assert state.next_at.replace(microsecond=0) == soon.replace(microsecond=0)
    assert "site-health-strangers" not in {state.name for state in states}


def test_a_server_that_is_away_or_strange_says_nothing(tmp_path):
    """If Prefect's server is unreachable or responds unexpectedly, the page shows no data."""
    assert load_schedule_states("http://127.0.0.1:9/api", PREFECT_TAG) is None
    with Watchdog() as dog:
        assert load_schedule_states(dog.url, PREFECT_TAG) is None
    del tmp_path
    assert HealthChecker({}).slow is None
