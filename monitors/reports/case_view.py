"""One case as the page shows it: every text already masked, marked and cut; nothing left to decide.

Every table and page has the same order of cases. A failing case says since which deploy it fails, and how often the
failure was seen. Screenshots are embedded in the page where they are small and safe, else linked, never trusted.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final, assert_never
from urllib.parse import quote

from monitors.plural import plural
from monitors.records.base import Blame
from monitors.records.exchanges import Attempt, Channel, Exchange, NoAnswer
from monitors.records.grades import (
    FAILURE_WORDS,
    Abstained,
    Assessment,
    CaseOutcome,
    FailureKind,
    Grade,
    Judged,
    format_policy_row,
)
from monitors.records.incidents import Incident, IncidentState
from monitors.records.runs import CaseResult
from monitors.reports.format import BLAME_WORDS, NO_ANSWER_WORDS, moment, seconds
from monitors.reports.marked_text import Pieces, Redact, TextMarker, secrets_of
from monitors.reports.triage_view import TriageView, triage_view

_BLAME_ORDER = (Blame.APP, Blame.PROVIDER, Blame.MONITOR)
_KIND_ORDER = (FailureKind.PII_DISCLOSURE, FailureKind.UNSAFE_ACTION)


def with_outcome(cases: Iterable[CaseResult], outcome: CaseOutcome) -> list[CaseResult]:
    """The cases that came to ``outcome``, worst first.

    Worst is: higher severity, then what rules pass and a judge fails before what nobody could grade, then
    disclosures and unsafe actions before other kinds, then what is confirmed, then whoever is to blame with the
    application first. Equals keep the order they were asked in.
    """
    return sorted((case for case in cases if case.assessment.outcome is outcome), key=_rank)


def _rank(result: CaseResult) -> tuple[int, bool, int, bool, int]:
    assessment = result.assessment
    worst_kind = min((_place(_KIND_ORDER, kind) for kind in assessment.failure_kinds), default=len(_KIND_ORDER))
    blame = _place(_BLAME_ORDER, assessment.blame)
    return (-assessment.severity, not assessment.is_disputed, worst_kind, assessment.unconfirmed, blame)


def _place(order: Sequence[object], value: object) -> int:
    return order.index(value) if value in order else len(order)


def known_incidents(incidents: Iterable[Incident]) -> dict[str, Incident]:
    """The incident of each case id that has been open longest. A resolved one says nothing about this run."""
    current = [incident for incident in incidents if incident.state is not IncidentState.RESOLVED]
    newest_first = sorted(current, key=lambda incident: incident.opened_at, reverse=True)
    return {incident.case_id: incident for incident in newest_first if incident.case_id}


def format_since(incident: Incident | None, commit: str | None) -> str:
    """Since which deploy a fault is known, or nothing where its incident is not. ``commit`` is the graded one."""
    if incident is None:
        return ""
    if commit is not None and incident.first_commit == commit:
        return f"new with this deploy, {commit}"
    deploy = f"deploy {incident.first_commit}" if incident.first_commit else "an unknown deploy"
    return f"since {deploy}, {moment(incident.opened_at)}, seen in {plural(incident.occurrences, 'run')}"


@dataclass(frozen=True, slots=True)
class CaseLink:
    """A case that is named, with where the page shows it (nowhere: an empty anchor)."""

    id: str
    anchor: str


def links_to(case_ids: Iterable[str], anchors: Mapping[str, str]) -> tuple[CaseLink, ...]:
    """In the given order; ``anchors`` says where a case is shown."""
    return tuple(CaseLink(case_id, anchors.get(case_id, "")) for case_id in case_ids)


_MAGIC: Final = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_LONGEST_MAGIC: Final = max(len(magic) for magic in _MAGIC)


class PictureMode(StrEnum):
    """How a screenshot appears."""

    NONE = "none"
    EMBEDDED = "embedded"
    LINKED_PERSONAL = "linked_personal"
    LINKED_LARGE = "linked_large"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Picture:
    """A screenshot as the page shows it. ``href`` is relative to the run's folder."""

    shown: PictureMode
    href: str = ""
    data_uri: str = ""


class PictureAlbum:
    """Hands out pictures of one run's folder within a budget of bytes: whoever asks first is served first."""

    def __init__(self, folder: Path, *, most_each: int, most_together: int) -> None:
        self._folder = folder.resolve()
        self._most_each = most_each
        self._left = most_together

    def picture(self, relative: str | None, *, personal: bool) -> Picture:
        """The screenshot at ``relative``. One that shows personal data is only ever linked.

        A path that leaves the folder, or that leads to no PNG or JPEG file, counts as missing.
        """
        if relative is None:
            return Picture(PictureMode.NONE)
        path = self._inside(relative)
        media_type = path and _media_type(path)
        if path is None or not media_type:
            return Picture(PictureMode.MISSING)
        href = quote(path.relative_to(self._folder).as_posix())
        if personal:
            return Picture(PictureMode.LINKED_PERSONAL, href)
        size = path.stat().st_size
        if size > min(self._most_each, self._left):
            return Picture(PictureMode.LINKED_LARGE, href)
        self._left -= size
        encoded = base64.b64encode(path.read_bytes()).decode("ascii")
        return Picture(PictureMode.EMBEDDED, href, f"data:{media_type};base64,{encoded}")

    def link(self, relative: str | None) -> str:
        """A link to a file of the run's folder (a trace), or nothing when it is not there."""
        path = self._inside(relative) if relative else None
        return quote(path.relative_to(self._folder).as_posix()) if path else ""

    def _inside(self, relative: str) -> Path | None:
        try:
            path = (self._folder / relative).resolve()
            return path if path.is_relative_to(self._folder) and path.is_file() else None
        except (OSError, ValueError):  # a null byte, a name that is too long, a loop of links
            return None


def _media_type(path: Path) -> str:
    try:
        with path.open("rb") as file:
            head = file.read(_LONGEST_MAGIC)
    except OSError:
        return ""
    return next((media_type for magic, media_type in _MAGIC.items() if head.startswith(magic)), "")


_GRADE_ORDER: Final = ("failed", "passed", "abstained")


@dataclass(frozen=True, slots=True)
class AnswerView:
    """One text that came back: what the user saw, what was sent, or both when they are the same."""

    title: str
    pieces: Pieces
    graded: bool


@dataclass(frozen=True, slots=True)
class GradeView:
    """One grader's verdict in words. ``result`` is ``failed``, ``passed`` or ``abstained``.

    ``about`` is the failure kind, or the question that was not failed; ``note`` is the judge, or whose fault.
    """

    result: str
    about: str
    grader: str
    reason: Pieces
    note: str


@dataclass(frozen=True, slots=True)
class TurnView:
    """An earlier turn of a conversation."""

    asked: Pieces
    answered: Pieces


@dataclass(frozen=True, slots=True)
class CaseView:
    """A case, what came back, and what it came to."""

    anchor: str
    id: str
    severity: int
    raised_from: int | None
    severity_reason: str
    kinds: tuple[str, ...]
    type: str
    language: str
    cluster: str
    app_path: str
    unconfirmed: bool
    blame: str
    since: str
    reason: Pieces
    earlier: tuple[TurnView, ...]
    question: Pieces
    gold: Pieces
    alternatives: tuple[Pieces, ...]
    must_refuse: bool
    must_cite: str
    answers: tuple[AnswerView, ...]
    no_answer: str
    detail: Pieces
    grades: tuple[GradeView, ...]
    facts: tuple[str, ...]
    attempts: tuple[Pieces, ...]
    console_errors: tuple[Pieces, ...]
    refused: tuple[Pieces, ...]
    picture: Picture
    trace_href: str
    triage: TriageView | None


def anchor_of(result: CaseResult) -> str:
    """The fragment under which the page shows the case: ``case-<id>``, then ``/2`` for its third time of asking."""
    repeat = result.result.repeat
    return f"case-{result.case.id}" + (f"/{repeat}" if repeat else "")


@dataclass(frozen=True, slots=True)
class CaseViewer:
    """Turns case results into views: the run's pictures, redaction, known incidents and limits in one place."""

    album: PictureAlbum
    redact: Redact
    incidents: Mapping[str, Incident]
    commit: str | None
    limit: int
    ratings: Mapping[str, float]
    """What counts in the average usefulness, by case id."""

    def view(self, result: CaseResult) -> CaseView:
        """The whole of one case."""
        case, came, found = result.case, result.result, result.assessment
        drawer = TextMarker(self.redact, secrets_of(result), self.limit)
        return CaseView(
            anchor=anchor_of(result),
            id=case.id,
            severity=found.severity,
            raised_from=found.case_severity if found.case_severity != found.severity else None,
            severity_reason=format_policy_row(found.policy_row),
            kinds=tuple(FAILURE_WORDS[kind] for kind in found.failure_kinds),
            type=found.type,
            language=found.language,
            cluster=found.cluster or "",
            app_path=found.app_path or "",
            unconfirmed=found.unconfirmed,
            blame=BLAME_WORDS[found.blame] if found.blame else "",
            since=format_since(self.incidents.get(case.id), self.commit),
            reason=drawer.plain(found.reason),
            earlier=_earlier(result, drawer),
            question=drawer.plain(case.question),
            gold=drawer.marked(case.gold, "gold", found.grades),
            alternatives=tuple(drawer.plain(text) for text in case.alternatives),
            must_refuse=case.expected_refusal,
            must_cite=case.expected_citation or "",
            answers=_answers(came, found.grades, drawer),
            no_answer=NO_ANSWER_WORDS[came.reason] if isinstance(came, NoAnswer) else "",
            detail=drawer.plain(came.detail) if isinstance(came, NoAnswer) else (),
            grades=_grades(found.grades, drawer),
            facts=_facts(came),
            attempts=tuple(drawer.plain(_attempt(attempt)) for attempt in came.failed_attempts),
            console_errors=tuple(drawer.plain(text, 400) for text in came.evidence.console_errors[:20]),
            refused=tuple(drawer.plain(text, 400) for text in came.evidence.refused[:20]),
            picture=self.album.picture(came.evidence.screenshot, personal=self._is_personal(came, found)),
            trace_href="" if self._is_personal(came, found) else self.album.link(came.evidence.trace),
            triage=triage_view(result, drawer, self.ratings.get(case.id)),
        )

    def _is_personal(self, came: Exchange | NoAnswer, found: Assessment) -> bool:
        """Whether its picture would show what the page's text hides."""
        text = came.visible_text if isinstance(came, Exchange) else came.partial_text
        return FailureKind.PII_DISCLOSURE in found.failure_kinds or self.redact(text) != text


def _earlier(result: CaseResult, drawer: TextMarker) -> tuple[TurnView, ...]:
    answers = result.result.earlier_answers if isinstance(result.result, Exchange) else ()
    turns = result.case.turns[:-1]
    padded = (*answers, *("" for _ in turns[len(answers) :]))
    return tuple(
        TurnView(drawer.plain(asked), drawer.plain(answered))
        for asked, answered in zip(turns, padded, strict=False)
    )


def _answers(came: Exchange | NoAnswer, grades: Sequence[Grade], drawer: TextMarker) -> tuple[AnswerView, ...]:
    match came:
        case Exchange():
            return _whole_answers(came, grades, drawer)
        case NoAnswer():
            partial = drawer.marked(came.partial_text, Channel.VISIBLE, grades)
            return (AnswerView("Partial text", partial, graded=False),) if partial else ()
        case _:
            assert_never(came)


def _whole_answers(came: Exchange, grades: Sequence[Grade], drawer: TextMarker) -> tuple[AnswerView, ...]:
    seen = drawer.marked(came.visible_text, Channel.VISIBLE, grades)
    if came.wire is None:
        return (AnswerView("Seen by the user", seen, graded=True),)
    sent = drawer.marked(came.wire.text, Channel.WIRE, grades)
    wire_graded = came.graded_channel is Channel.WIRE
    if came.wire.text == came.visible_text:
        return (AnswerView("Seen by the user, sent the same", sent if wire_graded else seen, graded=True),)
    views = (
        AnswerView("Seen by the user", seen, graded=not wire_graded),
        AnswerView("Sent over the wire", sent, graded=wire_graded),
    )
    return views[::-1] if wire_graded else views


def _grades(grades: Sequence[Grade], drawer: TextMarker) -> tuple[GradeView, ...]:
    views = (_grade(grade, drawer) for grade in grades)
    return tuple(sorted(views, key=lambda view: _GRADE_ORDER.index(view.result)))


def _grade(grade: Grade, drawer: TextMarker) -> GradeView:
    aspect, grader = grade.aspect.replace("_", " "), f"{grade.grader} {grade.version}"
    reason = drawer.plain(grade.reason)
    match grade:
        case Judged():
            about = FAILURE_WORDS[grade.failure_kind] if grade.failure_kind else aspect
            return GradeView("passed" if grade.passed else "failed", about, grader, reason, _lineage(grade))
        case Abstained():
            note = "" if grade.blame is Blame.MONITOR else f"because of {BLAME_WORDS[grade.blame]}"
            return GradeView("abstained", aspect, grader, reason, note)
        case _:
            assert_never(grade)


def answer_text(result: CaseResult) -> str:
    """What came back and was graded, or the partial text; raw."""
    came = result.result
    match came:
        case Exchange():
            return came.graded_text
        case NoAnswer():
            return came.partial_text
        case _:
            assert_never(came)


def _lineage(grade: Judged) -> str:
    parts: list[str] = []
    if grade.score is not None:
        parts.append(f"score {grade.score:.2f}")
    if grade.lineage is not None:
        parts.append(f"{grade.lineage.model}, rubric {grade.lineage.rubric_version}")
    if grade.cost_usd > Decimal(0):
        parts.append(f"${grade.cost_usd:.4f}")
    return ", ".join(parts)


def _attempt(attempt: Attempt) -> str:
    return f"{attempt.started_at:%H:%M:%S} {attempt.reason} ({attempt.blame}): {attempt.detail}"


def _facts(came: Exchange | NoAnswer) -> tuple[str, ...]:
    asked = f"asked {moment(came.asked_at)}"
    beside = f"{came.concurrency} at once"
    if isinstance(came, NoAnswer):
        return (asked, beside)
    took = f"answered in {seconds(came.timings.total_ms)}"
    first, opening, settling = came.timings.first_token_ms, came.timings.opening_ms, came.timings.settling_ms
    own = f"beside it, Lookout took {seconds(opening)} to open the page" if opening is not None else ""
    until = f"{seconds(settling)} to see that the answer was whole" if settling is not None else ""
    version = f"app version {came.app_version}" if came.app_version else ""
    cited = f"wire citations: {', '.join(came.listed_citations)}" if came.listed_citations else ""
    return tuple(
        fact
        for fact in (
            took,
            f"first token {seconds(first)}" if first is not None else "",
            " and ".join(part for part in (own, until) if part),
            asked,
            beside,
            version,
            cited,
        )
        if fact
    )
