"""Notify people: decide once across processes, store the decision, send it, store the outcome.

A fault is an incident of the monitor itself. People hear of it even when nothing can be stored. Whoever watches for
a fault also ends it: a run's end does not resolve a fault that the run could not see.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

from flows.alerting.delivery import LOCK_WAIT_S, deliver
from flows.alerting.notifier import Notifier, catch_up
from monitors.alerts.grouping import compose
from monitors.alerts.lifecycle import AlertDecision, PrintRecord, close, decide
from monitors.alerts.message import short_commit, utc
from monitors.alerts.observations import ObservationContext, ResolutionScope, fingerprint, monitor_fault
from monitors.alerts.redact import redact
from monitors.errors import MonitorError, NotifyError, WarehouseError
from monitors.records.base import Record
from monitors.records.explanations import Recheck
from monitors.records.grades import FailureKind
from monitors.records.incidents import (
    Alert,
    Capability,
    CaseAlert,
    Incident,
    IncidentKind,
    IncidentState,
    Link,
    NotifyReason,
    Observation,
)
from monitors.records.runs import RunReport, format_uncovered
from monitors.reports.figures import format_causes, format_changes_briefly
from monitors.reports.rechecks import format_recheck_briefly
from monitors.reports.triage_summary import format_dimensions
from warehouse.queries import outbox
from warehouse.queries.incidents import latest_alerts, only_printed

EXPLAINING_LINES = 3
"""The most lines of a message about why: what came of asking again, what failures have in common, what changed.

Which deploy passed last is one more.
"""
ALERT_REFUSED = "AlertRefused"
REFUSED_AGAIN_AFTER: Final = timedelta(seconds=10)
"""What was refused is tried again by the next run, not once more by the one that it was refused to."""
"""The fault of a delivery path that refuses every message until a person fixes it."""


class MessageContext(Record):
    """What a message says besides its incidents."""

    commit: str | None = None
    flat: str | None = None
    weighted: str | None = None
    dimensions: str | None = None
    in_common: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    under_way: bool = False


def message_context(
    report: RunReport, links: Sequence[Link], *, account_patterns: Sequence[str] = ()
) -> MessageContext:
    """What messages show of a finished run: both scores, its reports on issues, what failed cases share."""
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    lines = EXPLAINING_LINES - bool(format_recheck_briefly(report.recheck))
    in_common = _in_common(report, account_patterns)[: lines - 1]
    changed = format_changes_briefly(report.what_changed, most=lines - len(in_common)) + _last_pass(report)
    if left_out := format_uncovered(report.reasons):
        changed += (f"Not covered: {left_out}",)
    return MessageContext(
        commit=report.commit,
        flat=None if flat is None else f"{flat:.3f}",
        weighted=None if weighted is None else f"{weighted:.3f}",
        dimensions=format_dimensions(report) or None,
        in_common=in_common,
        changed=tuple(redact(change, account_patterns=account_patterns) for change in changed),
        links=tuple(links),
    )


def _last_pass(report: RunReport) -> tuple[str, ...]:
    """Which deploy passed last: what a person rolls back to, unless it is the one that fails now."""
    found = report.what_changed
    if found is None or found.since is None or found.since_commit is None:
        return ()
    same = found.since_commit == report.commit
    which = "this same deploy" if same else f"deploy {short_commit(found.since_commit)}"
    return (f"Last PASS: {which}, {utc(found.since)}",)


def asked_again(alert: Alert, found: Recheck, *, account_patterns: Sequence[str] = ()) -> str:
    """What the cases that a message is about came to when they were asked again; of a gate that failed, all."""
    cases = [item.incident.case_id for item in alert.items if item.incident.case_id]
    of_run = alert.kind is IncidentKind.GATE_FAIL
    return redact(format_recheck_briefly(found, None if of_run else cases), account_patterns=account_patterns)


def _in_common(report: RunReport, account_patterns: Sequence[str]) -> tuple[str, ...]:
    """What failed cases have in common, for a message: that they have nothing in common is no news at night."""
    found = report.first_look
    if found is None or not found.causes:
        return ()
    return tuple(redact(cause, account_patterns=account_patterns) for cause in format_causes(found))


async def notify(
    notifier: Notifier,
    observations: Sequence[Observation],
    *,
    context: MessageContext,
    scope: ResolutionScope | None = None,
    under_way: bool = False,
) -> tuple[Alert, ...]:
    """Fold ``observations`` into the target's incidents and send what must be said; returns the messages decided.

    With ``scope`` (the run is over) it resolves what the run proved gone. A message that cannot be sent now stays
    in the outbox, and the next process to deliver sends it. A message that is refused for good becomes a fault of
    the monitor. Open incidents that were only printed are sent once with it, unless the run is still ``under_way``.
    """
    decided = await asyncio.to_thread(_decide, notifier, observations, context, scope, under_way=under_way)
    done = await deliver(notifier)
    if done.refusals:
        await asyncio.to_thread(_decide, notifier, [_refused(notifier, done.refusals[0])], MessageContext(), None)
        await deliver(notifier)
    elif done.sent:
        await asyncio.to_thread(_close_refusal, notifier)
    return decided.alerts


def composed(notifier: Notifier, settled: AlertDecision, context: MessageContext) -> tuple[Alert, ...]:
    """Compose the messages of a decision."""
    return compose(
        settled.items,
        target=notifier.target,
        run_id=notifier.run_id,
        now=notifier.now(),
        commit=context.commit,
        flat=context.flat,
        weighted=context.weighted,
        dimensions=context.dimensions,
        in_common=context.in_common,
        changed=context.changed,
        links=context.links,
        under_way=context.under_way,
        production=notifier.production,
    )


def _with_references(
    alerts: Sequence[Alert], *, owed: Mapping[str, PrintRecord], sent: Mapping[str, str], folder: Path
) -> tuple[Alert, ...]:
    """The messages with where to read more: the alerts of a gate's cases, the run that saw it, the evidence.

    ``sent`` has the id of the last message about each open incident by fingerprint, ``folder`` is the data folder.
    """
    ids = {**sent, **{item.incident.fingerprint: alert.id for alert in alerts for item in alert.items}}
    return tuple(_with_evidence(_with_own_alerts(_as_of(alert, owed), ids), folder) for alert in alerts)


def _as_of(alert: Alert, owed: Mapping[str, PrintRecord]) -> Alert:
    """What an earlier run saw, with that run's scores and report; none where several runs saw it."""
    if alert.reason is not NotifyReason.OPEN_BEFORE or alert.items[0].observation.run_id == alert.run_id:
        return alert
    runs = {item.observation.run_id: owed[item.incident.fingerprint] for item in alert.items}
    found = next(iter(runs.values())) if len(runs) == 1 else None
    return alert.model_copy(
        update={
            "flat": found.flat if found else None,
            "weighted": found.weighted if found else None,
            "links": found.links if found else (),
            "dimensions": None,
            "in_common": (),
            "changed": (),
        }
    )


def _with_own_alerts(alert: Alert, ids: Mapping[str, str]) -> Alert:
    """A gate's message with the ids of the alerts that its severe cases have of their own."""
    cases = {case for item in alert.items for case in item.observation.cases_with_alerts}
    own = {
        case: ids[key]
        for case in sorted(cases)
        for kind in FailureKind
        if (key := fingerprint(alert.target, IncidentKind.CASE_FAILURE, case, kind.value)) in ids
    }
    found = tuple(CaseAlert(case_id=case, alert_id=alert_id) for case, alert_id in own.items())
    return alert.model_copy(update={"own_alerts": found})


def _with_evidence(alert: Alert, folder: Path) -> Alert:
    """What is sent before the run's report is there says where to see what is known."""
    if not alert.under_way or alert.links:
        return alert
    where = Link(label="in", href=f"{socket.gethostname()}:{folder}")
    return alert.model_copy(
        update={"links": (Link(label="Evidence", href=f"lookout alerts show {alert.id}"), where)}
    )


def refusal_fingerprint(target: str) -> str:
    """The fingerprint of a refused delivery: it ends when a message goes out again, whatever a run finds."""
    return fingerprint(target, IncidentKind.MONITOR_FAULT, ALERT_REFUSED)


async def send_owed(notifier: Notifier) -> tuple[Alert, ...]:
    """Send the target's open incidents that were only printed, if there is a way to people now."""
    if not await asyncio.to_thread(_owed, notifier):
        return ()
    return await notify(notifier, (), context=MessageContext())


def _decide(
    notifier: Notifier,
    observations: Sequence[Observation],
    context: MessageContext,
    scope: ResolutionScope | None,
    *,
    under_way: bool = False,
) -> outbox.OutboxDecision:
    silences = catch_up(notifier.people).silences
    owed, sent = _owed(notifier), _sent(notifier, observations)
    folder = notifier.store.database.file.parent

    def decision(previous: Mapping[str, Incident]) -> outbox.OutboxDecision:
        settled = decide(
            previous,
            observations,
            now=notifier.now(),
            settings=notifier.settings,
            scope=scope,
            silences=silences,
            owed=owed,
            under_way=under_way,
        )
        alerts = _with_references(composed(notifier, settled, context), owed=owed, sent=sent, folder=folder)
        return outbox.OutboxDecision(incidents=settled.changed, alerts=alerts)

    return outbox.decide(notifier.store, notifier.journal, notifier.target, decision, wait_s=LOCK_WAIT_S)


def _owed(notifier: Notifier) -> Mapping[str, PrintRecord]:
    """Open incidents that only a terminal has shown, or a channel refused; none without a way to people."""
    if not notifier.sender.notifies:
        return {}
    try:
        refusal, before = refusal_fingerprint(notifier.target), notifier.now() - REFUSED_AGAIN_AFTER
        printed = only_printed(notifier.store, notifier.target, tried_before=before)
    except WarehouseError:
        return {}  # the next notification finds them
    return {
        item.incident.fingerprint: PrintRecord(
            at=alert.created_at,
            observation=item.observation,
            flat=alert.flat,
            weighted=alert.weighted,
            links=alert.links,
        )
        for key, alert in printed.items()
        for item in alert.items
        if item.incident.fingerprint == key != refusal  # the message that goes out is the end of that fault
    }


def _sent(notifier: Notifier, observations: Sequence[Observation]) -> Mapping[str, str]:
    """The id of the last message about each open incident, where a gate's message has to refer to them."""
    if not any(seen.cases_with_alerts for seen in observations):
        return {}
    try:
        return latest_alerts(notifier.store, tuple(notifier.store.open_incidents(notifier.target)))
    except WarehouseError:
        return {}  # the message then names the cases alone


def _refused(notifier: Notifier, why: str) -> Observation:
    at = ObservationContext(
        target=notifier.target, run_id=notifier.run_id, seen_at=notifier.now(), owner=Capability.DELIVERY
    )
    return monitor_fault(at, what=ALERT_REFUSED, detail=f"A message could not go its usual way: {why}")


def _close_refusal(notifier: Notifier) -> None:
    """Resolve the refusal quietly, because messages go out again: the message itself is the news."""
    key = refusal_fingerprint(notifier.target)
    try:
        if not any(one.fingerprint == key for one in notifier.store.open_incidents(notifier.target)):
            return
        outbox.decide(
            notifier.store,
            notifier.journal,
            notifier.target,
            lambda all_: _closed(notifier, all_, key),
            wait_s=LOCK_WAIT_S,
        )
    except WarehouseError:
        return  # the next message that goes out closes it


def _closed(notifier: Notifier, previous: Mapping[str, Incident], key: str) -> outbox.OutboxDecision:
    known = previous.get(key)
    if known is None or known.state is IncidentState.RESOLVED:
        return outbox.OutboxDecision()
    return outbox.OutboxDecision(incidents=(close(known, notifier.now()),))


class Fault(NamedTuple):
    """What broke: its stable name, which makes it the same incident next time, and the words for a person."""

    what: str
    detail: str


def fault_of(error: BaseException) -> Fault:
    """The fault that an exception stands for."""
    name = type(error).__name__
    return Fault(name, str(error) if isinstance(error, MonitorError) else f"{name}: {error}")


async def notify_fault(notifier: Notifier, fault: Fault, *, commit: str | None = None) -> None:
    """Send one message about the monitor. Never raises for a store that cannot be written: the message goes out.

    Without the store nobody knows whether people heard of the fault, so each run that meets it reports it.
    """
    at = ObservationContext(
        target=notifier.target,
        run_id=notifier.run_id,
        seen_at=notifier.now(),
        commit=commit,
        owner=notifier.owner,
    )
    seen = monitor_fault(at, what=fault.what, detail=fault.detail)
    try:
        await notify(notifier, [seen], context=MessageContext(commit=commit))
    except (WarehouseError, OSError):
        await _notify_unstored(notifier, seen, MessageContext(commit=commit))


async def _notify_unstored(notifier: Notifier, seen: Observation, context: MessageContext) -> None:
    settled = decide({}, [seen], now=notifier.now(), settings=notifier.settings)
    for alert in composed(notifier, settled, context):
        try:
            await notifier.sender.send(alert, again=True)
        except NotifyError:
            await notifier.terminal.send(alert)


async def faults_over(notifier: Notifier, endings: Mapping[str, str | None], *, began_at: datetime) -> None:
    """End those faults that are open: by name, with the text for their thread, ``None`` for no text.

    ``began_at`` is when the check started that found them gone. Raises `WarehouseError`.
    """
    keys = {fingerprint(notifier.target, IncidentKind.MONITOR_FAULT, what): said for what, said in endings.items()}
    open_ones = await asyncio.to_thread(notifier.store.open_incidents, notifier.target)
    for one in open_ones:
        if one.fingerprint in keys:
            await _end(notifier, one.fingerprint, keys[one.fingerprint], began_at)


async def fault_over(notifier: Notifier, what: str, *, began_at: datetime, ending: str | None) -> None:
    """End one fault, as `faults_over` does."""
    await faults_over(notifier, {what: ending}, began_at=began_at)


async def other_faults_over(notifier: Notifier, *, but: Collection[str], ending: str, began_at: datetime) -> None:
    """End the open faults that the notifier's part of the monitor opened, but those named ``but``: it works again.

    What stopped it altogether has no name that is known beforehand. Raises `WarehouseError`.
    """
    named = {fingerprint(notifier.target, IncidentKind.MONITOR_FAULT, what) for what in but}
    open_ones = await asyncio.to_thread(notifier.store.open_incidents, notifier.target)
    for one in open_ones:
        own = one.kind is IncidentKind.MONITOR_FAULT and one.owner is notifier.owner
        if own and one.fingerprint not in named:
            await _end(notifier, one.fingerprint, ending, began_at)


async def close_quietly(notifier: Notifier, key: str) -> None:
    """Resolve the incident with the fingerprint ``key``, where it is open, silently. Raises `WarehouseError`."""
    open_ones = await asyncio.to_thread(notifier.store.open_incidents, notifier.target)
    if any(one.fingerprint == key for one in open_ones):
        await _end(notifier, key, None, notifier.now())


async def _end(notifier: Notifier, key: str, ending: str | None, began_at: datetime) -> None:
    def decision(previous: Mapping[str, Incident]) -> outbox.OutboxDecision:
        known = previous.get(key)
        if known is None or known.state is IncidentState.RESOLVED:
            return outbox.OutboxDecision()
        if ending is None:
            return outbox.OutboxDecision(incidents=(close(known, notifier.now()),))
        scope = _scope(notifier, began_at, ending, known.owner)
        settled = decide({key: known}, [], now=notifier.now(), settings=notifier.settings, scope=scope)
        return outbox.OutboxDecision(
            incidents=settled.changed, alerts=composed(notifier, settled, MessageContext())
        )

    await asyncio.to_thread(
        outbox.decide, notifier.store, notifier.journal, notifier.target, decision, wait_s=LOCK_WAIT_S
    )
    await deliver(notifier)


def _scope(notifier: Notifier, began_at: datetime, ending: str, owner: Capability) -> ResolutionScope:
    return ResolutionScope(
        target=notifier.target,
        run_id=notifier.run_id,
        began_at=began_at,
        ended_at=notifier.now(),
        cleared=frozenset({IncidentKind.MONITOR_FAULT}),
        owner=owner,
        text=ending,
    )
