"""The page to review drafts of cases. Each draft is shown beside the clause that proves it.

The page uses the same drafts, checks and suites as ``lookout gold review``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Final

from deployments.cli.gold.draft import DEFAULT_DRAFTS
from deployments.cli.gold.review import (
    SET_BY,
    SEVERITIES,
    add_case_and_mark_draft_accepted,
    build_clause_or_original_rows,
    explain_unacceptable_draft,
    iterate_case_rows,
    reword_draft,
)
from deployments.site.page import Done, Page, PageRefused, PageRequest, Paging, build_not_found_error
from deployments.site.pages.queues import (
    DraftKind,
    QueueCounts,
    classify_draft,
    count_waiting_drafts,
    load_gold_drafts,
)
from deployments.site.pages.review import TextRow, find_reviewer_name
from monitors.alerts.redact import redact
from monitors.errors import GoldSetError
from monitors.goldset.drafts import store_draft_decision
from monitors.records.base import Record
from monitors.records.cases import DraftState, GoldDraft

MAX_NOTE_CHARACTERS: Final = 500


class DraftWord(StrEnum):
    """A person's decision on a draft."""

    YES = "yes"
    NO = "no"


class DraftShown(Record):
    """A draft with masked personal data: the case and its source."""

    id: str
    severity: int
    case: tuple[TextRow, ...]
    ground: tuple[TextRow, ...]
    strong: str


class GoldDraftsData(Record):
    """The draft to review, and the numbers of waiting, accepted and rejected drafts.

    ``said`` is the decision that was chosen but is not stored yet.
    """

    queues: QueueCounts
    person: str
    waiting: int
    accepted: int
    rejected: int
    paging: Paging
    item: DraftShown | None
    said: DraftWord | None
    target: str
    targets: tuple[str, ...]
    suite: str
    file: str
    has_file: bool


def build_gold_drafts_page(request: PageRequest) -> Page:
    """Build the page of the next waiting draft, or of the draft at the requested position."""
    everything, target = (
        load_gold_drafts(),
        _choose_suite_target(
            request, request.read_and_show_choice_filter("target", "Target", request.site.targets)
        ),
    )
    kind = request.read_and_show_choice_filter("kind", "Made of", tuple(DraftKind))
    drafts = [draft for draft in everything or () if kind in {None, classify_draft(draft)}]
    waiting = [draft for draft in drafts if draft.state is DraftState.DRAFTED]
    place = request.read_paging().with_one_row_per_page(len(waiting))
    chosen = waiting[place.number - 1] if waiting and request.static is None else None
    data = GoldDraftsData(
        queues=count_waiting_drafts(request),
        person=find_reviewer_name(request),
        waiting=len(waiting),
        accepted=sum(draft.state is DraftState.ACCEPTED for draft in drafts),
        rejected=sum(draft.state is DraftState.REJECTED for draft in drafts),
        paging=place,
        item=_build_shown_draft(request, chosen, target) if chosen else None,
        said=read_draft_decision(request),
        target=target,
        targets=request.site.targets,
        suite=request.site.config.targets[target].suite.name if target else "",
        file=DEFAULT_DRAFTS.name,
        has_file=everything is not None,
    )
    return Page("review/gold_drafts.html.j2", "Gold drafts", data)


def _choose_suite_target(request: PageRequest, chosen: str | None) -> str:
    """Return the target whose suite receives the accepted drafts: the chosen target, or else the only target.

    Return an empty string if no target is chosen and there are several.
    """
    targets = request.site.targets
    return chosen or (targets[0] if len(targets) == 1 else "")


def read_draft_decision(request: PageRequest) -> DraftWord | None:
    """Return the decision in the address, or ``None`` if there is none. Raises `PageRefused`."""
    word = request.query.get("said")
    if word and word not in set(DraftWord):
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"said={word[:80]} is not valid; accepted: yes, no")
    return DraftWord(word) if word else None


def _build_shown_draft(request: PageRequest, draft: GoldDraft, target: str) -> DraftShown:
    ground, strong = build_clause_or_original_rows(draft)

    def rows(labelled_texts: list[tuple[str, str]]) -> tuple[TextRow, ...]:
        return tuple(
            TextRow(label=label, text=request.redact_text(text, target or None)) for label, text in labelled_texts
        )

    return DraftShown(
        id=draft.id,
        severity=int(draft.case.severity),
        case=rows(list(iterate_case_rows(draft))),
        ground=rows(ground),
        strong=strong,
    )


def decide_gold_draft(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Accept a draft as gold, with the person's changes, or reject it."""
    person, target = find_reviewer_name(request), _choose_suite_target(request, form.get("target"))
    if not person:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Enter your name on the Review page first.")
    if target not in request.site.targets:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Choose a target first. The case is added to its suite.")
    draft = _require_waiting_draft(request.path["draft"])
    place = form.get("page", "")
    next_url = request.link("/review/drafts", target=form.get("target"), page=place if place.isdecimal() else None)
    if form.get("word") == DraftWord.YES:
        return Done(next_url, _accept_draft(request, _apply_form_changes(draft, form, person), person, target))
    if form.get("word") != DraftWord.NO:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Nothing was stored. Choose yes or no.")
    note = redact(form.get("note", "").strip()[:MAX_NOTE_CHARACTERS])
    done = store_draft_decision(DEFAULT_DRAFTS, draft.reject(note, by=person, at=request.site.now()))
    return Done(next_url, "Rejected." if done else _ALREADY_DECIDED)


_ALREADY_DECIDED: Final = "Another person has already decided on this draft. That decision remains."


def _require_waiting_draft(draft_id: str) -> GoldDraft:
    draft = next((draft for draft in load_gold_drafts() or () if draft.id == draft_id), None)
    if draft is None:
        raise build_not_found_error(f"{DEFAULT_DRAFTS.name} has no draft {draft_id[:80]}.")
    if draft.state is not DraftState.DRAFTED:
        raise PageRefused(HTTPStatus.CONFLICT, f"This draft was already {draft.state} by {draft.reviewed_by}.")
    return draft


def _apply_form_changes(draft: GoldDraft, form: Mapping[str, str], person: str) -> GoldDraft:
    """Return the draft with the changes in the form. An empty field changes nothing."""
    case, fields = draft.case, {name: form.get(name, "").strip() for name in ("question", "gold", "type")}
    severity = SEVERITIES.get(form.get("severity", ""))
    if severity is not None and severity is not case.severity:
        draft = draft.with_severity(severity, f"{SET_BY}{person}")
    if not any(fields.values()):
        return draft
    changed = reword_draft(
        draft,
        question=fields["question"] or case.question,
        gold=fields["gold"] or case.gold,
        kind=fields["type"] or case.type,
    )
    if changed is None:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST,
            "The case is not valid: its type may contain only letters, digits and _. Nothing was stored. Go back "
            "and change the type.",
        )
    return changed


def _accept_draft(request: PageRequest, draft: GoldDraft, person: str, target: str) -> str:
    settings = request.site.config.targets[target]
    reason = explain_unacceptable_draft(draft, settings.graders, settings.domain)
    if reason:
        raise PageRefused(
            HTTPStatus.CONFLICT,
            f"This draft cannot become gold yet: {reason}. Nothing was stored. Go back and edit the draft, "
            "or choose no.",
        )
    suite: Path = settings.suite
    try:
        done = add_case_and_mark_draft_accepted(DEFAULT_DRAFTS, suite, draft, by=person, at=request.site.now())
    except GoldSetError as error:
        raise PageRefused(HTTPStatus.CONFLICT, f"The case was not added: {error}") from None
    return f"Added to {suite.name} as gold." if done else _ALREADY_DECIDED
