"""``lookout drill``: test the alert path end to end with a planted failure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.terminal import write_json, write_text
from flows.waiting import show_waiting, update_waiting

if TYPE_CHECKING:
    from monitors.config.file import Config
    from monitors.records.self_checks import DrillReport, StationResult

MARKS: Final = {"passed": "ok", "failed": "FAILED", "not set up": "-"}


def drill_command(
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    here: Annotated[
        bool, typer.Option("--here", help="run in this process; do not test Prefect and the worker")
    ] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Test the alert path end to end with a planted failure."""
    from monitors.config.file import load_config

    loaded, path = load_config(config), config.resolve()
    show = _show_nothing if as_json else _print_station
    with show_waiting("Drill: the first station"):
        report = asyncio.run(_run_here(loaded, path, show) if here else _run_by_worker(loaded, path, show))
    if as_json:
        write_json(report.model_dump_json(indent=2) + "\n")
    else:
        write_text("\n".join(_format_ending(report)) + "\n")
    return ExitCode.PASS if report.passed else ExitCode.MONITOR


async def _run_here(config: Config, path: Path, show: Callable[[StationResult], None]) -> DrillReport:
    from flows.drill.context import build_drill_context
    from flows.drill.course import Course  # duckdb, slack_sdk

    return await Course(build_drill_context(config, path), show).run()


async def _run_by_worker(config: Config, path: Path, show: Callable[[StationResult], None]) -> DrillReport:
    from flows.drill.worker import run_drill_in_worker
    from flows.runtime.secrets import get_environment  # as above

    return await run_drill_in_worker(config, path, show, get_environment())


def _show_nothing(_result: StationResult) -> None:
    return


def _print_station(result: StationResult) -> None:
    write_text(f"{MARKS[result.state.value]:<7} {result.took_s:6.1f} s  {result.station.value}: {result.found}\n")
    update_waiting(f"Drill: the station after {result.station.value}")


def _format_ending(report: DrillReport) -> list[str]:
    failed = report.failed
    if failed is not None:
        lines = [f"Drill failed at {failed.station.place}: {failed.found}"]
        return [*lines, f"To do: {failed.to_do}"] if failed.to_do else lines
    if report.message_after_s is None:
        return ["Drill not finished: the alert path is not proved."]
    return [f"Drill passed: Slack accepted the message {report.message_after_s:.1f} s after the wrong answer."]
