"""Grade a night of live traffic: sample what real users got as answers, grade it, estimate the rate for all.

    read ─▶ sample ─▶ grade by rule ─▶ save ─▶ judge ─▶ estimate ─▶ save ─▶ notify ─▶ write back

It asks the application nothing. It grades conversations as they were said and stores them as `privacy` says; raw
texts stay in memory. A nightly run that was killed goes on where it stood: sampled conversations stay sampled, and
judged ones stay judged. The flow ends Completed as Graded, as Empty (there was no new conversation), or as Partial:
a source could not be read, the judge was void, did not answer or reached its budget. The message says which.
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

from flows.alerting.faults import fault_of, notify_fault
from flows.alerting.watchdog import masked
from flows.clock import utc_now
from flows.nightly.context import build_nightly_context, targets_to_grade, unfinished_runs
from flows.nightly.format import in_one_line
from flows.nightly.run import NightlyRun
from flows.runtime.slack import log_line, notifier_without_run
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError, MonitorError
from monitors.records.incidents import Capability
from monitors.records.nightly import NightlyReport


@flow(name="grade-traffic", description=__doc__)
async def grade_traffic(
    config_path: Path, target: str | None = None, due_at: datetime | None = None
) -> State[tuple[NightlyReport, ...]]:
    """Grade the last night of ``target``, or of every target with traffic; ``due_at`` is when another one ended.

    It finishes a killed nightly run first. Raises `ConfigError` before anything is read. A target whose nightly run
    fails does not stop the others; the first failure is raised once all are done.
    """
    config = await asyncio.to_thread(load_config, config_path)
    reports: list[NightlyReport] = []
    failures: list[MonitorError] = []
    names = targets_to_grade(config, target)
    killed = [(name, ended) for name in names if due_at is None for ended in unfinished_runs(config, name)]
    for name, ended in (*killed, *((name, due_at) for name in names)):
        try:
            log_line(f"{name}: the night's traffic is graded")
            reports.append(await grade_target(config, name, ended))
            log_line(in_one_line(reports[-1]))
        except ConfigError:
            raise
        except MonitorError as error:
            notifier = await asyncio.to_thread(notifier_without_run, config, name, Capability.NIGHTLY)
            await notify_fault(notifier, fault_of(error))
            failures.append(error)
    if failures:
        raise failures[0]
    return Completed(name=_name(reports), message="; ".join(map(in_one_line, reports)), data=tuple(reports))


@task(name="grade nightly run", cache_policy=NO_CACHE)
@masked
async def grade_target(config: Config, target: str, due_at: datetime | None) -> NightlyReport:
    """Do one nightly run of one target."""
    context = await asyncio.to_thread(build_nightly_context, config, target, utc_now(), due_at=due_at)
    return await NightlyRun(context).work()


def _name(reports: Sequence[NightlyReport]) -> str:
    if any(one.shortfalls for one in reports):
        return "Partial"
    return "Graded" if any(one.read for one in reports) else "Empty"
