"""The page to review drafts from incidents, Slack and people's reviews. A person enters the right answer.

The page uses the same drafts, checks and suites as ``lookout gold grow``.
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
    add_draft_case_to_suite,
    build_draft_rows,
    check_case_catches_bad_reply,
    load_waiting_drafts,
    store_draft_decision,
)
from deployments.site.decisions import WAIT_S, refresh_copy_if_free
from deployments.site.page import Done, Page, PageRefused, PageRequest, Paging, build_not_found_error
from deployments.site.pages.gold_drafts import MAX_NOTE_CHARACTERS, DraftWord, read_draft_decision
from deployments.site.pages.queues import QueueCounts, count_waiting_drafts
from deployments.site.pages.review import TextRow, find_reviewer_name
from flows.goldset.mutation_testing import MutationVerdict
from monitors.alerts.redact import redact
from monitors.config.file import TargetConfig
from monitors.errors import GoldSetError, WarehouseBusy
from monitors.goldset.drafts import DraftCandidate, build_case_from_draft, merge_drafts_by_question
from monitors.goldset.versions import read_suite_cases
from monitors.records.base import Record
from monitors.records.cases import GoldCase


class GrownDraftShown(Record):
    """A draft with masked personal data. ``suite`` is empty if the target is no longer configured."""

    id: str
    target: str
    severity: int
    rows: tuple[TextRow, ...]
    proposed: str
    cut: bool
    suite: str


class GrownDraftsData(Record):
    """The draft to review. ``said`` is the decision that was chosen but is not stored yet."""

    queues: QueueCounts
    person: str
    paging: Paging
    item: GrownDraftShown | None
    said: DraftWord | None
    kind: str


def build_grown_drafts_page(request: PageRequest) -> Page:
    """Build the page of the waiting draft with the highest severity, or of the draft at the requested position."""
    target = request.read_and_show_choice_filter("target", "Target", request.site.targets)
    waiting = merge_drafts_by_question(
        load_waiting_drafts(request.site.store, request.site.config.data_folder, target), ()
    )
    place = request.read_paging().with_one_row_per_page(len(waiting))
    chosen = waiting[place.number - 1] if waiting and request.static is None else None
    data = GrownDraftsData(
        queues=count_waiting_drafts(request),
        person=find_reviewer_name(request),
        paging=place,
        item=_build_shown_draft(request, chosen) if chosen else None,
        said=read_draft_decision(request),
        kind=TYPE,
    )
    return Page("review/grown_drafts.html.j2", "Drafts of incidents", data)


def _build_shown_draft(request: PageRequest, candidate: DraftCandidate) -> GrownDraftShown:
    settings = request.site.config.targets.get(candidate.draft.target)
    candidate_with_case = _add_case_asking_same_question(candidate, settings) if settings else candidate
    return GrownDraftShown(
        id=candidate.draft.id,
        target=candidate.draft.target,
        severity=int(candidate.draft.suggested_severity),
        rows=tuple(
            TextRow(label=label, text=request.redact_text(text, candidate.draft.target))
            for label, text in build_draft_rows(candidate_with_case, candidate.draft.suggested_severity)
        ),
        proposed=request.redact_text(candidate.draft.gold or "", candidate.draft.target),
        cut=candidate.draft.cut,
        suite=settings.suite.name if settings else "",
    )


def _add_case_asking_same_question(candidate: DraftCandidate, settings: TargetConfig) -> DraftCandidate:
    """Return the candidate with the id of an existing case that asks the same question.

    If the suite cannot be read, the candidate is returned unchanged.
    """
    # If the suite cannot be read, the draft is still shown.
    with suppress(GoldSetError):
        candidates = merge_drafts_by_question([candidate.draft], read_suite_cases(settings.suite))
        return candidate.with_existing_suite_case_id(candidates[0].asked_by)
    return candidate


def decide_grown_draft(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Accept a draft as a case in the person's words, or reject the draft."""
    person = find_reviewer_name(request)
    if not person:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Enter your name on the Review page first.")
    candidate = _require_waiting_draft(request)
    settings = request.site.config.targets.get(candidate.draft.target)
    if settings is None:
        raise PageRefused(HTTPStatus.CONFLICT, f"The target {candidate.draft.target} is no longer configured.")
    if form.get("word") == DraftWord.YES:
        text = _add_case_to_suite(request, candidate, settings, person, form)
    elif form.get("word") == DraftWord.NO:
        note = redact(form.get("note", "").strip()[:MAX_NOTE_CHARACTERS])
        at, store = request.site.now(), request.site.actions.store
        store_draft_decision(store, settings.suite, candidate, joined=False, by=person, at=at, note=note)
        text = "Rejected. The draft will not appear again."
    else:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Nothing was stored. Choose yes or no.")
    # The decision is in the journal; the next run loads it.
    with suppress(WarehouseBusy):
        request.site.actions.store.load_pending(WAIT_S)
    refresh_copy_if_free(request)
    place = form.get("page", "")
    next_address = request.link(
        "/review/incidents", target=form.get("target"), page=place if place.isdecimal() else None
    )
    return Done(next_address, text)


def _require_waiting_draft(request: PageRequest) -> DraftCandidate:
    draft_id = request.path["draft"]
    drafts: Sequence[DraftCandidate] = merge_drafts_by_question(
        load_waiting_drafts(request.site.store, request.site.config.data_folder, None), ()
    )
    waiting_draft = next((candidate for candidate in drafts if candidate.draft.id == draft_id), None)
    if waiting_draft is None:
        raise build_not_found_error(
            f"Draft {draft_id[:80]} is not waiting for a decision. It is already decided or does not exist."
        )
    return waiting_draft


def _add_case_to_suite(
    request: PageRequest, candidate: DraftCandidate, settings: TargetConfig, person: str, form: Mapping[str, str]
) -> str:
    case = _build_case_from_form(candidate, form)
    outcome = check_case_catches_bad_reply(candidate, case, request.site.config)
    if outcome.detection in {MutationVerdict.GOLD_FAILS, MutationVerdict.MISSED}:
        raise PageRefused(
            HTTPStatus.CONFLICT,
            f"The case cannot be added: {redact(outcome.reason)}. Nothing was stored. Go back and write another "
            "right answer, or reject the draft.",
        )
    if outcome.detection is MutationVerdict.UNDECIDABLE and form.get("sure") != "yes":
        raise PageRefused(
            HTTPStatus.CONFLICT,
            f"{redact(outcome.reason)}. Nothing was stored. To add the case anyway, go back and tick the box.",
        )
    try:
        store, at = request.site.actions.store, request.site.now()
        add_draft_case_to_suite(store, settings.suite, candidate, case, outcome, by=person, at=at)
    except GoldSetError as error:
        raise PageRefused(HTTPStatus.CONFLICT, f"The case was not added: {error}") from None
    return f"Added to {settings.suite.name} as gold."


_INVALID_CASE: Final = (
    "The case is not valid: it needs a right answer and a type of letters, digits and _. Nothing was stored."
)


def _build_case_from_form(candidate: DraftCandidate, form: Mapping[str, str]) -> GoldCase:
    """Build the case from the form. Empty fields are taken from the draft."""
    fields = {name: form.get(name, "").strip() for name in ("question", "gold", "type")}
    draft = candidate.draft
    if fields["question"]:
        draft = draft.with_question(redact(fields["question"]))
    gold = fields["gold"] or draft.gold or ""
    severity = SEVERITIES.get(form.get("severity", ""), draft.suggested_severity)
    try:
        if not gold:
            raise PageRefused(HTTPStatus.BAD_REQUEST, _INVALID_CASE)
        refusal = form.get("refusal") == "yes"
        return build_case_from_draft(draft, gold, refusal=refusal, severity=severity, kind=fields["type"] or TYPE)
    except ValidationError:
        raise PageRefused(HTTPStatus.BAD_REQUEST, _INVALID_CASE) from None
