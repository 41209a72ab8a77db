"""``lookout nightly``: grade the live traffic of the last night, or show the plan for the nightly run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, cast

import typer

from deployments.cli.data_folder import claim_data_folder
from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, CopyOption, JsonOption, MovedOption
from flows.clock import utc_now
from flows.nightly.context import NightlyContext, build_nightly_context, list_targets_to_grade
from flows.nightly.format import format_intake_warnings, format_nightly_report
from flows.nightly.run import NightlyRun
from flows.nightly.state import IntakeCheckpoint
from flows.runtime.run import start_or_connect_to_prefect
from flows.server.prefect_server import is_server_gone
from flows.terminal import print_text, write_json
from flows.terminal_console import make_terminal_console
from flows.waiting import show_waiting, update_waiting
from monitors.config.file import Config, load_config
from monitors.records.estimates import NightlyPlan
from monitors.records.nightly import NightlyReport


def nightly_command(
    target: Annotated[
        str | None, typer.Argument(help="the name of a target with live traffic; default: all such targets")
    ] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    plan: Annotated[
        bool,
        typer.Option(
            "--plan", help="only show the plan: the size of the sample, the cost and the expected precision"
        ),
    ] = False,
    until: Annotated[
        datetime | None,
        typer.Option(
            formats=[f"%Y-%m-%d{time}" for time in ("", "T%H:%M", "T%H:%M:%S", "T%H:%M%z", "T%H:%M:%S%z")],
            help="grade the conversations that were completed before this time, instead of last night's "
            "conversations. The time is in UTC, or has an offset such as +05:30. A date means 00:00 of that day",
        ),
    ] = None,
    moved: MovedOption = False,
    copy: CopyOption = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Grade a sample of last night's real conversations, and estimate the failure rate of all conversations."""
    due_at = until.replace(tzinfo=until.tzinfo or UTC) if until is not None else None
    loaded = load_config(config)
    names = list_targets_to_grade(loaded, target)
    claim_data_folder(loaded.data_folder, loaded, moved=moved, copied=copy)
    if plan:  # the plan reports the same gaps and unusable conversations as the run
        return _print_nightly_plans(loaded, names, due_at, as_json=as_json)
    with show_waiting("Checking the prerequisites of the nightly run"):
        # Invalid options are reported before a server is started.
        planned = [build_nightly_context(loaded, name, utc_now(), due_at=due_at) for name in names]
        update_waiting("Waiting for the Prefect server")
        start_or_connect_to_prefect(loaded)
        update_waiting("Starting the night")
        reports = _grade_nights(planned, config, target, due_at)
    for report in reports:
        if as_json:
            write_json(report.model_dump_json() + "\n")
        else:
            print_text("\n".join(format_nightly_report(report)))
    return ExitCode.INCONCLUSIVE if any(report.shortfalls for report in reports) else ExitCode.PASS


GONE_AT_THE_END = (
    "The Prefect server stopped answering, so its pages do not show the end of this nightly run. The run itself is "
    "complete: all results are stored and all alerts were sent."
)


def _grade_nights(
    planned: Sequence[NightlyContext], config: Path, target: str | None, due_at: datetime | None
) -> Sequence[NightlyReport]:
    """Grade the planned nights and return their reports.

    The reports are returned even if the Prefect server stopped answering after the grading.
    """
    try:
        return asyncio.run(_run_nightly_flow(config, target, due_at))
    except Exception as error:  # Prefect raises errors of several types; only a lost server is handled
        stored = [NightlyRun(context).load_report() for context in planned] if is_server_gone(error) else []
        reports = [report for report in stored if report is not None]
        if not reports or len(reports) < len(planned):
            raise
        make_terminal_console(stderr=True).print(GONE_AT_THE_END, highlight=False)
        return reports


def _print_nightly_plans(
    config: Config, names: Sequence[str], due_at: datetime | None, *, as_json: bool
) -> ExitCode:
    partial = False
    for name in names:
        with show_waiting(f"{name}: reading conversations"):
            plan, reading = asyncio.run(_build_nightly_plan(config, name, due_at))
        partial = partial or bool(reading.interrupted)
        if as_json:
            planned = plan.model_dump(mode="json") if plan is not None else {"strata": []}
            read = reading.model_dump(mode="json", exclude={"census", "examples"})
            write_json(json.dumps(planned | {"reading": read}, ensure_ascii=False) + "\n")
        else:
            lines = [
                name,
                *(f"  {line}" for line in (*_format_nightly_plan(plan, reading), *format_intake_warnings(reading))),
            ]
            print_text("\n".join(lines))
    return ExitCode.INCONCLUSIVE if partial else ExitCode.PASS


def _format_nightly_plan(plan: NightlyPlan | None, reading: IntakeCheckpoint) -> Sequence[str]:
    if plan is not None:
        return plan.lines
    earlier = f" (already counted on earlier nights: {reading.known:,})" if reading.known else ""
    span = f"{reading.since:%Y-%m-%d %H:%M} and {reading.until:%Y-%m-%d %H:%M} UTC"
    return [f"There was no new conversation between {span}{earlier}, so there is nothing to plan."]


async def _build_nightly_plan(
    config: Config, target: str, due_at: datetime | None
) -> tuple[NightlyPlan | None, IntakeCheckpoint]:
    context = await asyncio.to_thread(build_nightly_context, config, target, utc_now(), due_at=due_at)
    return await NightlyRun(context).plan()


async def _run_nightly_flow(
    config_path: Path, target: str | None, due_at: datetime | None
) -> tuple[NightlyReport, ...]:
    from flows.nightly.flow import grade_traffic  # Prefect takes 3 s to import, and reads its settings then

    # A flow that returns a state returns the state's data to its caller.
    return cast("tuple[NightlyReport, ...]", await grade_traffic(config_path, target, due_at))
