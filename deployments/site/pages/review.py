"""The page to review a sample of answers. It shows Lookout's verdicts only after the person's own decision.

A review can be continued in ``lookout review``, which uses the same sample. A person first chooses a decision,
which can still be changed, and then stores the decision. A stored decision is final, because the verdicts are shown
after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from http import HTTPStatus
from threading import Lock
from typing import Final

from deployments.cli.reviews.answers import (
    KINDS,
    RATING_KEYS,
    RUBRIC,
    build_review_label,
    build_verdict_rows,
    format_contradiction_notice,
    iterate_answer_rows,
    load_and_describe_other_reviewers,
    select_unreviewed_answers,
    store_label_and_draft_contradiction,
)
from deployments.cli.reviews.session import get_and_store_reviewer, load_reviewer_name
from deployments.site.decisions import WAIT_S, refresh_copy_if_free
from deployments.site.page import Done, Page, PageRefused, PageRequest, Paging, Site
from deployments.site.pages.queues import QueueCounts, count_waiting_drafts
from monitors.alerts.redact import redact
from monitors.errors import WarehouseBusy
from monitors.judge.settings import sample_for_review
from monitors.records.base import Record, UtcTime
from monitors.records.grades import FAILURE_WORDS, FailureKind
from monitors.records.incidents import Redacted
from monitors.records.reviews import AnswerId, AnswerVerdict, SampledAnswer, SpotCheck
from warehouse.queries.reviews import list_answer_ids_reviewed_by, list_review_candidates, load_spot_checks
from warehouse.queries.site.reviewing import Agreement, count_finished_runs, count_ratings

SAMPLE_DAYS: Final = 30
"""Maximum age of sampled answers in days, as in ``lookout review``."""
MAX_NAME_CHARACTERS: Final = 200
MAX_NOTE_CHARACTERS: Final = 500
MAX_SAMPLES: Final = 16


class TextRow(Record):
    """A text with its label."""

    label: str
    text: str


class AnswerShown(Record):
    """An answer to review, with masked personal data and without verdicts."""

    answer_id: AnswerId
    target: str
    severity: int
    asked_at: UtcTime
    rows: tuple[TextRow, ...]
    is_report: bool


class AnswerBefore(Record):
    """The last answer that the person reviewed, with its verdicts."""

    question: str
    verdicts: tuple[TextRow, ...]


class FailureChoice(Record):
    """A failure kind that a person can choose, and the key to press."""

    key: str
    kind: FailureKind
    text: str


class ReviewData(Record):
    """The answer to review. ``said`` is the decision that was chosen but is not stored yet.

    ``person`` is empty until the reviewer's name is known. ``left`` is the number of sampled answers that are not
    reviewed yet.
    """

    queues: QueueCounts
    person: str
    asks_name: bool
    sampled: int
    left: int
    paging: Paging
    item: AnswerShown | None
    said: AnswerVerdict | None
    before: AnswerBefore | None
    agreement: Agreement
    kinds: tuple[FailureChoice, ...]
    rubric: str


@dataclass
class SampleMemory:
    """A cache of the sample. All reviewers get the same sample until the next hour begins or a new run finishes."""

    _known: dict[tuple[object, ...], tuple[SampledAnswer, ...]] = field(
        default_factory=dict[tuple[object, ...], tuple[SampledAnswer, ...]]
    )
    _guard: Lock = field(default_factory=Lock)

    def load_sample(self, request: PageRequest, target: str | None) -> tuple[SampledAnswer, ...]:
        """Return the sampled answers. Their order does not depend on the verdicts."""
        site = request.site
        since = site.now().replace(minute=0, second=0, microsecond=0) - timedelta(days=SAMPLE_DAYS)
        key = (site.snapshot.folder, target, since, site.config.review.share, count_finished_runs(site.store))
        with self._guard:
            if key not in self._known:
                answers = sample_for_review(
                    list_review_candidates(site.store, since=since, target=target), site.config.review.share
                )
                while len(self._known) >= MAX_SAMPLES:
                    self._known.pop(next(iter(self._known)))
                self._known[key] = answers
            return self._known[key]


_MEMORY: Final = SampleMemory()
_CHOICES: Final = tuple(FailureChoice(key=key, kind=kind, text=FAILURE_WORDS[kind]) for key, kind in KINDS.items())


def build_review_page(request: PageRequest) -> Page:
    """Build the page of the next answer to review, or of the answer at the requested position."""
    target, person = (
        request.read_and_show_choice_filter("target", "Target", request.site.targets),
        find_reviewer_name(request),
    )
    sampled = _MEMORY.load_sample(request, target)
    left = select_unreviewed_answers(request.site.store, sampled, person or None)
    asks_name = not person or (request.query.get("who") == "change" and not request.site.needs_login)
    place = request.read_paging().with_one_row_per_page(len(left))
    chosen = left[place.number - 1 : place.number] if not asks_name and request.static is None else []
    checks = load_spot_checks(request.site.store, chosen) if chosen else ()
    data = ReviewData(
        queues=count_waiting_drafts(request),
        person=person,
        asks_name=asks_name,
        sampled=len(sampled),
        left=len(left),
        paging=place,
        item=_build_shown_answer(request, checks[0]) if checks else None,
        said=_read_chosen_verdict(request),
        before=_find_previous_review(request, sampled, left),
        agreement=compute_agreement(request.site, target),
        kinds=_CHOICES,
        rubric=RUBRIC.removesuffix(" Any other key: not rated."),
    )
    return Page("review/answers.html.j2", "Review", data)


def compute_agreement(site: Site, target: str | None) -> Agreement:
    """Compute how often people and judges agree, for one target or for all targets."""

    def compute() -> Agreement:
        answers = site.reviews.load_reviewed_judged_answers(site.store, target, site.now())
        both_rated, same = count_ratings(site.store, target)
        agreed = sum(answer.judge_passed == answer.people_right for answer in answers)
        return Agreement(both_graded=len(answers), agreed=agreed, both_rated=both_rated, same_rating=same)

    return site.figures.get_or_compute(("agreement", target), compute)


def find_reviewer_name(request: PageRequest) -> str:
    """Return the name of the logged-in person.

    Without a login, return the last name that was entered on the page or in the command. In a static export, the
    name is empty.
    """
    if request.static is not None:
        return ""
    if request.site.needs_login:
        return request.visitor.name
    return load_reviewer_name(request.site.config.data_folder)


def _read_chosen_verdict(request: PageRequest) -> AnswerVerdict | None:
    choice = request.query.get("said")
    if not choice:
        return None
    try:
        return AnswerVerdict(choice)
    except ValueError:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST,
            f"said={choice[:80]} is not valid; accepted: {', '.join(AnswerVerdict)}",
        ) from None


def _build_shown_answer(request: PageRequest, check: SpotCheck) -> AnswerShown:
    answer = check.answer
    rows = tuple(
        TextRow(label=label, text=request.redact_text(text, answer.target))
        for label, text in iterate_answer_rows(answer)
        if label != "asked"
    )
    return AnswerShown(
        answer_id=answer.answer_id,
        target=answer.target,
        severity=int(answer.severity),
        asked_at=answer.asked_at,
        rows=rows,
        is_report=answer.issue is not None,
    )


def _find_previous_review(
    request: PageRequest, sampled: Sequence[SampledAnswer], left: Sequence[SampledAnswer]
) -> AnswerBefore | None:
    """Return the last reviewed answer with its verdicts, if this person's decision on it is stored."""
    requested_key = request.query.get("after", "")
    waiting = {_format_answer_key(answer_candidate.answer_id) for answer_candidate in left}
    previous_answer = next(
        (
            answer_candidate
            for answer_candidate in sampled
            if _format_answer_key(answer_candidate.answer_id) == requested_key
            and _format_answer_key(answer_candidate.answer_id) not in waiting
        ),
        None,
    )
    checks = load_spot_checks(request.site.store, [previous_answer]) if previous_answer else ()
    if not checks:
        return None
    answer = checks[0].answer
    return AnswerBefore(
        question=request.redact_text(answer.turns[-1] if answer.turns else "", answer.target),
        verdicts=tuple(
            TextRow(label=label, text=request.redact_text(text, answer.target))
            for label, text in build_verdict_rows(answer)
        ),
    )


def _format_answer_key(answer_id: AnswerId) -> str:
    return f"{answer_id.run_id}/{answer_id.case_id}/{answer_id.repeat}"


def store_reviewer_name(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Store the reviewer's name on this machine. Raises `PageRefused` if the site has a login."""
    if request.site.needs_login:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST, "You are logged in, so Lookout stores your reviews under your login name."
        )
    name = form.get("name", "").strip()
    if not 0 < len(name) <= MAX_NAME_CHARACTERS:
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"A name must have 1 to {MAX_NAME_CHARACTERS} characters.")
    get_and_store_reviewer(name, request.site.config.data_folder, None, option="name")
    return Done(request.link("/review"), f"You review as {name}. Lookout remembers this name.")


def store_review(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Store a person's decision on one answer. The next page then shows the verdicts."""
    person = find_reviewer_name(request)
    if not person:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "First enter your name on this page.")
    check, place = _require_sampled_answer(request, form), form.get("page", "")
    key = check.answer.answer_id
    is_reviewed = key in list_answer_ids_reviewed_by(request.site.store, person)
    text = _ALREADY_REVIEWED if is_reviewed else _store_label_and_build_message(request, check, person, form)
    page = place if place.isdecimal() else None
    return Done(request.link("/review", target=form.get("target"), page=page, after=_format_answer_key(key)), text)


_ALREADY_REVIEWED: Final = (
    "You have already reviewed this answer. Your first decision remains, because you saw the verdicts after it."
)


def _store_label_and_build_message(
    request: PageRequest, check: SpotCheck, person: str, form: Mapping[str, str]
) -> str:
    """Store the decision as a label.

    If the label contradicts the verdicts, also store a draft. Return the message.
    """
    answer, clean = check.answer, _build_redactor(request, check.answer.target)
    label = build_review_label(
        check,
        _parse_verdict(form),
        by=person,
        at=request.site.now(),
        redact=clean,
        failure_kind=_parse_failure_kind(form),
        rating=_parse_rating(form) if answer.issue is not None else None,
        note=form.get("note", "").strip()[:MAX_NOTE_CHARACTERS],
    )
    store = request.site.actions.store
    others = load_and_describe_other_reviewers(store, answer.answer_id, person)
    contradicted = store_label_and_draft_contradiction(store, request.site.config.data_folder, label, answer, clean)
    # The label is in the journal, so the next run loads it.
    with suppress(WarehouseBusy):
        store.load_pending(WAIT_S)
    refresh_copy_if_free(request)
    outcome = format_contradiction_notice(answer) if contradicted else "" if others else "It is stored."
    return " ".join(filter(None, (f"You said {label.answer}.", outcome, others)))


def _require_sampled_answer(request: PageRequest, form: Mapping[str, str]) -> SpotCheck:
    """Return the answer that the form reviews. Raises `PageRefused` if the answer is no longer in the sample."""
    target = form.get("target") or None
    requested_key = form.get("answer", "")
    if target is not None and target not in request.site.targets:
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"target={target[:80]} is not configured")
    matches = [
        answer
        for answer in _MEMORY.load_sample(request, target)
        if _format_answer_key(answer.answer_id) == requested_key
    ]
    checks = load_spot_checks(request.site.store, matches[:1]) if matches else ()
    if not checks:
        raise PageRefused(
            HTTPStatus.CONFLICT,
            "This answer is no longer in the sample, so nothing was stored. Load the page again.",
        )
    return checks[0]


def _parse_verdict(form: Mapping[str, str]) -> AnswerVerdict:
    try:
        return AnswerVerdict(form.get("verdict", ""))
    except ValueError:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Nothing was stored. Choose right, wrong or unsure.") from None


def _parse_failure_kind(form: Mapping[str, str]) -> FailureKind | None:
    """Return the failure kind that the person chose, or ``None`` if they chose none.

    Also return ``None`` if the decision is not "wrong". Raises `PageRefused` for an unknown failure kind.
    """
    kind = form.get("failure_kind", "")
    if form.get("verdict") != AnswerVerdict.WRONG or not kind:
        return None
    if kind not in {choice.kind.value for choice in _CHOICES}:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST, (f"failure_kind={kind[:80]} is unknown; choose a kind from the form")
        )
    return FailureKind(kind)


def _parse_rating(form: Mapping[str, str]) -> int | None:
    rating = form.get("rating", "")
    if rating and rating not in RATING_KEYS:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Nothing was stored. A rating must be a number from 1 to 5.")
    return int(rating) if rating else None


def _build_redactor(request: PageRequest, target: str) -> Callable[[str], Redacted]:
    target_config = request.site.config.targets.get(target)
    patterns = target_config.graders.account_patterns if target_config else ()
    return lambda text: redact(text, account_patterns=patterns)
