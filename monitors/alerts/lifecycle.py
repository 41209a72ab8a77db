"""The life of an incident as a pure function: stored state, observations and the time → new state and alerts.

    (nothing) ──seen──▶ OPEN ◀──worse── ACKNOWLEDGED
                        │  └──a person──▶   │
                        └──sent and gone────┴──▶ RESOLVED ──seen──▶ OPEN, reason `regressed`

``last_notified_at`` is ``None`` while an alert about the incident is held back (it was silenced or inhibited). The
next observation that may send an alert sends it. An incident that was only printed to a terminal is owed to people:
once there is a channel to them, an alert with the reason `open_before` goes out, whether the fault is seen again or
not. Nobody is notified of the end of an incident they never heard of. A decision counts as sent: the caller stores
state and message in one transaction, and delivery starts from what was stored.

Silences mute an incident at a person's request. Inhibition mutes what an outage explains, so that an outage is one
alert and not fifty. The reason for an alert is a value, printed in the message and stored with it. A run that sends
alerts while it goes on opens one thread: later findings go below its first alert. A run resolves an incident only
when it could have seen the fault and did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from monitors.alerts.observations import ResolutionScope, some_of
from monitors.alerts.redact import redact
from monitors.alerts.settings import AlertSettings
from monitors.alerts.wording import ABOUT_THE_MONITOR, GRAVE, KIND_WORDS, TITLED
from monitors.records.base import Blame, Record
from monitors.records.incidents import (
    AlertItem,
    Incident,
    IncidentKind,
    IncidentState,
    Link,
    NotifyReason,
    Observation,
)
from monitors.records.operator_actions import Silence


def is_silenced(incident: Incident, silences: Iterable[Silence], now: datetime) -> bool:
    """Whether any of ``silences`` covers ``incident`` at ``now``."""
    return any(silence.covers(incident, now) for silence in silences)


MUTING: Final = frozenset({IncidentKind.APP_DOWN, IncidentKind.DEPLOY_FAILURE})
"""While one of these is open, the application's quality is not news."""

MUTED: Final = frozenset({IncidentKind.CASE_FAILURE, IncidentKind.GATE_FAIL, IncidentKind.DRIFT})


def targets_in_outage(current: Iterable[Incident]) -> frozenset[str]:
    """Targets with an open outage among ``current``."""
    return frozenset(
        incident.target
        for incident in current
        if incident.kind in MUTING and incident.state is not IncidentState.RESOLVED
    )


def is_inhibited(incident: Incident, outages: frozenset[str]) -> bool:
    """Whether an outage of its target explains ``incident``. Grave failures send an alert all the same."""
    if incident.kind not in MUTED or incident.failure_kind in GRAVE:
        return False
    return incident.target in outages


EVENTS: Final = frozenset({IncidentKind.HALLUCINATION, IncidentKind.DRILL})
"""Kinds that happen once: one alert, no reminder, no regression, closed without an alert."""


def worst_by_fingerprint(observations: Iterable[Observation]) -> dict[str, Observation]:
    """The worst observation of each fault, the first among equals."""
    worst: dict[str, Observation] = {}
    for seen in observations:
        known = worst.get(seen.fingerprint)
        if known is None or seen.severity > known.severity:
            worst[seen.fingerprint] = seen
    return worst


def fold(before: Incident | None, seen: Observation) -> Incident:
    """Return the incident after ``seen``.

    Severity never falls while an incident is open, so that a flapping one is not "worse" every other nightly run. A
    run that repeats what it already reported before the incident was resolved does not reopen it.
    """
    if before is None:
        return _opened(seen)
    if before.state is IncidentState.RESOLVED:
        repeats = seen.run_id == before.last_run_id or before.kind in EVENTS
        return before if repeats else _reopened(before, seen)
    return _continued(before, seen)


def is_worse(before: Incident, seen: Observation) -> bool:
    """Whether an open incident got worse: more severe, a rate that multiplied, a failed case that nobody heard of.

    A run says it once, and a case that failed in an earlier message is no news until the incident was resolved.
    """
    multiplied = seen.multiplied and seen.run_id != before.last_run_id
    return seen.severity > before.severity or multiplied or bool(new_cases(before, seen))


def new_cases(before: Incident, seen: Observation) -> tuple[str, ...]:
    """The failed cases of ``seen`` that no message about the open incident has reported, nor one of their own."""
    known = {*before.notified_cases, *seen.cases_with_alerts}
    return tuple(case for case in seen.failed_cases if case not in known)


def _is_same_fault(before: Incident, seen: Observation) -> bool:
    """Whether a gate that fails again does so for a reason that it failed for before; other faults always do.

    Cases say so where there are any: a score below its limit is what every failed case leads to.
    """
    if before.failed_cases and seen.failed_cases:
        return not {*before.failed_cases, *before.notified_cases}.isdisjoint(seen.failed_cases)
    if before.failed_cases or seen.failed_cases:
        return False
    return before.verdict_reasons == seen.verdict_reasons or not set(before.verdict_reasons).isdisjoint(
        seen.verdict_reasons
    )


def _opened(seen: Observation) -> Incident:
    return Incident(
        fingerprint=seen.fingerprint,
        kind=seen.kind,
        target=seen.target,
        state=IncidentState.OPEN,
        severity=seen.severity,
        title=seen.title,
        case_id=seen.case_id,
        failure_kind=seen.failure_kind,
        opened_at=seen.seen_at,
        last_seen_at=seen.seen_at,
        first_commit=seen.commit,
        last_run_id=seen.run_id,
        owner=seen.owner,
        failed_cases=seen.failed_cases,
        verdict_reasons=seen.verdict_reasons,
        right_answers=seen.right_answers,
    )


def _reopened(before: Incident, seen: Observation) -> Incident:
    """Open the incident anew; ``resolved_at`` stays and shows that the same fault was there earlier."""
    opened = _opened(seen)
    if not _is_same_fault(before, seen):
        return opened
    return opened.model_copy(update={"resolved_at": before.resolved_at})


def _continued(before: Incident, seen: Observation) -> Incident:
    worse = is_worse(before, seen)
    return before.model_copy(
        update={
            "state": IncidentState.OPEN if worse else before.state,
            "severity": max(before.severity, seen.severity),
            "title": seen.title,
            "last_seen_at": max(before.last_seen_at, seen.seen_at),
            "occurrences": before.occurrences + (seen.run_id != before.last_run_id),
            "last_run_id": seen.run_id,
            "failed_cases": seen.failed_cases,
            "verdict_reasons": seen.verdict_reasons,
            "right_answers": tuple({**dict(before.right_answers), **dict(seen.right_answers)}.items()),
        }
    )


def reason_to_notify(
    before: Incident | None, after: Incident, seen: Observation, *, now: datetime, reminder_interval: timedelta
) -> NotifyReason | None:
    """Return the reason to alert for ``after``, just ``seen``, against ``before``; ``None`` when there is none.

    The clock matters for reminders only, and only how far it is from the last message, either way: a clock that
    jumps by less than the interval repeats nothing, and one that came back from far ahead does not mute.
    """
    if after.state is IncidentState.RESOLVED:
        return None
    if before is None:
        return NotifyReason.FIRST_SEEN
    if before.state is IncidentState.RESOLVED:
        return NotifyReason.REGRESSED if after.resolved_at is not None else NotifyReason.FIRST_SEEN
    if is_worse(before, seen):
        return NotifyReason.WORSE
    if after.state is IncidentState.ACKNOWLEDGED:
        return None
    if after.last_notified_at is None:
        return _deferred_reason(after)
    due = abs(now - after.last_notified_at) >= reminder_interval and after.kind not in EVENTS
    return NotifyReason.REMINDER if due else None


def _deferred_reason(after: Incident) -> NotifyReason:
    """The alert that was held back while the incident was silenced or inhibited."""
    if after.resolved_at is not None:
        return NotifyReason.REGRESSED
    return NotifyReason.FIRST_SEEN if after.thread is None else NotifyReason.WORSE


def below_the_first_alert(item: AlertItem, previous: Iterable[Incident]) -> AlertItem:
    """Give ``item`` the thread of its run's earlier alert of the same kind; the item itself where there is none.

    Only for incidents that this run opened: a reminder's thread belongs to an older story. A grave failure goes
    below a grave first alert only: a leak is not reported in a thread about a wrong number. Without threads (a
    webhook, a terminal) nothing changes.
    """
    if item.incident.thread is not None:
        return item
    first = next((one for one in previous if _is_first_page(one, item.incident)), None)
    if first is None:
        return item
    place = {"thread": first.thread, "channel": first.channel}
    return item.model_copy(update={"incident": item.incident.model_copy(update=place)})


def _is_first_page(one: Incident, other: Incident) -> bool:
    return (
        one.thread is not None
        and one.kind is other.kind
        and one.target == other.target
        and one.last_run_id == other.last_run_id
        and one.occurrences == 1
        and (one.failure_kind in GRAVE or other.failure_kind not in GRAVE)
        and one.state is not IncidentState.RESOLVED
    )


CLEARED_WORDS: Final[dict[IncidentKind, str]] = {
    IncidentKind.CASE_FAILURE: "Asked again, and this fault did not come back.",
    IncidentKind.HALLUCINATION: "Closed: nothing more was seen of it.",
    IncidentKind.DEPLOY_FAILURE: "The application serves again.",
    IncidentKind.APP_DOWN: "The application answers again.",
    IncidentKind.DRIFT: "The test finds no drift any more.",
    IncidentKind.JUDGE_VOID: "The judge grades its known answers right again.",
    IncidentKind.MONITOR_FAULT: "This run could ask its questions again.",
    IncidentKind.DRILL: "The drill is over.",
}


ANSWERS_AGAIN: Final = "The questions of this run got answers."
"""Of a fault whose title names Lookout's settings: the application need not have been away."""


def recovered(incident: Incident, scope: ResolutionScope) -> AlertItem:
    """Resolve ``incident`` by the run of ``scope``; the caller decides whether to send an alert."""
    resolved = close(incident, scope.ended_at)
    seen = Observation(
        fingerprint=incident.fingerprint,
        kind=incident.kind,
        target=incident.target,
        run_id=scope.run_id,
        seen_at=scope.ended_at,
        severity=incident.severity,
        blame=Blame.MONITOR if incident.kind in ABOUT_THE_MONITOR else Blame.APP,
        failure_kind=incident.failure_kind,
        case_id=incident.case_id,
        commit=scope.commit,
        title=incident.title,
        reason=redact(_ending(incident, scope)),
    )
    return AlertItem(incident=resolved, observation=seen, reason=NotifyReason.RECOVERED)


def close(incident: Incident, at: datetime) -> Incident:
    """Resolve without a word. ``resolved_at`` is never before the fault was last seen."""
    return incident.model_copy(
        update={"state": IncidentState.RESOLVED, "resolved_at": max(at, incident.last_seen_at)}
    )


def _ending(incident: Incident, scope: ResolutionScope) -> str:
    if scope.text is not None:
        return scope.text
    if incident.kind is IncidentKind.GATE_FAIL:
        failed = dict.fromkeys((*incident.notified_cases, *incident.failed_cases))
        right = [case for case in failed if case in scope.passed]
        which = f" ({some_of(right)} {'is' if len(right) == 1 else 'are'} right now)" if right else ""
        edited = [case for case in right if _has_another_gold(incident, case, scope)]
        return f"The gate passes again{which}.{_by_another_gold(edited)}"
    if incident.kind in TITLED and incident.title != KIND_WORDS[incident.kind]:
        return ANSWERS_AGAIN
    if incident.kind is not IncidentKind.CASE_FAILURE:
        return CLEARED_WORDS[incident.kind]
    if incident.case_id in scope.passed:
        if _has_another_gold(incident, incident.case_id, scope):
            return ANOTHER_GOLD
        return "Asked again, and the answer is right now."
    return CLEARED_WORDS[incident.kind] + " The case still fails in another way."


ANOTHER_GOLD: Final = (
    "Asked again, and the answer is right by another gold: the suite changed, so the bot may say "
    "the same as before."
)


def _has_another_gold(incident: Incident, case_id: str, scope: ResolutionScope) -> bool:
    before, now = dict(incident.right_answers).get(case_id), dict(scope.right_answers).get(case_id)
    return before is not None and now is not None and before != now


def _by_another_gold(cases: Sequence[str]) -> str:
    if not cases:
        return ""
    return f" The suite has another gold now for {some_of(cases)}, so the bot may say the same as before."


class PrintRecord(Record):
    """What a terminal last printed of an incident, and when, with its run's scores: nobody was notified."""

    at: datetime
    observation: Observation
    flat: str | None = None
    weighted: str | None = None
    links: tuple[Link, ...] = ()


class AlertDecision(Record):
    """``changed`` incidents to store, ``items`` to send; each item's incident is among the changed ones."""

    changed: tuple[Incident, ...] = ()
    items: tuple[AlertItem, ...] = ()


def decide(
    previous: Mapping[str, Incident],
    observations: Sequence[Observation],
    *,
    now: datetime,
    settings: AlertSettings,
    scope: ResolutionScope | None = None,
    silences: Sequence[Silence] = (),
    owed: Mapping[str, PrintRecord] = MappingProxyType({}),
    under_way: bool = False,
) -> AlertDecision:
    """Fold ``observations`` into the incidents known as ``previous``, by fingerprint.

    ``previous`` holds at least the target's incidents that are not resolved, and those with the observations'
    fingerprints whatever their state. Without ``scope`` (the run goes on) nothing is resolved. Deciding again with
    what it gave stored changes and sends nothing, so a repeated task or a second worker alerts nobody twice.
    ``owed`` are open incidents that were only ever printed; while a run is ``under_way`` they wait for its end,
    which may resolve them, and reports them together. Of a gate that failed, what the run found right is left out.
    """
    seen = worst_by_fingerprint(observations)
    debts = {
        key: printed for key, printed in owed.items() if not under_way and _is_owed(previous.get(key), printed)
    }
    endings = _endings(previous, seen, scope)
    after = _after(previous, seen, endings)
    news = _reasons(previous, after, seen, now=now, settings=settings)
    news |= dict.fromkeys(debts.keys() & seen.keys(), NotifyReason.OPEN_BEFORE)
    quiet = _muted(after, silences, now)
    items = [
        _item(after[key], seen[key], reason, now=now, previous=previous)
        for key, reason in news.items()
        if key not in quiet
    ]
    items += [
        _item(after[key], still, NotifyReason.OPEN_BEFORE, now=now, previous=previous)
        for key, printed in debts.items()
        if not (key in seen or key in endings or key in quiet)
        and (still := _still_open(printed.observation, scope)) is not None
    ]
    said = {key for key in endings.keys() - quiet - debts.keys() if previous[key].last_notified_at is not None}
    items += [_stamped(item, now) for key, item in endings.items() if key in said]
    after |= {key: _not_notified(after[key]) for key, reason in news.items() if _stays_unsent(reason, key in quiet)}
    after |= _stale_events(previous, seen, now, settings)
    after |= {item.incident.fingerprint: item.incident for item in items}
    changed = tuple(incident for key, incident in after.items() if previous.get(key) != incident)
    return AlertDecision(changed=changed, items=tuple(items))


def _reasons(
    previous: Mapping[str, Incident],
    after: Mapping[str, Incident],
    seen: Mapping[str, Observation],
    *,
    now: datetime,
    settings: AlertSettings,
) -> dict[str, NotifyReason]:
    """Why to notify about what was seen, by fingerprint; nothing where somebody knows it already."""
    interval = timedelta(hours=settings.reminder_interval_h)
    return {
        key: reason
        for key, one in seen.items()
        if (reason := reason_to_notify(previous.get(key), after[key], one, now=now, reminder_interval=interval))
    }


def _muted(after: Mapping[str, Incident], silences: Sequence[Silence], now: datetime) -> set[str]:
    """The fingerprints that a silence covers, or an outage of their target."""
    outages = targets_in_outage(after.values())
    return {key for key, i in after.items() if is_silenced(i, silences, now) or is_inhibited(i, outages)}


def _stamped(item: AlertItem, now: datetime) -> AlertItem:
    """An item whose incident counts as notified now."""
    return item.model_copy(update={"incident": _notified(item.incident, now)})


def _still_open(printed: Observation, scope: ResolutionScope | None) -> Observation | None:
    """``printed`` without the cases that the run of ``scope`` found right; ``None`` where those were all."""
    right = scope.passed if scope is not None else frozenset[str]()
    if right.isdisjoint(printed.failed_cases):
        return printed
    left = tuple(case for case in printed.failed_cases if case not in right)
    if not left:
        return None
    return printed.model_copy(
        update={
            "failed_cases": left,
            "cases_with_alerts": tuple(case for case in printed.cases_with_alerts if case not in right),
            "examples": tuple(case for case in printed.examples if case.case_id not in right),
            "others": "",
            "reason": redact(f"Still failing, or not graded since: {some_of(left)}."),
        }
    )


def _is_owed(incident: Incident | None, printed: PrintRecord) -> bool:
    """Whether nobody was notified since: another worker may have done it meanwhile, or a person acknowledged it."""
    if incident is None or incident.state is not IncidentState.OPEN or incident.last_notified_at is None:
        return False
    return incident.last_notified_at <= printed.at


def _item(
    incident: Incident,
    seen: Observation,
    reason: NotifyReason,
    *,
    now: datetime,
    previous: Mapping[str, Incident],
) -> AlertItem:
    """One alert item. What was open before goes into a message of its own, never below another."""
    known = previous.get(incident.fingerprint)
    fresh = new_cases(known, seen) if known and reason is NotifyReason.WORSE else ()
    cases = tuple(dict.fromkeys((*incident.notified_cases, *seen.failed_cases)))
    notified = _notified(incident, now).model_copy(update={"notified_cases": cases})
    milder = known.severity if known and reason is NotifyReason.WORSE and known.severity < seen.severity else None
    item = AlertItem(incident=notified, observation=seen, reason=reason, new_cases=fresh, severity_before=milder)
    return item if reason is NotifyReason.OPEN_BEFORE else below_the_first_alert(item, previous.values())


def _endings(
    previous: Mapping[str, Incident], seen: Mapping[str, Observation], scope: ResolutionScope | None
) -> dict[str, AlertItem]:
    if scope is None:
        return {}
    return {key: recovered(i, scope) for key, i in previous.items() if key not in seen and scope.resolves(i)}


def _after(
    previous: Mapping[str, Incident], seen: Mapping[str, Observation], endings: Mapping[str, AlertItem]
) -> dict[str, Incident]:
    folded = {key: fold(previous.get(key), observation) for key, observation in seen.items()}
    return {**previous, **folded, **{key: item.incident for key, item in endings.items()}}


def _notified(incident: Incident, now: datetime) -> Incident:
    return incident.model_copy(update={"last_notified_at": now})


def _stays_unsent(reason: NotifyReason, quiet: bool) -> bool:
    """A reminder that was muted is not owed: what it would repeat was said."""
    return quiet and reason is not NotifyReason.REMINDER


def _not_notified(incident: Incident) -> Incident:
    return incident.model_copy(update={"last_notified_at": None})


def _stale_events(
    previous: Mapping[str, Incident], seen: Mapping[str, Observation], now: datetime, settings: AlertSettings
) -> dict[str, Incident]:
    age = timedelta(hours=settings.event_open_h)
    return {
        key: close(incident, now)
        for key, incident in previous.items()
        if key not in seen
        and incident.kind in EVENTS
        and incident.state is not IncidentState.RESOLVED
        and now - incident.last_seen_at >= age
    }
