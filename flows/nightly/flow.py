"""Grade the live traffic every night: grade a sample of the replies, and estimate the failure rate.

    read ─▶ sample ─▶ grade by rules ─▶ store ─▶ judge ─▶ estimate ─▶ store ─▶ notify ─▶ write scores back

The failure rate is an estimate for all conversations with real users. The flow does not ask the application. It
grades the original texts, which stay in memory, and stores the texts according to the setting `privacy`. A killed
nightly run is resumed with the same sample and the same verdicts. The state of the flow is Completed with the name
Graded, or Empty if there was no new conversation. The name is Partial if a source could not be read, or if the
judge was unreliable, did not answer or reached its budget. The message gives the reason.
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

from flows.alerting.faults import build_fault_from_error, notify_fault
from flows.alerting.watchdog import redact_errors
from flows.artifacts import build_report_page_path, find_site_page_address, publish_report_artifact
from flows.clock import read_scheduled_time, utc_now
from flows.nightly.context import build_nightly_context, list_due_times_of_unfinished_runs, list_targets_to_grade
from flows.nightly.format import format_nightly_briefly
from flows.nightly.run import NightlyRun
from flows.runtime.slack import build_notifier_without_run, write_line_to_stderr
from flows.server.missed_runs import cancel_missed_runs_of_deployment
from monitors.config.file import Config, load_config
from monitors.errors import AlreadyRuns, ConfigError
from monitors.records.incidents import Capability
from monitors.records.nightly import NightlyReport
from monitors.reports.write import build_report_paths


@flow(name="grade-traffic", description=__doc__)
async def grade_traffic(
    config_path: Path, target: str | None = None, due_at: datetime | None = None
) -> State[tuple[NightlyReport, ...]] | State[None]:
    """Run the last nightly run that was due for ``target``, or for every target with live traffic.

    ``due_at`` selects the nightly run that was due at this time. Killed nightly runs are resumed first. If one
    nightly run fails, all other nightly runs still run, and the first error is raised at the end. Raises
    `ConfigError` before anything is read. Raises `AlreadyRuns`, without an alert, if another process grades a
    target.
    """
    config = await asyncio.to_thread(load_config, config_path)
    skipped = await cancel_missed_runs_of_deployment(config.schedules.missed, utc_now())
    if skipped is not None:
        return skipped
    reports: list[NightlyReport] = []
    failures: list[Exception] = []
    targets = list_targets_to_grade(config, target)
    now = read_scheduled_time()
    killed = [
        (name, ended)
        for name in targets
        if due_at is None
        for ended in list_due_times_of_unfinished_runs(config, name)
    ]
    for name, ended in (*killed, *((name, due_at) for name in targets)):
        try:
            write_line_to_stderr(f"{name}: grading the night's traffic")
            reports.append(await grade_target(config, name, ended, now))
            write_line_to_stderr(format_nightly_briefly(reports[-1]))
        except AlreadyRuns as error:
            failures.append(error)  # the other process reports this night
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - one target's fault, of any type, does not end another's night
            notifier = await asyncio.to_thread(build_notifier_without_run, config, name, Capability.NIGHTLY)
            await notify_fault(notifier, build_fault_from_error(error))
            failures.append(error)
    if failures:
        raise failures[0]
    return Completed(
        name=_select_state_name(reports),
        message="; ".join(map(format_nightly_briefly, reports)),
        data=tuple(reports),
    )


@task(name="grade nightly run", cache_policy=NO_CACHE)
@redact_errors
async def grade_target(config: Config, target: str, due_at: datetime | None, now: datetime) -> NightlyReport:
    """Run the nightly run of one target that was due at ``due_at``, or that was due last before ``now``."""
    context = await asyncio.to_thread(build_nightly_context, config, target, now, due_at=due_at)
    report = await NightlyRun(context).run()
    paths = build_report_paths(context.folder)
    if paths.markdown.is_file():  # no file if the night was graded elsewhere, or if the report was too old
        await publish_report_artifact(
            config.prefect.add_prefix(f"night-{target}"),
            paths,
            link=find_site_page_address(config, build_report_page_path(report.run_id)),
            description=format_nightly_briefly(report),
        )
    return report


def _select_state_name(reports: Sequence[NightlyReport]) -> str:
    states = {report.state for report in reports}
    return next((state for state in ("Partial", "Graded") if state in states), "Empty")
