"""Planned deployments stand at Prefect, Prefect watches over them, and this process runs what is due.

Imports Prefect, which reads its settings at import: connect first.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from prefect.client.orchestration import get_client
from prefect.deployments.runner import RunnerDeployment
from prefect.flows import Flow
from prefect.runner import Runner
from prefect.schedules import Cron as PrefectCron
from prefect.schedules import Interval, Schedule
from prefect.types.entrypoint import EntrypointType

from flows.automations import Change, Expectation, ensure_automations
from flows.schedules import TAG, Cron, Every, PlannedDeployment
from flows.slack_way import SlackWay

RUNS_AT_ONCE: Final = 4
"""Besides the jobs of every minute. A verification is a browser and an event loop, about half a gigabyte."""


async def runner_deployment(planned: PlannedDeployment) -> RunnerDeployment:
    """As Prefect takes it. The flow is found by its module: one that is served as it is would be pickled."""
    flow: Flow[..., Any] = getattr(importlib.import_module(planned.module), planned.function)
    if flow.name != planned.flow:
        raise AssertionError(f"{planned.module} holds the flow {flow.name!r}, not {planned.flow!r}")
    return await flow.ato_deployment(
        name=planned.name,
        schedule=_schedule(planned.when),
        schedules=None if planned.when else [],
        parameters=dict(planned.parameters),
        tags=[TAG, *planned.tags],
        description=flow.description,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def expectations(planned: Sequence[PlannedDeployment]) -> tuple[Expectation, ...]:
    """What Prefect's automations ring for when it does not come."""
    return tuple(
        Expectation(deployment=one.name, within_s=one.late_after_s)
        for one in planned
        if one.late_after_s is not None
    )


def runs_at_once(planned: Sequence[PlannedDeployment]) -> int:
    """So that long runs do not keep the jobs of every minute waiting."""
    return RUNS_AT_ONCE + sum(isinstance(one.when, Every) for one in planned)


async def serve_all(planned: Sequence[PlannedDeployment], way: SlackWay | None) -> None:
    """Register all, then run what is due until SIGTERM, on which schedules are paused and runs under way are ended.

    Registering anew drops what was due while nobody was there: a minute that is over is not made up for.
    """
    runner = _Runner(name=TAG, limit=runs_at_once(planned), pause_on_shutdown=True)
    for one in planned:
        await runner.aadd_deployment(await runner_deployment(one))
    await watched_over(planned, way)
    await runner.start()


async def watched_over(planned: Sequence[PlannedDeployment], way: SlackWay | None) -> Mapping[str, Change]:
    """What Prefect's server itself watches over; what became of each automation, by its name."""
    async with get_client() as client:
        return await ensure_automations(client, way, expected=expectations(planned))


class _Runner(Runner):
    """Prefect's own answer to SIGTERM makes a coroutine that nobody awaits, says so, and then does the same."""

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """End `start`; leaving it pauses the schedules and ends the runs under way."""
        del args, kwargs
        sys.exit(0)


def _schedule(when: Cron | Every | None) -> Schedule | None:
    match when:
        case Cron():
            return PrefectCron(when.line, timezone=when.time_zone)
        case Every():
            return Interval(when.seconds)
        case None:
            return None
