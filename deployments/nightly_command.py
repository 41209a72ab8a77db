"""``lookout nightly``: grade the last night of live traffic, or say what it would take before anything is spent."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import cast

from rich.console import Console

from deployments.exit_codes import ExitCode
from flows.night_shift import NightShift
from flows.night_wiring import nights_to_grade, wire_night
from flows.night_words import night_lines
from flows.wiring import connect_prefect, utc_now
from monitors.config import Config, load_config
from monitors.records.estimates import NightPlan
from monitors.records.nights import NightReport


def nightly_command(
    config_path: Path, target: str | None, *, night: datetime | None, plan: bool, as_json: bool
) -> ExitCode:
    """Grade, or with ``plan`` only read and reckon. Exit code 0; 3 when a source or the judge left it partial."""
    config = load_config(config_path)
    names = nights_to_grade(config, target)
    if plan:
        return _print_plans(config, names, night, as_json=as_json)
    connect_prefect(config)
    reports = asyncio.run(_flow(config_path, target, night))
    for report in reports:
        if as_json:
            sys.stdout.write(report.model_dump_json() + "\n")
        else:
            Console().print("\n".join(night_lines(report)), highlight=False, markup=False)
    partial = any(one.interrupted or one.judging.void_groups for one in reports)
    return ExitCode.INCONCLUSIVE if partial else ExitCode.PASS


def _print_plans(config: Config, names: Sequence[str], night: datetime | None, *, as_json: bool) -> ExitCode:
    for name in names:
        found = asyncio.run(_plan(config, name, night))
        if as_json:
            sys.stdout.write(found.model_dump_json() + "\n")
        else:
            Console().print(
                "\n".join([name, *(f"  {line}" for line in found.lines)]), highlight=False, markup=False
            )
    return ExitCode.PASS


async def _plan(config: Config, target: str, night: datetime | None) -> NightPlan:
    wired = await asyncio.to_thread(wire_night, config, target, utc_now(), night=night)
    return await NightShift(wired).plan()


async def _flow(config_path: Path, target: str | None, night: datetime | None) -> tuple[NightReport, ...]:
    from flows.grade_traffic import grade_traffic  # Prefect takes 3 s to import, and reads its settings then

    # A flow that returns a state hands out the state's data.
    return cast("tuple[NightReport, ...]", await grade_traffic(config_path, target, night))
