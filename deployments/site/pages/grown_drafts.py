"""Drafts that grew out of incidents, clicks and reviews: one a screen; a person writes what is right.

The drafts, the check against the bad reply and the suite are those of ``lookout gold grow``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Final

from pydantic import ValidationError

from deployments.cli.gold.grow import (
    SEVERITIES,
    TYPE,
    all_waiting,
    check_grown,
    join_grown,
    note_grown,
    rows_of,
)
from deployments.site.decisions import WAIT_S, renew_copy
from deployments.site.page import Done, Page, PageRefused, PageRequest, Paging, missing
from deployments.site.pages.gold_drafts import LONGEST_NOTE, DraftWord
from deployments.site.pages.queues import QueueCounts, queue_counts
from deployments.site.pages.review import TextRow, reviewing_person
from flows.goldset.mutation_testing import MutationVerdict
from monitors.alerts.redact import redact
from monitors.config.file import TargetConfig
from monitors.errors import GoldSetError, WarehouseBusy
from monitors.goldset.drafts import DraftCandidate, candidates, case_of
from monitors.goldset.versions import cases_in
from monitors.records.base import Record
from monitors.records.cases import GoldCase


class GrownDraftShown(Record):
    """A draft as a person reviews it, masked. ``suite`` is empty where its target is not configured any more."""

    id: str
    target: str
    severity: int
    rows: tuple[TextRow, ...]
    proposed: str
    cut: bool
    suite: str


class GrownDraftsData(Record):
    """One screen of drafts. ``said`` is chosen and not stored yet."""

    queues: QueueCounts
    person: str
    paging: Paging
    item: GrownDraftShown | None
    said: DraftWord | None
    kind: str


def grown_drafts_page(request: PageRequest) -> Page:
    """The worst draft that nobody has decided, or the one that the address names by its place."""
    target = request.choice("target", "Target", request.site.targets)
    waiting = candidates(all_waiting(request.site.store, request.site.config.data_folder, target), ())
    place = request.paging().model_copy(update={"rows": 1}).of(len(waiting))
    place = place.model_copy(update={"number": min(place.number, place.pages)})
    chosen = waiting[place.number - 1] if waiting and request.static is None else None
    said = request.query.get("said")
    if said and said not in set(DraftWord):
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"said={said[:80]}: it is one of yes, no")
    data = GrownDraftsData(
        queues=queue_counts(request),
        person=reviewing_person(request),
        paging=place,
        item=_shown(request, chosen) if chosen else None,
        said=DraftWord(said) if said else None,
        kind=TYPE,
    )
    return Page("review/grown_drafts.html.j2", "Drafts of incidents", data)


def _shown(request: PageRequest, one: DraftCandidate) -> GrownDraftShown:
    settings = request.site.config.targets.get(one.draft.target)
    asked = _with_suite(one, settings) if settings else one
    return GrownDraftShown(
        id=one.draft.id,
        target=one.draft.target,
        severity=int(one.draft.suggested_severity),
        rows=tuple(
            TextRow(label=label, text=request.masked(text, one.draft.target))
            for label, text in rows_of(asked, one.draft.suggested_severity)
        ),
        proposed=request.masked(one.draft.gold or "", one.draft.target),
        cut=one.draft.cut,
        suite=settings.suite.name if settings else "",
    )


def _with_suite(one: DraftCandidate, settings: TargetConfig) -> DraftCandidate:
    """The same, with the case of the suite that asks it already; a suite that cannot be read asks nothing."""
    # A suite that cannot be read asks nothing, see the docstring.
    with suppress(GoldSetError):
        known = candidates([one.draft], cases_in(settings.suite))
        return one.note_case(known[0].asked_by)
    return one


def decide_grown_draft(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Make a case of a draft in the person's words, or say that it is not wanted."""
    person = reviewing_person(request)
    if not person:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Say first who reviews: the page Review asks for a name.")
    one = _waiting(request)
    settings = request.site.config.targets.get(one.draft.target)
    if settings is None:
        raise PageRefused(HTTPStatus.CONFLICT, f"{one.draft.target} is no target of the configuration any more.")
    if form.get("word") == DraftWord.YES:
        text = _join(request, one, settings, person, form)
    elif form.get("word") == DraftWord.NO:
        note = redact(form.get("note", "").strip()[:LONGEST_NOTE])
        at, store = request.site.now(), request.site.people.store
        note_grown(store, settings.suite, one, joined=False, by=person, at=at, note=note)
        text = "Not wanted: it does not come back."
    else:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Say yes or no: nothing was stored.")
    # The decision is in the journal; the next run loads it.
    with suppress(WarehouseBusy):
        request.site.people.store.load_pending(WAIT_S)
    renew_copy(request)
    place = form.get("page", "")
    here = request.link("/review/incidents", target=form.get("target"), page=place if place.isdecimal() else None)
    return Done(here, text)


def _waiting(request: PageRequest) -> DraftCandidate:
    wanted = request.path["draft"]
    drafts: Sequence[DraftCandidate] = candidates(
        all_waiting(request.site.store, request.site.config.data_folder, None), ()
    )
    found = next((one for one in drafts if one.draft.id == wanted), None)
    if found is None:
        raise missing(f"No draft {wanted[:80]} waits: somebody has decided it meanwhile, or there never was one.")
    return found


def _join(
    request: PageRequest, one: DraftCandidate, settings: TargetConfig, person: str, form: Mapping[str, str]
) -> str:
    case = _case(one, form)
    outcome = check_grown(one, case, request.site.config)
    if outcome.detection in {MutationVerdict.GOLD_FAILS, MutationVerdict.MISSED}:
        raise PageRefused(
            HTTPStatus.CONFLICT,
            f"It does not join like this: {redact(outcome.reason)}. Nothing was stored; go back and write another "
            "right answer, or say that it is not wanted.",
        )
    if outcome.detection is MutationVerdict.UNDECIDABLE and form.get("sure") != "yes":
        raise PageRefused(
            HTTPStatus.CONFLICT,
            f"{redact(outcome.reason)}. Nothing was stored: go back, and tick that it is to join all the same.",
        )
    try:
        store, at = request.site.people.store, request.site.now()
        join_grown(store, settings.suite, one, case, outcome, by=person, at=at)
    except GoldSetError as error:
        raise PageRefused(HTTPStatus.CONFLICT, f"It did not join: {error}") from None
    return f"Gold: it joined {settings.suite.name}."


_NO_CASE: Final = (
    "That is no case: it needs a right answer, and a type of letters, digits and _. Nothing was stored."
)


def _case(one: DraftCandidate, form: Mapping[str, str]) -> GoldCase:
    """The case in the person's words; what they leave empty is as the draft has it."""
    given = {name: form.get(name, "").strip() for name in ("question", "gold", "type")}
    draft = one.draft
    if given["question"]:
        draft = draft.reword(redact(given["question"]))
    gold = given["gold"] or draft.gold or ""
    severity = SEVERITIES.get(form.get("severity", ""), draft.suggested_severity)
    try:
        if not gold:
            raise PageRefused(HTTPStatus.BAD_REQUEST, _NO_CASE)
        refusal = form.get("refusal") == "yes"
        return case_of(draft, gold, refusal=refusal, severity=severity, kind=given["type"] or TYPE)
    except ValidationError:
        raise PageRefused(HTTPStatus.BAD_REQUEST, _NO_CASE) from None
