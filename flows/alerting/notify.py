"""Notify people: decide once across processes, store the decision, send it, store the outcome.

A fault is an incident of the monitor itself. People hear of it even when nothing can be stored. Whoever watches for
a fault also ends it: a run's end does not resolve a fault that the run could not see.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from flows.alerting.delivery import LOCK_WAIT_S, deliver
from flows.alerting.notifier import Notifier, catch_up
from monitors.alerts.grouping import group, refer
from monitors.alerts.lifecycle import AlertDecision, decide
from monitors.alerts.message import short_commit, utc
from monitors.alerts.observations import ObservationContext, fingerprint, monitor_fault
from monitors.alerts.redact import redact
from monitors.alerts.resolve import ResolutionScope
from monitors.errors import MonitorError, NotifyError, WarehouseError
from monitors.records.explanations import Recheck
from monitors.records.incidents import (
    Alert,
    Capability,
    Incident,
    IncidentKind,
    Link,
    Observation,
    RunSummary,
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


def run_summary(report: RunReport, links: Sequence[Link], *, account_patterns: Sequence[str] = ()) -> RunSummary:
    """What messages show of a finished run: both scores, its reports on issues, what failed cases share."""
    flat, weighted = report.scores.flat.value, report.scores.weighted.value
    lines = EXPLAINING_LINES - bool(format_recheck_briefly(report.recheck))
    in_common = _in_common(report, account_patterns)[: lines - 1]
    changed = format_changes_briefly(report.what_changed, most=lines - len(in_common)) + _last_pass(report)
    if left_out := format_uncovered(report.reasons):
        changed += (f"Not covered: {left_out}",)
    return RunSummary(
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
    summary: RunSummary = RunSummary(),  # noqa: B008 - frozen
    scope: ResolutionScope | None = None,
) -> tuple[Alert, ...]:
    """Fold ``observations`` into the target's incidents and send what must be said; returns the messages decided.

    With ``scope`` (the run is over) it resolves what the run proved gone. A message that cannot be sent now stays
    in the outbox, and the next process to deliver sends it. A message that is refused for good becomes a fault of
    the monitor. Open incidents that were only printed are sent once with it, unless the run is still under way.
    """
    decided = await asyncio.to_thread(_decide, notifier, observations, summary, scope)
    done = await deliver(notifier)
    if done.refusals:
        await asyncio.to_thread(_decide, notifier, [_refused(notifier, done.refusals[0])], RunSummary(), None)
        await deliver(notifier)
    elif done.sent:
        await asyncio.to_thread(_close_refusal, notifier)
    return decided.alerts


def refusal_fingerprint(target: str) -> str:
    """The fingerprint of a refused delivery: it ends when a message goes out again, whatever a run finds."""
    return fingerprint(target, IncidentKind.MONITOR_FAULT, ALERT_REFUSED)


async def send_owed(notifier: Notifier) -> tuple[Alert, ...]:
    """Send the target's open incidents that were only printed, if there is a way to people now."""
    if not await asyncio.to_thread(_undelivered, notifier):
        return ()
    return await notify(notifier, ())


def group_items(
    notifier: Notifier,
    settled: AlertDecision,
    summary: RunSummary = RunSummary(),  # noqa: B008 - frozen
) -> tuple[Alert, ...]:
    """The messages of a decision."""
    return group(
        settled.items,
        target=notifier.target,
        run_id=notifier.run_id,
        now=notifier.now(),
        summary=summary.over(RunSummary(production=notifier.production)),
    )


def _decide(
    notifier: Notifier,
    observations: Sequence[Observation],
    summary: RunSummary,
    scope: ResolutionScope | None,
) -> outbox.OutboxDecision:
    silences = catch_up(notifier.people).silences
    undelivered, sent = _undelivered(notifier), _sent(notifier, observations)
    evidence = f"{socket.gethostname()}:{notifier.store.database.file.parent}"

    def decision(previous: Mapping[str, Incident]) -> outbox.OutboxDecision:
        settled = decide(
            previous,
            observations,
            now=notifier.now(),
            settings=notifier.settings,
            scope=scope,
            silences=silences,
            undelivered=undelivered,
            under_way=summary.under_way,
        )
        alerts = group_items(notifier, settled, summary)
        alerts = refer(alerts, undelivered=undelivered, sent=sent, evidence=evidence)
        return outbox.OutboxDecision(incidents=settled.changed, alerts=alerts)

    return outbox.decide(notifier.store, notifier.journal, notifier.target, decision, wait_s=LOCK_WAIT_S)


def _undelivered(notifier: Notifier) -> Mapping[str, Alert]:
    """The last alerts about open incidents that only a terminal has shown, or a channel refused, by fingerprint.

    None without a way to people.
    """
    if not notifier.sender.notifies:
        return {}
    try:
        before = notifier.now() - REFUSED_AGAIN_AFTER
        printed = only_printed(notifier.store, notifier.target, tried_before=before)
    except WarehouseError:
        return {}  # the next notification finds them
    refusal = refusal_fingerprint(notifier.target)  # the message that goes out is the end of that fault
    return {key: alert for key, alert in printed.items() if key != refusal}


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
    if known is None or known.is_resolved:
        return outbox.OutboxDecision()
    return outbox.OutboxDecision(incidents=(known.resolve(notifier.now()),))


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
        await notify(notifier, [seen], summary=RunSummary(commit=commit))
    except (WarehouseError, OSError):
        await _notify_unstored(notifier, seen, RunSummary(commit=commit))


async def _notify_unstored(notifier: Notifier, seen: Observation, summary: RunSummary) -> None:
    settled = decide({}, [seen], now=notifier.now(), settings=notifier.settings)
    for alert in group_items(notifier, settled, summary):
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
        if known is None or known.is_resolved:
            return outbox.OutboxDecision()
        if ending is None:
            return outbox.OutboxDecision(incidents=(known.resolve(notifier.now()),))
        scope = _scope(notifier, began_at, ending, known.owner)
        settled = decide({key: known}, [], now=notifier.now(), settings=notifier.settings, scope=scope)
        return outbox.OutboxDecision(incidents=settled.changed, alerts=group_items(notifier, settled))

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
