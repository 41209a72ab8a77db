"""Registers the planned deployments at Prefect, has Prefect watch over them, and runs what is due in this process.

This module imports Prefect, which reads its settings at import: connect first. Prefect itself watches for runs that
do not come, and for runs whose process is gone:

    no run of a deployment has completed in time ─────▶ a message
    a run's heartbeats stop before it reports an end ──▶ the run is marked Crashed
    a run is Crashed, whoever marked it ───────────────▶ a message
    a run could not begin, so it could notify nobody ──▶ a message

The messages go from Prefect's server straight to Slack, because the process that would decide and store them may be
what is gone. Prefect alone is no sufficient watchdog: when its server dies its messages die with it, and only a
missing heartbeat shows that to somebody outside.

An event of a run is named after the *name* of its state (``prefect.flow-run.Pass``), so what is expected is matched
by the state's type, a label of the event.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import PrefectClient, get_client
from prefect.client.schemas.objects import StateType
from prefect.deployments.runner import RunnerDeployment
from prefect.events.actions import CallWebhook, ChangeFlowRunState
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.flows import Flow
from prefect.runner import Runner
from prefect.schedules import Cron as PrefectCron
from prefect.schedules import Interval, Schedule
from prefect.server.schemas.schedules import CronSchedule
from prefect.types import SecretDict
from prefect.types.entrypoint import EntrypointType

from flows.runtime.slack import SlackEndpoint
from flows.server.schedules import DRILL, TAG, Cron, Every, PlannedDeployment
from monitors.records.base import Record
from monitors.reports.format import format_zoned_moment

AUTOMATION_PREFIX: Final = "lookout: "
"""The beginning of the name of each of our automations; others are never touched."""
BLOCK_NAME: Final = "lookout-alerts"
WATCHED_FLOWS: Final = (
    *("verify-deploy", "digest", "load-warehouse", "grade-traffic", "follow-log", "watch-deploys"),
    *("fire-drill", "measure-repeatability"),
)
"""The flows that are watched: on a shared server other people's flows are theirs."""
MINUTELY: Final = ("follow-log", "watch-deploys")
NOT_STARTED_MESSAGES: Final = (
    "Flow run encountered an exception: ConfigError*",
    "Flow run encountered an exception: GoldSetError*",
    "Validation of flow parameters failed*",
)
"""What Prefect says of such a run's state."""
CRASHED_AFTER_S: Final = 95.0
"""Three heartbeats at the 30 s that `prefect_server.settings_for` sets, and a little."""
STOPPED_MESSAGES: Final = [
    "Execution was cancelled by the runtime environment.",
    "Execution was aborted by an interrupt signal.",
    "Execution was aborted by a termination signal.",
]
"""What Prefect says of a run that a signal ended (`prefect.states`)."""
DUPLICATE_WINDOW: Final = timedelta(hours=1)
"""An event may reach Prefect's triggers twice, from the run's process and from the server: one message for both."""
RUN_EVENTS: Final = "prefect.flow-run.*"


class Expectation(Record):
    """A deployment (the name of ``flow/name``) of which a run must complete every so often."""

    deployment: str
    within_s: float


class Change(StrEnum):
    """What became of an automation."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


async def ensure_automations(
    client: PrefectClient,
    endpoint: SlackEndpoint | None,
    *,
    expected: Sequence[Expectation],
    flows: Sequence[str] = WATCHED_FLOWS,
    crashed_after_s: float = CRASHED_AFTER_S,
) -> Mapping[str, Change]:
    """Create or update our automations, so that calling it again changes nothing; what became of each, by name.

    Without a ``way`` nobody can be notified: crashed runs are still marked Crashed. An automation that a person has
    switched off stays off. Those of deployments that are expected no more are removed.
    """
    wanted = [build_abandoned_run_automation(flows, crashed_after_s)]
    if endpoint is not None:
        block = await _save_webhook_block(client, endpoint)
        wanted += [
            build_crashed_run_automation(flows, block, endpoint.channel),
            build_unstarted_run_automation(flows, block, endpoint.channel),
        ]
        wanted += [build_missing_run_automation(expectation, block, endpoint.channel) for expectation in expected]
    existing = await _list_own_automations(client)
    changes = {core.name: await _ensure_automation(client, core, existing.get(core.name, [])) for core in wanted}
    for name in existing.keys() - changes.keys():
        for automation in existing[name]:
            await client.delete_automation(automation.id)
        changes[name] = Change.REMOVED
    return changes


def build_missing_run_automation(expectation: Expectation, block: UUID, channel: str | None) -> AutomationCore:
    """A message when no run of a deployment has completed in time, whatever its verdict; repeats until one does."""
    hours = expectation.within_s / 3600
    text = (
        f"🛠️ Lookout itself is in trouble · no run of {expectation.deployment} has completed for {hours:g} hours. "
        "Look whether its schedule is on and whether a worker is alive."
    )
    return AutomationCore(
        name=f"{AUTOMATION_PREFIX}no run of {expectation.deployment}",
        description="Says so when a scheduled run does not come.",
        trigger=EventTrigger(
            match=_match_runs(StateType.COMPLETED),
            match_related=_build_resource_match(
                {"prefect.resource.role": "deployment", "prefect.resource.name": expectation.deployment}
            ),
            expect={RUN_EVENTS},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=expectation.within_s),
        ),
        actions=[CallWebhook(block_document_id=block, payload=_build_payload(json.dumps(text), channel))],
    )


def build_crashed_run_automation(flows: Sequence[str], block: UUID, channel: str | None) -> AutomationCore:
    """A message for every run that crashed: its process is gone, so it cannot report it itself.

    One that was stopped (Ctrl-C, or SIGTERM at a shutdown) is Crashed for Prefect too, and no trouble of Lookout's.
    """
    text = (
        f'(("🛠️ A run was stopped · run " if flow_run.state.message in {STOPPED_MESSAGES} else '
        '"🛠️ Lookout itself is in trouble · run ") ~ flow_run.name ~ " of " ~ flow.name ~ '
        f'(" was ended from outside: by Ctrl-C, or as its machine was shut down. " if flow_run.state.message in '
        f'{STOPPED_MESSAGES} else " crashed: its process is gone. ") ~ '
        '"What was answered is kept, and the next run within the hour goes on from there. " ~ (flow_run | ui_url))'
    )
    return AutomationCore(
        name=f"{AUTOMATION_PREFIX}a run crashed",
        description="Says so when a run's process was killed.",
        trigger=EventTrigger(
            match=_match_runs(StateType.CRASHED),
            match_related=_match_flows(flows),
            expect={RUN_EVENTS},
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
            within=DUPLICATE_WINDOW,
        ),
        actions=[
            CallWebhook(block_document_id=block, payload=_build_payload(f"{{{{ {text} | tojson }}}}", channel))
        ],
    )


def build_unstarted_run_automation(flows: Sequence[str], block: UUID, channel: str | None) -> AutomationCore:
    """A message for a run whose configuration or parameters are wrong: it may not even know whom to notify.

    A run that does know notifies people too, so they hear of it twice. This leaves out the jobs of every minute, as
    each minute would be a message: they are reported only when they do not complete for long.
    """
    text = (
        '("🛠️ Lookout itself is in trouble · run " ~ flow_run.name ~ " of " ~ flow.name ~ " could not begin, '
        'so nothing was asked: its configuration or its parameters are wrong. Its page says which. " '
        "~ (flow_run | ui_url))"
    )
    match = _build_resource_match(
        {
            "prefect.resource.id": RUN_EVENTS,
            "prefect.state-type": StateType.FAILED.value,
            "prefect.state-message": list(NOT_STARTED_MESSAGES),
        }
    )
    return AutomationCore(
        name=f"{AUTOMATION_PREFIX}a run could not begin",
        description="Says so when a run's configuration or parameters are wrong.",
        trigger=EventTrigger(
            match=match,
            match_related=_match_flows([flow for flow in flows if flow not in MINUTELY]),
            expect={RUN_EVENTS},
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
            within=DUPLICATE_WINDOW,
        ),
        actions=[
            CallWebhook(block_document_id=block, payload=_build_payload(f"{{{{ {text} | tojson }}}}", channel))
        ],
    )


def build_abandoned_run_automation(flows: Sequence[str], crashed_after_s: float) -> AutomationCore:
    """Mark a run Crashed when its heartbeats stop: with its runner dead nobody else does, and it holds its slot."""
    return AutomationCore(
        name=f"{AUTOMATION_PREFIX}a run gives no sign of life",
        description="Marks a run Crashed when its heartbeats stop.",
        trigger=EventTrigger(
            match=_build_resource_match({"prefect.resource.id": RUN_EVENTS}),
            match_related=_match_flows(flows),
            after={"prefect.flow-run.heartbeat"},
            expect={RUN_EVENTS},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=crashed_after_s),
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                name="Crashed",
                message=f"No sign of life for {crashed_after_s:g} s: the process is gone.",
                force=False,
            )
        ],
    )


def _match_runs(kind: StateType) -> ResourceSpecification:
    return _build_resource_match({"prefect.resource.id": RUN_EVENTS, "prefect.state-type": kind.value})


def _match_flows(flows: Sequence[str]) -> ResourceSpecification:
    return _build_resource_match({"prefect.resource.role": "flow", "prefect.resource.name": list(flows)})


def _build_resource_match(labels: Mapping[str, str | list[str]]) -> ResourceSpecification:
    return ResourceSpecification.model_validate(labels)


def _build_payload(text_as_json: str, channel: str | None) -> str:
    """The JSON that Slack takes, with the placeholders that Prefect fills in."""
    place = f'"channel": {json.dumps(channel)}, ' if channel else ""
    return f'{{{place}"text": {text_as_json}}}'


async def _save_webhook_block(client: PrefectClient, endpoint: SlackEndpoint) -> UUID:
    """The block with the webhook. Prefect stores its secrets encrypted, and the automations name the block."""
    headers = {name: value.get_secret_value() for name, value in endpoint.headers.items()}
    webhook = Webhook(url=endpoint.url, headers=SecretDict({**headers, "Content-Type": "application/json"}))
    return await webhook.asave(BLOCK_NAME, overwrite=True, client=client)


async def _list_own_automations(client: PrefectClient) -> dict[str, list[Automation]]:
    ours: dict[str, list[Automation]] = {}
    for automation in await client.read_automations():
        if automation.name.startswith(AUTOMATION_PREFIX):
            ours.setdefault(automation.name, []).append(automation)
    return ours


async def _ensure_automation(
    client: PrefectClient, wanted: AutomationCore, existing: Sequence[Automation]
) -> Change:
    if not existing:
        await client.create_automation(wanted)
        return Change.CREATED
    first, *doubles = existing
    for double in doubles:
        await client.delete_automation(double.id)
    current = AutomationCore.model_validate(first.model_dump(exclude={"id"}))
    target = wanted.model_copy(update={"enabled": first.enabled})
    if current == target:
        return Change.UNCHANGED
    await client.update_automation(first.id, target)
    return Change.UPDATED


MAX_LONG_RUNS: Final = 4
"""Besides the jobs of every minute. A verification is a browser and an event loop, about half a gigabyte."""


async def build_runner_deployment(planned: PlannedDeployment) -> RunnerDeployment:
    """The deployment in Prefect's form. Prefect finds the flow by its module: a flow object would be pickled."""
    flow: Flow[..., Any] = getattr(importlib.import_module(planned.module), planned.function)
    if flow.name != planned.flow:
        raise AssertionError(f"{planned.module} holds the flow {flow.name!r}, not {planned.flow!r}")
    return await flow.ato_deployment(
        name=planned.name,
        schedule=_build_schedule(planned.when),
        schedules=None if planned.when else [],
        parameters=dict(planned.parameters),
        tags=[TAG, *planned.tags],
        description=flow.description,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def list_expectations(planned: Sequence[PlannedDeployment]) -> tuple[Expectation, ...]:
    """What Prefect's automations alert about when it does not come."""
    return tuple(
        Expectation(deployment=deployment.name, within_s=deployment.late_after_s)
        for deployment in planned
        if deployment.late_after_s is not None
    )


def compute_run_limit(planned: Sequence[PlannedDeployment]) -> int:
    """How many runs may be under way: so many that long runs do not hold up the jobs of every minute."""
    return MAX_LONG_RUNS + sum(isinstance(deployment.when, Every) for deployment in planned)


async def serve_all(
    planned: Sequence[PlannedDeployment],
    endpoint: SlackEndpoint | None,
    now: Callable[[], datetime],
    write_line: Callable[[str], None],
) -> None:
    """Register all, then run what is due until SIGTERM, which pauses the schedules and ends the runs under way.

    ``say`` gets a line for each: what it does, and when next. A new registration drops what was due while nobody
    was there: a minute that is over is not made up for.
    """
    runner = _Runner(name=TAG, limit=compute_run_limit(planned), pause_on_shutdown=True)
    for deployment in planned:
        await runner.aadd_deployment(await build_runner_deployment(deployment))
    await ensure_watched(planned, endpoint)
    for line in await format_timetable(planned, now()):
        write_line(line)
    await runner.start()


async def format_timetable(planned: Sequence[PlannedDeployment], at: datetime) -> tuple[str, ...]:
    """A line for each deployment: its name, what it does, and when next, in the zone of its schedule."""
    width = max(len(deployment.name) for deployment in planned)
    return tuple(
        [
            f"{deployment.name:<{width}}  {deployment.purpose}  ·  {await _format_next_run(deployment, at)}"
            for deployment in planned
        ]
    )


async def _format_next_run(planned: PlannedDeployment, at: datetime) -> str:
    match planned.when:
        case Cron() as when:
            schedule = CronSchedule(cron=when.line, timezone=when.time_zone)  # as the server reckons it
            dates = await schedule.get_dates(n=1, start=at)
            return f"next {format_zoned_moment(dates[0], when.time_zone)}"
        case Every(seconds=seconds):
            return f"every {seconds:g} s"
        case None:
            return "only by `lookout drill`" if planned.flow == DRILL else "when a deploy is reported"


async def ensure_watched(
    planned: Sequence[PlannedDeployment], endpoint: SlackEndpoint | None
) -> Mapping[str, Change]:
    """Have Prefect's server watch over the deployments; return what became of each automation, by its name."""
    async with get_client() as client:
        return await ensure_automations(client, endpoint, expected=list_expectations(planned))


class _Runner(Runner):
    """A runner with its own SIGTERM handler: Prefect's makes a coroutine that nobody awaits, and warns of it."""

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """End `start`; leaving it pauses the schedules and ends the runs under way."""
        del args, kwargs
        sys.exit(0)


def _build_schedule(when: Cron | Every | None) -> Schedule | None:
    match when:
        case Cron():
            return PrefectCron(when.line, timezone=when.time_zone)
        case Every():
            return Interval(when.seconds)
        case None:
            return None
