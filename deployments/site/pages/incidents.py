"""The page of all incidents, and the page of one incident with its history, evidence and decisions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from http import HTTPStatus
from typing import Final

from deployments.cli.alerts.incidents import (
    StoryLine,
    format_silence_matchers,
    format_silence_time,
    list_story_lines,
)
from deployments.cli.alerts.silences import (
    SilenceMatchers,
    SilenceTimes,
    build_silence,
    format_silence_confirmation,
)
from deployments.site.decisions import WAIT_S, build_idempotency_key, refresh_copy_if_free, store_and_apply_action
from deployments.site.masking import mask_fields
from deployments.site.page import Done, Page, PageRefused, PageRequest, Paging, build_not_found_error
from flows.alerting.notifier import apply_waiting_actions
from monitors.alerts.operator_actions import can_become_gold_case
from monitors.alerts.wording import ABOUT_AN_ANSWER, GRAVE_KINDS, KIND_WORDS, REASON_WORDS, format_fault
from monitors.errors import ConfigError, WarehouseBusy
from monitors.records.base import Record, Severity, UtcTime
from monitors.records.incidents import ActionKind, AlertItem, Incident, IncidentKind, IncidentState
from monitors.records.operator_actions import Silence
from monitors.reports.rechecks import format_recheck_briefly
from warehouse.queries.incidents import Story, list_all_silences, load_incident_history
from warehouse.queries.operator_actions import append_silence
from warehouse.queries.site.incidents import (
    IncidentFilter,
    IncidentRowShown,
    find_incident,
    list_incident_targets,
    load_incidents_page,
    select_stored_runs,
)

UNRESOLVED: Final = "unresolved"
STATES: Final = (UNRESOLVED, *(state.value for state in IncidentState))
SEVERITIES: Final = tuple(str(int(level)) for level in sorted(Severity, reverse=True))
KINDS: Final = tuple(kind.value for kind in IncidentKind)
SILENCE_DURATIONS: Final = ("1h", "4h", "1d", "7d")
"""The durations that a person can choose for a silence. The text field accepts any other end time."""
MAX_NOTE_CHARACTERS: Final = 500
MAX_STORY_LINES: Final = 100
"""Maximum number of history lines that are shown, newest first. `lookout alerts show` prints all lines."""


class IncidentsData(Record):
    """One page of incidents. ``kind_texts`` contains the names of the incident kinds.

    ``planned`` describes the silences that repeat or that start later.
    """

    incidents: tuple[IncidentRowShown, ...]
    silenced: tuple[str, ...]
    planned: tuple[str, ...]
    paging: Paging
    kind_texts: dict[str, str]


class StoryEntry(Record):
    """A line of the history. ``run_id`` is the run that the line is about, if this run has a page."""

    at: UtcTime
    text: str
    run_id: str = ""


# Repeats fields of `Observation`, because a page must get only masked texts.
class CaseEvidence(Record):
    """The evidence in the last message, with masked personal data. A text is ``None`` if it was not stored."""

    reason: str
    why_sent: str
    asked: str | None
    expected: str | None
    answered: str | None
    unconfirmed: bool
    flaky: str
    is_report: bool
    run_id: str
    has_page: bool


class IncidentDecision(Record):
    """A decision that a person can make, and its effect."""

    kind: ActionKind
    word: str
    hint: str


class IncidentData(Record):
    """One incident with all its data. ``earlier`` is the number of history lines that are not shown.

    ``silences`` contains the silences that have not ended yet; ``silence_times`` maps their ids to their periods.
    ``asked_again`` is the result of the recheck, if the last run rechecked the case; otherwise it is empty.
    ``page_state`` changes with the history. A form that is sent twice with the same state counts as one decision.
    """

    incident: Incident
    fault: str
    evidence: CaseEvidence | None
    asked_again: str
    story: tuple[StoryEntry, ...]
    earlier: int
    silences: tuple[Silence, ...]
    is_silenced: bool
    silence_times: dict[str, str]
    decisions: tuple[IncidentDecision, ...]
    can_be_silenced: bool
    has_run_page: bool
    page_state: str
    lasting: tuple[str, ...] = SILENCE_DURATIONS


_DECISIONS: Final = (
    IncidentDecision(
        kind=ActionKind.ACKNOWLEDGE,
        word="Acknowledge",
        hint="Lookout sends no reminder until the incident gets worse",
    ),
    IncidentDecision(
        kind=ActionKind.FALSE_ALARM,
        word="False alarm",
        hint="the answer was right. Lookout stores this, resolves the incident and sends no alerts about it for "
        "a while",
    ),
    IncidentDecision(
        kind=ActionKind.RESOLVE,
        word="Resolve",
        hint="the fault is fixed. If a run finds the fault again, Lookout sends an alert",
    ),
    IncidentDecision(
        kind=ActionKind.ADD_TO_GOLD,
        word="Add to gold",
        hint="Lookout creates a draft of a gold case, which a person must review",
    ),
)


def build_incidents_list_page(request: PageRequest) -> Page:
    """Build the list of all incidents.

    Unresolved incidents come first. In each group, the most severe incident comes first.
    """
    site, paging = request.site, request.read_paging()
    target = request.read_and_show_choice_filter(
        "target", "Target", sorted({*site.targets, *list_incident_targets(site.store)})
    )
    state = request.read_and_show_choice_filter("state", "State", STATES)
    severity = request.read_and_show_choice_filter("severity", "Severity", SEVERITIES)
    wanted = IncidentFilter(
        target=target,
        state=None if state == UNRESOLVED else state,
        severity=int(severity) if severity else None,
        kind=request.read_and_show_choice_filter("kind", "Kind", KINDS),
        unresolved=state == UNRESOLVED,
    )
    rows, total = load_incidents_page(site.store, wanted, rows=paging.rows, offset=paging.offset)
    listed = tuple(mask_fields(row, request.build_redactor(row.target), "title") for row in rows)
    data = IncidentsData(
        incidents=listed,
        silenced=tuple(_iterate_silenced_fingerprints(request, rows)),
        planned=tuple(
            request.redact_text(_format_planned(silence, site.now()), silence.target or "")
            for silence in site.actions.list_silences()
            if silence.can_mute_later(site.now())
        ),
        paging=paging.with_total(total),
        kind_texts={kind.value: word for kind, word in KIND_WORDS.items()},
    )
    return Page("incidents.html.j2", "Incidents", data)


def _format_planned(silence: Silence, now: datetime) -> str:
    time = format_silence_time(silence, now)
    return f"{silence.id}: {format_silence_matchers(silence)}, {time} · {silence.author}: {silence.comment}"


def _iterate_silenced_fingerprints(request: PageRequest, rows: Sequence[IncidentRowShown]) -> Iterator[str]:
    now = request.site.now()
    in_force = (
        [silence for silence in request.site.actions.list_silences() if silence.is_active(now)] if rows else []
    )
    for row in rows if in_force else ():
        if any(
            all(getattr(row, name) == value for name, value in silence.map_fields_to_match().items())
            for silence in in_force
        ):
            yield row.fingerprint


def build_incident_page(request: PageRequest) -> Page:
    """Build the page of one incident with its history."""
    site, incident = request.site, _load_requested_incident(request)
    story = load_incident_history(site.store, incident, site.actions.list_silences())
    item = _find_last_alert_item(story)
    story_so_far = list_story_lines(story)
    lines = story_so_far[-MAX_STORY_LINES:]
    runs = {incident.last_run_id, *(line.run_id for line in lines), *([item.observation.run_id] if item else [])}
    known_runs = select_stored_runs(site.store, runs - {""})
    now, mask = site.now(), request.build_redactor(incident.target)
    fault = mask(format_fault(incident))
    newest = f"{story_so_far[-1].at.isoformat()} {story_so_far[-1].text}" if story_so_far else ""
    report = request.site.store.find_report(incident.last_run_id) if incident.case_id else None
    text = format_recheck_briefly(report.recheck, [incident.case_id or ""]) if report else ""
    data = IncidentData(
        incident=mask_fields(incident, mask, "title"),
        fault=fault,
        evidence=_build_evidence(request, item, known_runs) if item else None,
        asked_again=request.redact_text(text, incident.target),
        story=tuple(_build_story_entry(request, incident, line, known_runs) for line in lines),
        earlier=len(story_so_far) - len(lines),
        silences=tuple(
            mask_fields(silence, mask, "author", "comment")
            for silence in story.silences
            if not silence.is_over(now)
        ),
        is_silenced=any(silence.is_active(now) for silence in story.silences),
        silence_times={silence.id: format_silence_time(silence, now) for silence in story.silences},
        decisions=tuple(silence for silence in _DECISIONS if _is_decision_possible(silence.kind, incident, item)),
        can_be_silenced=item is None or item.incident.failure_kind not in GRAVE_KINDS,
        has_run_page=incident.last_run_id in known_runs,
        page_state=build_idempotency_key(incident.fingerprint, incident.state, str(len(story_so_far)), newest),
    )
    return Page("incident.html.j2", f"{fault}, {incident.target}", data)


def _load_requested_incident(request: PageRequest) -> Incident:
    key = request.path["incident"]
    incident = find_incident(request.site.store, key)
    if incident is None:
        raise build_not_found_error(
            f"Incident {key[:64]} is not in the warehouse. The page Incidents lists all incidents."
        )
    return incident


def _find_last_alert_item(story: Story) -> AlertItem | None:
    key = story.incident.fingerprint
    items = story.last_alert.items if story.last_alert else ()
    return next((item for item in items if item.incident.fingerprint == key), None)


def _build_story_entry(
    request: PageRequest, incident: Incident, line: StoryLine, known_runs: frozenset[str]
) -> StoryEntry:
    run_id = line.run_id if line.run_id in known_runs else ""
    return StoryEntry(at=line.at, text=request.redact_text(line.text, incident.target), run_id=run_id)


def _build_evidence(request: PageRequest, item: AlertItem, known_runs: frozenset[str]) -> CaseEvidence:
    observation = item.observation
    evidence = CaseEvidence(
        reason=observation.reason,
        why_sent=REASON_WORDS[item.reason],
        asked=observation.asked,
        expected=observation.expected,
        answered=observation.answered,
        unconfirmed=observation.unconfirmed,
        flaky=observation.flaky,
        is_report=observation.is_report,
        run_id=observation.run_id,
        has_page=observation.run_id in known_runs,
    )
    return mask_fields(
        evidence, request.build_redactor(observation.target), "reason", "asked", "expected", "answered", "flaky"
    )


def _is_decision_possible(kind: ActionKind, incident: Incident, item: AlertItem | None) -> bool:
    """Return whether a person can still make this decision. The same rule applies to the buttons in Slack."""
    match kind:
        case ActionKind.ACKNOWLEDGE:
            return incident.state is IncidentState.OPEN
        case ActionKind.RESOLVE:
            return incident.state is not IncidentState.RESOLVED
        case ActionKind.FALSE_ALARM:
            return incident.kind in ABOUT_AN_ANSWER and incident.state is not IncidentState.RESOLVED
        case ActionKind.ADD_TO_GOLD:
            return item is not None and can_become_gold_case(item)


def apply_incident_decision(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Apply a person's decision about one incident."""
    incident, note = _load_requested_incident(request), _read_note(form)
    try:
        kind = ActionKind(request.path["decision"])
    except ValueError:
        raise build_not_found_error(
            f"This decision is not valid; accepted: {', '.join(action_kind.value for action_kind in ActionKind)}."
        ) from None
    return Done(
        _build_incident_address(request, incident),
        store_and_apply_action(request, kind, [incident], note, form.get("page_state", "")),
    )


def silence_incident(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Silence one incident for the chosen duration, or until the time in the text field."""
    incident, now = _load_requested_incident(request), request.site.actions.now()
    until, lasting = form.get("until", "").strip(), form.get("lasting", "").strip()
    try:
        times = SilenceTimes(lasting=None if until else lasting or None, until=until or None)
        matchers = SilenceMatchers(author=request.visitor.name, comment=_read_note(form) or "silenced on the site")
        silence = build_silence(matchers, times, incident.fingerprint, now)
        if shown := form.get("page_state"):
            key = build_idempotency_key(matchers.author, incident.fingerprint, lasting, until, shown)
            silence = silence.model_copy(update={"id": f"S-{key}"})
    except ConfigError as error:
        # The error names options of the command, which a form does not have.
        raise PageRefused(
            HTTPStatus.BAD_REQUEST, str(error).replace("--for ", "lasting ").replace("--until ", "until ")
        ) from None
    _store_and_apply_silence(request, silence)
    return Done(_build_incident_address(request, incident), format_silence_confirmation(silence, now))


def end_incident_silence(request: PageRequest, _form: Mapping[str, str]) -> Done:
    """End a silence now. The next run that finds the incident sends an alert again."""
    incident, key = _load_requested_incident(request), request.path["silence"]
    now = request.site.actions.now()
    silence = next(
        (
            candidate
            for candidate in list_all_silences(request.site.store)
            if candidate.id == key and not candidate.is_over(now)
        ),
        None,
    )
    if silence is None:
        raise build_not_found_error(f"Silence {key[:80]} is not active.")
    ended = silence.end_early(now, request.visitor.name)
    _store_and_apply_silence(request, ended)
    return Done(_build_incident_address(request, incident), format_silence_confirmation(ended, now))


def _store_and_apply_silence(request: PageRequest, silence: Silence) -> None:
    actions = request.site.actions
    append_silence(actions.store.journal, silence)
    # The silence is in the journal, so the next run loads it.
    with suppress(WarehouseBusy):
        apply_waiting_actions(actions, wait_s=WAIT_S)
    refresh_copy_if_free(request)


def _build_incident_address(request: PageRequest, incident: Incident) -> str:
    return request.link(f"/incidents/{incident.fingerprint}")


def _read_note(form: Mapping[str, str]) -> str:
    note = form.get("note", "").strip()
    if len(note) > MAX_NOTE_CHARACTERS:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST, f"The note is too long; the maximum is {MAX_NOTE_CHARACTERS} characters."
        )
    return note
