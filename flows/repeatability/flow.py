"""Measure repeatability: ask some cases twice at the same build. If the grades differ, the reason is chance.

    sample cases ─▶ find the build ─▶ ask twice and grade ─▶ same build? ─▶ store ─▶ compute figures ─▶ store

The answers do not count for scores, baselines and trends, and cause no alerts. The state of the flow is Completed
with the name Measured. The name is Partial if the application stopped answering or the time limit was reached, and
Void if there was a deploy during the session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.states import Completed

from flows.alerting.faults import build_fault_from_error, notify_fault, resolve_other_faults
from flows.alerting.watchdog import redact_errors
from flows.clock import utc_now
from flows.repeatability.context import build_repeatability_context
from flows.repeatability.format import format_session_briefly
from flows.repeatability.session import RepeatabilitySession
from flows.repeatability.targets import list_measured_targets
from flows.runtime.slack import build_notifier_without_run, write_line_to_stderr
from flows.server.missed_runs import cancel_missed_runs_of_deployment, hold_target_exclusively
from monitors.config.file import Config, load_config
from monitors.errors import ConfigError
from monitors.records.incidents import Capability
from monitors.records.self_checks import RepeatabilityRun

ASKED_AGAIN_TEXT: Final = "Lookout measured the repeatability again."


@flow(name="measure-repeatability", description=__doc__)
async def measure_repeatability(
    config_path: Path, target: str | None = None, cases: int | None = None
) -> State[tuple[RepeatabilityRun, ...]] | State[None]:
    """Ask cases of ``target``, or of every target, twice. ``cases`` replaces the configured number of cases.

    If a target cannot be asked, all other targets are still asked. The first error is raised at the end. Raises
    `ConfigError` before any question is asked.
    """
    config = await asyncio.to_thread(load_config, config_path)
    skipped = await cancel_missed_runs_of_deployment(config.schedules.missed, utc_now())
    if skipped is not None:
        return skipped
    sessions: list[RepeatabilityRun] = []
    failures: list[Exception] = []
    for name in list_measured_targets(config, target):
        notifier = await asyncio.to_thread(build_notifier_without_run, config, name, Capability.REPEATABILITY)
        began_at = notifier.now()
        try:
            sessions.append(await ask_target_twice(config, name, cases))
        except ConfigError:
            raise
        except Exception as error:  # noqa: BLE001 - one target's fault, of any type, does not end another's session
            await notify_fault(notifier, build_fault_from_error(error))
            failures.append(error)
        else:
            await resolve_other_faults(notifier, except_names=(), ending=ASKED_AGAIN_TEXT, began_at=began_at)
            write_line_to_stderr(format_session_briefly(sessions[-1]))
    if failures:
        raise failures[0]
    return Completed(
        name=_select_state_name(sessions),
        message="; ".join(map(format_session_briefly, sessions)),
        data=tuple(sessions),
    )


@task(name="ask twice", cache_policy=NO_CACHE)
@redact_errors
async def ask_target_twice(config: Config, target: str, cases: int | None) -> RepeatabilityRun:
    """Run one repeatability session for one target."""
    context = await asyncio.to_thread(build_repeatability_context, config, target)
    async with hold_target_exclusively(target, config.prefect.tag, write_line_to_stderr):
        return await RepeatabilitySession(context).run(cases)


def _select_state_name(sessions: Sequence[RepeatabilityRun]) -> str:
    if any(session.void for session in sessions):
        return "Void"
    return "Partial" if any(session.stopped for session in sessions) else "Measured"
