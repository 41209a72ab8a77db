"""Runs the stations of a drill in order until one fails, and reports the result.

Each station checks one part of the path from a wrong answer to Slack. The report file is written after each
station, so that the file exists even if the drill is killed. At the end, the report is stored in the warehouse. If
a station failed, an alert is sent by the first delivery path that works.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from flows.alerting.faults import resolve_other_faults
from flows.alerting.pipeline import notify, resolve_incidents_and_send_alerts
from flows.data_folder import open_store
from flows.drill import stations, wrong_answer
from flows.drill.context import DrillContext, NotSetUp, StationFailed
from flows.drill.receiver import check_receiver
from flows.drill.wrong_answer import LOAD_WAIT_S, WrongAnswer, build_drill_notifier, stop_drill_page
from flows.runtime.slack import (
    build_delivery_paths,
    build_heartbeat_from_environment,
    build_terminal_sender,
    write_line_to_stderr,
)
from monitors.alerts.decide import decide_alerts
from monitors.alerts.group import group_items_into_alerts
from monitors.alerts.liveness import Beat
from monitors.alerts.observe import ObservationContext
from monitors.alerts.observe import build_drill_observation as drill_observation
from monitors.alerts.redact import redact
from monitors.alerts.sender import DeliveryPath
from monitors.errors import MonitorError, NotifyError
from monitors.records.incidents import Alert, Capability, Observation
from monitors.records.self_checks import DRILL_TARGET, DrillReport, DrillStation, StationResult, StationState
from monitors.storage import write_atomically
from warehouse.journal.rows import DrillRow

STATION_TIMEOUT_S: Final = 300.0
"""Timeout of one station in seconds. A station may wait for a slow judge or for the warehouse."""
REPORT_FILE: Final = "drill.json"
"""Name of the data folder's file with the newest drill's report. It can be read without the warehouse."""
PASSED_TEXT: Final = "Drill: passed, no action needed."
MISSING_DRILL_FAULT: Final = "DrillMissing"
"""The name of the fault that is reported if the drill is overdue."""

OnStation = Callable[[StationResult], None]
Station = Callable[[], Awaitable[str]]


class Course:
    """Runs one drill. ``on_station`` is called with the result of each station.

    ``before`` contains the results of the stations that ran earlier in this drill.
    """

    def __init__(self, drill: DrillContext, on_station: OnStation, before: Sequence[StationResult] = ()) -> None:
        self._drill = drill
        self._on_station = on_station
        self._answer = WrongAnswer()
        self._report = DrillReport(
            drill_id=drill.drill_id,
            started_at=drill.now(),
            finished_at=drill.now(),
            stations=tuple(before),
            version=drill.version,
        )

    async def run(self) -> DrillReport:
        """Run all stations, store the report and notify people. If a station fails, no error is raised."""
        try:
            for name, station in self._list_stations():
                if self._report.failed is not None:
                    break
                await self._run_and_record_station(name, station)
        finally:
            await stop_drill_page(self._answer)
        return await self._finish_drill()

    def _list_stations(self) -> Sequence[tuple[DrillStation, Station]]:
        drill, answer = self._drill, self._answer
        return (
            (DrillStation.DATA_FOLDER, lambda: stations.check_data_folder(drill)),
            (DrillStation.SUITE, lambda: stations.check_suites(drill)),
            (DrillStation.SCHEDULE, lambda: stations.check_schedules(drill)),
            (DrillStation.NETWORK, lambda: stations.check_slack_connection(drill)),
            (DrillStation.CLOCK, lambda: stations.check_clock(drill)),
            (DrillStation.LOG, lambda: stations.check_hallucination_logs(drill)),
            (DrillStation.RECEIVER, lambda: check_receiver(drill)),
            (DrillStation.PAGE, lambda: wrong_answer.start_drill_page(drill, answer)),
            (DrillStation.BROWSER, lambda: wrong_answer.ask_drill_page(drill, answer)),
            (DrillStation.GRADERS, lambda: wrong_answer.check_graders(drill, answer)),
            (DrillStation.JUDGE, lambda: wrong_answer.check_judges_tell_right_from_wrong(drill, answer)),
            (DrillStation.GATE, lambda: wrong_answer.check_gate_fails_wrong_answer(drill, answer)),
            (
                DrillStation.JOURNAL,
                lambda: wrong_answer.write_and_read_drill_in_journal(drill, answer, self._report),
            ),
            (DrillStation.WAREHOUSE, lambda: wrong_answer.check_warehouse(drill, answer)),
            (DrillStation.OUTBOX, lambda: wrong_answer.send_and_check_drill_alert(drill, answer)),
            (DrillStation.SLACK, lambda: wrong_answer.check_slack_accepted_message(answer)),
            (DrillStation.HEARTBEAT, lambda: wrong_answer.ping_heartbeat_service(drill)),
        )

    async def _run_and_record_station(self, name: DrillStation, station: Station) -> None:
        began_s = self._drill.monotonic()
        state, finding, to_do = await _run_station(station)
        result = StationResult(
            station=name,
            state=state,
            took_s=max(0.0, self._drill.monotonic() - began_s),
            found=redact(finding),
            to_do=to_do,
        )
        page = self._answer.page
        self._report = self._report.with_progress(
            (*self._report.stations, result),
            fault=page.fault if page else "",
            message_after_s=self._answer.message_after_s,
            at=self._drill.now(),
        )
        # This raises no error, because the first station reports a data folder that cannot be written.
        write_drill_report_file(self._drill.config.data_folder, self._report)
        self._on_station(result)

    async def _finish_drill(self) -> DrillReport:
        """Store the report, notify people if the drill failed, and write the finished report to its file."""
        self._report = self._report.mark_finished(self._drill.now())
        try:
            async with asyncio.timeout(STATION_TIMEOUT_S):
                await asyncio.to_thread(self._store_drill_report)
        except (MonitorError, OSError, TimeoutError) as error:
            write_line_to_stderr(f"Lookout could not store the drill: {redact(str(error))}")
        if self._report.failed is not None:
            await notify_drill_failure(self._drill, self._report)
        await self._resolve_drill_incidents()
        write_drill_report_file(self._drill.config.data_folder, self._report)
        return self._report

    def _store_drill_report(self) -> None:
        store = open_store(self._drill.config)
        store.journal.append((DrillRow(row=self._report),), run_id=None)
        store.load_pending(LOAD_WAIT_S if self._report.passed else 0.0)  # a failed drill must not delay the alert

    async def _resolve_drill_incidents(self) -> None:
        """Resolve the incident that this drill opened.

        If the drill passed, also resolve the incidents of earlier drills.
        """
        try:
            notifier = build_drill_notifier(self._drill, open_store(self._drill.config))
            if self._answer.incident:
                await resolve_incidents_and_send_alerts(
                    notifier, {self._answer.incident: None}, began_at=notifier.now()
                )
            if self._report.passed:
                await resolve_other_faults(
                    notifier, except_names=(), ending=PASSED_TEXT, began_at=self._report.started_at
                )
        except (MonitorError, OSError) as error:
            write_line_to_stderr(f"Lookout could not resolve an incident of the drill: {redact(str(error))}")


async def _run_station(station: Station) -> tuple[StationState, str, str]:
    try:
        async with asyncio.timeout(STATION_TIMEOUT_S):
            return StationState.PASSED, await station(), ""
    except NotSetUp as absent:
        return StationState.NOT_SET_UP, str(absent), ""
    except StationFailed as failed:
        return StationState.FAILED, str(failed), failed.to_do
    except TimeoutError:
        return (
            StationState.FAILED,
            f"the station did not end within {STATION_TIMEOUT_S:g} s",
            "run `lookout doctor` for details",
        )
    except Exception as error:  # noqa: BLE001 - the drill reports where any error occurred
        text = str(error) if isinstance(error, MonitorError) else f"{type(error).__name__}: {error}"
        return StationState.FAILED, text, "run `lookout doctor` for details"


def format_failure_title(report: DrillReport) -> str:
    """Format the title of the alert about a failed drill."""
    failed = report.failed
    where = failed.station.place if failed else "its end"
    return f"Drill failed at {where}: Lookout may not report a real fault"


def format_failure_text(report: DrillReport) -> str:
    """Format the text of the alert about a failed drill: the fault, how to fix it, and which stations passed."""
    failed = report.failed
    if failed is None:
        raise AssertionError("internal error: this message exists only for a failed drill")
    worked = ", ".join(result.station.value for result in report.stations if result.state is StationState.PASSED)
    before = f" These stations passed: {worked}." if worked else ""
    to_do = f" To do: {failed.to_do}." if failed.to_do else ""
    finding = _capitalise_and_remove_full_stop(failed.found)
    return f"{finding}.{to_do}{before} To repeat the drill: lookout drill.".replace("`", "")


def _capitalise_and_remove_full_stop(finding: str) -> str:
    """Remove the full stop at the end of a finding. Capitalise the first word if it has only letters."""
    begins = finding[:1].upper() if finding.split(" ", 1)[0].isalpha() else finding[:1]
    return f"{begins}{finding[1:].rstrip('.')}"


async def notify_drill_failure(drill: DrillContext, report: DrillReport) -> tuple[str, ...]:
    """Notify people which station failed. Return the names of the delivery paths that accepted the message.

    The message is sent without warehouse and outbox, by the first delivery path that accepts it. If no path accepts
    the message, the message is stored for a later process, which sends it.
    """
    write_line_to_stderr(f"{format_failure_title(report)}. {format_failure_text(report)}")
    delivered_by = [*await _send_failure_without_outbox(drill, report)]
    if not delivered_by:
        await _store_failure_alert(drill, report)
    beat = build_heartbeat_from_environment(drill.environment, DRILL_TARGET)
    note = f"{format_failure_title(report)}. {format_failure_text(report)}"
    if await beat.ping(Beat.FAILED, run_id=drill.drill_id, note=note):
        delivered_by.append("heartbeat")
    return tuple(delivered_by)


async def _send_failure_without_outbox(drill: DrillContext, report: DrillReport) -> tuple[str, ...]:
    alert = build_failure_alert(drill, report)
    for path in _list_delivery_paths(drill):
        try:
            await path.sender.send(alert)
        except NotifyError as error:
            write_line_to_stderr(f"{path.name}: {redact(str(error))}")
        else:
            return (path.name,)
    return ()


def _list_delivery_paths(drill: DrillContext) -> tuple[DeliveryPath, ...]:
    """List all delivery paths: Lookout's owners, the fallbacks, and the channel for application alerts."""
    elsewhere = build_delivery_paths(drill.config.with_main_channel_only(), drill.environment, now=drill.now)[:1]
    paths = (*build_delivery_paths(drill.config, drill.environment, now=drill.now), *elsewhere)
    return paths or (DeliveryPath("terminal", build_terminal_sender(drill.config)),)


def build_failure_alert(drill: DrillContext, report: DrillReport) -> Alert:
    """Build the alert about a failed drill, without storing it."""
    now = drill.now()
    decision = decide_alerts({}, [_build_failure_observation(drill, report)], now=now, settings=drill.config.alerts)
    (alert,) = group_items_into_alerts(decision.items, target=DRILL_TARGET, run_id=drill.drill_id, now=now)
    return alert


def _build_failure_observation(drill: DrillContext, report: DrillReport) -> Observation:
    context = ObservationContext(
        target=DRILL_TARGET, run_id=drill.drill_id, seen_at=drill.now(), owner=Capability.DRILL
    )
    return drill_observation(
        context, title=format_failure_title(report), detail=format_failure_text(report), failed=True
    )


async def _store_failure_alert(drill: DrillContext, report: DrillReport) -> None:
    try:
        notifier = build_drill_notifier(drill, open_store(drill.config))
        await notify(notifier, [_build_failure_observation(drill, report)])
    except (MonitorError, OSError) as error:
        write_line_to_stderr(f"Lookout could not store the alert about the failed drill: {redact(str(error))}")


def write_drill_report_file(data_folder: Path, report: DrillReport) -> None:
    """Write the report of a drill to a file in the data folder. If this fails, no error is raised."""
    try:
        write_atomically(data_folder / REPORT_FILE, report.model_dump_json(), within=data_folder)
    except MonitorError:
        return


def read_drill_report_file(data_folder: Path) -> DrillReport | None:
    """Read the report of the newest drill in a data folder. Return ``None`` if there is no readable report."""
    try:
        return DrillReport.model_validate(json.loads((data_folder / REPORT_FILE).read_text(encoding="utf-8")))
    except (OSError, ValueError, ValidationError):
        return None
