"""Registers the planned deployments with Prefect, creates automations that watch them, and executes due runs.

Connect to Prefect's server before you import this module, because this module imports Prefect, which reads its
settings at import. Prefect's automations watch for missing runs, and for runs whose process is gone:

    no run of a deployment has completed in time ─────▶ a message
    a run's heartbeats stop before it reports an end ──▶ the run is marked Crashed
    a run is Crashed, by any process ────────────────▶ a message
    a run could not begin, so it could notify nobody ──▶ a message

Prefect's server sends these messages directly to Slack, because the process of the run may be gone. If the server
itself stops, it sends nothing. Then only the missing pings of the external heartbeat show the fault.

The name of an event contains the *name* of the run's state (``prefect.flow-run.Pass``), which varies. Therefore the
triggers match the type of the state, which is a label of the event.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
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
from flows.server.registered import delete_unplanned_deployments, read_pauses
from flows.server.schedules import (
    DRILL,
    FOLLOW_LOG,
    NOT_PAUSED,
    SCHEDULE_SLUG,
    WATCH_DEPLOYS,
    Cron,
    Every,
    Pause,
    PlannedDeployment,
)
from monitors.config.file import PREFECT_TAG
from monitors.records.base import Record
from monitors.reports.format import format_zoned_moment

WATCHED_FLOWS: Final = (
    *("verify-deploy", "digest", "load-warehouse", "grade-traffic", "follow-log", "watch-deploys"),
    *("fire-drill", "measure-repeatability"),
)
"""The flows whose runs the automations watch. A shared server may also run flows of other programs."""
WATCHERS: Final = (FOLLOW_LOG, WATCH_DEPLOYS)
NOT_STARTED_MESSAGES: Final = (
    "Flow run encountered an exception: ConfigError*",
    "Flow run encountered an exception: GoldSetError*",
    "Validation of flow parameters failed*",
)
"""The state messages of a run that could not start."""
CRASHED_AFTER_S: Final = 95.0
"""Time in seconds without heartbeats after which a run counts as crashed.

This time is a little longer than three heartbeats: `prefect_server.build_client_settings` sets one every 30 s.
"""
STOPPED_MESSAGES: Final = [
    "Execution was cancelled by the runtime environment.",
    "Execution was aborted by an interrupt signal.",
    "Execution was aborted by a termination signal.",
]
"""The state messages of a run that was ended by a signal (see `prefect.states`)."""
DUPLICATE_WINDOW: Final = timedelta(hours=1)
"""Period in which only one message is sent about a run, although a trigger may get an event twice."""
RUN_PLACE: Final = '((flow_run | ui_url) or ("prefect flow-run inspect " ~ flow_run.id))'
"""How a message refers to a run: the run's URL or, without ``PREFECT_UI_URL``, a command that shows the run."""
RUN_EVENTS: Final = "prefect.flow-run.*"


Watched = list[ResourceSpecification]
"""Conditions on the resources of a run's event. An event matches if all conditions are true."""


class Expectation(Record):
    """A deployment, by its name ``flow/name``, that must complete a run every ``within_s`` seconds."""

    deployment: str
    within_s: float


class Change(StrEnum):
    """How an automation was changed."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


async def ensure_automations(
    client: PrefectClient,
    endpoint: SlackEndpoint | None,
    *,
    expected: Sequence[Expectation],
    tag: str = PREFECT_TAG,
    flows: Sequence[str] = WATCHED_FLOWS,
    crashed_after_s: float = CRASHED_AFTER_S,
) -> Mapping[str, Change]:
    """Create Prefect automations that alert on missing or crashed runs (idempotent). Return the changes by name.

    ``tag`` is `PrefectSettings.tag`. If ``tag`` is not the default, the automations watch only the runs of this
    installation's deployments, and the automations of other installations do not change. Without an ``endpoint``,
    no message is sent, but crashed runs are still marked Crashed. An automation that a person has disabled stays
    disabled. Automations of deployments that are no longer expected, and duplicates, are removed.
    """
    watched = _build_flow_matches(flows, tag)
    # Crashed runs of the watcher's flows are not reported, because the watcher starts them again. An alert is sent
    # after two hours without a completed run.
    reported = _build_flow_matches([flow for flow in flows if flow not in WATCHERS], tag)
    wanted = [build_abandoned_run_automation(watched, crashed_after_s)]
    if endpoint is not None:
        block = await _save_webhook_block(client, endpoint, tag)
        wanted += [
            build_crashed_run_automation(reported, block, endpoint.channel),
            build_unstarted_run_automation(reported, block, endpoint.channel),
        ]
        wanted += [build_missing_run_automation(expectation, block, endpoint.channel) for expectation in expected]
    start = f"{tag}: "
    wanted = [core.model_copy(update={"name": f"{start}{core.name}"}) for core in wanted]
    existing = await _list_own_automations(client, start)
    changes = {
        core.name: await _reconcile_automations(client, core, existing.get(core.name, [])) for core in wanted
    }
    for name in existing.keys() - changes.keys():
        for automation in existing[name]:
            await client.delete_automation(automation.id)
        changes[name] = Change.REMOVED
    return changes


def build_missing_run_automation(expectation: Expectation, block: UUID, channel: str | None) -> AutomationCore:
    """Build the automation that repeatedly sends a message while no run of a deployment completes in time."""
    hours = expectation.within_s / 3600
    text = (
        f"🛠️ Lookout itself has a fault · no run of {expectation.deployment} has completed for {hours:g} hours. "
        "Check that its schedule is active and that a worker is running."
    )
    return AutomationCore(
        name=f"no run of {expectation.deployment}",
        description="Sends an alert if a scheduled run is missing.",
        trigger=EventTrigger(
            match=_build_run_match(StateType.COMPLETED),
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


def build_crashed_run_automation(watched: Watched, block: UUID, channel: str | None) -> AutomationCore:
    """Build the automation that sends a message about a crashed run, because the run's process is gone.

    Prefect also marks a run as Crashed if the run was stopped with Ctrl-C, or with SIGTERM at a shutdown. The text
    of the message then says that the run was stopped.
    """
    text = (
        f'(("🛠️ A run was stopped · run " if flow_run.state.message in {STOPPED_MESSAGES} else '
        '"🛠️ Lookout itself has a fault · run ") ~ flow_run.name ~ " of " ~ flow.name ~ '
        f'(" was stopped by Ctrl-C, or because its machine was shut down. " if flow_run.state.message in '
        f'{STOPPED_MESSAGES} else " crashed: its process is gone. ") ~ '
        '"All answers so far are stored. A run that starts within the next hour continues from there. Lookout '
        'restarts the run of a deploy automatically. " '
        f"~ {RUN_PLACE})"
    )
    return _build_run_automation(
        "a run crashed",
        "Sends an alert if the process of a run was killed.",
        match=_build_run_match(StateType.CRASHED),
        watched=watched,
        action=CallWebhook(block_document_id=block, payload=_build_payload(f"{{{{ {text} | tojson }}}}", channel)),
    )


def build_unstarted_run_automation(watched: Watched, block: UUID, channel: str | None) -> AutomationCore:
    """Build the automation that sends a message for a run that could not start, for example on a wrong parameter.

    Such a run may have no configuration, and then cannot send an alert itself. If the run can send an alert itself,
    people get two messages. Runs of the watcher's flows are excluded, because the watcher starts these flows again
    and again. Their failures are reported only if no run completes for a long time.
    """
    text = (
        '("🛠️ Lookout itself has a fault · run " ~ flow_run.name ~ " of " ~ flow.name ~ " could not start, '
        'because its configuration or its parameters are wrong. The state of the run shows the error: " '
        f"~ {RUN_PLACE})"
    )
    match = _build_resource_match(
        {
            "prefect.resource.id": RUN_EVENTS,
            "prefect.state-type": StateType.FAILED.value,
            "prefect.state-message": list(NOT_STARTED_MESSAGES),
        }
    )
    return _build_run_automation(
        "a run could not start",
        "Sends an alert if the configuration or the parameters of a run are wrong.",
        match=match,
        watched=watched,
        action=CallWebhook(block_document_id=block, payload=_build_payload(f"{{{{ {text} | tojson }}}}", channel)),
    )


def _build_run_automation(
    name: str,
    description: str,
    *,
    match: ResourceSpecification,
    watched: Watched,
    action: CallWebhook,
) -> AutomationCore:
    """Build an automation that carries out ``action`` once for each run with a matching event."""
    return AutomationCore(
        name=name,
        description=description,
        trigger=EventTrigger(
            match=match,
            match_related=[*watched],
            expect={RUN_EVENTS},
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
            within=DUPLICATE_WINDOW,
        ),
        actions=[action],
    )


def build_abandoned_run_automation(watched: Watched, crashed_after_s: float) -> AutomationCore:
    """Build the automation that marks a run as Crashed if its heartbeats stop. Another run can then start."""
    return AutomationCore(
        name="a run sends no heartbeat",
        description="Marks a run as Crashed if its heartbeats stop.",
        trigger=EventTrigger(
            match=_build_resource_match({"prefect.resource.id": RUN_EVENTS}),
            match_related=[*watched],
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
                message=f"No heartbeat for {crashed_after_s:g} s: the process is gone.",
                force=False,
            )
        ],
    )


def _build_run_match(state: StateType) -> ResourceSpecification:
    return _build_resource_match({"prefect.resource.id": RUN_EVENTS, "prefect.state-type": state.value})


def _build_flow_matches(flows: Sequence[str], tag: str) -> Watched:
    """Build the conditions that match runs of ``flows``.

    If ``tag`` is not the default, the conditions match only runs of deployments with this tag.
    """
    of_flows = _build_resource_match({"prefect.resource.role": "flow", "prefect.resource.name": list(flows)})
    if tag == PREFECT_TAG:
        return [of_flows]
    tagged = {"prefect.resource.role": "tag", "prefect.resource.id": f"prefect.tag.{tag}"}
    return [of_flows, _build_resource_match(tagged)]


def _build_resource_match(labels: Mapping[str, str | list[str]]) -> ResourceSpecification:
    return ResourceSpecification.model_validate(labels)


def _build_payload(text_as_json: str, channel: str | None) -> str:
    """Build the JSON for Slack. Prefect fills in the placeholders."""
    place = f'"channel": {json.dumps(channel)}, ' if channel else ""
    return f'{{{place}"text": {text_as_json}}}'


async def _save_webhook_block(client: PrefectClient, endpoint: SlackEndpoint, tag: str) -> UUID:
    """Save the webhook's block and return its id. Prefect encrypts the secrets in a block."""
    headers = {name: value.get_secret_value() for name, value in endpoint.headers.items()}
    webhook = Webhook(url=endpoint.url, headers=SecretDict({**headers, "Content-Type": "application/json"}))
    return await webhook.asave(f"{tag}-alerts", overwrite=True, client=client)


async def _list_own_automations(client: PrefectClient, start: str) -> dict[str, list[Automation]]:
    ours: dict[str, list[Automation]] = {}
    for automation in await client.read_automations():
        if automation.name.startswith(start):
            ours.setdefault(automation.name, []).append(automation)
    return ours


async def _reconcile_automations(
    client: PrefectClient, wanted: AutomationCore, existing: Sequence[Automation]
) -> Change:
    """Create or update the automation ``wanted``, and delete its duplicates in ``existing``.

    All automations in ``existing`` have the same name as ``wanted``.
    """
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
"""Maximum number of concurrent long runs, besides the watcher's runs.

It is low, because the browser of a verification run takes about half a gigabyte of memory.
"""


async def build_runner_deployment(planned: PlannedDeployment, pause: Pause = NOT_PAUSED) -> RunnerDeployment:
    """Build Prefect's deployment object.

    The object names the flow's module and has no flow object, because Prefect would pickle a flow object.

    The parts that a person paused, according to ``pause``, stay paused.
    """
    flow: Flow[..., Any] = getattr(importlib.import_module(planned.module), planned.function)
    if flow.name != planned.flow:
        raise AssertionError(f"{planned.module} contains the flow {flow.name!r}, not {planned.flow!r}")
    return await flow.ato_deployment(
        name=planned.name,
        schedule=_build_schedule(planned.when, is_active=pause.is_schedule_active),
        paused=pause.is_paused,
        concurrency_limit=1
        if isinstance(planned.when, Cron)
        else None,  # only one late run starts, and it skips the other late runs
        schedules=None if planned.when else [],
        parameters=dict(planned.parameters),
        tags=[planned.tag, *planned.tags, *pause.tags],
        description=flow.description,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )


def list_deployments_to_expect(planned: Sequence[PlannedDeployment]) -> tuple[Expectation, ...]:
    """List the deployments whose missing runs are reported."""
    return tuple(
        Expectation(deployment=deployment.name, within_s=deployment.late_after_s)
        for deployment in planned
        if deployment.late_after_s is not None
    )


def compute_concurrent_run_limit(planned: Sequence[PlannedDeployment]) -> int:
    """Compute how many runs may execute at the same time, so that long runs do not delay the watcher's runs."""
    return MAX_LONG_RUNS + sum(isinstance(deployment.when, Every) for deployment in planned)


async def register_deployments_and_automations(
    planned: Sequence[PlannedDeployment],
    endpoint: SlackEndpoint | None,
    now: Callable[[], datetime],
    write_line: Callable[[str], None],
    *,
    config_path: Path | None = None,
    tag: str = PREFECT_TAG,
) -> Runner:
    """Register all deployments. Return a runner that executes their due runs until SIGTERM.

    SIGTERM also ends the runs. ``write_line`` is called for each deployment with a line that describes the
    deployment and its next run. A deployment that a person paused stays paused. For missed runs, see
    `cancel_missed_runs_of_deployment`. With ``config_path``, deployments with ``tag`` that are no longer in the
    configuration are removed.
    """
    runner = _Runner(name=tag, limit=compute_concurrent_run_limit(planned), pause_on_shutdown=False)
    async with get_client() as client:
        pauses = await read_pauses(client, tag)
        gone = await delete_unplanned_deployments(client, planned, config_path, tag) if config_path else ()
    for deployment in planned:
        pause = pauses.get(deployment.name, NOT_PAUSED)
        await runner.aadd_deployment(await build_runner_deployment(deployment, pause))
    await ensure_automations_of_deployments(planned, endpoint, tag)
    for line in await format_timetable(planned, now(), pauses):
        write_line(line)
    for name in gone:
        write_line(f"{name} is no longer in the configuration, so Lookout removed it from Prefect")
    return runner


async def format_timetable(
    planned: Sequence[PlannedDeployment], at: datetime, pauses: Mapping[str, Pause] = MappingProxyType({})
) -> tuple[str, ...]:
    """Format a line for each deployment: its name, its purpose, and its next run in its schedule's time zone."""
    width = max(len(deployment.name) for deployment in planned)
    return tuple(
        [
            f"{deployment.name:<{width}}  {deployment.purpose}  ·  "
            f"{await _format_next_run(deployment, at, pauses.get(deployment.name, NOT_PAUSED))}"
            for deployment in planned
        ]
    )


async def _format_next_run(planned: PlannedDeployment, at: datetime, pause: Pause) -> str:
    if pause.since is not None:
        return f"paused at Prefect since {pause.since:%Y-%m-%d %H:%M} UTC"
    match planned.when:
        case Cron() as when:
            schedule = CronSchedule(cron=when.line, timezone=when.time_zone)  # computed like on Prefect's server
            dates = await schedule.get_dates(n=1, start=at)
            return f"next {format_zoned_moment(dates[0], when.time_zone)}"
        case Every(seconds=seconds):
            return f"every {seconds / 60:g} min, and when the watcher finds something new"
        case None:
            return "only by `lookout drill`" if planned.flow == DRILL else "after each reported deploy"


async def ensure_automations_of_deployments(
    planned: Sequence[PlannedDeployment], endpoint: SlackEndpoint | None, tag: str
) -> Mapping[str, Change]:
    """Create or update the automations for the planned deployments. Return the changes by name."""
    async with get_client() as client:
        return await ensure_automations(client, endpoint, expected=list_deployments_to_expect(planned), tag=tag)


class _Runner(Runner):
    """A runner with its own SIGTERM handler. Prefect's handler creates a coroutine that is never awaited."""

    def handle_sigterm(self, *args: Any, **kwargs: Any) -> None:
        """End `start`, which then ends the active runs."""
        del args, kwargs
        sys.exit(0)


def _build_schedule(when: Cron | Every | None, *, is_active: bool) -> Schedule | None:
    match when:
        case Cron():
            return PrefectCron(when.line, timezone=when.time_zone, active=is_active, slug=SCHEDULE_SLUG)
        case Every():
            return Interval(when.seconds, active=is_active, slug=SCHEDULE_SLUG)
        case None:
            return None
