"""``lookout drill``: test the alert path end to end with a planted failure."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.terminal import write_json, write_text
from flows.waiting import show_waiting, update_waiting

if TYPE_CHECKING:
    from monitors.records.self_checks import DrillReport, StationResult

MARKS: Final = {"passed": "ok", "failed": "FAILED", "not set up": "-"}


def drill_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    here: Annotated[
        bool, typer.Option("--here", help="run the drill in this process, without testing Prefect and the worker")
    ] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Test the alert path end to end with a planted failure."""
    from monitors.config.file import load_config

    loaded, path = load_config(config), config.resolve()

    def show_station(result: StationResult) -> None:
        if not as_json:
            write_text(
                f"{MARKS[result.state.value]:<7} {result.took_s:6.1f} s  {result.station.value}: {result.found}\n"
            )
            update_waiting(f"Drill: checking the station after {result.station.value}")

    with show_waiting("Drill: checking the first station"):
        if here:
            from flows.drill.context import build_drill_context
            from flows.drill.course import Course  # slow: imports duckdb and slack_sdk

            report = asyncio.run(Course(build_drill_context(loaded, path), show_station).run())
        else:
            from flows.drill.worker import run_drill_in_worker
            from flows.runtime.secrets import get_environment  # slow import

            report = asyncio.run(run_drill_in_worker(loaded, path, show_station, get_environment()))
    if as_json:
        write_json(report.model_dump_json(indent=2) + "\n")
    else:
        write_text("\n".join(_format_drill_outcome(report)) + "\n")
    return ExitCode.PASS if report.passed else ExitCode.MONITOR


def _format_drill_outcome(report: DrillReport) -> list[str]:
    failed = report.failed
    if failed is not None:
        lines = [f"The drill failed at {failed.station.place}: {failed.found}"]
        return [*lines, f"What to do: {failed.to_do}"] if failed.to_do else lines
    if report.message_after_s is None:
        return ["The drill did not finish, so it does not prove that alerts arrive."]
    return [f"The drill passed. Slack accepted the alert {report.message_after_s:.1f} s after the wrong answer."]
