"""What Prefect itself watches over: runs that do not come, runs whose process is gone.

    no run of a deployment has completed in time ─────▶ a message
    a run's heartbeats stop and no end was told ───────▶ the run is marked Crashed
    a run is Crashed, whoever marked it ───────────────▶ a message
    a run could not begin, so it could tell nobody ────▶ a message

The messages go from Prefect's server straight to Slack, as whoever would decide and store them may be what is gone.
Prefect alone is no sufficient watchdog: when its server dies these die with it, and only a heartbeat that stays
away tells somebody outside.

An event of a run is named after the *name* of its state (``prefect.flow-run.Pass``), so what is expected is told by
the state's type, a label of the event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from prefect.blocks.webhook import Webhook
from prefect.client.orchestration import PrefectClient
from prefect.client.schemas.objects import StateType
from prefect.events.actions import CallWebhook, ChangeFlowRunState
from prefect.events.schemas.automations import Automation, AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.types import SecretDict

from flows.slack_way import SlackWay
from monitors.records.base import Record

PREFIX: Final = "lookout: "
"""Begins the name of every automation of ours; others are never touched."""
BLOCK: Final = "lookout-alerts"
FLOWS: Final = ("verify-deploy", "digest", "load-warehouse", "grade-traffic", "follow-log", "watch-deploys")
"""The flows that are watched: on a shared server other people's are theirs."""
MINUTELY: Final = ("follow-log", "watch-deploys")
UNBEGUN: Final = (
    "Flow run encountered an exception: ConfigError*",
    "Flow run encountered an exception: GoldSetError*",
    "Validation of flow parameters failed*",
)
"""What Prefect says of such a run's state."""
LOST_AFTER_S: Final = 95.0
"""Three heartbeats at the 30 s that `prefect_server.settings_for` sets, and a little."""
RUN_EVENTS: Final = "prefect.flow-run.*"


class Expectation(Record):
    """A deployment (``flow/name``'s name) of which a run must complete every so often."""

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
    way: SlackWay | None,
    *,
    expected: Sequence[Expectation],
    flows: Sequence[str] = FLOWS,
    lost_after_s: float = LOST_AFTER_S,
) -> Mapping[str, Change]:
    """Create or update our automations, so that calling it again changes nothing; what became of each, by name.

    Without a ``way`` nobody can be told: lost runs are still marked Crashed. One that a person has switched off
    stays off. Those of deployments that are expected no more are removed.
    """
    wanted = [lost_run(flows, lost_after_s)]
    if way is not None:
        block = await _block(client, way)
        wanted += [crashed_run(flows, block, way.channel), unbegun_run(flows, block, way.channel)]
        wanted += [missing_run(one, block, way.channel) for one in expected]
    known = await _ours(client)
    changes = {core.name: await _ensure(client, core, known.get(core.name, [])) for core in wanted}
    for name in known.keys() - changes.keys():
        for automation in known[name]:
            await client.delete_automation(automation.id)
        changes[name] = Change.REMOVED
    return changes


def missing_run(expectation: Expectation, block: UUID, channel: str | None) -> AutomationCore:
    """A message when no run of a deployment has completed in time, whatever its verdict; repeated as long as so."""
    hours = expectation.within_s / 3600
    text = (
        f"🛠️ Monitor fault · no run of {expectation.deployment} has completed for {hours:g} hours. "
        "Look whether its schedule is on and whether a worker is alive."
    )
    return AutomationCore(
        name=f"{PREFIX}no run of {expectation.deployment}",
        description="Says so when a scheduled run does not come.",
        trigger=EventTrigger(
            match=_runs(StateType.COMPLETED),
            match_related=_labels(
                {"prefect.resource.role": "deployment", "prefect.resource.name": expectation.deployment}
            ),
            expect={RUN_EVENTS},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=expectation.within_s),
        ),
        actions=[CallWebhook(block_document_id=block, payload=_payload(json.dumps(text), channel))],
    )


def crashed_run(flows: Sequence[str], block: UUID, channel: str | None) -> AutomationCore:
    """A message for every run that crashed: its process is gone, so it cannot say so itself."""
    text = (
        '("🛠️ Monitor fault · run " ~ flow_run.name ~ " of " ~ flow.name ~ " crashed: its process is gone. '
        'What was answered is kept, and the next run within the hour goes on from there. " ~ (flow_run | ui_url))'
    )
    return AutomationCore(
        name=f"{PREFIX}a run crashed",
        description="Says so when a run's process was killed.",
        trigger=EventTrigger(
            match=_runs(StateType.CRASHED),
            match_related=_of_flows(flows),
            expect={RUN_EVENTS},
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[CallWebhook(block_document_id=block, payload=_payload(f"{{{{ {text} | tojson }}}}", channel))],
    )


def unbegun_run(flows: Sequence[str], block: UUID, channel: str | None) -> AutomationCore:
    """A message for a run whose configuration or parameters are wrong: it may not even know whom to tell.

    One that knew has told it too, and says the same twice. Of the jobs of every minute only those are told that
    do not complete for long, as each minute would be a message.
    """
    text = (
        '("🛠️ Monitor fault · run " ~ flow_run.name ~ " of " ~ flow.name ~ " could not begin, so nothing was asked: '
        'its configuration or its parameters are wrong. Its page says which. " ~ (flow_run | ui_url))'
    )
    match = _labels(
        {
            "prefect.resource.id": RUN_EVENTS,
            "prefect.state-type": StateType.FAILED.value,
            "prefect.state-message": list(UNBEGUN),
        }
    )
    return AutomationCore(
        name=f"{PREFIX}a run could not begin",
        description="Says so when a run's configuration or parameters are wrong.",
        trigger=EventTrigger(
            match=match,
            match_related=_of_flows([flow for flow in flows if flow not in MINUTELY]),
            expect={RUN_EVENTS},
            for_each={"prefect.resource.id"},
            posture=Posture.Reactive,
            threshold=1,
        ),
        actions=[CallWebhook(block_document_id=block, payload=_payload(f"{{{{ {text} | tojson }}}}", channel))],
    )


def lost_run(flows: Sequence[str], lost_after_s: float) -> AutomationCore:
    """Mark a run Crashed when its heartbeats stop: with its runner dead nobody else does, and it holds its slot."""
    return AutomationCore(
        name=f"{PREFIX}a run gives no sign of life",
        description="Marks a run Crashed when its heartbeats stop.",
        trigger=EventTrigger(
            match=_labels({"prefect.resource.id": RUN_EVENTS}),
            match_related=_of_flows(flows),
            after={"prefect.flow-run.heartbeat"},
            expect={RUN_EVENTS},
            for_each={"prefect.resource.id"},
            posture=Posture.Proactive,
            threshold=1,
            within=timedelta(seconds=lost_after_s),
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                name="Crashed",
                message=f"No sign of life for {lost_after_s:g} s: the process is gone.",
                force=False,
            )
        ],
    )


def _runs(kind: StateType) -> ResourceSpecification:
    return _labels({"prefect.resource.id": RUN_EVENTS, "prefect.state-type": kind.value})


def _of_flows(flows: Sequence[str]) -> ResourceSpecification:
    return _labels({"prefect.resource.role": "flow", "prefect.resource.name": list(flows)})


def _labels(labels: Mapping[str, str | list[str]]) -> ResourceSpecification:
    return ResourceSpecification.model_validate(labels)


def _payload(text_as_json: str, channel: str | None) -> str:
    """The JSON that Slack takes, with what Prefect fills in."""
    place = f'"channel": {json.dumps(channel)}, ' if channel else ""
    return f'{{{place}"text": {text_as_json}}}'


async def _block(client: PrefectClient, way: SlackWay) -> UUID:
    """Prefect keeps the secrets encrypted, and the automations name the block."""
    headers = {name: value.get_secret_value() for name, value in way.headers.items()}
    webhook = Webhook(url=way.url, headers=SecretDict({**headers, "Content-Type": "application/json"}))
    return await webhook.asave(BLOCK, overwrite=True, client=client)


async def _ours(client: PrefectClient) -> dict[str, list[Automation]]:
    ours: dict[str, list[Automation]] = {}
    for automation in await client.read_automations():
        if automation.name.startswith(PREFIX):
            ours.setdefault(automation.name, []).append(automation)
    return ours


async def _ensure(client: PrefectClient, wanted: AutomationCore, known: Sequence[Automation]) -> Change:
    if not known:
        await client.create_automation(wanted)
        return Change.CREATED
    first, *doubles = known
    for double in doubles:
        await client.delete_automation(double.id)
    as_it_is = AutomationCore.model_validate(first.model_dump(exclude={"id"}))
    as_it_should = wanted.model_copy(update={"enabled": first.enabled})
    if as_it_is == as_it_should:
        return Change.UNCHANGED
    await client.update_automation(first.id, as_it_should)
    return Change.UPDATED
