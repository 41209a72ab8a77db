"""The review queue: one sampled answer a screen, what people say of it, and only then what the verdicts were.

The sample, the labels and the drafts are those of ``lookout review``: who begins there can go on here. A word is
chosen first (it is in the address, and can be taken back), then stored; once stored it stays, for after that the
verdicts are shown, and a word that was changed for them would say nothing about them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus
from threading import Lock
from typing import Final

from deployments.cli.reviews.answers import (
    KINDS,
    RATING_KEYS,
    RUBRIC,
    answer_rows,
    describe_difference,
    label_of,
    left_for,
    save_label,
    verdict_rows,
)
from deployments.cli.reviews.session import remembered, reviewer
from deployments.site.decisions import WAIT_S, renew_copy
from deployments.site.page import Done, Page, PageRefused, PageRequest, Paging, Site
from deployments.site.pages.queues import QueueCounts, queue_counts
from monitors.alerts.redact import redact
from monitors.errors import WarehouseBusy
from monitors.judge.settings import spot_checks
from monitors.records.base import Record, UtcTime
from monitors.records.grades import FAILURE_WORDS, FailureKind
from monitors.records.incidents import Redacted
from monitors.records.reviews import AnswerId, AnswerVerdict, SampledAnswer, SpotCheck
from warehouse.queries.reviews import candidates, labelled_by, with_texts
from warehouse.queries.site.reviewing import Agreement, finished_runs, ratings_so_far

DAYS: Final = 30
"""How far back is sampled, as ``lookout review`` does."""
LONGEST_NAME: Final = 200
LONGEST_NOTE: Final = 500
MOST_SAMPLES: Final = 16


class TextRow(Record):
    """A text with its label."""

    label: str
    text: str


class AnswerShown(Record):
    """An answer as a person reviews it: masked, and without any verdict."""

    answer_id: AnswerId
    target: str
    severity: int
    asked_at: UtcTime
    rows: tuple[TextRow, ...]
    is_report: bool


class AnswerBefore(Record):
    """The answer that the person has just reviewed, and what the verdicts on it were."""

    question: str
    verdicts: tuple[TextRow, ...]


class FailureChoice(Record):
    """A kind of failure with the key that chooses it."""

    key: str
    kind: FailureKind
    text: str


class ReviewData(Record):
    """One screen of the queue. ``said`` is what the person has chosen and not stored yet.

    ``person`` is empty while nobody has said who reviews. ``left`` answers of ``sampled`` are not reviewed by them.
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
    """What was sampled, until a run or an hour is over: the sample is the same for everybody who asks meanwhile."""

    _known: dict[tuple[object, ...], tuple[SampledAnswer, ...]] = field(
        default_factory=dict[tuple[object, ...], tuple[SampledAnswer, ...]]
    )
    _guard: Lock = field(default_factory=Lock)

    def sample(self, request: PageRequest, target: str | None) -> tuple[SampledAnswer, ...]:
        """The answers that people are asked about, in an order that says nothing about any verdict."""
        site, since = request.site, _since(request.site.now())
        key = (site.snapshot.folder, target, since, site.config.review.share, finished_runs(site.store))
        with self._guard:
            if key not in self._known:
                found = spot_checks(candidates(site.store, since=since, target=target), site.config.review.share)
                while len(self._known) >= MOST_SAMPLES:
                    self._known.pop(next(iter(self._known)))
                self._known[key] = found
            return self._known[key]


_MEMORY: Final = SampleMemory()
_CHOICES: Final = tuple(FailureChoice(key=key, kind=kind, text=FAILURE_WORDS[kind]) for key, kind in KINDS.items())


def _since(now: datetime) -> datetime:
    return now.replace(minute=0, second=0, microsecond=0) - timedelta(days=DAYS)


def review_page(request: PageRequest) -> Page:
    """The next answer that this person has not reviewed, or the one that the address names by its place."""
    target, person = request.choice("target", "Target", request.site.targets), reviewing_person(request)
    sampled = _MEMORY.sample(request, target)
    left = left_for(request.site.store, sampled, person or None)
    asks_name = not person or (request.query.get("who") == "change" and not request.site.needs_login)
    place = request.paging().model_copy(update={"rows": 1}).of(len(left))
    place = place.model_copy(update={"number": min(place.number, place.pages)})
    chosen = left[place.number - 1 : place.number] if not asks_name and request.static is None else []
    checks = with_texts(request.site.store, chosen) if chosen else ()
    data = ReviewData(
        queues=queue_counts(request),
        person=person,
        asks_name=asks_name,
        sampled=len(sampled),
        left=len(left),
        paging=place,
        item=_shown(request, checks[0]) if checks else None,
        said=_said(request),
        before=_before(request, sampled, left),
        agreement=agreement_so_far(request.site, target),
        kinds=_CHOICES,
        rubric=RUBRIC.removesuffix(" Another key: not rated."),
    )
    return Page("review/answers.html.j2", "Review", data)


def agreement_so_far(site: Site, target: str | None) -> Agreement:
    """How often people and judges said the same, of one target where it is named."""

    def reckon() -> Agreement:
        answers = site.reviews.answers(site.store, target, site.now())
        both_rated, same = ratings_so_far(site.store, target)
        agreed = sum(one.judge_passed == one.people_right for one in answers)
        return Agreement(both_graded=len(answers), agreed=agreed, both_rated=both_rated, same_rating=same)

    return site.figures.once(("agreement", target), reckon)


def reviewing_person(request: PageRequest) -> str:
    """Whose word it is: who is logged in, or on this machine alone whoever said so last, here or to the command.

    A copy in files names nobody.
    """
    if request.static is not None:
        return ""
    if request.site.needs_login:
        return request.visitor.name
    return remembered(request.site.config.data_folder)


def _said(request: PageRequest) -> AnswerVerdict | None:
    said = request.query.get("said")
    if not said:
        return None
    try:
        return AnswerVerdict(said)
    except ValueError:
        raise PageRefused(
            HTTPStatus.BAD_REQUEST,
            f"said={said[:80]}: it is one of {', '.join(AnswerVerdict)}",
        ) from None


def _shown(request: PageRequest, check: SpotCheck) -> AnswerShown:
    answer = check.answer
    rows = tuple(
        TextRow(label=label, text=request.masked(text, answer.target))
        for label, text in answer_rows(answer)
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


def _before(
    request: PageRequest, sampled: Sequence[SampledAnswer], left: Sequence[SampledAnswer]
) -> AnswerBefore | None:
    """What the verdicts were on the answer that was reviewed last: only once this person's word on it is stored."""
    asked = request.query.get("after", "")
    waiting = {_key(one.answer_id) for one in left}
    found = next(
        (one for one in sampled if _key(one.answer_id) == asked and _key(one.answer_id) not in waiting), None
    )
    checks = with_texts(request.site.store, [found]) if found else ()
    if not checks:
        return None
    answer = checks[0].answer
    return AnswerBefore(
        question=request.masked(answer.turns[-1] if answer.turns else "", answer.target),
        verdicts=tuple(
            TextRow(label=label, text=request.masked(text, answer.target)) for label, text in verdict_rows(answer)
        ),
    )


def _key(answer_id: AnswerId) -> str:
    return f"{answer_id.run_id}/{answer_id.case_id}/{answer_id.repeat}"


def name_reviewer(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Say once who reviews on this machine; with a login it is who is logged in."""
    if request.site.needs_login:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "You are logged in: what you review has that name.")
    name = form.get("name", "").strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"A name has 1 to {LONGEST_NAME} characters.")
    reviewer(name, request.site.config.data_folder, None, option="name")
    return Done(request.link("/review"), f"You review as {name}. It is remembered on this machine.")


def save_review(request: PageRequest, form: Mapping[str, str]) -> Done:
    """Store what a person says of one sampled answer; then the next screen shows what the verdicts were."""
    person = reviewing_person(request)
    if not person:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Say first who reviews: the page asks for a name.")
    check, place = _checked(request, form), form.get("page", "")
    key = check.answer.answer_id
    done = key in labelled_by(request.site.store, person)
    text = _STAYS if done else _store_word(request, check, person, form)
    page = place if place.isdecimal() else None
    return Done(request.link("/review", target=form.get("target"), page=page, after=_key(key)), text)


_STAYS: Final = "You have reviewed this answer before: your first word stays. The verdicts were shown after it."


def _store_word(request: PageRequest, check: SpotCheck, person: str, form: Mapping[str, str]) -> str:
    """Store the label, and a draft where it contradicts the verdicts, as the command does; what to say of it."""
    answer, clean = check.answer, _redactor(request, check.answer.target)
    label = label_of(
        check,
        _verdict(form),
        by=person,
        at=request.site.now(),
        redact=clean,
        failure_kind=_failure_kind(form),
        rating=_rating(form) if answer.issue is not None else None,
        note=form.get("note", "").strip()[:LONGEST_NOTE],
    )
    store = request.site.people.store
    contradicted = save_label(store, request.site.config.data_folder, label, answer, clean)
    # The label is in the journal; the next run loads it.
    with suppress(WarehouseBusy):
        store.load_pending(WAIT_S)
    renew_copy(request)
    return f"You said {label.answer}. {describe_difference(answer) if contradicted else 'It is stored.'}"


def _checked(request: PageRequest, form: Mapping[str, str]) -> SpotCheck:
    """The answer that the form is about. Raises `PageRefused` for one that is not in the sample."""
    target = form.get("target") or None
    asked = form.get("answer", "")
    if target is not None and target not in request.site.targets:
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"target={target[:80]}: no such target")
    found = [one for one in _MEMORY.sample(request, target) if _key(one.answer_id) == asked]
    checks = with_texts(request.site.store, found[:1]) if found else ()
    if not checks:
        raise PageRefused(
            HTTPStatus.CONFLICT,
            "This answer is not in the sample any more: nothing was stored. Load the page again.",
        )
    return checks[0]


def _verdict(form: Mapping[str, str]) -> AnswerVerdict:
    try:
        return AnswerVerdict(form.get("verdict", ""))
    except ValueError:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "Say right, wrong or unsure: nothing was stored.") from None


def _failure_kind(form: Mapping[str, str]) -> FailureKind | None:
    """What is wrong, where the person says wrong and names it."""
    kind = form.get("failure_kind", "")
    if form.get("verdict") != AnswerVerdict.WRONG or not kind:
        return None
    if kind not in {choice.kind.value for choice in _CHOICES}:
        raise PageRefused(HTTPStatus.BAD_REQUEST, f"failure_kind={kind[:80]}: the form offers those there are")
    return FailureKind(kind)


def _rating(form: Mapping[str, str]) -> int | None:
    given = form.get("rating", "")
    if given and given not in RATING_KEYS:
        raise PageRefused(HTTPStatus.BAD_REQUEST, "A rating is a number from 1 to 5: nothing was stored.")
    return int(given) if given else None


def _redactor(request: PageRequest, target: str) -> Callable[[str], Redacted]:
    known = request.site.config.targets.get(target)
    patterns = known.graders.account_patterns if known else ()
    return lambda text: redact(text, account_patterns=patterns)
