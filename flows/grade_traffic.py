"""Grade a night of live traffic: what real users were told, drawn, graded, estimated for all of them.

    read ─▶ draw ─▶ grade by rule ─▶ keep ─▶ judge ─▶ weigh ─▶ keep ─▶ tell ─▶ write back

It asks the application nothing. Conversations are graded as they were said and kept as `privacy` wants; raw texts
stay in memory. A night that was killed goes on where it stood: what was drawn stays drawn, what was judged stays
judged. The flow ends Completed as Graded, AlreadyGraded or Partial (a source could not be read, a judge was void).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.masked_errors import masked
from flows.monitor_fault import fault_of, tell_fault
from flows.night_shift import NightShift
from flows.night_wiring import nights_to_grade, unfinished_nights, wire_night
from flows.night_words import in_one_line
from flows.wiring import desk_without_run, utc_now
from monitors.config import Config, load_config
from monitors.errors import ConfigError, MonitorError
from monitors.records.nights import NightReport


@flow(name="grade-traffic", description=__doc__)
async def grade_traffic(
    config_path: Path, target: str | None = None, night: datetime | None = None
) -> State[tuple[NightReport, ...]]:
    """Grade the last night of ``target``, or of every target that has traffic; ``night`` is when another one ended.

    A night that was killed is gone on with first. Raises `ConfigError` before anything is read. A target whose
    night fails does not keep the others from theirs; the first failure is raised once all are done.
    """
    config = await asyncio.to_thread(load_config, config_path)
    reports: list[NightReport] = []
    failures: list[MonitorError] = []
    names = nights_to_grade(config, target)
    killed = [(name, ended) for name in names if night is None for ended in unfinished_nights(config, name)]
    for name, ended in (*killed, *((name, night) for name in names)):
        try:
            reports.append(await grade_night(config, name, ended))
        except ConfigError:
            raise
        except MonitorError as error:
            desk = await asyncio.to_thread(desk_without_run, config, name)
            await tell_fault(desk, fault_of(error))
            failures.append(error)
    if failures:
        raise failures[0]
    return Completed(name=_name(reports), message="; ".join(map(in_one_line, reports)), data=tuple(reports))


@task(name="grade night", cache_policy=NO_CACHE)
@masked
async def grade_night(config: Config, target: str, night: datetime | None) -> NightReport:
    """One night of one target."""
    wired = await asyncio.to_thread(wire_night, config, target, utc_now(), night=night)
    return await NightShift(wired).work()


def _name(reports: Sequence[NightReport]) -> str:
    partial = any(one.interrupted or one.judging.void_groups for one in reports)
    return "Partial" if partial else "Graded"
