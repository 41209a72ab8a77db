"""``lookout repeatability``: ask some cases twice, and measure how often answers differ by chance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, cast

import typer

from deployments.cli.exit_codes import ExitCode
from deployments.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from flows.repeatability.context import build_repeatability_context
from flows.repeatability.format import format_repeatability, format_session_briefly
from flows.repeatability.session import compute_repeatability_figures
from flows.repeatability.targets import list_measured_targets
from flows.runtime.run import start_or_connect_to_prefect
from flows.terminal import print_text, write_json
from flows.waiting import show_waiting, update_waiting
from monitors.config.file import load_config
from monitors.records.self_checks import Repeatability, RepeatabilityRun


def repeatability_command(
    target: Annotated[str | None, typer.Argument(help="the name of a target; default: all targets")] = None,
    *,
    config: ConfigOption = DEFAULT_CONFIG,
    cases: Annotated[
        int | None, typer.Option(min=1, help="the number of cases to ask twice, instead of the configured number")
    ] = None,
    show: Annotated[
        bool, typer.Option("--figures", help="show the figures of earlier measurements, without asking questions")
    ] = False,
    as_json: JsonOption = False,
) -> ExitCode:
    """Ask some questions twice, to measure how often an answer changes and how often a run fails by chance."""
    loaded = load_config(config)
    names = list_measured_targets(loaded, target)
    if show:
        for name in names:
            _print_figures(
                compute_repeatability_figures(build_repeatability_context(loaded, name)), as_json=as_json
            )
        return ExitCode.PASS
    with show_waiting("Checking the prerequisites"):
        for name in names:  # Invalid names are reported before a server is started.
            build_repeatability_context(loaded, name)
        update_waiting("Waiting for the Prefect server")
        start_or_connect_to_prefect(loaded)
        update_waiting("Starting")
        sessions = asyncio.run(_run_repeatability_flow(config, target, cases))
    for session in sessions:
        _print_session(session, as_json=as_json)
    return ExitCode.INCONCLUSIVE if any(session.void or session.stopped for session in sessions) else ExitCode.PASS


def _print_session(session: RepeatabilityRun, *, as_json: bool) -> None:
    if as_json:
        write_json(session.model_dump_json() + "\n")
        return
    print_text(format_session_briefly(session.with_figures(None)))
    if session.figures is not None:
        _print_figures(session.figures, as_json=False)


def _print_figures(repeatability: Repeatability, *, as_json: bool) -> None:
    if as_json:
        write_json(repeatability.model_dump_json() + "\n")
    else:
        print_text("\n".join(format_repeatability(repeatability)))


async def _run_repeatability_flow(
    config_path: Path, target: str | None, cases: int | None
) -> Sequence[RepeatabilityRun]:
    from flows.repeatability.flow import measure_repeatability  # Prefect takes 3 s, and reads its settings then

    # A flow that returns a state returns the state's data to its caller.
    return cast("tuple[RepeatabilityRun, ...]", await measure_repeatability(config_path, target, cases))
