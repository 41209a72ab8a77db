"""Gold drafts: one a screen beside the clause that it rests on; only a person's yes makes it gold.

The file of drafts, the checks and the suite are those of ``lookout gold review``.
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
    accept_draft,
    case_rows,
    edited,
    ground_rows,
    problem,
)
from deployments.site.page import Done, Page, PageRefused, PageRequest, Paging, missing
from deployments.site.pages.queues import DraftKind, QueueCounts, drafts_here, kind_of, queue_counts
from deployments.site.pages.review import TextRow, reviewing_person
from monitors.alerts.redact import redact
from monitors.errors import GoldSetError
from monitors.goldset.drafts import decide
from monitors.records.base import Record
from monitors.records.cases import DraftState, GoldDraft

LONGEST_NOTE: Final = 500


class DraftWord(StrEnum):
    """What a person says of a draft."""

    YES = "yes"
    NO = "no"


class DraftShown(Record):
    """A draft as a person reviews it, masked: the case, and what it rests on."""

    id: str
    severity: int
    case: tuple[TextRow, ...]
    ground: tuple[TextRow, ...]
    strong: str


class GoldDraftsData(Record):
    """One screen of drafts. ``said`` is chosen and not stored yet; ``suite`` is what an accepted one joins."""

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


def gold_drafts_page(request: PageRequest) -> Page:
    """The next draft that nobody has decided, or the one that the address names by its place."""
    everything, target = drafts_here(), _target(request, request.choice("target", "Target", request.site.targets))
    kind = request.choice("kind", "Made of", tuple(DraftKind))
    drafts = [draft for draft in everything or () if kind in {None, kind_of(draft)}]
    waiting = [draft for draft in drafts if draft.state is DraftState.DRAFTED]
    place = request.paging().model_copy(update={"rows": 1}).of(len(waiting))
    place = place.model_copy(update={"number": min(place.number, place.pages)})
    chosen = waiting[place.number - 1] if waiting and request.static is None else None
    data = GoldDraftsData(
        queues=queue_counts(request),
        person=reviewing_person(request),
        waiting=len(waiting),
        accepted=sum(draft.state is DraftState.ACCEPTED for draft in drafts),
        rejected=sum(draft.state is DraftState.REJECTED for draft in drafts),
        paging=place,
        item=_shown(request, chosen, target) if chosen else None,
        said=_said(request),
        target=target,
        targets=request.site.targets,
        suite=request.site.config.targets[target].suite.name if target else "",
        file=DEFAULT_DRAFTS.name,
        has_file=everything is not None,
    )
    return Page("review/gold_drafts.html.j2", "Gold drafts", data)


def _target(request: PageRequest, given: str | None) -> str:
    """Whose suite an accepted draft joins: the one that is chosen, or the only one; empty where nobody said."""
    targets = request.site.targets
    return given or (targets[0] if len(targets) == 1 else "")


def _said(request: PageRequest) -> DraftWord | None:
    said = request.query.get("said")
    if said and said not in set(DraftWord):
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"said={said[:80]}: it is one of yes, no")
    return DraftWord(said) if said else None


def _shown(request: PageRequest, draft: GoldDraft, target: str) -> DraftShown:
    ground, strong = ground_rows(draft)

    def rows(found: list[tuple[str, str]]) -> tuple[TextRow, ...]:
        return tuple(TextRow(label=label, text=request.masked(text, target or None)) for label, text in found)

    return DraftShown(
        id=draft.id,
        severity=int(draft.case.severity),
        case=rows(list(case_rows(draft))),
        ground=rows(ground),
        strong=strong,
    )


def decide_gold_draft(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Make a draft gold, changed where the person changed it, or reject it."""
    person, target = reviewing_person(request), _target(request, form.get("target"))
    if not person:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Say first who reviews: the page Review asks for a name.")
    if target not in request.site.targets:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Choose the target whose suite the case joins.")
    draft = _waiting(request.path["draft"])
    place = form.get("page", "")
    go_on = request.link("/review/drafts", target=form.get("target"), page=place if place.isdecimal() else None)
    if form.get("word") == DraftWord.YES:
        return Done(go_on, _accept(request, _changed(draft, form, person), person, target))
    if form.get("word") != DraftWord.NO:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Say yes or no: nothing was stored.")
    note = redact(form.get("note", "").strip()[:LONGEST_NOTE])
    done = decide(DEFAULT_DRAFTS, draft.reject(note, by=person, at=request.site.now()))
    return Done(go_on, "Rejected." if done else _MEANWHILE)


_MEANWHILE: Final = "Somebody else has decided this draft meanwhile: their word stays."


def _waiting(draft_id: str) -> GoldDraft:
    found = next((draft for draft in drafts_here() or () if draft.id == draft_id), None)
    if found is None:
        raise missing(f"No draft {draft_id[:80]} is in {DEFAULT_DRAFTS.name}.")
    if found.state is not DraftState.DRAFTED:
        raise PageRefused(HTTPStatus.CONFLICT, f"This draft is {found.state} already, by {found.reviewed_by}.")
    return found


def _changed(draft: GoldDraft, form: Mapping[str, str], person: str) -> GoldDraft:
    """The draft with what the person wrote; a field that is left empty leaves what is there."""
    case, given = draft.case, {name: form.get(name, "").strip() for name in ("question", "gold", "type")}
    severity = SEVERITIES.get(form.get("severity", ""))
    if severity is not None and severity is not case.severity:
        draft = draft.set_severity(severity, f"{SET_BY}{person}")
    if not any(given.values()):
        return draft
    changed = edited(
        draft,
        question=given["question"] or case.question,
        gold=given["gold"] or case.gold,
        kind=given["type"] or case.type,
    )
    if changed is None:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST,
            "That is no case: a type has letters, digits and _ only. Nothing was stored; go back and change it.",
        )
    return changed


def _accept(request: PageRequest, draft: GoldDraft, person: str, target: str) -> str:
    settings = request.site.config.targets[target]
    reason = problem(draft, settings.graders, settings.domain)
    if reason:
        raise PageRefused(
            HTTPStatus.CONFLICT,
            f"This cannot be gold yet: {reason}. Nothing was stored; go back and edit it, or say no.",
        )
    suite: Path = settings.suite
    try:
        done = accept_draft(DEFAULT_DRAFTS, suite, draft, by=person, at=request.site.now())
    except GoldSetError as error:
        raise PageRefused(HTTPStatus.CONFLICT, f"It did not join: {error}") from None
    return f"Gold: it joined {suite.name}." if done else _MEANWHILE
