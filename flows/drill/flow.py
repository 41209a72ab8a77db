"""Test the alert path end to end with a planted wrong answer.

    data folder ─▶ suite ─▶ schedule ─▶ network ─▶ clock ─▶ log ─▶ receiver ─▶ drill page ─▶ browser ─▶ graders
        ─▶ judge ─▶ gate ─▶ journal ─▶ warehouse ─▶ outbox ─▶ Slack ─▶ heartbeat

The drill page is Lookout's own chat page, which gives the wrong answer. If a station fails, an alert is sent by a
delivery path that still works, and the flow ends ``Failed`` with the name of the station.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.states import Completed, Failed

from flows.clock import utc_now
from flows.drill.context import build_drill_context
from flows.drill.course import Course, format_failure_text, format_failure_title
from flows.runtime.secrets import get_environment
from flows.runtime.slack import write_line_to_stderr
from flows.server.missed_runs import cancel_missed_runs_of_deployment
from monitors.config.file import load_config
from monitors.records.self_checks import DrillReport, StationResult


@flow(name="fire-drill", description=__doc__)
async def fire_drill(config_path: Path, drill_id: str | None = None) -> State[DrillReport] | State[None]:
    """Run one drill. The state's data is the drill's report. Raises `ConfigError` before the first station."""
    config = await asyncio.to_thread(load_config, config_path)
    skipped = await cancel_missed_runs_of_deployment(config.schedules.missed, utc_now())
    if skipped is not None:
        return skipped
    drill = build_drill_context(
        config, config_path, drill_id=drill_id, prefect_api=get_environment().get("PREFECT_API_URL")
    )
    report = await Course(drill, _log_station).run()
    if report.failed is not None:
        return Failed(message=f"{format_failure_title(report)}. {format_failure_text(report)}", data=report)
    seconds = f"{report.message_after_s:.1f} s" if report.message_after_s is not None else "an unknown time"
    return Completed(name="Passed", message=f"Slack accepted the message after {seconds}", data=report)


def _log_station(result: StationResult) -> None:
    write_line_to_stderr(
        f"drill: {result.station.value}: {result.state.value} in {result.took_s:.1f} s: {result.found}"
    )
