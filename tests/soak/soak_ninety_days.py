"""Simulate ninety days of an installation in three time zones, over both clock changes, in minutes.

    python -m tests.soak.soak_ninety_days
    python -m tests.soak.soak_ninety_days --days 12 --zones Europe/Berlin

Each zone has two installations: one for 45 days around the spring clock change, and one for 45 days around the
autumn clock change. Prefect's own scheduler and its service for late runs are called step by step under a simulated
clock, and each due run is executed by Prefect's engine. The application, its logs and Slack are local servers and
files. There is no browser.

During these days, answers become wrong and right again, Slack fails for a night, the worker is missing for three
days, the machine is off for two days, a person pauses the digest, the data folder is copied, and a deploy is rolled
back. At the end every conversation must be graded once. Every due run must have been executed once, or skipped
because a newer run replaces it. Every digest must be sent once, and no alert lost or duplicated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import time_machine

from deployments.demo.configuration import find_free_port
from tests.flows.chat import RIGHT, Chat, watched
from tests.flows.followed_logs import entry
from tests.prefect_home import with_tables
from tests.servers.slack import TOKEN, Posted, SlackServer

if TYPE_CHECKING:
    from prefect.client.schemas.objects import FlowRun

ROOT: Final = Path(__file__).parents[2]
ZONES: Final = ("Europe/Berlin", "America/New_York", "Australia/Sydney")
SPRING, AUTUMN = datetime(2027, 3, 1, 12, tzinfo=UTC), datetime(2027, 9, 27, 12, tzinfo=UTC)
"""The start times of the spring period and the autumn period. In each period, the clocks of every zone change.

The clocks change on 14 March (New York), 28 March (Berlin) and 4 April (Sydney), and on 3 October (Sydney), 31
October (Berlin) and 7 November (New York).
"""
DAYS: Final = 45
SERVICES: Final = (
    *("CANCELLATION_CLEANUP", "EVENT_PERSISTER", "EVENT_LOGGER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS"),
    *("REPOSSESSOR", "SCHEDULER", "TASK_RUN_RECORDER", "TRIGGERS"),
)
"""Prefect's background services, which are switched off. The simulation calls the needed ones step by step."""
CASES: Final = 2
DIGEST: Final = "digest/digest"
OPENING: Final = ("first_seen", "regressed")
"""The reasons of an alert about a new problem. All other reasons are reminders or report the end of an incident."""
SIGN_OF_LIFE_S: Final = 6 * 3600.0
"""The interval between two polls of the log in seconds: six hours.

The usual interval is one hour. The longer one saves most of the simulation time.
"""
DELAY: Final = timedelta(seconds=5)
"""The delay from the moment when a run is due to the moment when a worker starts it."""
RUN_AT: Final = """import sys, time_machine
from deployments.start import main

at = sys.argv.pop(1)
sys.argv[0] = "lookout"
with time_machine.travel(at, tick=True):
    sys.exit(main())
"""
"""A program that runs the command ``lookout`` at a simulated time."""
CONVERSATIONS_EVERY: Final = timedelta(hours=3)
WRONG: Final = "The waiting period is 36 months. [Source: Gold, clause 4.2]"
CONFIGURATION: Final = """
[targets.demo.hallucination_log]
at = "hallucinations.jsonl"
[targets.demo.traffic]
time_zone = "{zone}"
[targets.demo.traffic.sources.talks]
kind = "file"
at = "talks.jsonl"
[alerts]
slack_channel = "C0ALERTS"
slack_monitor_channel = "C0MONITOR"
slack_api_url = "{slack}"
[schedules]
time_zone = "{zone}"
repeatability_cron = ""
[drill]
enabled = false
"""


class SoakReport(NamedTuple):
    """The result of one installation. ``faults`` contains a sentence about each fault."""

    zone: str
    begin: str
    runs: int
    nights: int
    skipped: int
    conversations: int
    digests: int
    deploys: int
    alerts: int
    faults: list[str]
    took_s: float


class PrefectServer:
    """Prefect's API server in a thread of this process.

    It uses the simulated clock, and its services do not run.
    """

    def __init__(self, folder: Path) -> None:
        self._home = with_tables(folder / "prefect")
        self._port = find_free_port("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._port}/api"
        os.environ |= {
            "PREFECT_HOME": str(self._home),
            "PREFECT_API_URL": self.url,
            "PREFECT_API_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{self._home}/prefect.db",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_LOGGING_TO_API_ENABLED": "false",
            **{f"PREFECT_SERVER_SERVICES_{service}_ENABLED": "false" for service in SERVICES},
        }

    @contextmanager
    def serve(self) -> Iterator[None]:
        """Serve until the ``with`` block ends."""
        import uvicorn
        from prefect.server.api.server import create_app

        server = uvicorn.Server(uvicorn.Config(create_app(), port=self._port, log_level="error"))
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.05)
        try:
            yield
        finally:
            server.should_exit = True
            thread.join(30)


class Installation:
    """One data folder with its configuration, application, logs and Slack, for a number of days."""

    def __init__(self, folder: Path, zone: str, begin: datetime, days: int) -> None:
        self.folder, self.zone, self.begin, self.end = folder, zone, begin, begin + timedelta(days=days)
        self.slack, self.chat = SlackServer(), Chat()
        self.has_worker = self.is_on = True
        self.due: list[tuple[str, datetime]] = []
        """The name and the due time of each run that was scheduled while the machine was on."""
        self.talks = self.entries = self.entry_times = self.deploy_count = self.wrong_periods = 0
        self.faults: list[str] = []

    def configure(self) -> Path:
        """Write the suite, the logs and ``lookout.toml``."""
        more = CONFIGURATION.format(zone=self.zone, slack=self.slack.api_url)
        path = watched(self.folder, self.chat, cases=CASES, more="[recheck]\ntimes = 0\n" + more)
        (self.folder / "hallucinations.jsonl").write_text("", encoding="utf-8")
        (self.folder / "talks.jsonl").write_text("", encoding="utf-8")
        return path

    async def live(self) -> SoakReport:
        """Advance the clock from one due time to the next until the end. Check what was run, graded and sent."""
        from prefect.client.orchestration import get_client
        from prefect.server.services.scheduler import schedule_deployments

        from flows.folder_identity import claim_or_separate_data_folder

        began_s = time.monotonic()
        self.path = self.configure()
        happenings = list(HAPPENINGS)
        with time_machine.travel(self.begin, tick=True) as self.clock:
            claim_or_separate_data_folder(self.folder / "data", None, new_id=uuid.uuid4().hex, at=self.begin)
            async with get_client() as self.client:
                await self._register()
                while True:
                    if self.is_on:
                        await schedule_deployments()
                    due_at = await self._find_next_due_time()
                    happens_at = self.begin + happenings[0].after if happenings else self.end
                    now = min(due_at, happens_at)
                    if now >= self.end:
                        break
                    self._write_conversations(now)
                    self.clock.move_to(now + DELAY, tick=True)
                    if happens_at <= due_at:
                        await happenings.pop(0).happen(self)
                    await self._execute_due_runs(now)
                return await self._check(time.monotonic() - began_s)

    async def _register(self) -> None:
        """Register the deployments as the runner does at its start; paused deployments stay paused."""
        from flows.server.registered import delete_unplanned_deployments, read_pauses
        from flows.server.registration import build_runner_deployment
        from flows.server.schedules import NOT_PAUSED, plan_deployments
        from monitors.config.file import PREFECT_TAG, load_config

        config = load_config(self.path)
        self.planned = {plan.name: plan for plan in plan_deployments(config, self.path, config.schedules)}
        pauses = await read_pauses(self.client, PREFECT_TAG)
        await delete_unplanned_deployments(self.client, list(self.planned.values()), self.path, PREFECT_TAG)
        for plan in self.planned.values():
            await (await build_runner_deployment(plan, pauses.get(plan.name, NOT_PAUSED))).aapply()
        self.names = {deployment.id: deployment.name for deployment in await self.client.read_deployments()}

    async def _list_waiting(self) -> list[FlowRun]:
        """Return the scheduled runs that have not begun, earliest first."""
        from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
        from prefect.client.schemas.objects import StateType
        from prefect.client.schemas.sorting import FlowRunSort

        waiting = FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED]))
        return await self.client.read_flow_runs(
            flow_run_filter=FlowRunFilter(state=waiting), sort=FlowRunSort.EXPECTED_START_TIME_ASC, limit=200
        )

    async def _find_next_due_time(self) -> datetime:
        """Return the time at which the next run is due. Runs that were due without a worker are ignored."""
        now = datetime.now(UTC)
        times = [run.expected_start_time for run in await self._list_waiting()]
        return min((at for at in times if at is not None and at > now), default=self.end)

    async def _execute_due_runs(self, now: datetime) -> None:
        """Mark late runs as Prefect's service does, then execute the due runs as a worker does, oldest first."""
        from prefect.server.database import provide_database_interface
        from prefect.server.services.late_runs import mark_flow_run_late

        due = [run for run in await self._list_waiting() if (run.expected_start_time or now) <= now]
        for run in due if self.is_on else ():
            if run.auto_scheduled and run.state is not None and run.state.name == "Scheduled":
                self.due.append((self.names[run.deployment_id], run.expected_start_time or now))
            if run.expected_start_time is not None and now - run.expected_start_time > timedelta(minutes=1):
                await mark_flow_run_late(run.id, db=provide_database_interface())
        if self.is_on and self.has_worker:
            for run in due:
                await self._execute(run)

    async def _execute(self, run: FlowRun) -> None:
        import importlib

        from prefect.client.schemas.responses import SetStateStatus
        from prefect.flow_engine import run_flow_async
        from prefect.states import Pending

        pending = await self.client.set_flow_run_state(run.id, Pending())
        if pending.status is not SetStateStatus.ACCEPT:
            return  # an earlier run of this step has skipped it
        plan = self.planned[self.names[run.deployment_id]]
        flow = getattr(importlib.import_module(plan.module), plan.function)
        current = await self.client.read_flow_run(run.id)
        await run_flow_async(flow, current, flow.validate_parameters(current.parameters), return_type="state")
        ended = await self.client.read_flow_run(run.id)
        if ended.state is None or ended.state.type.value not in ("COMPLETED", "CANCELLED"):
            self.faults.append(f"{plan.name} of {run.expected_start_time}: {ended.state}")

    def _write_conversations(self, until: datetime) -> None:
        """Append the conversations up to the time ``until`` to the traffic log, one for every three hours."""
        with (self.folder / "talks.jsonl").open("a", encoding="utf-8") as log:
            while (at := self.begin + (self.talks + 0.5) * CONVERSATIONS_EVERY) < until:
                self.talks += 1
                row = {"id": f"talk-{self.talks}", "ts": at.isoformat(), "question": f"Number {self.talks}?"}
                log.write(json.dumps({**row, "answer": "You have thirty days to renew the policy."}) + "\n")

    async def answer_wrong(self) -> None:
        """Make all following answers wrong."""
        self.chat.answers = (WRONG,)
        self.wrong_periods += 1

    async def answer_right(self) -> None:
        """Make all following answers right."""
        self.chat.answers = (RIGHT,)

    async def log_hallucinations(self) -> None:
        """Append three entries to the hallucination log."""
        with (self.folder / "hallucinations.jsonl").open("a", encoding="utf-8") as log:
            log.writelines(entry(3 * self.entry_times + number) for number in range(3))
        self.entry_times += 1

    async def end_worker(self) -> None:
        """End the worker. Prefect's server continues."""
        self.has_worker = False

    async def start_worker(self) -> None:
        """Register the deployments again. From now on, due runs are executed."""
        self.has_worker = True
        await self._register()

    async def break_slack(self) -> None:
        """Make the local Slack reject every message."""
        self.slack.always = "internal_error"

    async def repair_slack(self) -> None:
        """Make the local Slack accept messages again."""
        self.slack.always = None

    async def pause_digest(self) -> None:
        """Pause the digest in Prefect, as a person does in its UI."""
        await self.client.pause_deployment((await self.client.read_deployment_by_name(DIGEST)).id)

    async def resume_digest(self) -> None:
        """Resume the digest in Prefect."""
        await self.client.resume_deployment((await self.client.read_deployment_by_name(DIGEST)).id)

    async def turn_off(self) -> None:
        """Turn the machine off, including Prefect's server."""
        self.is_on = False

    async def turn_on(self) -> None:
        """Turn the machine on."""
        self.is_on = True
        await self._register()

    async def deploy_a(self) -> None:
        """Report a deploy of the first commit. After `deploy_b`, this is a rollback."""
        await self._deploy("aaaaaaa")

    async def deploy_b(self) -> None:
        """Report a deploy of the second commit."""
        await self._deploy("bbbbbbb")

    async def _deploy(self, commit: str) -> None:
        """Report a deploy twice, like a sender that retries, and create its run as the receiver does."""
        from flows.data_folder import open_store_in
        from flows.deploys.queue import DeployQueue, QueuedDeploy
        from flows.deploys.runs import RunPlan, create_runs_of_waiting_deploys
        from monitors.records.targets import DeployEvent, ReportedDeploy

        now = datetime.now(UTC)
        self.deploy_count += 1
        event = DeployEvent(target="demo", commit=commit, occurred_at=now, reported_by="github")
        queued = QueuedDeploy(
            deploy=ReportedDeploy(event=event, deployment=str(1000 + self.deploy_count)), stored_at=now
        )
        deploys = DeployQueue(self.folder / "data")
        plan = RunPlan(deployment="verify-deploy/verify-deploy", config_path=self.path)
        for _ in range(2):
            deploys.save_if_new(queued)
            await create_runs_of_waiting_deploys(
                self.client, deploys, open_store_in(self.folder / "data").journal, plan, now=lambda: now
            )

    async def copy_folder(self) -> None:
        """Copy the data folder, and run the command in the copy.

        Without ``--copy``, the command must refuse to run. With ``--copy``, it must run, but not send messages of
        the original installation.
        """
        copy = self.folder.with_name("copy")
        await asyncio.to_thread(shutil.copytree, self.folder, copy)
        before = len(self.slack.messages)
        for options, accepted in (((), False), (("--copy",), True)):
            command = [sys.executable, "-c", RUN_AT, datetime.now(UTC).isoformat()]
            done = await asyncio.to_thread(
                subprocess.run,
                [*command, "nightly", "--config", str(copy / "lookout.toml"), *options],
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
            )
            if accepted != (done.returncode in (0, 1)) or (not accepted and done.returncode != 2):
                self.faults.append(f"the copy ended {options} with {done.returncode}: {done.stderr[-300:]}")
        if len(self.slack.messages) != before:
            self.faults.append("the copy sent messages of its original")

    async def _check(self, took_s: float) -> SoakReport:
        from prefect.client.schemas.filters import FlowRunFilter
        from prefect.client.schemas.sorting import FlowRunSort

        from flows.data_folder import open_store_in
        from monitors.records.incidents import IncidentKind
        from tests.flows.messages import load_alerts
        from warehouse.queries.traffic import list_recent_nightly_reports

        runs: list[Any] = []
        while page := await self.client.read_flow_runs(
            flow_run_filter=FlowRunFilter(), sort=FlowRunSort.EXPECTED_START_TIME_ASC, limit=200, offset=len(runs)
        ):
            runs += page
        ended = [run for run in runs if run.state_name not in ("Scheduled", "Late")]
        of_schedules = [
            run for run in ended if run.auto_scheduled and run.deployment_id in self.names
        ]  # not the tasks' own
        executed = Counter(
            (self.names[run.deployment_id], run.expected_start_time)
            for run in of_schedules
            if run.state_name != "Skipped"
        )
        skipped = [run for run in of_schedules if run.state_name == "Skipped"]
        self.faults += [
            f"{name} of {at} was run {count} times" for (name, at), count in executed.items() if count > 1
        ]
        reached = set(executed) | {(self.names[run.deployment_id], run.expected_start_time) for run in skipped}
        self.faults += [f"{name} of {at} was not run" for name, at in self.due if (name, at) not in reached]

        store = open_store_in(self.folder / "data")
        alerts = load_alerts(store)
        reports = list_recent_nightly_reports(store, "demo", 1000)
        nights = Counter(report.due_at for report in reports)
        self.faults += [f"the night of {at} was graded {count} times" for at, count in nights.items() if count > 1]
        last = max(nights)
        written = sum(self.begin + (number + 0.5) * CONVERSATIONS_EVERY < last for number in range(self.talks))
        graded = sum(report.read for report in reports)
        if graded != written:
            self.faults.append(f"{graded} of {written} conversations were graded")

        posted = Counter(_get_id(message) for message in self.slack.messages if _get_id(message))
        self.faults += [f"{key} was sent {count} times" for key, count in posted.items() if count > 1]
        digests = sum(name == "digest" for name, _ in executed)
        sent_digests = [key for key in posted if key not in {alert.id for alert in alerts}]
        if len(sent_digests) != digests:
            self.faults.append(f"{len(sent_digests)} messages for {digests} digests")
        messages = {_get_id(message): f"{message.text} {message.blocks}" for message in self.slack.messages}
        self.faults += [
            f"the alert {alert.id} ({alert.kind}, {alert.reason}) was not sent"
            for alert in alerts
            if alert.id not in posted
            # Lookout adds an alert to the first message of its run when it follows within seconds.
            and not any(
                run_alert.run_id == alert.run_id
                and all(
                    (item.incident.case_id or item.incident.title) in messages.get(run_alert.id, "")
                    for item in alert.items
                )
                for run_alert in alerts
            )
        ]
        opened = Counter(alert.kind for alert in alerts if alert.reason in OPENING)
        expected = Counter(
            {
                IncidentKind.CASE_FAILURE: CASES * self.wrong_periods,
                IncidentKind.GATE_FAIL: self.wrong_periods,
                IncidentKind.HALLUCINATION: self.entry_times,
            }
        )
        if opened != expected:
            self.faults.append(f"alerts about something new: {dict(opened)}, expected {dict(expected)}")
        still_open = [
            incident for incident in store.load_incidents("demo").values() if incident.state != "resolved"
        ]
        self.faults += [f"{incident.kind} is still open" for incident in still_open]
        verified = sum(
            self.names.get(run.deployment_id) == "verify-deploy" and not run.auto_scheduled for run in ended
        )
        if verified != self.deploy_count:
            self.faults.append(f"{verified} runs for {self.deploy_count} deploys")
        return SoakReport(
            zone=self.zone,
            begin=f"{self.begin:%Y-%m-%d}",
            runs=sum(executed.values()) + verified,
            nights=len(nights),
            skipped=len(skipped),
            conversations=graded,
            digests=digests,
            deploys=verified,
            alerts=len(alerts),
            faults=self.faults,
            took_s=took_s,
        )


def _get_id(message: Posted) -> str | None:
    """Return the id of the alert or digest in a message."""
    return message.metadata.get("event_payload", {}).get("id")


class Happening(NamedTuple):
    """An event that happens ``day`` days and ``hour`` hours after the start, which is at noon UTC."""

    day: int
    hour: int
    happen: Callable[[Installation], Awaitable[None]]

    @property
    def after(self) -> timedelta:
        """Return the time since the start."""
        return timedelta(days=self.day, hours=self.hour)


HAPPENINGS: Final = (
    Happening(3, 0, Installation.answer_wrong),
    Happening(5, 0, Installation.answer_right),
    Happening(7, 2, Installation.log_hallucinations),
    Happening(9, 0, Installation.end_worker),
    Happening(12, 4, Installation.start_worker),
    Happening(16, 0, Installation.break_slack),
    Happening(16, 1, Installation.answer_wrong),
    Happening(16, 16, Installation.repair_slack),
    Happening(18, 0, Installation.answer_right),
    Happening(21, 0, Installation.pause_digest),
    Happening(22, 0, Installation.start_worker),
    Happening(24, 0, Installation.resume_digest),
    Happening(26, 6, Installation.copy_folder),
    Happening(29, 0, Installation.deploy_a),
    Happening(29, 6, Installation.deploy_b),
    Happening(30, 2, Installation.deploy_a),
    Happening(34, 0, Installation.turn_off),
    Happening(36, 3, Installation.turn_on),
    Happening(39, 2, Installation.log_hallucinations),
)


def live_in_process(folder: Path, zone: str, begin: datetime, days: int) -> SoakReport:
    """Simulate one installation in this process, and return its report."""
    os.environ |= {"SLACK_BOT_TOKEN": TOKEN}
    server = PrefectServer(folder)
    (folder / "original").mkdir()
    from flows.maintenance import flow as maintenance  # it imports Prefect, which reads the variables
    from flows.server import schedules

    schedules.SIGN_OF_LIFE_S = SIGN_OF_LIFE_S
    maintenance.read_boot_and_uptime = lambda: ("one boot", (datetime.now(UTC) - begin).total_seconds())
    with server.serve():
        installation = Installation(folder / "original", zone, begin, days)
        with installation.slack, installation.chat:
            return asyncio.run(installation.live())


def live_in_processes(zones: Sequence[str], days: int, folder: Path) -> Iterator[SoakReport]:
    """Simulate all installations in separate processes, two at a time. Yield each report when it is complete."""

    def live(number: int, zone: str, begin: datetime) -> SoakReport:
        place = folder / str(number)
        place.mkdir()
        command = [sys.executable, "-m", "tests.soak.soak_ninety_days", "--days", str(days), "--zones", zone]
        command += ["--begin", begin.isoformat(), "--folder", str(place)]
        with (place / "log").open("w", encoding="utf-8") as log:
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
        if done.returncode:
            raise AssertionError((place / "log").read_text(encoding="utf-8")[-3000:])
        return SoakReport(**json.loads(done.stdout.splitlines()[-1]))

    with ThreadPoolExecutor(max_workers=2) as pool:
        begun = [
            pool.submit(live, number, zone, begin)
            for number, (zone, begin) in enumerate((zone, begin) for zone in zones for begin in (SPRING, AUTUMN))
        ]
        for future in begun:
            yield future.result()


def format_row(report: SoakReport) -> str:
    """Format a report as a row of a Markdown table."""
    values = report._replace(faults=[str(len(report.faults))])
    cells = [str(value[0] if isinstance(value, list) else value) for value in values[:-1]]
    return f"| {' | '.join(cells)} | {report.took_s / 60:.0f} min |"


def main() -> int:
    """Simulate the days and print the table; return 1 if there was a fault."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--zones", nargs="+", default=ZONES)
    options.add_argument("--days", type=int, default=DAYS, help="days of each installation")
    options.add_argument("--begin", type=datetime.fromisoformat, help=argparse.SUPPRESS)
    options.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.begin is not None:
        report = live_in_process(arguments.folder, arguments.zones[0], arguments.begin, arguments.days)
        print(json.dumps(report._asdict()))
        return 0
    began_s, faults = time.monotonic(), 0
    print(f"| {' | '.join(SoakReport._fields)} |\n|{'---|' * len(SoakReport._fields)}")
    with tempfile.TemporaryDirectory() as folder:
        for report in live_in_processes(arguments.zones, arguments.days, Path(folder)):
            print(format_row(report), *report.faults, sep="\n    ", flush=True)
            faults += len(report.faults)
    load = os.getloadavg()[0]
    print(f"{faults} faults in {(time.monotonic() - began_s) / 60:.0f} minutes, load average {load:.1f}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
